use clap::Args;
use handoff::base::text::plain;

use crate::args::remote::AskArgs;
use crate::context::{Context, fresh};
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use handoff_agents::prime::prime;

/// Print everything an agent needs to start: its role, its work, its next steps
///
/// For the start of a session. Prints what you hold and what waits for you, the
/// next contract with its skeleton, and the commands for it, in under 1,500 tokens
/// however large the ledger is; whatever is cut is listed with the command that
/// shows it. If the ledger has a remote, asks it first, for at most 2 seconds; if that
/// brings no answer, the page says how old what it shows is.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff prime --as reviewer-agent
  git handoff prime --as reviewer-agent --json
  git handoff prime --quiet      (for hooks; exits 0 if there is no ledger)")]
pub(crate) struct Arguments {
    /// If there is no ledger here, or your agent has no part in it, say so in one line and exit 0
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    asks: AskArgs,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match prime(context, self.asks.offline, output) {
            Ok(page) => {
                output.answer(&page)?;
                fresh::say(page.fresh.as_ref(), output);
                Ok(())
            }
            Err(mut failure) if self.quiet && is_no_part(&failure) && !output.is_json() => {
                let mut text = format!("git-handoff has nothing to say here: {}", failure.message);
                // This may run in any repository, so no remote is asked.
                if context.may_be_elsewhere(&mut failure, true) {
                    text += &format!("; {}", failure.next());
                }
                text.push('\n');
                output.raw(plain(&text).as_bytes())
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Whether the failure only means that this folder or session does not use a ledger.
fn is_no_part(failure: &Failure) -> bool {
    failure.exit == exit::ENVIRONMENT
        || matches!(
            failure.code,
            Some(ErrorCode::NoAgent | ErrorCode::UnknownAgent)
        )
}
