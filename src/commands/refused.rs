use clap::{Args, Subcommand};
use handoff::base::ObjectId;
use handoff::base::text::{continued, fenced, word};
use handoff::ledger::{Ledger, Rejected};
use schemars::JsonSchema;
use serde::Serialize;

use super::sync::say_unpushed;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output};
use crate::view::Look;

/// List, show, retry or drop the steps that were refused during a sync
///
/// A step made offline that the remote's state refuses is kept under
/// refs/handoff/rejected/, with the reason, until you retry or drop it.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff refused
  git handoff refused show 7.3-1a2b3c4d5e
  git handoff refused retry 7.3-1a2b3c4d5e
  git handoff refused drop 7.3-1a2b3c4d5e")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Subcommand)]
enum Action {
    /// List the refused steps
    #[command(after_help = "Example:\n  git handoff refused list --json")]
    List(PageArgs),
    /// Show a refused step: what it did, why it was refused, and its contract
    #[command(after_help = "Example:\n  git handoff refused show 7.3-1a2b3c4d5e")]
    Show {
        /// The name under which it is kept
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Retry a refused step on the ledger as it is now
    #[command(after_help = "Example:\n  git handoff refused retry 7.3-1a2b3c4d5e")]
    Retry {
        /// The name under which it is kept
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Drop a refused step
    #[command(after_help = "Example:\n  git handoff refused drop 7.3-1a2b3c4d5e")]
    Drop {
        /// The name under which it is kept
        #[arg(value_name = "NAME")]
        name: String,
    },
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        match &self.action {
            None => list(&context.ledger(&repository)?, &self.page, output),
            Some(Action::List(page)) => list(&context.ledger(&repository)?, page, output),
            Some(Action::Show { name }) => {
                output.paged();
                show(&context.ledger(&repository)?, name, output)
            }
            Some(Action::Retry { name }) => {
                let (mut ledger, session) = context.writer(&repository, output)?;
                let rejected = ledger.retry_rejected(&session, name)?;
                output.follow(&ledger);
                let commit = ledger.tip_id()?;
                output.answer(&EndedView { rejected, commit })?;
                say_unpushed(&ledger, output)
            }
            Some(Action::Drop { name }) => {
                let ledger = context.ledger(&repository)?;
                let rejected = ledger.drop_rejected(name)?;
                let kept = rejected.commit;
                let commit = None;
                output.answer(&EndedView { rejected, commit })?;
                output.say(&format!(
                    "`git show {kept}` still shows it until git collects garbage"
                ));
                Ok(())
            }
        }
    }
}

fn list(ledger: &Ledger<'_>, page: &PageArgs, output: &mut Output) -> Result<(), Failure> {
    output.paged();
    let mut rejected = ledger.rejected()?;
    let page = page.cut(&mut rejected, |step| step.name.clone(), output)?;
    let view = RejectedView { rejected, page };
    output.answer(&view)?;
    if let Some(first) = view.rejected.first() {
        let name = word(&first.name);
        output.say(&format!("next: git handoff refused show {name}"));
        for verb in ["retry", "drop"] {
            output.say(&format!("  or: git handoff refused {verb} {name}"));
        }
    }
    Ok(())
}

fn show(ledger: &Ledger<'_>, name: &str, output: &mut Output) -> Result<(), Failure> {
    let (rejected, message, contract) = ledger.rejected_step(name)?;
    output.answer(&RejectedStepView {
        rejected,
        message,
        contract: contract.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    })
}

/// The refused steps.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RejectedList")]
pub(crate) struct RejectedView {
    /// each refused step that is kept
    rejected: Vec<Rejected>,
    #[serde(flatten)]
    page: Page,
}

impl Answer for RejectedView {
    fn text(&self, look: &Look) -> String {
        match &self.rejected[..] {
            [] => "no step was refused\n".to_owned(),
            rejected => {
                let text: String = rejected.iter().map(text).collect();
                look.sentences(&text) + self.page.text()
            }
        }
    }
}

/// A refused step and its content.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RejectedStep")]
pub(crate) struct RejectedStepView {
    #[serde(flatten)]
    rejected: Rejected,
    /// the commit's message
    message: String,
    /// the contract that it sent
    contract: Option<String>,
}

impl Answer for RejectedStepView {
    fn text(&self, _: &Look) -> String {
        let mut text = format!(
            "{}  commit {}\n\n{}",
            text(&self.rejected),
            self.rejected.commit,
            fenced(&self.message, "")
        );
        if let Some(contract) = &self.contract {
            text += &format!("\n{}", fenced(contract, ""));
        }
        text
    }
}

/// A refused step that is no longer kept: it was accepted, or dropped.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EndedStep")]
pub(crate) struct EndedView {
    /// the step
    rejected: Rejected,
    /// with `retry`: where the branch is now
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<ObjectId>,
}

impl Answer for EndedView {
    fn text(&self, _: &Look) -> String {
        let ended = self.commit.map_or("dropped", |_| "accepted");
        format!("{ended}: {}\n", continued(&self.rejected.subject))
    }
}

/// A refused step as text.
fn text(rejected: &Rejected) -> String {
    let Rejected {
        name,
        subject,
        reason,
        ..
    } = rejected;
    format!(
        "{}  {}\n  {}\n",
        continued(name),
        continued(subject),
        continued(reason)
    )
}
