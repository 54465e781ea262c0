use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::output::{Output, columns, state};
use crate::cli::render;
use crate::ids::IssueKey;
use crate::ledger::{Refusal, View};
use crate::protocol::State;

/// Show what is open, or where one issue stands
#[derive(Args)]
#[command(after_help = "Examples:\n  git handoff status\n  git handoff status 123 --json")]
pub(crate) struct Arguments {
    /// The issue; without one, everything that is open
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        if let Some(issue) = &self.issue {
            let key: IssueKey = issue.parse()?;
            let folder = tip.issue(&key)?;
            let issue = folder.issue()?.ok_or(Refusal::NoIssue { issue: key })?;
            let records = folder.records()?;
            let text = render::issue_text(&issue, &records);
            return output.answer(&json!({ "issue": issue, "handoffs": records }), &text);
        }
        let mut records = Vec::new();
        for entry in tip.open()? {
            records.push(tip.open_record(&entry)?);
        }
        let mut counts = serde_json::Map::new();
        let mut words = Vec::new();
        for one in State::ALL.into_iter().filter(|s| !s.is_terminal()) {
            let count = records.iter().filter(|r| r.state == one).count();
            counts.insert(one.to_string(), count.into());
            if count > 0 {
                words.push(format!("{count} {}", state(one)));
            }
        }
        let said = if words.is_empty() {
            "nothing is open".to_owned()
        } else {
            words.join(", ")
        };
        let mut text = format!(
            "ledger {} at {}: {said}\n",
            ledger.branch(),
            tip.commit().short()
        );
        text += &columns(&records.iter().map(render::row).collect::<Vec<_>>());
        let data = json!({
            "branch": ledger.branch(),
            "commit": tip.commit().to_string(),
            "protocol": tip.manifest().default_protocol,
            "open": counts,
            "handoffs": records,
        });
        output.answer(&data, &text)
    }
}
