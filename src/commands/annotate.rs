use clap::Args;
use handoff::base::ids::{HandoffId, IssueKey};
use handoff::base::text::quoted;
use handoff::model::Update;
use serde_json::{Map, Value};

use crate::args::text;
use crate::context::Context;
use crate::contracts::usage::UsageReport;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use crate::render::receipt::ReceiptView;

/// Correct what is recorded by adding a note
///
/// What was handed over stays unchanged; the note states the correction, in a step of its own. Any
/// agent may add one at any time, even to finished work; no state changes.
///
/// With `--fact`, the note also changes what is known of the issue: the next contracts must say the
/// same. A fact is for its source to note: what events of GitHub prove for them or a person, what
/// contracts state for an orchestrator too (`help gate.md`). With `--usage` alone, it only says what the
/// work took.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff annotate 123.4 --as reviewer-agent \\
      --note 'finding 2 is about src/parse.rs, not src/main.rs'
  git handoff annotate 123 --as orchestrator --note 'merged by hand, see #130'
  git handoff annotate 123 --as orchestrator --fact pr_number=72 \\
      --fact pr_url=https://forge.example/o/r/pull/72 \\
      --note 'the first pull request had the wrong base'")]
pub(crate) struct Arguments {
    /// The handoff, or the issue for a note about all of it
    #[arg(value_name = "ID|ISSUE")]
    id: String,
    /// The text of the note
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_aliases = ["message", "reason"],
        visible_short_alias = 'm',
        required_unless_present = "usage"
    )]
    note: Option<String>,
    /// A fact that changed; contracts must agree with it
    #[arg(long = "fact", value_name = "NAME=VALUE")]
    facts: Vec<String>,
    #[command(flatten)]
    usage: UsageReport,
}

impl Arguments {
    /// The facts by name; a value that is JSON, such as a number, is stored as that.
    fn facts(&self) -> Result<Map<String, Value>, Failure> {
        let facts = self.facts.iter().map(|fact| {
            let Some((name, value)) = fact.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                let text = format!("{} is not a fact", quoted(fact));
                let hint = "write it as NAME=VALUE, such as `--fact pr_number=72`";
                return Err(Failure::new(ErrorCode::Usage, text).hint(hint));
            };
            text::no_placeholder(value)?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            Ok((name.to_owned(), value))
        });
        facts.collect()
    }

    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let note = self.note.as_deref().map(text::kept).transpose()?;
        let note = note.unwrap_or_default();
        let handoff: Option<HandoffId> = if self.id.contains('.') {
            Some(self.id.parse()?)
        } else {
            None
        };
        let issue: IssueKey = match &handoff {
            Some(id) => id.issue().clone(),
            None => self.id.parse()?,
        };
        let facts = self.facts()?;
        if let Some(value) = facts.get("priority") {
            let text = "the queue goes by the priority: a note of it would have no effect";
            let word = value.as_str().unwrap_or("WORD");
            let hint = format!("`git handoff set {issue} priority={word} --reason WHY` sets it");
            return Err(Failure::usage(text).hint(hint));
        }
        let annotate = Update::Annotate {
            handoff: handoff.as_ref().map(HandoffId::number),
            note,
            facts,
            approval: None,
        };
        let repository = context.repository()?;
        let agent = context.acting_agent(&repository)?;
        let usage = self.usage.read(context)?;
        let (mut ledger, mut session) = context.writer(&repository, output)?;
        session.usage = usage;
        let done = ledger.update(&session, &agent, &issue, &annotate)?;
        output.follow(&ledger);
        let about = handoff.map_or_else(|| format!("issue {issue}"), |id| id.to_string());
        let text = match done.commit {
            Some(commit) => format!("note added to {about}\n  commit {}\n", commit.short()),
            None => format!("{about} already has this note; nothing was written\n"),
        };
        let receipt = ReceiptView::new(&done, output)?.with_text(text);
        output.answer(&receipt)?;
        receipt.say_warnings(output);
        Ok(())
    }
}
