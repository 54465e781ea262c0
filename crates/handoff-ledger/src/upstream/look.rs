//! Looks at the remote's branch: writes only the tracking ref; one look serves all waiting
//! processes of a clone.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use handoff_base::ObjectId;
use handoff_git::{Depth, Queue, RemoteError};

use super::{Attempts, TURN, Upstream};
use crate::error::LedgerError;
use crate::session::Session;

/// The lock file of a clone's processes for looking at a remote.
const LOOKS: &str = "look.lock";

/// How often a waiting process checks whether to continue waiting.
const STEP: Duration = Duration::from_millis(20);

/// The result of a look at the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteLook {
    /// The tracking ref equals the remote's branch.
    Seen {
        /// The branch's commit; `None` if there is no such branch.
        tip: Option<ObjectId>,
        /// The time of the look.
        at: SystemTime,
    },
    /// The remote was unreachable, for this reason.
    Missed(String),
}

impl Upstream<'_> {
    /// Waits while another process of this clone looks.
    fn join_lookers(&self, until: Instant) -> Queue {
        loop {
            let queue = Queue::join(self.repository.common_dir(), LOOKS, STEP);
            let is_over = Instant::now() >= until || self.interrupted.load(Ordering::Relaxed);
            if is_over || !queue.is_taken() {
                return queue;
            }
        }
    }

    /// The last look by another process of this clone, or its last write there, if it was in this
    /// period.
    fn looked_between(&self, since: SystemTime, now: SystemTime, queue: &Queue) -> Option<SeenTip> {
        let written = Queue::peek(self.repository.common_dir(), TURN);
        let notes = [queue.note(), written.as_deref()].into_iter().flatten();
        let seen = notes.filter_map(|note| SeenTip::parse(note, &self.tracking));
        let period = nanoseconds(since)..=nanoseconds(now);
        seen.filter(|look| period.contains(&look.at))
            .max_by_key(|look| look.at)
    }

    /// Whether the tracking ref moved to a commit, or past it, since it was `known`.
    fn moved_to(&self, tip: ObjectId, known: Option<ObjectId>) -> Result<bool, LedgerError> {
        let now = self.known()?;
        Ok(now != known && self.is_behind(tip, now)?)
    }

    /// Whether a commit is here, and in the history of another.
    fn is_behind(&self, tip: ObjectId, other: Option<ObjectId>) -> Result<bool, LedgerError> {
        match other.filter(|_| self.repository.has(tip)) {
            Some(other) => Ok(self.repository.is_in_history(tip, other)?),
            None => Ok(false),
        }
    }

    pub(crate) fn glimpse(
        &mut self,
        session: &Session,
        since: SystemTime,
    ) -> Result<RemoteLook, LedgerError> {
        self.attempts = Attempts::within(session.patience);
        let mut queue = self.join_lookers(self.attempts.deadline);
        let at = (session.wall)();
        let known = self.known()?;
        if let Some(look) = self.looked_between(since, at, &queue)
            && known.is_some()
        {
            let at = SystemTime::UNIX_EPOCH + duration(look.at);
            return Ok(RemoteLook::Seen { tip: known, at });
        }
        let tip = match self.remote.tip(&self.patience(&self.interrupted)) {
            Ok(tip) => tip,
            Err(
                error @ (RemoteError::Failed { .. }
                | RemoteError::TimedOut
                | RemoteError::Interrupted),
            ) => return Ok(RemoteLook::Missed(error.to_string())),
            Err(error) => return Err(self.refused(error)),
        };
        let Some(tip) = tip else {
            return match known {
                None => Ok(RemoteLook::Seen { tip, at }),
                Some(_) => Err(self.gone().into()),
            };
        };
        if known != Some(tip) {
            // A process that waits to write here need not fetch it again.
            self.begin(session);
            let brought = self.bring(session, tip, known);
            self.end();
            if let Some(trouble) = brought? {
                return Ok(RemoteLook::Missed(trouble));
            }
        }
        let tip = self.known()?;
        if let Some(tip) = tip {
            queue.leave(Some(&self.note(at, tip)));
        }
        Ok(RemoteLook::Seen { tip, at })
    }

    /// Fetches a new tip into the tracking ref, unless another process has done so since it was
    /// `known`. Returns the reason if the remote is unreachable.
    fn bring(
        &mut self,
        session: &Session,
        tip: ObjectId,
        known: Option<ObjectId>,
    ) -> Result<Option<String>, LedgerError> {
        if self.moved_to(tip, known)? {
            return Ok(None);
        }
        if self.is_behind(tip, known)? {
            // The remote's branch moved back, so there is nothing to fetch.
            let branch = self.branch.clone();
            return Err(self.refused(RemoteError::Rewritten { branch }));
        }
        self.look(session, Depth::Missing)?;
        Ok(self.trouble())
    }
}

impl Upstream<'_> {
    /// Fetches the remote's branch into the tracking ref, unless another process of this clone
    /// looked since this one began.
    pub(crate) fn ask(&mut self, session: &Session) -> Result<RemoteLook, LedgerError> {
        self.attempts = Attempts::within(session.patience);
        let mut queue = self.join_lookers(self.attempts.deadline);
        if let Some(seen) = self.seen_meanwhile(session, &queue)? {
            return Ok(seen);
        }
        if self.left() == Duration::ZERO {
            return Ok(RemoteLook::Missed(RemoteError::TimedOut.to_string()));
        }
        // Waiting for other processes counts.
        let rest = Session {
            patience: self.left(),
            ..session.clone()
        };
        self.begin(&rest);
        let known = self.known()?;
        let at = (session.wall)();
        if self.was_seen_since(session, known) {
            self.end();
            return Ok(RemoteLook::Seen { tip: known, at });
        }
        let looked = self.look(&rest, Depth::Missing);
        self.end();
        let tip = looked?;
        if let Some(trouble) = self.trouble() {
            return Ok(RemoteLook::Missed(trouble));
        }
        if let Some(tip) = tip {
            queue.leave(Some(&self.note(at, tip)));
        }
        Ok(RemoteLook::Seen { tip, at })
    }

    /// The look of another process of this clone since this one began.
    fn seen_meanwhile(
        &self,
        session: &Session,
        queue: &Queue,
    ) -> Result<Option<RemoteLook>, LedgerError> {
        let seen = self.looked_between(session.began, (session.wall)(), queue);
        let (Some(look), Some(tip)) = (seen, self.known()?) else {
            return Ok(None);
        };
        let at = SystemTime::UNIX_EPOCH + duration(look.at);
        Ok(Some(RemoteLook::Seen { tip: Some(tip), at }))
    }

    /// When a process of this clone last read the branch, if known.
    pub(crate) fn last_read(&self) -> Option<SystemTime> {
        let common_dir = self.repository.common_dir();
        let noted = [LOOKS, TURN].into_iter().filter_map(|name| {
            let seen = SeenTip::parse(&Queue::peek(common_dir, name)?, &self.tracking)?;
            Some(SystemTime::UNIX_EPOCH + duration(seen.at))
        });
        // Without a note, use the time of the ref's last move.
        let moved = || {
            let file = common_dir.join(&self.tracking).metadata();
            file.ok()?.modified().ok()
        };
        noted.max().or_else(moved)
    }

    /// Whether the remote has the branch; `None` if it does not answer within this time.
    pub(crate) fn is_there(&mut self, patience: Duration) -> Option<bool> {
        self.attempts = Attempts::within(patience);
        let tip = self.remote.tip(&self.patience(&self.interrupted));
        tip.ok().map(|tip| tip.is_some())
    }
}

/// A remote's branch at a time.
pub(super) struct SeenTip {
    pub(super) at: u128,
    pub(super) tip: ObjectId,
}

impl SeenTip {
    pub(super) fn text(&self, tracking: &str) -> String {
        format!("{} {} {tracking}", self.at, self.tip)
    }

    pub(super) fn parse(note: &str, tracking: &str) -> Option<Self> {
        let mut words = note.splitn(3, ' ');
        let (at, tip) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        (words.next()? == tracking).then_some(Self { at, tip })
    }
}

pub(super) fn nanoseconds(at: SystemTime) -> u128 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

fn duration(nanoseconds: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
