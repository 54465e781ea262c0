use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::context::writer::Writer;
use crate::failure::Failure;
use crate::output::Output;
use crate::render;

/// Record every lease that ran out
///
/// Whoever held such a handoff is taken for gone: it has failed with TIMEOUT, and
/// can be tried again. Any write in an issue does the same for that issue. Exits
/// 0 also when there is nothing to record.
#[derive(Args)]
#[command(
    after_help = "Example:\n  git handoff reap        (every few minutes, by cron or a workflow)"
)]
pub(crate) struct Arguments {}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let Writer { ledger, session } = context.writer(&repository, output)?;
        let reaped = ledger.reap(&session)?;
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
