//! A look at the remote's branch by whoever waits for what others do: it writes
//! nothing but the tracking ref, and one look serves all who wait in a clone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use handoff_base::ObjectId;
use handoff_git::{Depth, Patience, Queue, RemoteError};

use super::{Reach, SeenTip, Upstream, nanoseconds};
use crate::error::LedgerError;
use crate::session::Session;
use crate::write::Ledger;

/// The file that the processes of one clone queue at to look at a remote.
const LOOKS: &str = "look.lock";

/// How long the queue is waited at before it is seen whether that was enough.
const STEP: Duration = Duration::from_millis(20);

/// What a look at the remote showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteLook {
    /// The tracking ref is where the remote's branch was.
    Seen {
        /// The branch's last commit; none where there is no such branch.
        tip: Option<ObjectId>,
        /// When it was there.
        at: SystemTime,
    },
    /// The remote can't be reached, for this reason.
    Missed(String),
}

impl Upstream<'_> {
    /// Waits while another process of this clone looks.
    fn join_lookers(&self, until: Instant) -> Queue {
        loop {
            let queue = Queue::join(self.repository.common_dir(), LOOKS, STEP);
            let is_over = Instant::now() >= until || self.asked.load(Ordering::Relaxed);
            if is_over || !queue.is_taken() {
                return queue;
            }
        }
    }

    /// When another process of this clone looked last, if that was in this time.
    fn looked_between(&self, since: SystemTime, now: SystemTime, queue: &Queue) -> Option<SeenTip> {
        let look = SeenTip::parse(queue.note()?, &self.tracking)?;
        let is_fresh = nanoseconds(since) <= look.at && look.at <= nanoseconds(now);
        is_fresh.then_some(look)
    }

    /// Why the remote was not reached, where it was not.
    pub(super) fn trouble(&self) -> Option<String> {
        match &*self.reach.borrow() {
            Reach::Unreachable(trouble) => Some(trouble.clone()),
            _ => None,
        }
    }

    /// Says whether the tracking ref moved to a commit, or past it, since it was `known`.
    fn moved_to(&self, tip: ObjectId, known: Option<ObjectId>) -> Result<bool, LedgerError> {
        let now = self.known()?;
        Ok(now != known && self.is_behind(tip, now)?)
    }

    /// Says whether a commit is here, and in the history of another.
    fn is_behind(&self, tip: ObjectId, other: Option<ObjectId>) -> Result<bool, LedgerError> {
        match other.filter(|_| self.repository.has(tip)) {
            Some(other) => Ok(self.repository.is_in_history(tip, other)?),
            None => Ok(false),
        }
    }
}

impl Ledger<'_> {
    /// The same ledger, whose looks at the remote end when this is set.
    #[must_use]
    pub fn ended_by(mut self, asked: Arc<AtomicBool>) -> Self {
        if let Some(upstream) = self.upstream_mut() {
            upstream.asked = asked;
        }
        self
    }

    /// The ref that tells where the remote's branch was when it was seen last, if this
    /// ledger has a remote.
    pub fn tracking_ref(&self) -> Option<&str> {
        self.upstream().map(|upstream| upstream.tracking.as_str())
    }

    /// Where the remote's branch was when it was seen last.
    ///
    /// # Errors
    /// [`LedgerError`] when the ref can't be read.
    pub fn seen_there(&self) -> Result<Option<ObjectId>, LedgerError> {
        self.upstream().map_or(Ok(None), Upstream::known)
    }

    /// Looks where the remote's branch is, unless another process of this clone did
    /// since then, and brings what is new there into the tracking ref. The branch here
    /// stays where it is.
    ///
    /// # Errors
    /// [`LedgerError`] when the remote refuses, when its branch was rewritten or
    /// removed, or when a ref can't be read.
    pub fn glimpse(&self, session: &Session, since: SystemTime) -> Result<RemoteLook, LedgerError> {
        let upstream = self.upstream().ok_or(LedgerError::NoRemote)?;
        let deadline = Instant::now() + session.patience;
        let mut queue = upstream.join_lookers(deadline);
        let at = (session.wall)();
        let known = upstream.known()?;
        if let Some(look) = upstream.looked_between(since, at, &queue)
            && let Some(known) = known
        {
            let at = SystemTime::UNIX_EPOCH + duration(look.at);
            return Ok(RemoteLook::Seen {
                tip: Some(known),
                at,
            });
        }
        let patience = Patience {
            deadline: Some(deadline),
            interrupted: &upstream.asked,
        };
        let tip = match upstream.remote.tip(&patience) {
            Ok(tip) => tip,
            Err(
                error @ (RemoteError::Failed { .. }
                | RemoteError::TimedOut
                | RemoteError::Interrupted),
            ) => return Ok(RemoteLook::Missed(error.to_string())),
            Err(error) => return Err(upstream.refused(error)),
        };
        let Some(tip) = tip else {
            return match known {
                None => Ok(RemoteLook::Seen { tip, at }),
                Some(_) => Err(LedgerError::RemoteGone {
                    remote: upstream.name.clone(),
                    branch: upstream.branch.clone(),
                }),
            };
        };
        if known != Some(tip) {
            // Whoever wants to write here meanwhile waits for this, and need not fetch it too.
            upstream.begin(session);
            let brought = match upstream.moved_to(tip, known) {
                // It went back: there is nothing to fetch.
                Ok(false) if upstream.is_behind(tip, known)? => {
                    Err(upstream.refused(RemoteError::Rewritten))
                }
                Ok(false) => upstream
                    .look(session, Depth::Missing)
                    .map(|_| upstream.trouble()),
                Ok(true) => Ok(None),
                Err(error) => Err(error),
            };
            upstream.end();
            if let Some(trouble) = brought? {
                return Ok(RemoteLook::Missed(trouble));
            }
        }
        let tip = upstream.known()?;
        if let Some(tip) = tip {
            let look = SeenTip {
                at: nanoseconds(at),
                tip,
            };
            queue.leave(Some(&look.text(&upstream.tracking)));
        }
        Ok(RemoteLook::Seen { tip, at })
    }
}

fn duration(nanoseconds: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
