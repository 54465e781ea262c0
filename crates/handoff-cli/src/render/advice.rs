//! Advice on what to do next, as runnable commands.

use handoff::base::text::continued;
use handoff::model::Question;
use handoff::model::view::commands::ActionOption;

/// The options as lines under a title.
pub fn options_text(options: &[ActionOption]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let lines = options.iter().map(|ActionOption { action, command }| {
        let action = action.as_str();
        format!("  {action:<9} {command}\n")
    });
    format!("\noptions\n{}", lines.collect::<String>())
}

/// Questions as lines.
pub fn questions_text(questions: &[Question]) -> String {
    let line = |question: &Question| {
        let kind = question.kind.as_ref().map(|kind| format!(" ({kind})"));
        let description = question
            .description
            .as_ref()
            .map(|description| format!(": {description}"));
        let optional = if question.optional { ", optional" } else { "" };
        let (kind, description) = (kind.unwrap_or_default(), description.unwrap_or_default());
        format!(
            "  {}\n",
            continued(&format!("{}{kind}{optional}{description}", question.key))
        )
    };
    questions.iter().map(line).collect()
}

/// The remark about a claim that the remote lacks.
pub fn claimed_offline(remote: &str) -> String {
    let remote = continued(remote);
    format!("claimed here offline; {remote} does not have it yet: git handoff sync")
}
