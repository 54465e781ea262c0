use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::render;

/// Record every lease that ran out
///
/// The holder of such a lease is assumed to be gone: the handoff fails with
/// TIMEOUT and can be retried. Any write to an issue does the same for that issue.
/// Exits 0 even if there is nothing to record.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff reap        (every few minutes, from cron or a workflow)"
)]
pub(crate) struct Arguments {}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let reaped = ledger.reap(&session)?;
        output.follow(&ledger);
        let data: Vec<_> = reaped.iter().map(render::done_json).collect();
        let text: String = match &reaped[..] {
            [] => "no lease ran out\n".to_owned(),
            reaped => reaped.iter().map(render::done_text).collect(),
        };
        output.answer(&json!({ "handoffs": data }), &text)?;
        for done in &reaped {
            render::say_next(done, output);
        }
        Ok(())
    }
}
