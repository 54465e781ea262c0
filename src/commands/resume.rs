use clap::Args;

use crate::args::text::Reason;
use crate::commands::{pause::ScopeArgs, reopen};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// End a pause: hand out the work of an issue, of an agent, of a protocol, or all, again
///
/// It goes on where it was. What of an issue waits has all of its time to be claimed again.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff resume --all --as orchestrator --reason 'the provider is back'
  git handoff resume 123 --as orchestrator --reason 'it is wanted'")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE", required_unless_present_any = ["all", "of_agent", "protocol"], conflicts_with_all = ["all", "of_agent", "protocol"])]
    issue: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    why: Reason,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match &self.issue {
            Some(issue) => reopen::reopen(issue, &self.why.reason, context, output),
            None => self.scope.change(context, (None, &self.why.reason), output),
        }
    }
}
