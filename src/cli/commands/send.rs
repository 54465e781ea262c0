use clap::Args;

use crate::cli::context::Context;
use crate::cli::environment::session;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::{input, render};
use crate::ids::{HandoffId, IssueKey};
use crate::ledger::Offer;

/// Hand work on with a contract
///
/// The contract is checked, and the step is one commit: the handoff that the
/// sender held is completed (failed or blocked, if the contract says so), and
/// the next one waits for its receiver. A sender must have claimed what it was
/// handed. The same contract again changes nothing and prints the first
/// receipt.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff send contract.xml
  generate-contract | git handoff send -
  git handoff send error.xml --issue 123      (a contract that names no issue)")]
pub(crate) struct Arguments {
    /// The contract, XML, JSON or a Markdown message; - reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The issue that a contract without an issue number is about; by default
    /// the one in which its sender works
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    /// The protocol that the contract follows; by default the issue's, or the
    /// first of the ledger's under which it is complete
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// The request that the contract answers, where its sender works on several
    /// in one issue; by default the newest
    #[arg(long, value_name = "ID")]
    answers: Option<String>,
    /// The token that your claim returned: a sender whose lease ran out and was
    /// taken over is refused
    #[arg(long, value_name = "N")]
    token: Option<u32>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let session = session(&repository)?;
        let ledger = context.ledger(&repository)?;
        let agent = context.agent(&repository)?;
        let issue = self
            .issue
            .as_deref()
            .map(str::parse::<IssueKey>)
            .transpose()?;
        let bytes = input::contract(&self.file)?;
        let protocol = self.protocol.as_deref().map(str::parse).transpose()?;
        let answers: Option<HandoffId> = self.answers.as_deref().map(str::parse).transpose()?;
        let offer = Offer {
            bytes: &bytes,
            agent: agent.as_ref(),
            issue: issue.as_ref(),
            protocol: protocol.as_ref(),
            answers: answers.map(|id| id.number()),
            token: self.token,
        };
        let done = ledger.send(&session, &offer)?;
        output.answer(&render::done_json(&done), &render::done_text(&done))?;
        render::say_next(&done, output);
        Ok(())
    }
}
