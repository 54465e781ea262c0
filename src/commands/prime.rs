use clap::Args;
use handoff_base::text::plain;

use crate::context::Context;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use crate::prime::prime;

/// Tell an agent all it needs to begin: who it is, what waits, what to do
///
/// For the start of a session. It says what you hold and what waits for you, the
/// contract that comes next with its skeleton, and the commands for it, in under
/// 1,500 tokens however large the ledger is; what was cut is named with the
/// command that shows it. It reads the ledger as it is here, without the network.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff prime --as reviewer-agent
  git handoff prime --as reviewer-agent --json
  git handoff prime --quiet      (for hooks; exits 0 where there is no ledger)")]
pub(crate) struct Arguments {
    /// Where there is no ledger here, or no agent of yours in it, say so in one line and exit 0
    #[arg(long)]
    quiet: bool,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match prime(context) {
            Ok(told) => output.answer(&told.data, &told.text),
            Err(failure) if self.quiet && is_no_part(&failure) && !output.is_json() => {
                let text = format!("git-handoff has nothing to say here: {}\n", failure.message);
                output.answer(&serde_json::Value::Null, &plain(&text))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Says whether nothing is amiss, but this place or this session has no part in a ledger.
fn is_no_part(failure: &Failure) -> bool {
    failure.exit == exit::ENVIRONMENT
        || matches!(
            failure.code,
            Some(ErrorCode::NoAgent | ErrorCode::UnknownAgent)
        )
}
