use clap::Args;
use handoff::base::ids::IssueKey;
use handoff::model::{Paused, Update};

use crate::args::text::{self, Reason};
use crate::commands::each::{Where, each, issues};
use crate::commands::{pause::ScopeArgs, reopen};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// End a pause: hand out the work of an issue, of an agent, of a protocol, or all, again
///
/// It goes on where it was. What of an issue waits has all of its time to be claimed again.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff resume --all --as orchestrator --reason 'the provider is back'
  git handoff resume 123 --as orchestrator --reason 'it is wanted'")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE", required_unless_present_any = ["all", "of_agent", "protocol", "query"], conflicts_with_all = ["all", "of_agent", "protocol", "query"])]
    issue: Option<String>,
    #[command(flatten)]
    which: Where,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    why: Reason,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        if let Some(query) = &self.which.query {
            let reason = text::kept(&self.why.reason)?;
            return each(context, output, |tip, _| {
                let paused = tip.paused_among(&issues(tip, query)?)?.into_iter();
                // An order is taken back by `set after=none`.
                let paused = paused.filter(|(_, paused)| paused.after.is_empty());
                let resumed = |(key, _): (IssueKey, Paused)| {
                    let (reason, said_at) = (reason.clone(), None);
                    (
                        format!("issue {key}"),
                        key,
                        Ok(Update::Reopen { reason, said_at }),
                    )
                };
                Ok(paused.map(resumed).collect())
            });
        }
        match &self.issue {
            Some(issue) => reopen::reopen(issue, &self.why.reason, context, output),
            None => self.scope.change(context, (None, &self.why.reason), output),
        }
    }
}
