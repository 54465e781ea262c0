//! The context of a failure: kept when an attempt fails, shown to whoever takes
//! the handoff up, and restored where work goes on.
//!
//! It is one folder in the issue's, `NNNN-failure/ATTEMPT`, that the step puts
//! into place as a whole, and whose tree the transition names. `FailureFile` says
//! what its files hold, `keep` writes it, `kept` reads it back, `restore` makes
//! a worktree or a branch of it, `name` deals with names of any bytes.

mod keep;
mod kept;
mod name;
mod restore;

pub(super) use keep::kept_for;
pub use keep::{Attached, CAPS, Keep, MOST_COMMITS};
pub use kept::{Contents, Kept, PastFailure, Shown, failures, failures_in_full};
pub use restore::{Place, RestoreFailure, Restored, restore, restore_attachments};

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::to_second;
use handoff_model::{EventArgs, Refusal, Update, View};
use handoff_protocol::Event;
use keep::screen_failure;

use super::draft::Decided;
use super::error::LedgerError;
use super::session::Session;
use super::write::{Done, Ledger};

impl Ledger<'_> {
    /// Fails a handoff, and keeps the context. A failure that was reported
    /// already is only repeated.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn fail(
        &self,
        session: &Session,
        agent: &AgentName,
        id: &HandoffId,
        args: &EventArgs,
        keep: &Keep,
    ) -> Result<Done, LedgerError> {
        self.guard(session)?;
        let at = to_second(session.clock.author());
        let tip = self.tip()?;
        let issue = tip.issue(id.issue())?.issue()?;
        let issue = issue.ok_or_else(|| Refusal::NoIssue {
            issue: id.issue().clone(),
        })?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let screen = screen_failure(rules.protocol(), args, &keep.attached);
        let mut args = args.clone();
        args.allow.clear();
        let update = |args: &EventArgs| Update::change(id.number(), Event::Fail, args.clone());
        // What the protocol refuses is refused before anything is read. What is
        // overdue is recorded first, as by every other write.
        let mut tip = tip;
        let mut late = issue.open.len();
        let actor = session.actor(agent, at);
        let decided = loop {
            match self.plan_with(&tip, &actor, id.issue(), |_| Ok(update(&args))) {
                Err(LedgerError::Refused(Refusal::Overdue { id })) if late > 0 => {
                    late -= 1;
                    self.record_expiry(session, &id)?;
                    tip = self.tip()?;
                }
                decided => break decided?,
            }
        };
        if let Decided::Write(_, receipt) = decided {
            let record = &receipt.record;
            let (context, allowed) = keep::keep(self.repository(), record, at, keep, screen)?;
            args.context = Some(context);
            args.allowed_secrets.extend(allowed);
        }
        self.update(session, agent, id.issue(), &update(&args))
    }
}
