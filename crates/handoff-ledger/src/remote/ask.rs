//! Asks the remote before reading: one fetch within a short time, shared by all processes of a
//! clone that wait for it, then a fast-forward of a branch that is behind.

use std::time::{Duration, SystemTime};

use crate::error::{LedgerError, UpstreamError, WriteError};
use crate::ledger::Ledger;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::upstream::RemoteLook;

impl<'r> Ledger<'r> {
    /// Asks the remote for new steps, within the session's patience, and fetches them into the
    /// tracking ref. Processes of a clone that ask at the same time share one fetch. The local
    /// branch does not move.
    ///
    /// # Errors
    /// [`LedgerError`] if the remote refuses, if its branch was rewritten or removed, or if
    /// fetching is not allowed now.
    pub fn ask(&mut self, session: &Session) -> Result<RemoteLook, LedgerError> {
        if session.quarantined {
            return Err(WriteError::Quarantine.into());
        }
        let upstream = self.upstream_mut().ok_or(UpstreamError::NoRemote)?;
        upstream.ask(session)
    }

    /// Fast-forwards the local branch to the remote's as last seen. A branch with unpublished steps
    /// stays as it is.
    ///
    /// # Errors
    /// [`LedgerError`] if the branch must not move, or can't be moved within the session's
    /// patience.
    pub fn follow_remote(&mut self, session: &Session) -> Result<(), LedgerError> {
        self.with_upstream(|ledger, upstream| {
            let there = upstream.known()?;
            let Some(there) = there.filter(|there| ledger.tip_id().ok() != Some(Some(*there)))
            else {
                return Ok(());
            };
            ledger.guard(session)?;
            upstream.begin(session);
            let followed = upstream
                .fill(there)
                .and_then(|()| ledger.fast_forward(session, there));
            upstream.end();
            followed.map(drop)
        })
    }

    /// The newest state known here: the remote's as last seen if it descends from the local branch,
    /// else the local one.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no ledger or it can't be read.
    pub fn newest(&self) -> Result<Snapshot<'r>, LedgerError> {
        let there = self.seen_there()?;
        match (self.tip_id()?, there) {
            (None, Some(there)) => self.at(there),
            (Some(here), Some(there)) if here != there => {
                if self.repository().is_in_history(here, there)? {
                    self.at(there)
                } else {
                    self.tip()
                }
            }
            _ => self.tip(),
        }
    }

    /// When a process of this clone last read the remote's branch, if known.
    pub fn last_read(&self) -> Option<SystemTime> {
        self.upstream()?.last_read()
    }

    /// Whether the remote has a branch of the ledger's name; `None` if the remote does not answer
    /// within this time.
    pub fn is_on_remote(&mut self, patience: Duration) -> Option<bool> {
        self.upstream_mut()?.is_there(patience)
    }
}
