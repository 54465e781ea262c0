//! Looks at the remote's branch for commands that wait: writes only the tracking ref; one look
//! serves all waiting processes of a clone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use handoff_base::ObjectId;
use handoff_model::{Record, Transition, View};
use handoff_protocol::Event;

use crate::error::{LedgerError, UpstreamError};
use crate::ledger::Ledger;
use crate::session::Session;
use crate::upstream::{RemoteLook, Upstream};

impl Ledger<'_> {
    /// The same ledger, whose looks at the remote end when `interrupted` is set.
    #[must_use]
    pub fn ended_by(mut self, interrupted: Arc<AtomicBool>) -> Self {
        if let Some(upstream) = self.upstream_mut() {
            upstream.interrupted = interrupted;
        }
        self
    }

    /// The ref with the remote's branch as last seen, if the ledger has a remote.
    pub fn tracking_ref(&self) -> Option<&str> {
        self.upstream().map(|upstream| upstream.tracking.as_str())
    }

    /// The remote's branch as last seen.
    ///
    /// # Errors
    /// [`LedgerError`] if the ref can't be read.
    pub fn seen_there(&self) -> Result<Option<ObjectId>, LedgerError> {
        self.upstream().map_or(Ok(None), Upstream::known)
    }

    /// The remote, if it lacks the claim of a handoff that is held here, because the claim was made
    /// offline.
    ///
    /// # Errors
    /// [`LedgerError`] if the remote's ledger can't be read here.
    pub fn lacks_claim(&self, record: &Record) -> Result<Option<String>, LedgerError> {
        let (Some(upstream), Some(lease)) = (self.upstream(), &record.lease) else {
            return Ok(None);
        };
        // Nothing is known of a remote that was never read.
        let Some(known) = upstream.known()? else {
            return Ok(None);
        };
        if Some(known) == self.tip_id()? {
            return Ok(None);
        }
        let there = if self.repository().has(known) {
            let folder = self.at(known)?.issue(record.id.issue())?;
            folder.record(record.id.number())?
        } else {
            None
        };
        let is_this = |t: &Transition| {
            t.event.is_some_and(Event::is_claim)
                && t.at == lease.since
                && t.worker.as_ref() == Some(&lease.worker)
        };
        let has = there.is_some_and(|record| record.transitions.iter().any(is_this));
        Ok((!has).then(|| upstream.name().to_owned()))
    }

    /// Looks at the remote's branch, and fetches new commits into the tracking ref, unless another
    /// process of this clone did since this time. The local branch does not move.
    ///
    /// # Errors
    /// [`LedgerError`] if the remote refuses, if its branch was rewritten or removed, or if a ref
    /// can't be read.
    pub fn glimpse(
        &mut self,
        session: &Session,
        since: SystemTime,
    ) -> Result<RemoteLook, LedgerError> {
        let upstream = self.upstream_mut().ok_or(UpstreamError::NoRemote)?;
        upstream.glimpse(session, since)
    }
}
