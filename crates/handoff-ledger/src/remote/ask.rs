//! Asking the remote before reading: one fetch within a short time, which serves all processes that
//! wait for one in a clone, and then a branch here that is merely behind is fast-forwarded.

use std::time::{Duration, SystemTime};

use crate::error::{LedgerError, UpstreamError, WriteError};
use crate::ledger::Ledger;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::upstream::RemoteLook;

impl<'r> Ledger<'r> {
    /// Asks the remote what is new, within the session's patience, and fetches it into the tracking
    /// ref. Processes of a clone that ask at the same time make one fetch. The branch here does not
    /// move.
    ///
    /// # Errors
    /// [`LedgerError`] if the remote refuses, if its branch was rewritten or removed, or if nothing
    /// may be fetched here now.
    pub fn ask(&mut self, session: &Session) -> Result<RemoteLook, LedgerError> {
        if session.quarantined {
            return Err(WriteError::Quarantine.into());
        }
        let upstream = self.upstream_mut().ok_or(UpstreamError::NoRemote)?;
        upstream.ask(session)
    }

    /// Fast-forwards the branch here to where the remote's branch was last seen. A branch with steps
    /// that are not there yet stays as it is.
    ///
    /// # Errors
    /// [`LedgerError`] if the branch may not move, or can't be moved within the session's patience.
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

    /// The newest state that is known here: the remote's as last seen if it only leads on from the
    /// branch here, else the branch's.
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

    /// When a process of this clone last read the remote's branch, as far as is known.
    pub fn last_read(&self) -> Option<SystemTime> {
        self.upstream()?.last_read()
    }

    /// Whether the remote has a branch of the ledger's name; `None` if that can't be found out
    /// within this time.
    pub fn is_on_remote(&mut self, patience: Duration) -> Option<bool> {
        self.upstream_mut()?.is_there(patience)
    }
}
