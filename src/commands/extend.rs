use clap::Args;
use handoff::model::EventArgs;
use handoff::protocol::Event;

use super::change::act;
use crate::args::{duration, text};
use crate::context::Context;
use crate::contracts::compose::handoff_held;
use crate::contracts::usage::UsageReport;
use crate::failure::Failure;
use crate::output::Output;

/// Extend the lease of a handoff that you hold
///
/// Your claim then lasts a full lease from now; it never gets shorter. Extend it well before the
/// lease runs out: afterwards it is too late.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff extend --as implementer-agent
  git handoff extend 123.2 --as implementer-agent --lease 1h \\
      --progress 'tests are written, 3 of 7 pass'")]
pub(crate) struct Arguments {
    /// The handoff; by default the only one that you hold
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// How long you hold it from now on, such as 45m; by default as long as its
    /// contract or the protocol says
    #[arg(long, value_name = "DURATION", value_parser = duration::seconds)]
    lease: Option<u64>,
    /// The progress so far
    #[arg(long, short, value_name = "TEXT")]
    progress: Option<String>,
    #[command(flatten)]
    usage: UsageReport,
    /// Your claim's token; others are refused
    #[arg(long, value_name = "N")]
    token: Option<u32>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let args = EventArgs {
            lease: self.lease,
            progress: self.progress.as_deref().map(text::kept).transpose()?,
            token: self.token,
            ..EventArgs::default()
        };
        let repository = context.repository()?;
        let (ledger, mut session) = context.writer(&repository, output)?;
        session.usage = self.usage.read(context)?;
        let id = match &self.id {
            Some(id) => id.clone(),
            None => {
                let agent = context.acting_agent(&repository)?;
                handoff_held(context, &repository, &ledger.tip()?, &agent)?.to_string()
            }
        };
        act((ledger, session), context, output, &id, |_, _| {
            Ok((Event::Extend, args))
        })
    }
}
