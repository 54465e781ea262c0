use clap::Args;

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::output::{Output, pretty};
use crate::ids::IssueKey;
use crate::ledger::{self, Refusal, View};

/// Print everything that an issue's contracts have accumulated
///
/// One JSON document: the issue, the newest value of every field, and each
/// handoff's record with what its contract says.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff context 123")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE")]
    issue: String,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let key: IssueKey = self.issue.parse()?;
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let folder = tip.issue(&key)?;
        let no_issue = || Refusal::NoIssue { issue: key.clone() };
        let issue = folder.issue()?.ok_or_else(no_issue)?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let data = ledger::context(&folder, &rules)?.ok_or_else(no_issue)?;
        let text = pretty(&data);
        output.answer(&data, &text)
    }
}
