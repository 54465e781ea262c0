use clap::Args;
use handoff::base::ids::IssueKey;
use handoff::ledger::attention::of_folder;
use handoff::model::{Paused, Update};

use crate::args::text::{self, Reason};
use crate::context::Context;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use crate::render::receipt::ReceiptView;

/// Open a completed, cancelled or paused issue again
///
/// A cancelled issue goes on; what was cancelled in it stays so. A paused one goes on where it was, and what waits has all of
/// its time to be claimed again. In a completed one, the agent whose contract completed it may send
/// again, an agent that may open issues can begin a new round, and a merge takes a new approval.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff reopen 123 --as closer-agent --reason 'the fix was reverted'"
)]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE")]
    issue: String,
    #[command(flatten)]
    why: Reason,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        reopen(&self.issue, &self.why.reason, context, output)
    }
}

pub(super) fn reopen(
    issue: &str,
    reason: &str,
    context: &Context,
    output: &mut Output,
) -> Result<(), Failure> {
    let issue: IssueKey = issue.parse()?;
    let reason = text::kept(reason)?;
    let repository = context.repository()?;
    let agent = context.acting_agent(&repository)?;
    let reopen = Update::Reopen {
        reason,
        said_at: None,
    };
    let (mut ledger, session) = context.writer(&repository, output)?;
    if let Some(paused) = ledger.tip()?.paused(&issue)?
        && !paused.after.is_empty()
    {
        let paused = Paused {
            by: agent,
            ..paused.clone()
        };
        let command = paused.resume(&issue, "WHY");
        let text = format!("issue {issue} is {paused}");
        let failure = Failure::new(ErrorCode::IssuePaused, text);
        return Err(failure.hint(format!("`{command}` takes the order back")));
    }
    let done = ledger.update(&session, &agent, &issue, &reopen);
    let done = done.map_err(|error| {
        let failure = Failure::from(error);
        let tip = ledger.tip().ok();
        let halt = tip.and_then(|tip| tip.manifest().paused.first().cloned());
        match (failure.code, halt) {
            (Some(ErrorCode::NotCompleted), Some(halt)) => {
                failure.hint(format!("{halt}: `{}`", halt.scope.resume(&agent)))
            }
            _ => failure,
        }
    })?;
    output.follow(&ledger);
    let text = match done.commit {
        Some(commit) => format!("issue {issue} is open again\n  commit {}\n", commit.short()),
        None => format!("issue {issue} was already reopened; nothing was written\n"),
    };
    let needed;
    let mut receipt = ReceiptView::new(&done, output)?.with_text(text);
    if done.receipt.issue.open.is_empty() {
        // Nothing waits: an agent has to send, as every other view says.
        let (tip, key) = (ledger.tip()?, &done.receipt.issue.issue);
        let rules = tip.rules(done.receipt.issue.protocol.as_str())?;
        needed = of_folder(&tip.issue(key)?, rules.protocol(), now()?)?;
        if let Some(first) = needed.first() {
            receipt = receipt.with_next(&first.next, &first.turn, output);
            if first.turn != agent {
                receipt = receipt.for_another();
            }
        }
    }
    output.answer(&receipt)?;
    receipt.say_next(output);
    Ok(())
}
