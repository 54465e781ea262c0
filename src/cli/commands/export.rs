use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::exchange::Format;
use crate::cli::output::Output;
use crate::ids::IssueKey;
use crate::ledger::{self, Export, Tally};

/// Write the ledger into a folder that other systems can read
///
/// The folder must not exist yet, or be empty. Beside what the format has,
/// steps.jsonl lists every step of the ledger, and the files that it names are
/// written too: `git handoff import` makes the same ledger of it again.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff export --format archive backup
  git handoff export --format files contracts-of-123 --issue 123")]
pub(crate) struct Arguments {
    /// How the folder is laid out
    #[arg(long, value_name = "FORMAT")]
    format: Format,
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Export only this issue
    #[arg(long, value_name = "ISSUE")]
    issue: Option<IssueKey>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tally = Tally::default();
        let wanted = Export {
            layout: self.format.into(),
            issue: self.issue.as_ref(),
            tally: Some(&tally),
        };
        let exported = || ledger::export(&ledger, &self.folder, wanted);
        let done = output.during(&tally, exported)?;
        let text = format!(
            "exported {} steps and {} handoffs to {}, {} files\n",
            done.steps,
            done.handoffs,
            self.folder.display(),
            done.files
        );
        let data = json!({
            "folder": self.folder,
            "steps": done.steps,
            "handoffs": done.handoffs,
            "files": done.files,
        });
        output.answer(&data, &text)
    }
}
