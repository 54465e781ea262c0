//! Pushing one commit to the remote's branch.

use std::time::Duration;

use handoff_base::ObjectId;
use handoff_git::{Pushed, RemoteError};

use super::{NEVER, Reach, Upstream};
use crate::error::LedgerError;
use crate::session::Session;

/// The number of failed pushes, although the remote can be read, after which it counts as
/// unreachable.
const FAILURES: u32 = 3;

/// The number of lost pushes in a row, although the branch did not move, after which the remote
/// counts as unreachable. Another push holds the branch's lock only for a moment.
const UNMOVED: u32 = 8;

/// The result of a push.
pub(crate) enum Landing {
    /// The remote has it.
    There,
    /// Another writer was faster.
    Behind,
    /// Unknown, or the remote can't accept the commit now; it may be retried.
    Doubtful,
}

impl Upstream<'_> {
    /// Pushes a commit to the remote's branch.
    ///
    /// # Errors
    /// [`LedgerError`] if the remote refuses it.
    pub(crate) fn push(
        &mut self,
        session: &Session,
        commit: ObjectId,
    ) -> Result<Landing, LedgerError> {
        let at = (session.wall)();
        let doubted = self.is_doubtful(commit);
        match self.remote.push(commit, &self.patience(&NEVER)) {
            Ok(Pushed::Done) => {}
            // If it was not pushed from here before, another writer made the identical commit.
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
                    self.pushes.doubtful.push(commit);
                }
                // No ref leads to the step yet, so `git gc` may have removed its objects.
                if !self.repository.put_back_lost()? {
                    self.pushes.failures += 1;
                }
                if self.pushes.failures >= FAILURES || self.left() == Duration::ZERO {
                    self.reach = Reach::Unreachable(error.to_string());
                }
                return Ok(Landing::Doubtful);
            }
            // It refuses the step itself: no retry would help.
            Err(error) => return Err(self.refused(error)),
        }
        self.follow(commit);
        self.saw(at, commit);
        Ok(Landing::There)
    }

    /// Counts a push that was lost to another writer. If the branch does not move, there was no
    /// other writer, but a lock.
    fn note_loss(&mut self) -> Result<(), LedgerError> {
        let known = self.known()?;
        let pushes = &mut self.pushes;
        if std::mem::replace(&mut pushes.lost_at, known) == known {
            pushes.unmoved += 1;
        } else {
            pushes.unmoved = 0;
        }
        if pushes.unmoved >= UNMOVED {
            let trouble =
                "its branch stays locked, by another push or by a lock file that was left there";
            self.reach = Reach::Unreachable(trouble.to_owned());
        }
        Ok(())
    }

    /// Pauses after a lost attempt.
    ///
    /// The pause is drawn from a window that starts at eight times the duration of an attempt and
    /// shrinks with each loss. One writer always wins, so many writers make progress without
    /// growing pauses; a growing window would starve those that lost most. `docs/scale.md` has the
    /// measurements.
    pub(crate) fn pause(&mut self, session: &Session) {
        const WIDE: u32 = 8;
        const WIDEST: Duration = Duration::from_millis(500);
        const SHRINKS: f64 = 0.8;
        let attempt = self.attempts.began.elapsed();
        let losses = self.attempts.lost;
        self.attempts.lost += 1;
        let first = (attempt * WIDE).min(attempt.max(WIDEST));
        let window = first.mul_f64(SHRINKS.powi(losses.try_into().unwrap_or(i32::MAX)));
        // The remaining time must be enough for one more attempt.
        let rest = self.left().saturating_sub(attempt * 3 / 2);
        let window = window.max(attempt).min(rest);
        let window = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        if window > 0 {
            std::thread::sleep(Duration::from_micros((session.jitter)(window)));
        }
    }

    /// Moves the tracking ref to the remote's branch. If that fails, the next fetch does it.
    fn follow(&self, commit: ObjectId) {
        if let Ok(known) = self.known() {
            let reflog = "handoff: push";
            let _ = self
                .repository
                .move_ref(&self.tracking, known, commit, reflog);
        }
    }

    /// Whether it is unknown if the remote accepted a commit.
    pub(crate) fn is_doubtful(&self, commit: ObjectId) -> bool {
        self.pushes.doubtful.contains(&commit)
    }

    /// Whether the remote has a commit whose push had an unknown outcome.
    pub(crate) fn has_taken(&self, commit: ObjectId) -> Result<bool, LedgerError> {
        let Some(known) = self.known()?.filter(|_| self.is_doubtful(commit)) else {
            return Ok(false);
        };
        // Perhaps no ref points to the commit, and `git gc` has removed its objects.
        self.repository.put_back_lost()?;
        let is_there = loop {
            match self.repository.is_in_history(commit, known) {
                Err(_) if self.repository.put_back_lost()? => {}
                found => break found?,
            }
        };
        if is_there {
            // git moved the ref, and does not look for the objects afterwards.
            self.repository.keep_fresh()?;
        }
        Ok(is_there)
    }
}
