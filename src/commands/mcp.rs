use std::io::IsTerminal;

use clap::Args;
use handoff_base::ids::AgentName;

use crate::context::Context;
use crate::failure::Failure;
use crate::mcp::{Fixed, serve};
use crate::output::Output;

/// Serve the ledger to an agent's harness over the Model Context Protocol
///
/// Reads requests on standard input and answers on standard output, a line each, until the
/// input ends. The verbs are its tools, what they answer is the document that `--json`
/// prints, and issues, handoffs and contracts are its resources. The repository is that of the
/// folder it was started in.
///
/// With `--as`, the server acts as that agent alone: a call that names another is refused.
/// Without, a call names its agent, or else GIT_HANDOFF_AGENT or handoff.agent does.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff mcp                                  (each call says who acts)
  git handoff mcp --as reviewer-agent              (all of them act as one)
  claude mcp add git-handoff -- git handoff mcp
  codex mcp add git-handoff -- git handoff mcp")]
pub(crate) struct Arguments {}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        if let Some(agent) = context.named_agent() {
            agent.parse::<AgentName>()?;
        }
        if std::io::stdin().is_terminal() {
            output.say("this speaks to a harness, a line of JSON each; Ctrl-D ends it");
        }
        serve(Fixed {
            agent: context.named_agent().map(str::to_owned),
            branch: context.branch().map(str::to_owned),
        })
    }
}
