//! One commit, put on the remote's branch and then on this clone's.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use handoff_base::ObjectId;
use handoff_git::{Depth, Patience, Prepared, PublishError, Pushed, RemoteError};

use super::{Reach, Upstream};
use crate::error::LedgerError;
use crate::session::Session;
use crate::write::{Ledger, back_off, in_turn};

/// How often the remote may fail to take a commit although it can be read, before it
/// counts as out of reach.
const FAILURES: u32 = 3;

/// How often an attempt may be lost in a row although the branch did not move, before
/// the remote counts as out of reach. Others' pushes hold its lock for a moment.
const UNMOVED: u32 = 8;

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
        let doubted = self.is_doubtful(commit);
        match self.remote.push(commit, &patience) {
            Ok(Pushed::Done) => {}
            // Where nobody here sent it before, someone else made the very same commit.
            Ok(Pushed::Already) if doubted => {}
            Ok(Pushed::Already | Pushed::Behind) => {
                self.note_loss()?;
                return Ok(Landing::Behind);
            }
            Err(
                error @ (RemoteError::Failed { .. }
                | RemoteError::TimedOut
                | RemoteError::Interrupted),
            ) => {
                if !doubted {
                    self.doubtful.borrow_mut().push(commit);
                }
                self.failures.set(self.failures.get() + 1);
                if self.failures.get() >= FAILURES || self.left() == Duration::ZERO {
                    *self.reach.borrow_mut() = Reach::Unreachable(error.to_string());
                }
                return Ok(Landing::Doubtful);
            }
            Err(error) => return Err(self.refused(error)),
        }
        self.follow(commit);
        self.saw(at, commit);
        Ok(Landing::There)
    }

    /// Notes an attempt that someone was faster than. Where the branch stays where it is
    /// all the same, nobody was: it is locked there.
    fn note_loss(&self) -> Result<(), LedgerError> {
        let known = self.known()?;
        let unmoved = if self.lost_at.replace(known) == known {
            self.unmoved.get() + 1
        } else {
            0
        };
        self.unmoved.set(unmoved);
        if unmoved >= UNMOVED {
            let trouble =
                "its branch stays locked, by another push or by a lock file that was left there";
            *self.reach.borrow_mut() = Reach::Unreachable(trouble.to_owned());
        }
        Ok(())
    }

    /// Lets others go first after a lost attempt.
    ///
    /// The pause is drawn from a window that begins at eight times what an attempt
    /// takes and shrinks with each loss: one of the writers always wins, so a crowd needs
    /// no longer and longer pauses to get on, and a window that grows starves who has
    /// lost most. Measured against other ways in `docs/scale.md`.
    pub(super) fn pause(&self, session: &Session) {
        const WIDE: u32 = 8;
        const WIDEST: Duration = Duration::from_millis(500);
        const SHRINKS: f64 = 0.8;
        let attempt = self.attempt.get().elapsed();
        let losses = self.losses.get();
        self.losses.set(losses + 1);
        let first = (attempt * WIDE).min(attempt.max(WIDEST));
        let window = first.mul_f64(SHRINKS.powi(losses.try_into().unwrap_or(i32::MAX)));
        // What is left has to be enough for one more.
        let rest = self.left().saturating_sub(attempt * 3 / 2);
        let window = window.max(attempt).min(rest);
        let window = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        if window > 0 {
            std::thread::sleep(Duration::from_micros((session.jitter)(window)));
        }
    }

    /// Moves the tracking ref to where the remote's branch is known to be; where it
    /// can't be moved, the next fetch does it.
    fn follow(&self, commit: ObjectId) {
        if let Ok(known) = self.known() {
            let reflog = "handoff: push";
            let _ = self
                .repository
                .move_ref(&self.tracking, known, commit, reflog);
        }
    }

    /// Says whether it is not known if the remote took a commit.
    fn is_doubtful(&self, commit: ObjectId) -> bool {
        self.doubtful.borrow().contains(&commit)
    }

    /// Says whether the remote has a commit that was sent with an unknown end.
    fn has_taken(&self, commit: ObjectId) -> Result<bool, LedgerError> {
        match self.known()? {
            Some(known) if self.is_doubtful(commit) => {
                Ok(self.repository.is_in_history(commit, known)?)
            }
            _ => Ok(false),
        }
    }
}

impl Ledger<'_> {
    /// Publishes a commit on the remote, and then here; none where it has to be
    /// decided again.
    ///
    /// # Errors
    /// [`LedgerError`]; then nothing was written.
    pub(crate) fn publish_there(
        &self,
        upstream: &Upstream<'_>,
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
                // What may be there is looked for first.
                Landing::Behind
                    if upstream.left() == Duration::ZERO && !upstream.is_doubtful(commit) =>
                {
                    return Err(LedgerError::Contended { attempts });
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
                self.reconcile(session, upstream)?;
                // It may have arrived while other steps went there.
                if upstream.has_taken(commit)? {
                    return Ok(Some(commit));
                }
            }
            if !upstream.is_reached() {
                // The time was spent on others who were faster, not on a remote that is away.
                let lost = matches!(landing, Landing::Behind) && !upstream.is_doubtful(commit);
                if lost && upstream.left() == Duration::ZERO {
                    return Err(LedgerError::Contended { attempts });
                }
                break;
            }
            // While it may still arrive, another one in its place would be a second step.
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

    /// Brings both sides together after a step that the remote has. Whatever becomes of
    /// other steps, made here offline meanwhile, this one was taken; the next write meets
    /// what stood in their way.
    fn reconcile_later(&self, session: &Session, upstream: &Upstream<'_>) {
        let _ = self.reconcile(session, upstream);
    }

    /// Moves this clone's branch to a commit that the remote has. The step is taken
    /// then, so that nothing that goes wrong here is its failure: the next write moves
    /// what did not move.
    fn follow(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
        parent: Option<ObjectId>,
        commit: ObjectId,
        reflog: &str,
    ) {
        match self.move_branch(session, parent, commit, reflog) {
            Ok(()) => self.memory().wrote(parent, commit),
            // Someone here recorded a step offline meanwhile.
            Err(PublishError::Moved) => self.reconcile_later(session, upstream),
            Err(_) => {}
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
