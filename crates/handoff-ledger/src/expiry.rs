//! Leases and times to claim that ran out: recorded before anything else is written in their issue, or for all issues at
//! once.

use handoff_base::ids::HandoffId;
use handoff_base::{Moment, to_second};
use handoff_model::{Actor, EventArgs, Receipt, Refusal, Update, View};
use handoff_protocol::Event;

use super::draft::Decided;
use super::error::LedgerError;
use super::order;
use super::session::Session;
use super::snapshot::Snapshot;
use super::write::{Done, Ledger};

impl<'r> Ledger<'r> {
    /// Records every lease and every time to claim that ran out, and adds each to `reaped`. None runs
    /// out for what a pause holds back.
    ///
    /// # Errors
    /// [`LedgerError`]; expiries recorded before the error stay, and are in `reaped`.
    pub fn reap(&mut self, session: &Session, reaped: &mut Vec<Done>) -> Result<(), LedgerError> {
        let now = Moment::from(session.clock.author());
        let tip = self.tip()?;
        for entry in tip.open()? {
            if tip.holds_back(entry.id.issue(), &entry.to)? {
                continue;
            }
            if tip.open_record(&entry)?.is_expired(now) {
                reaped.extend(self.record_expiry(session, &entry.id)?);
            }
        }
        Ok(())
    }

    /// Records that a handoff's time ran out, unless its agent or another writer was faster.
    pub(super) fn record_expiry(
        &mut self,
        session: &Session,
        id: &HandoffId,
    ) -> Result<Option<Done>, LedgerError> {
        match self.publish(session, |ledger, tip, at| {
            ledger.expire(session, tip, at, id)
        }) {
            Ok(done) => Ok(Some(done)),
            Err(LedgerError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fails a handoff whose time ran out, in the name of its receiver.
    pub(super) fn expire(
        &self,
        session: &Session,
        tip: &Snapshot<'r>,
        at: Moment,
        id: &HandoffId,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let record = tip.issue(id.issue())?.record(id.number())?;
        let record = record.ok_or_else(|| Refusal::no_handoff(id))?;
        let recorded = order::recorded_after(tip.recorded(), session.committer().at);
        order::ensure_ran_out(&record, at, to_second(recorded))?;
        let update = Update::change(id.number(), Event::Expire, EventArgs::default());
        let actor = Actor {
            name: &record.to,
            worker: None,
            at,
            traceparent: None,
            usage: &[],
            delivery: None,
        };
        Ok(match self.plan_on(tip, &actor, id.issue(), &update)? {
            Decided::Write(draft, receipt) => Decided::Write(draft.by_anybody(), receipt),
            decided => decided,
        })
    }
}
