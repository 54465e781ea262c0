use std::io::IsTerminal;

use clap::Args;

use crate::context::Context;
use crate::context::worker::random_worker;
use crate::failure::Failure;
use crate::output::Output;
use handoff_mcp::{Fixed, ToolSet, serve};

/// Serve the ledger to an agent's harness over the Model Context Protocol
///
/// Reads requests from standard input and answers on standard output, one per line, until the
/// input ends. Its tools are commands, and return the document that `--json` prints; its resources
/// are issues, handoffs and contracts. It serves the repository of the folder it was started in.
///
/// With `--as`, the server acts only as that agent: a call that names another is refused.
/// Without it, each call names its agent; the default is GIT_HANDOFF_AGENT or handoff.agent.
///
/// A server is one worker: what it claims, it alone may finish. Its id is random unless
/// `--worker`, GIT_HANDOFF_WORKER or handoff.worker names one.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff mcp                                  (each call names its agent)
  git handoff mcp --as reviewer-agent              (all calls act as one agent)
  git handoff mcp --tools orchestrator             (for an agent that leads)
  claude mcp add git-handoff -- git handoff mcp
  codex mcp add git-handoff -- git handoff mcp")]
pub(crate) struct Arguments {
    /// The tools to offer: a model reads all of them when a session begins
    #[arg(long, value_name = "SET", value_enum, default_value_t)]
    tools: ToolSet,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        if let Some(agent) = context.named_agent() {
            match context.repository() {
                Ok(repository) => context.named(&repository, agent)?,
                Err(_) => agent.parse()?,
            };
        }
        if std::io::stdin().is_terminal() {
            output.say("this reads JSON from a harness, one message per line; Ctrl-D ends it");
        }
        serve(
            crate::COMMANDS,
            Fixed {
                agent: context.named_agent().map(str::to_owned),
                branch: context.branch().map(str::to_owned),
                worker: worker(context)?,
                tools: self.tools,
            },
        )
    }
}

/// The worker that the server is, if each call must be given it.
fn worker(context: &Context) -> Result<Option<String>, Failure> {
    let named = match context.repository() {
        Ok(repository) => context.named_worker(&repository)?,
        // The calls report what is wrong with the repository.
        Err(_) => None,
    };
    Ok(match named {
        Some(named) if named.is_shared() => None,
        Some(named) => Some(named.id.to_string()),
        None => Some(random_worker("mcp")),
    })
}
