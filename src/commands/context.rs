use clap::Args;
use handoff_base::ids::IssueKey;
use handoff_base::text::plain;
use handoff_model::{Refusal, View};
use serde_json::Value;

use crate::context::Context;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::Output;
use crate::render;

/// Print everything that an issue's contracts have accumulated
///
/// Prints what is known about the issue, and each contract as it was sent, oldest first. With
/// --json, also prints the newest value of every field, and each handoff's record.
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
        let no_issue = || Refusal::no_issue(&key);
        let issue = folder.issue()?.ok_or_else(no_issue)?;
        if output.is_json() {
            let rules = tip.rules(issue.protocol.as_str())?;
            let data = handoff_ledger::context(&folder, &rules)?.ok_or_else(no_issue)?;
            return output.answer(&data, "");
        }
        output.paged();
        let records = folder.records()?;
        let look = output.look(now()?);
        let mut text = render::issue_text(&issue, &records, &look);
        for record in &records {
            let contract = folder.contract(record)?;
            let contract = String::from_utf8_lossy(&contract);
            text += &format!(
                "\n{}\n\n{}\n",
                render::headline(record),
                plain(contract.trim_end())
            );
        }
        output.answer(&Value::Null, &text)
    }
}
