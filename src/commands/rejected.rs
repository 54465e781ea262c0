use clap::{Args, Subcommand};
use handoff_base::text::plain;
use handoff_ledger::{Ledger, Rejected};
use serde_json::{Value, json};

use crate::context::Context;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::Output;

/// List, show, retry or drop the steps that were refused during a sync
///
/// A step made offline that the remote's state refuses is kept under
/// refs/handoff/rejected/, with the reason, until you retry or drop it.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff rejected
  git handoff rejected show 7.3-1a2b3c4d5e
  git handoff rejected retry 7.3-1a2b3c4d5e
  git handoff rejected drop 7.3-1a2b3c4d5e")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// List the refused steps
    #[command(after_help = "Example:\n  git handoff rejected list --json")]
    List,
    /// Show a refused step: what it did, why it was refused, and its contract
    #[command(after_help = "Example:\n  git handoff rejected show 7.3-1a2b3c4d5e")]
    Show {
        /// The name under which it is kept
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Retry a refused step on the ledger as it is now
    #[command(after_help = "Example:\n  git handoff rejected retry 7.3-1a2b3c4d5e")]
    Retry {
        /// The name under which it is kept
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Drop a refused step
    #[command(after_help = "Example:\n  git handoff rejected drop 7.3-1a2b3c4d5e")]
    Drop {
        /// The name under which it is kept
        #[arg(value_name = "NAME")]
        name: String,
    },
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        match &self.action {
            None | Some(Action::List) => {
                output.paged();
                list(&context.ledger(&repository)?, output)
            }
            Some(Action::Show { name }) => {
                output.paged();
                show(&context.ledger(&repository)?, name, output)
            }
            Some(Action::Retry { name }) => {
                let (mut ledger, session) = context.writer(&repository, output)?;
                let rejected = ledger.retry_rejected(&session, name)?;
                output.follow(&ledger);
                let tip = ledger.tip_id()?.map(|id| id.to_string());
                let data = json!({ "rejected": rejected, "commit": tip });
                output.answer(&data, &format!("accepted: {}\n", plain(&rejected.subject)))
            }
            Some(Action::Drop { name }) => {
                let ledger = context.ledger(&repository)?;
                let rejected = ledger.drop_rejected(name)?;
                let text = format!("dropped: {}\n", plain(&rejected.subject));
                output.answer(&json!({ "rejected": rejected }), &text)?;
                output.say(&format!(
                    "`git show {}` still shows it until git collects garbage",
                    rejected.commit
                ));
                Ok(())
            }
        }
    }
}

fn list(ledger: &Ledger<'_>, output: &mut Output) -> Result<(), Failure> {
    let rejected = ledger.rejected()?;
    let shown: String = rejected.iter().map(text).collect();
    let mut text = output.look(now()?).sentences(&shown);
    if rejected.is_empty() {
        text = "no step was refused\n".to_owned();
    }
    output.answer(&json!({ "rejected": rejected }), &text)?;
    if let Some(first) = rejected.first() {
        let name = plain(&first.name);
        output.say(&format!(
            "next: git handoff rejected show|retry|drop {name}"
        ));
    }
    Ok(())
}

/// One refused step, as text.
fn text(rejected: &Rejected) -> String {
    let Rejected {
        name,
        subject,
        reason,
        ..
    } = rejected;
    format!("{}  {}\n  {}\n", plain(name), plain(subject), plain(reason))
}

fn show(ledger: &Ledger<'_>, name: &str, output: &mut Output) -> Result<(), Failure> {
    let (rejected, message, contract) = ledger.rejected_step(name)?;
    let document = contract.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let mut data: Value = json!(rejected);
    data["message"] = json!(message);
    data["contract"] = json!(document);
    let mut text = format!(
        "{}  commit {}\n\n{}",
        text(&rejected),
        rejected.commit,
        plain(&message)
    );
    if let Some(document) = document {
        text += &format!("\n{}", plain(&document));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    output.answer(&data, &text)
}
