use clap::Args;
use handoff_base::text::fenced;
use handoff_contract::Format;
use handoff_ledger::OtherProtocol;
use handoff_model::{Annotation, Record, Refusal, RefusedContract, View};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::{Context, handoff_id};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::render;
use crate::render::advice::{ActionOption, claimed_offline, options, options_text};
use crate::view::Look;

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
        let now = now()?;
        let rules = tip.rules(record.protocol.as_str())?;
        let options = options(rules.protocol(), &record, now);
        // What its agents tried since it was sent.
        let mut refusals = issue.refusals;
        let sent = record.sent_at();
        refusals.retain(|refused| {
            [&record.from, &record.to].contains(&&refused.by) && Some(refused.at) >= sent
        });
        let mut notes = issue.annotations;
        notes.retain(|note| note.id.as_ref().is_none_or(|id| *id == record.id));
        output.answer(&ShowView {
            other_protocol: tip.other_protocol(&record.protocol)?,
            unpublished: ledger.lacks_claim(&record)?,
            expired: record.is_expired(now),
            refusals,
            annotations: notes,
            options,
            contract: ContractText {
                format: record.contract.format,
                text: String::from_utf8_lossy(&bytes).into_owned(),
            },
            record,
        })
    }
}

/// A handoff.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Show")]
pub(crate) struct ShowView {
    /// the handoff
    record: Record,
    /// its protocol, if it is not the ledger's default one
    #[serde(skip_serializing_if = "Option::is_none")]
    other_protocol: Option<OtherProtocol>,
    /// whether its lease, or the time to claim it, expired and nobody has recorded it yet
    expired: bool,
    /// the remote that does not have its claim yet, which was made here offline
    unpublished: Option<String>,
    /// contracts of its sender and receiver that were refused since it was sent, if the protocol
    /// wants them on record
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<RefusedContract>,
    /// the notes about it and about the whole issue
    annotations: Vec<Annotation>,
    /// what the protocol allows for a handoff that needs attention
    options: Vec<ActionOption>,
    /// its contract
    contract: ContractText,
}

/// A contract as text.
#[derive(Serialize, JsonSchema)]
struct ContractText {
    /// its format
    format: Format,
    /// its text; bytes that are not UTF-8 are replaced, `show --contract` has them
    text: String,
}

impl Answer for ShowView {
    fn text(&self, look: &Look) -> String {
        let unpublished = self.unpublished.as_ref();
        let unpublished = unpublished.map(|remote| format!("  {}\n", claimed_offline(remote)));
        let about = format!(
            "{}{}{}{}{}",
            render::record_text(&self.record, look),
            render::other_protocol(self.other_protocol.as_ref()),
            unpublished.unwrap_or_default() + &render::refusals_text(&self.refusals, look),
            render::notes_text(&self.annotations),
            options_text(&self.options),
        );
        let contract = fenced(&self.contract.text, self.contract.format.extension());
        format!("{}\n{contract}", look.sentences(&about))
    }
}
