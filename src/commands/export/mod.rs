#[cfg(feature = "exchange")]
pub(crate) mod folder;

use clap::Args;

#[cfg(feature = "report")]
use super::otlp;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Export the ledger to a folder that other systems can read
///
/// The folder must be empty or not exist yet; with `--format folders`, it may be one that is there:
/// the document of a handoff moves on to the folder of its state, and what other programs wrote stays. In addition to the format's own files, steps.jsonl
/// lists every step of the ledger, and the files that it names are written too, so that
/// `git handoff import` can rebuild the same ledger.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  git handoff export --format archive backup
  git handoff export --format files contracts-of-123 --issue 123
  git handoff export otlp > traces.jsonl")]
pub(crate) struct Arguments {
    #[cfg(feature = "report")]
    #[command(subcommand)]
    action: Option<Action>,
    #[cfg(feature = "exchange")]
    #[command(flatten)]
    folder: folder::FolderArgs,
}

#[cfg(feature = "report")]
#[derive(clap::Subcommand)]
enum Action {
    Otlp(otlp::Arguments),
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        #[cfg(feature = "report")]
        if let Some(Action::Otlp(arguments)) = &self.action {
            return arguments.run(context, output);
        }
        #[cfg(feature = "exchange")]
        return self.folder.run(context, output);
        #[cfg(not(feature = "exchange"))]
        Err(Failure::usage(
            "this build exports traces only: git handoff export otlp",
        ))
    }
}
