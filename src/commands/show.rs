use clap::Args;

use crate::context::{Context, handoff_id};
use crate::failure::Failure;
use crate::output::Output;
use crate::render::stored::Stored;

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
    /// No other way: it asks no remote
    #[arg(long = "offline", hide = true)]
    _offline: bool,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let id = handoff_id(&tip, &self.id, context.agent(&repository)?.as_ref())?;
        output.tell_pauses(&tip);
        let stored = Stored::read(&tip, &id)?;
        if self.contract {
            return output.raw(&stored.contract);
        }
        output.carry(context.carried_at(&repository, &tip));
        let mut view = stored.view(&ledger, &tip)?;
        view.complete(output);
        output.answer(&view)
    }
}
