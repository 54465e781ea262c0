use clap::Args;
use handoff_base::ids::{HandoffId, IssueKey};
use handoff_model::Update;
use serde_json::Map;

use crate::args::text;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::receipt::ReceiptView;

/// Correct what is recorded by adding a note
///
/// What was handed over stays unchanged; the note states the correction. It is an ordinary step:
/// one commit, by an agent, that `show`, `status`, `context` and `log` show. Any agent may add one
/// at any time, even to finished work; no state changes.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff annotate 123.4 --as reviewer-agent \\
      --note 'finding 2 is about src/parse.rs, not src/main.rs'
  git handoff annotate 123 --as orchestrator --note 'merged by hand, see #130'")]
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
        visible_short_alias = 'm'
    )]
    note: String,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let note = text::kept(&self.note)?;
        let handoff: Option<HandoffId> = if self.id.contains('.') {
            Some(self.id.parse()?)
        } else {
            None
        };
        let issue: IssueKey = match &handoff {
            Some(id) => id.issue().clone(),
            None => self.id.parse()?,
        };
        let annotate = Update::Annotate {
            handoff: handoff.as_ref().map(HandoffId::number),
            note,
            facts: Map::new(),
        };
        let repository = context.repository()?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let agent = context.acting_agent(&repository)?;
        let done = ledger.update(&session, &agent, &issue, &annotate)?;
        output.follow(&ledger);
        let about = handoff.map_or_else(|| format!("issue {issue}"), |id| id.to_string());
        let text = match done.commit {
            Some(commit) => format!("note added to {about}\n  commit {}\n", commit.short()),
            None => format!("{about} already has this note; nothing was written\n"),
        };
        output.answer(&ReceiptView::new(&done).with_text(text))
    }
}
