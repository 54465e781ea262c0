use clap::Args;
use handoff::base::ids::HandoffId;
use handoff::model::Handoff;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::page::{ROWS, rest};
use crate::output::{Answer, Output, counted};
use crate::render::receipt::WrittenView;
use crate::view::Look;

/// Record every lease and every time to claim that ran out
///
/// The worker of such a lease is assumed to be gone: the handoff fails with
/// TIMEOUT and can be retried. What nobody claimed in its time fails with
/// NOT_ACKNOWLEDGED. Any write to an issue does the same for that issue.
/// Exits 0 even if there is nothing to record.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff reap        (every few minutes, from cron or a workflow)"
)]
pub(crate) struct Arguments {
    /// Look at these handoffs only
    #[arg(value_name = "ID")]
    handoffs: Vec<HandoffId>,
}

/// The expired leases and times to claim.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Reap")]
pub(crate) struct ReapView<'a> {
    /// each handoff whose lease, or whose time to be claimed, expired and which has now failed
    handoffs: Vec<ReapedView<'a>>,
    /// The command that lists those that the text omits.
    #[serde(skip)]
    rest: String,
}

/// A handoff that just failed, and what was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReapedHandoff")]
struct ReapedView<'a> {
    #[serde(flatten)]
    handoff: Handoff,
    #[serde(flatten)]
    written: WrittenView<'a>,
}

impl Answer for ReapView<'_> {
    fn text(&self, _: &Look) -> String {
        match &self.handoffs[..] {
            [] => "no lease ran out, and nothing waited too long to be claimed\n".to_owned(),
            reaped => {
                let first = reaped.iter().take(ROWS);
                let text: String = first.map(|one| one.written.outcome()).collect();
                text + &self.rest
            }
        }
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let mut reaped = Vec::new();
        let outcome = ledger.reap(&session, &self.handoffs, &mut reaped);
        output.follow(&ledger);
        let now = now()?;
        let handoffs = reaped.iter().map(|done| ReapedView {
            handoff: Handoff::new(&done.receipt.record, now),
            written: WrittenView::new(done, output),
        });
        let rest = rest(
            reaped.len(),
            &output.command("git handoff log --event expire"),
        );
        let answer = ReapView {
            handoffs: handoffs.collect(),
            rest,
        };
        if let Err(error) = outcome {
            let done = (!reaped.is_empty())
                .then(|| format!("recorded {}", counted(reaped.len(), "handoff")));
            return Err(Failure::from(error).half_way(done, &answer));
        }
        output.answer(&answer)?;
        for reaped in answer.handoffs.iter().take(ROWS) {
            reaped.written.say_next(output);
        }
        Ok(())
    }
}
