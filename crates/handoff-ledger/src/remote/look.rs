//! A look at the remote's branch for commands that wait: it writes only the tracking ref, and one
//! look serves all processes that wait in a clone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use handoff_base::ObjectId;
use handoff_git::{Depth, Queue, RemoteError};
use handoff_model::{Record, Transition, View};
use handoff_protocol::Event;

use super::{Attempts, SeenTip, Upstream, duration, nanoseconds};
use crate::error::{LedgerError, UpstreamError};
use crate::session::Session;
use crate::write::Ledger;

/// The file that the processes of one clone queue at to look at a remote.
pub(super) const LOOKS: &str = "look.lock";

/// How long to wait at the queue before checking whether to go on waiting.
const STEP: Duration = Duration::from_millis(20);

/// What a look at the remote showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteLook {
    /// The tracking ref is where the remote's branch was.
    Seen {
        /// The branch's last commit; `None` if there is no such branch.
        tip: Option<ObjectId>,
        /// When it was there.
        at: SystemTime,
    },
    /// The remote could not be reached, for this reason.
    Missed(String),
}

impl Upstream<'_> {
    /// Waits while another process of this clone looks.
    pub(super) fn join_lookers(&self, until: Instant) -> Queue {
        loop {
            let queue = Queue::join(self.repository.common_dir(), LOOKS, STEP);
            let is_over = Instant::now() >= until || self.interrupted.load(Ordering::Relaxed);
            if is_over || !queue.is_taken() {
                return queue;
            }
        }
    }

    /// The last look by another process of this clone, if it was within this time.
    pub(super) fn looked_between(
        &self,
        since: SystemTime,
        now: SystemTime,
        queue: &Queue,
    ) -> Option<SeenTip> {
        let look = SeenTip::parse(queue.note()?, &self.tracking)?;
        let is_fresh = nanoseconds(since) <= look.at && look.at <= nanoseconds(now);
        is_fresh.then_some(look)
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

    fn glimpse(&mut self, session: &Session, since: SystemTime) -> Result<RemoteLook, LedgerError> {
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
            // A process that waits to write here will not have to fetch it again.
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
    /// `known`. Returns why the remote could not be reached, if it could not.
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
            // The branch went back, so there is nothing to fetch.
            return Err(self.refused(RemoteError::Rewritten));
        }
        self.look(session, Depth::Missing)?;
        Ok(self.trouble())
    }
}

impl Ledger<'_> {
    /// The same ledger. Setting `interrupted` ends its looks at the remote.
    #[must_use]
    pub fn ended_by(mut self, interrupted: Arc<AtomicBool>) -> Self {
        if let Some(upstream) = self.upstream_mut() {
            upstream.interrupted = interrupted;
        }
        self
    }

    /// The ref that records where the remote's branch was when last seen, if the ledger has a
    /// remote.
    pub fn tracking_ref(&self) -> Option<&str> {
        self.upstream().map(|upstream| upstream.tracking.as_str())
    }

    /// Where the remote's branch was when last seen.
    ///
    /// # Errors
    /// [`LedgerError`] if the ref can't be read.
    pub fn seen_there(&self) -> Result<Option<ObjectId>, LedgerError> {
        self.upstream().map_or(Ok(None), Upstream::known)
    }

    /// The remote, if it does not have the claim under which a handoff is held here: the claim was
    /// made offline.
    ///
    /// # Errors
    /// [`LedgerError`] if the remote's ledger can't be read here.
    pub fn lacks_claim(&self, record: &Record) -> Result<Option<String>, LedgerError> {
        let (Some(upstream), Some(lease)) = (self.upstream(), &record.lease) else {
            return Ok(None);
        };
        // Of a remote that was never read, nothing is known.
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

    /// Looks where the remote's branch is, and fetches what is new into the tracking ref, unless
    /// another process of this clone did since this time. The branch here does not move.
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
