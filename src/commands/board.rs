use clap::Args;

use crate::args::filter::Filter;
use crate::args::remote::PollArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Show what is open as a live board on the terminal
///
/// A column for what needs somebody, a person first, and one for each agent with open
/// handoffs: their state, age, attempt and worker. It follows the ledger, and its remote if
/// it has one, and reads only what is open.
///
/// The arrows or hjkl move, Enter looks into a handoff (history, contract, failure, the
/// branch's diff), / filters by words or by a query as --where takes it, q leaves, ? shows all
/// keys. The keys a, r, s, c, p and x answer,
/// retry, reassign, cancel, approve and reject: each asks for what it needs, shows the command,
/// and runs it as the agent that --as names.
///
/// Ends with exit code 0 when it is closed or interrupted, and leaves the terminal as it was.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff board
  git handoff board --as orchestrator
  git handoff board --state failed --state blocked --label bug
  git handoff board --offline      (only what this clone has)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    looks: PollArgs,
    #[command(flatten)]
    filter: Filter,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        handoff_board::run(context, self.looks, &self.filter, output)
    }
}
