//! Expired leases and claim deadlines: recorded before any other write to their issue, or for all
//! issues at once.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;

use super::error::LedgerError;
use super::ledger::Ledger;
use super::session::Session;
use super::write::Done;

impl<'r> Ledger<'r> {
    /// Records the expired leases and claim deadlines of these handoffs, or, if none is named, of
    /// all, and adds each to `reaped`. A pause prevents expiry.
    ///
    /// # Errors
    /// [`LedgerError`]; expiries recorded before the error stay, and are in `reaped`.
    pub fn reap(
        &mut self,
        session: &Session,
        only: &[HandoffId],
        reaped: &mut Vec<Done>,
    ) -> Result<(), LedgerError> {
        let now = Moment::from(session.clock.author());
        let tip = self.tip()?;
        let is_meant = |id: &HandoffId| only.is_empty() || only.contains(id);
        for entry in tip.open()?.iter().filter(|entry| is_meant(&entry.id)) {
            if tip.is_paused_for(entry.id.issue(), &entry.to)? {
                continue;
            }
            if tip.open_record(entry)?.is_expired(now) {
                reaped.extend(self.record_expiry(session, &entry.id)?);
            }
        }
        Ok(())
    }

    /// Records that a handoff's deadline passed, unless its agent or another writer was faster.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    #[doc(hidden)]
    pub fn record_expiry(
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
}
