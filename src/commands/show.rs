use clap::Args;
use handoff_base::text::plain;
use handoff_model::{Refusal, View};
use serde_json::json;

use crate::context::{Context, handoff_id};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::Output;
use crate::render;
use crate::render::advice::{options, options_json, options_text};

/// Show a handoff: its record, history and contract
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff show 123.4
  git handoff show 123.4 --contract > contract.xml     (byte for byte)")]
pub(crate) struct Arguments {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// Print only the contract, byte for byte
    #[arg(long, conflicts_with = "json")]
    contract: bool,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let id = handoff_id(&tip, &self.id, context.agent(&repository)?.as_ref())?;
        let folder = tip.issue(id.issue())?;
        let Some(issue) = folder.issue()? else {
            let issue = id.issue().clone();
            return Err(Refusal::no_issue(&issue).into());
        };
        let record = folder
            .record(id.number())?
            .ok_or_else(|| Refusal::no_handoff(&id))?;
        let bytes = folder.contract(&record)?;
        if self.contract {
            return output.raw(&bytes);
        }
        let contract = String::from_utf8_lossy(&bytes).into_owned();
        let now = now()?;
        let look = output.look(now);
        let rules = tip.rules(record.protocol.as_str())?;
        let options = options(rules.protocol(), &record, now);
        let mut notes = issue.annotations;
        notes.retain(|note| note.id.as_ref().is_none_or(|id| *id == record.id));
        let told = format!(
            "{}{}{}",
            render::record_text(&record, &look),
            render::notes_text(&notes),
            options_text(&options),
        );
        let text = format!("{}\n{}", look.sentences(&told), plain(&contract));
        let format = record.contract.format;
        let data = json!({
            "record": record,
            "expired": record.is_expired(now),
            "annotations": notes,
            "options": options_json(&options),
            "contract": { "format": format, "text": contract },
        });
        output.answer(&data, &text)
    }
}
