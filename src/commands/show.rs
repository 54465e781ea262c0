use clap::Args;
use handoff::ledger::attention::turn_in;

use super::next::say_turn;
use crate::args::remote::AskArgs;
use crate::context::fresh::Reading;
use crate::context::{Context, fresh, handoff_id};
use crate::environment::now;
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
    #[command(flatten)]
    asks: AskArgs,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let reading = context.fresh(&repository, self.asks.offline, output)?;
        let Reading { ledger, tip, fresh } = reading;
        let id = handoff_id(&tip, &self.id, context.agent(&repository)?.as_ref())?;
        let stored = Stored::read(&tip, &id)?;
        if self.contract {
            return output.raw(&stored.contract);
        }
        let rules = tip.rules(stored.record.protocol.as_str())?;
        let (_, next) = turn_in(&tip.issue(id.issue())?, rules.protocol(), now()?)?;
        let mut view = stored.view(&ledger, &tip)?;
        view.complete(output);
        output.answer(&view)?;
        say_turn(next.as_ref(), &[], output);
        fresh::say(fresh.as_ref(), output);
        Ok(())
    }
}
