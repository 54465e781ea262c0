use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Gate, append, target};
use crate::cli::context::Context;
use crate::cli::environment::now;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::replace::is_stdout;
use crate::cli::standing;
use crate::github::standing::Issue;
use crate::github::summary::{MOST_SUMMARY, of_issue, of_ledger, of_none};
use crate::ids::IssueKey;

/// Write how an issue or the ledger stands beneath the workflow's run
///
/// Appends Markdown to the file that GITHUB_STEP_SUMMARY names: where it stands, what
/// needs attention, what a merge requires, what failed, a drawing of what happened, and
/// the handoffs. GitHub takes 1 MiB of a step, with what is in the file already: what
/// is too much is left out from the end, and that is said. Words of contracts stand as
/// code, so that nobody is mentioned and nothing is a link.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github summary 123
  git handoff github summary 123 --require approved --head HEAD
  git handoff github summary --output -      (of the whole ledger, to look at)")]
pub(crate) struct Arguments {
    /// The issue; without one, the ledger
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    #[command(flatten)]
    gate: Gate,
    /// Append to this file instead; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let file = match output.is_json() && self.output.is_none() {
            true => None,
            false => Some(target(self.output.as_ref(), "GITHUB_STEP_SUMMARY")?),
        };
        let file = file.filter(|file| !is_stdout(file));
        let repository = context.repository_to_survey()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let there = file.as_ref().and_then(|file| fs::metadata(file).ok());
        let there = there.map_or(0, |file| {
            usize::try_from(file.len()).unwrap_or(MOST_SUMMARY)
        });
        // One for the line break where the file does not end with one.
        let room = MOST_SUMMARY.saturating_sub(there + 1);
        let page = match self
            .issue
            .as_deref()
            .map(str::parse::<IssueKey>)
            .transpose()?
        {
            Some(key) => {
                let asked = self.gate.asked(&repository)?;
                let standing = Issue::read(&repository, &tip, &key, asked, now()?)?;
                match standing {
                    Some(standing) => of_issue(&standing, room),
                    None => of_none(&key),
                }
            }
            None => of_ledger(&standing::of_ledger(&ledger, &tip, now()?)?, room),
        };
        let data = json!({
            "bytes": page.text.len(),
            "left_out": page.left_out,
            "text": page.text,
        });
        if !page.left_out.is_empty() {
            output.say(&format!("left out: {}", page.left_out.join(", ")));
        }
        match file {
            Some(file) => {
                append(&file, &page.text)?;
                let shown = format!("{} bytes written to {}\n", page.text.len(), file.display());
                output.answer(&data, &shown)
            }
            None => output.answer(&data, &page.text),
        }
    }
}
