use std::ffi::OsString;
use std::io::IsTerminal;

use clap::Args;

use crate::context::Context;
use crate::context::call::{Call, Commands, Misused};
use crate::context::worker::random_worker;
use crate::failure::Failure;
use crate::output::{Kept, Output};
use crate::{misuse, parsed, perform};
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
            COMMANDS,
            Fixed {
                agent: context.named_agent().map(str::to_owned),
                branch: context.branch().map(str::to_owned),
                worker: worker(context)?,
                tools: self.tools,
            },
        )
    }
}

/// The worker id of the server, if it must be passed to each call.
fn worker(context: &Context) -> Result<Option<String>, Failure> {
    let named = match context.repository() {
        Ok(repository) => context.named_worker(&repository)?,
        // The calls report faults of the repository.
        Err(_) => None,
    };
    Ok(match named {
        Some(named) if named.is_shared() => None,
        Some(named) => Some(named.id.to_string()),
        None => Some(random_worker("mcp")),
    })
}

/// The commands, for the modules that run them within this process.
pub(crate) const COMMANDS: Commands = Commands {
    definition: crate::command,
    accepts: |arguments| parsed(arguments).is_ok(),
    run: document,
};

fn document(arguments: &[OsString], call: Call, misused: Misused<'_>) -> Kept {
    let mut output = Output::kept();
    match parsed(arguments) {
        Ok(cli) => {
            let context = Context::of_call(cli.global, call);
            perform(cli.command.as_ref(), &context, &mut output, arguments);
        }
        Err(error) => {
            let failure = misused(&error).unwrap_or_else(|| misuse(&error, arguments));
            output.fail(&failure);
        }
    }
    output.into_kept()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use handoff_mcp::verbs::{Effect, VERBS};

    use crate::Cli;

    #[test]
    fn what_a_tool_is_said_to_do_is_what_its_command_does() {
        for verb in VERBS {
            let all = crate::command();
            let mut words = verb.words.iter();
            let command = words.try_fold(&all, |command, word| command.find_subcommand(word));
            let command = command.unwrap_or_else(|| panic!("{verb:?} is no command"));
            let known = |id: &str| command.get_arguments().any(|a| a.get_id().as_str() == id);
            let named = verb.without.iter().chain(&verb.contract);
            let preset = verb.preset.iter().map(|(id, _)| id);
            for id in named.chain(preset) {
                assert!(known(id), "{} has no {id}", verb.name());
            }
            let needed = command.get_arguments().filter(|a| a.is_required_set());
            let mut line = vec!["git-handoff".to_owned()];
            line.extend(verb.words.iter().map(|word| (*word).to_owned()));
            for argument in needed {
                line.extend(argument.get_long().map(|long| format!("--{long}")));
                line.push("1".to_owned());
            }
            // Some tools need one of several arguments, which clap marks on none of them.
            if [
                "cancel", "check", "claim", "gate", "graph", "pause", "reassign", "retry", "send",
                "wait",
            ]
            .contains(&verb.words[0])
            {
                line.push("1".to_owned());
            }
            if verb.words[0] == "annotate" {
                line.push("--note=1".to_owned());
            }
            let parsed = crate::Cli::try_parse_from(&line);
            let parsed: Cli = parsed.unwrap_or_else(|error| panic!("{line:?}: {error}"));
            if parsed.command.is_some_and(|command| command.only_reads()) {
                assert_eq!(verb.effect, Effect::Reads, "{}", verb.name());
            }
        }
    }
}
