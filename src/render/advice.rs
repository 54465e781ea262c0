//! What should happen next, as commands that can be run.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_base::text::{continued, word};
use handoff_ledger::{IssueFolder, LedgerError};
use handoff_model::{Advice, Choice, Question, Record, choices, decider};
use handoff_protocol::{Action, AgentKind, Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

/// What may be done about a handoff that needs attention.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Option")]
pub(crate) struct ActionOption {
    /// `retry`, `reassign`, `ask` or `terminate`
    action: Action,
    /// the command that does it
    command: String,
}

/// The options for a handoff that needs attention.
///
/// # Errors
/// [`LedgerError`] if a record can't be read.
pub(crate) fn options(
    protocol: &Protocol,
    folder: &IssueFolder<'_>,
    record: &Record,
    at: Moment,
) -> Result<Vec<ActionOption>, LedgerError> {
    let by = decider(protocol, &record.from);
    let choices = choices(protocol, folder, record, by, at)?;
    let option = |choice: Choice| {
        let action = match &choice {
            Choice::Retry | Choice::Redrive => Action::Retry,
            Choice::Reassign(_) => Action::Reassign,
            Choice::Answer | Choice::Ask(..) => Action::Ask,
            Choice::Terminate => Action::Terminate,
        };
        let command = command(record, &choice, by);
        ActionOption { action, command }
    };
    Ok(choices.into_iter().map(option).collect())
}

fn command(record: &Record, choice: &Choice, by: &AgentName) -> String {
    let id = &record.id;
    match choice {
        Choice::Retry | Choice::Redrive => {
            format!("git handoff retry {id} --as {by} --reason WHY")
        }
        Choice::Reassign(to) => {
            format!("git handoff reassign {id} --to {to} --as {by} --reason WHY")
        }
        Choice::Answer => answer(record, by),
        Choice::Ask(from, person) => {
            format!(
                "git handoff new --issue {} --from {from} --to {person}",
                id.issue()
            )
        }
        Choice::Terminate => format!("git handoff cancel {id} --as {by} --reason WHY"),
    }
}

/// The command that answers a blocked handoff: with a value for each key, or with text.
pub(crate) fn answer(record: &Record, by: &AgentName) -> String {
    // One that is not a name could be read as an option, or be a whole sentence.
    let plain_key = |key: &str| {
        let simple = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        !key.is_empty() && !key.starts_with('-') && key.chars().all(simple)
    };
    let needed: Vec<&Question> = record.questions().iter().filter(|q| !q.optional).collect();
    let arguments = match &needed[..] {
        [] => "ANSWER".to_owned(),
        needed if needed.iter().all(|q| plain_key(&q.key)) => {
            let pairs: Vec<String> = needed
                .iter()
                .map(|q| word(&format!("{}=VALUE", q.key)).into_owned())
                .collect();
            pairs.join(" ")
        }
        _ => "answers.json".to_owned(),
    };
    format!("git handoff answer {} {arguments} --as {by}", record.id)
}

/// The options as lines under a title.
pub(crate) fn options_text(options: &[ActionOption]) -> String {
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
pub(crate) fn questions_text(questions: &[Question]) -> String {
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

/// The commands that carry out an advice, or those that come after it if it was decided already.
pub(crate) fn commands(
    (advice, record): (&Advice, &Record),
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    now: Moment,
) -> Result<Vec<String>, LedgerError> {
    let (id, by) = (&advice.id, &advice.agent);
    let apply = format!("git handoff next {} --apply --as {by}", id.issue());
    if advice.by_contract {
        let claim = format!("git handoff claim {id} --as {by}");
        let to = advice.to.as_ref().map_or("AGENT", AgentName::as_str);
        let send = format!(
            "git handoff new --issue {} --from {by} --to {to}",
            id.issue()
        );
        let waits = record.state == State::Pending;
        return Ok(waits.then_some(claim).into_iter().chain([send]).collect());
    }
    Ok(match advice.action {
        Action::Ask => vec![answer(record, by)],
        // It waits for what was given up.
        Action::Escalate if record.state == State::Pending => vec![
            format!(
                "git handoff new --issue {} --from {by} --to {}",
                id.issue(),
                record.to
            ),
            format!("git handoff cancel {id} --as {by} --reason WHY"),
        ],
        Action::Escalate | Action::FallBack if advice.decided.is_some() => {
            // A person may decide about everything, any other agent only about what it leads.
            let is_person = protocol.is_kind(by.as_str(), AgentKind::Human);
            let by = Some(by).filter(|_| is_person);
            let by = by.unwrap_or_else(|| decider(protocol, &record.from));
            let choices = choices(protocol, folder, record, by, now)?;
            let choices = choices.iter().map(|choice| command(record, choice, by));
            let show = format!("git handoff show {id}");
            [show].into_iter().chain(choices).collect()
        }
        Action::Escalate | Action::FallBack => vec![format!("git handoff show {id}"), apply],
        Action::Advance => Vec::new(),
        _ => vec![apply],
    })
}

/// What to know of a claim that the remote does not have.
pub(crate) fn claimed_offline(remote: &str) -> String {
    let remote = continued(remote);
    format!("claimed here offline; {remote} does not have it yet: git handoff sync")
}
