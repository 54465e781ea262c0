//! Publishes one commit: on the remote first, then here.

use std::time::Duration;

use handoff_base::ObjectId;
use handoff_git::{Depth, Prepared, PublishError};

use crate::error::{LedgerError, WriteError};
use crate::ledger::{Ledger, in_turn};
use crate::session::Session;
use crate::upstream::{Landing, Upstream};

/// How long this clone's branch may stay locked, after the remote has the step.
const FOLLOWS: Duration = Duration::from_secs(2);

impl Ledger<'_> {
    /// Publishes a commit on the remote, then here. Returns `None` if the step must be planned
    /// again.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was written.
    pub(super) fn publish_there(
        &self,
        upstream: &mut Upstream<'_>,
        session: &Session,
        prepared: Prepared<'_>,
        reflog: &str,
        attempts: u32,
    ) -> Result<Option<ObjectId>, LedgerError> {
        let (parent, commit) = (prepared.parent(), prepared.commit());
        loop {
            let landing = upstream.push(session, commit)?;
            match landing {
                Landing::There => {
                    self.follow(session, upstream, parent, commit, reflog);
                    return Ok(Some(commit));
                }
                // If the commit may have arrived, look at the remote first.
                Landing::Behind
                    if upstream.left() == Duration::ZERO && !upstream.is_doubtful(commit) =>
                {
                    return Err(WriteError::Contended(attempts).into());
                }
                Landing::Behind | Landing::Doubtful => {}
            }
            upstream.pause(session);
            if upstream.is_reached() {
                upstream.look(session, Depth::Missing)?;
            }
            if upstream.has_taken(commit)? {
                self.reconcile_later(session, upstream);
                return Ok(Some(commit));
            }
            if upstream.is_reached() {
                self.bring_together(session, upstream)?;
                // It may have arrived while other steps were pushed.
                if upstream.has_taken(commit)? {
                    return Ok(Some(commit));
                }
            }
            if !upstream.is_reached() {
                // The time went to races that others won; the remote is reachable.
                let lost = matches!(landing, Landing::Behind) && !upstream.is_doubtful(commit);
                if lost && upstream.left() == Duration::ZERO {
                    return Err(WriteError::Contended(attempts).into());
                }
                break;
            }
            // While the push may still arrive, another commit for it would be a second step.
            if !upstream.is_doubtful(commit) || self.tip_id()? != parent {
                return Ok(None);
            }
        }
        let mut queue = self.join_queue(session);
        match in_turn(&mut queue, prepared, reflog) {
            Ok(commit) => {
                self.memory().wrote(parent, commit);
                Ok(Some(commit))
            }
            Err(PublishError::Moved | PublishError::Locked(_)) => Ok(None),
            Err(PublishError::Git(error)) => Err(error.into()),
        }
    }

    /// Synchronizes both sides after the remote accepted a step. An error about other steps made
    /// here offline meanwhile does not matter for this one, and comes up again in the next write.
    fn reconcile_later(&self, session: &Session, upstream: &mut Upstream<'_>) {
        let _ = self.bring_together(session, upstream);
    }

    /// Moves this clone's branch to a commit that the remote has. The step is recorded already, so
    /// an error here is ignored: the next write moves the branch.
    fn follow(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        parent: Option<ObjectId>,
        commit: ObjectId,
        reflog: &str,
    ) {
        let patience = session.patience.min(FOLLOWS);
        match self.move_branch_within(session, patience, (parent, commit), reflog) {
            Ok(()) => self.memory().wrote(parent, commit),
            // Another process here recorded a step offline.
            Err(PublishError::Moved) => self.reconcile_later(session, upstream),
            Err(PublishError::Locked(path)) => upstream.left_lock = Some(path),
            Err(PublishError::Git(_)) => {}
        }
    }
}
