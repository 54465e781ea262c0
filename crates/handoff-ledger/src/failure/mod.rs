//! The context of a failure: stored when an attempt fails, shown to the agent that claims the
//! handoff next, and restored where work continues. A claim that is given back may store its work, too.
//!
//! It is a folder `NNNN-failure/ATTEMPT` or `NNNN-release/CLAIM` in the issue's folder. The step adds it as a whole, and
//! the transition names its tree. `FailureFile` defines its content, `keep` writes it,
//! `kept_context` reads it, `restore` makes a worktree or a branch of it, `name` encodes arbitrary
//! file names.

mod keep;
mod kept_context;
mod name;
mod restore;

pub(super) use keep::kept_for;
pub use keep::{Attached, CAPS, Keep, MOST_COMMITS};
pub use kept_context::{
    Contents, Kept, PastFailure, Shown, failures, past_work, past_work_in_full,
};
pub use restore::{Place, RestoreFailure, Restored, restore, restore_attachments, restored_here};

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_model::{EventArgs, LeaseRefusal, Refusal, Request, Update, View};
use handoff_protocol::{AnotherTry, Event};
use keep::screen_failure;

use super::error::LedgerError;
use super::ledger::Ledger;
use super::session::Session;
use super::write::Done;

impl Ledger<'_> {
    /// Fails a handoff, or gives it back (`event`), and stores the context. Reporting the same
    /// again changes nothing.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn leave(
        &mut self,
        session: &Session,
        agent: &AgentName,
        id: &HandoffId,
        (event, args): (Event, &EventArgs),
        keep: &Keep,
    ) -> Result<Done, LedgerError> {
        self.guard(session)?;
        let at = Moment::from(session.clock.author());
        let tip = self.tip()?;
        let issue = tip.issue(id.issue())?.issue()?;
        let issue = issue.ok_or_else(|| Refusal::no_issue(id.issue()))?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let screen = screen_failure(rules.protocol(), args, &keep.attached);
        let mut args = args.clone();
        args.allow.clear();
        if let Some(failure) = &mut args.failure
            && let Some(run) = failure.run
        {
            let retry = rules.protocol().definition().retry();
            let another = retry.map_or(run.another_try(), |retry| retry.another_try(run));
            failure.recoverable |= another != AnotherTry::Never;
        }
        let update = |args: &EventArgs| Update::change(id.number(), event, args.clone());
        // The protocol refuses before anything is read. Overdue leases are recorded first, as in
        // every write.
        let mut tip = tip;
        let mut late = issue.open.len();
        let decided = loop {
            let step = session.step(agent.clone(), at, Request::Update(update(&args)));
            match self.plan_on(&tip, id.issue(), step, true) {
                Err(LedgerError::Refused(Refusal::Lease(LeaseRefusal::Overdue(id))))
                    if late > 0 =>
                {
                    late -= 1;
                    self.record_expiry(session, &id)?;
                    tip = self.tip()?;
                }
                decided => break decided?,
            }
        };
        if let (Some(_), receipt) = decided {
            let record = &receipt.record;
            let (context, allowed) = keep::keep(self.repository(), record, at, keep, screen)?;
            args.context = context;
            args.allowed_secrets.extend(allowed);
        }
        self.update(session, agent, id.issue(), &update(&args))
    }
}
