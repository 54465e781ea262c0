//! One commit, put on the remote's branch and then on this clone's.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{Reach, Upstream};
use crate::git::{ObjectId, Patience, Prepared, PublishError, Pushed, RemoteError};
use crate::ledger::error::LedgerError;
use crate::ledger::session::Session;
use crate::ledger::write::{Ledger, back_off, in_turn};

/// How often the remote may fail to take a commit although it can be read, before it
/// counts as out of reach.
const FAILURES: usize = 3;

/// What became of a commit that was to be put on the remote.
pub(super) enum Landing {
    /// The remote has it.
    There,
    /// Someone else was first.
    Behind,
    /// It is not known, or the remote can't take it now; it may be tried again.
    Doubtful,
}

impl Upstream<'_> {
    /// Puts a commit on the remote's branch.
    ///
    /// # Errors
    /// [`LedgerError`] when the remote refuses it.
    pub(super) fn push(&self, session: &Session, commit: ObjectId) -> Result<Landing, LedgerError> {
        let at = (session.wall)();
        let asked = AtomicBool::new(false);
        let patience = Patience {
            deadline: Some(self.deadline.get()),
            interrupted: &asked,
        };
        let doubted = self.doubtful.borrow().contains(&commit);
        match self.remote.push(commit, &patience) {
            Ok(Pushed::Done) => {}
            // Where nobody here sent it before, someone else made the very same commit.
            Ok(Pushed::Already) if doubted => {}
            Ok(Pushed::Already | Pushed::Behind) => return Ok(Landing::Behind),
            Err(
                error @ (RemoteError::Failed { .. }
                | RemoteError::TimedOut
                | RemoteError::Interrupted),
            ) => {
                self.doubtful.borrow_mut().push(commit);
                if self.doubtful.borrow().len() >= FAILURES || self.left() == Duration::ZERO {
                    *self.reach.borrow_mut() = Reach::Unreachable(error.to_string());
                }
                return Ok(Landing::Doubtful);
            }
            Err(error) => return Err(self.refused(error)),
        }
        self.follow(commit)?;
        self.saw(at, commit);
        Ok(Landing::There)
    }

    /// Moves the tracking ref to where the remote's branch is known to be.
    fn follow(&self, commit: ObjectId) -> Result<(), LedgerError> {
        let known = self.known()?;
        let moved = self
            .repository
            .move_ref(&self.tracking, known, commit, "handoff: push");
        match moved {
            // The next fetch moves it.
            Ok(()) | Err(PublishError::Moved | PublishError::Locked(_)) => Ok(()),
            Err(PublishError::Git(error)) => Err(error.into()),
        }
    }

    /// The commit among those that were sent with an unknown end that the remote has.
    pub(super) fn landed(&self) -> Result<Option<ObjectId>, LedgerError> {
        let Some(known) = self.known()? else {
            return Ok(None);
        };
        for commit in &*self.doubtful.borrow() {
            if self.repository.is_in_history(*commit, known)? {
                return Ok(Some(*commit));
            }
        }
        Ok(None)
    }
}

impl Ledger<'_> {
    /// Publishes a commit on the remote, and then here; none where it has to be
    /// decided again.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was written.
    pub(in crate::ledger) fn publish_there(
        &self,
        upstream: &Upstream<'_>,
        session: &Session,
        prepared: Prepared<'_>,
        reflog: &str,
        attempts: u32,
    ) -> Result<Option<ObjectId>, LedgerError> {
        let (parent, commit) = (prepared.parent(), prepared.commit());
        match upstream.push(session, commit)? {
            Landing::There => {
                self.follow(session, upstream, parent, commit, reflog)?;
                return Ok(Some(commit));
            }
            Landing::Behind if upstream.left() == Duration::ZERO => {
                return Err(LedgerError::Contended { attempts });
            }
            Landing::Behind | Landing::Doubtful => {}
        }
        back_off(session, attempts);
        if upstream.is_reached() {
            self.bring(session, upstream)?;
        }
        if let Some(commit) = upstream.landed()? {
            return Ok(Some(commit));
        }
        if upstream.is_reached() {
            return Ok(None);
        }
        // Of several, the last may still arrive there; another one would be a second step.
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

    /// Moves this clone's branch to a commit that the remote has.
    fn follow(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
        parent: Option<ObjectId>,
        commit: ObjectId,
        reflog: &str,
    ) -> Result<(), LedgerError> {
        match self.move_branch(session, parent, commit, reflog) {
            Ok(()) => {
                self.memory().wrote(parent, commit);
                Ok(())
            }
            // Someone here recorded a step offline meanwhile.
            Err(PublishError::Moved) => self.reconcile(session, upstream).map(drop),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves this clone's branch, in this machine's queue of writers.
    pub(super) fn move_branch(
        &self,
        session: &Session,
        from: Option<ObjectId>,
        to: ObjectId,
        reflog: &str,
    ) -> Result<(), PublishError> {
        let mut queue = self.join_queue(session);
        let start = std::time::Instant::now();
        let mut attempts = 0;
        loop {
            attempts += 1;
            queue.leave(Some(&to.to_string()));
            let moved = self.repository().move_ref(self.refname(), from, to, reflog);
            queue.leave(None);
            match moved {
                Err(PublishError::Locked(_)) if start.elapsed() < session.patience => {
                    back_off(session, attempts);
                }
                other => return other,
            }
        }
    }
}
