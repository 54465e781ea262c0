//! The ledger of a remote: what one machine promises holds across clones, because
//! a step counts only once the remote has it.
//!
//! [`Upstream`] is the remote's branch as this clone knows it, and this clone's
//! turn to talk to it. `publish` puts one commit there. `sync` brings both sides
//! together; `rerun` makes a step that was made offline again, on the remote's
//! state, and `rejected` keeps those that it refuses. `glimpse` looks at the remote
//! for whoever waits.

mod apart;
mod look;
mod publish;
mod rejected;
mod rerun;
mod sync;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use handoff_base::{ObjectId, digest};
use handoff_git::{Depth, Patience, Queue, Remote, RemoteError, Repository, masked};

use super::error::LedgerError;
use super::session::Session;

pub use look::RemoteLook;
pub use rejected::{Rejected, RejectedStep};
pub use rerun::Renamed;
pub use sync::{RemoteDistance, Synced};

/// The trailer that names the commit which a step was offline.
pub(super) const SYNCED_FROM: &str = "Synced-From";

/// The trailer that makes a step that was made offline unique: a random number.
pub(super) const MADE_OFFLINE: &str = "Made-Offline";

/// What a message says before the line in which a trailer tells how the step came about,
/// where it has such a line: `Synced-From` or `Made-Offline`, once, at its end.
pub(super) fn without_origin(message: &[u8]) -> &[u8] {
    let Some(last) = message.strip_suffix(b"\n") else {
        return message;
    };
    let start = last
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    let is_origin = |(name, digits): (&str, usize)| {
        let value = last[start..].strip_prefix(name.as_bytes());
        let value = value.and_then(|rest| rest.strip_prefix(b": "));
        let digit = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
        value.is_some_and(|value| value.len() == digits && value.iter().all(digit))
    };
    if [(SYNCED_FROM, 40), (MADE_OFFLINE, 16)]
        .into_iter()
        .any(is_origin)
    {
        &message[..start]
    } else {
        message
    }
}

/// The file that the processes of one clone queue at to talk to a remote.
const TURN: &str = "remote.lock";

/// What a write did not reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpublished {
    /// The remote, as the user calls it.
    pub remote: String,
    /// Why it was not reached; none where that was asked for.
    pub trouble: Option<String>,
}

/// A note of what the last write did not reach; none where the remote has it.
pub type Publication = Rc<RefCell<Option<Unpublished>>>;

/// How the remote answered this process.
enum Reach {
    /// It was not asked yet.
    Unasked,
    /// It was reached, and its branch is where the tracking ref is.
    Reached,
    /// It was not to be asked.
    Offline,
    /// It could not be reached, for this reason.
    Unreachable(String),
}

/// The branch of a remote, as this clone knows it.
pub(super) struct Upstream<'r> {
    repository: &'r Repository,
    remote: Remote,
    /// As it is shown: no address shows a password.
    name: String,
    branch: String,
    tracking: String,
    reach: RefCell<Reach>,
    turn: RefCell<Option<Queue>>,
    deadline: Cell<Instant>,
    /// When the attempt to write that goes on began.
    attempt: Cell<Instant>,
    /// How many attempts others were faster than.
    losses: Cell<u32>,
    /// Whether offline steps that a hook of the remote refuses are kept aside.
    set_aside: Cell<bool>,
    /// Where the branch was at the last of them, and how often in a row it was there.
    lost_at: Cell<Option<ObjectId>>,
    unmoved: Cell<u32>,
    /// How often the remote failed to take a commit.
    failures: Cell<u32>,
    /// Set when looks at the remote are to end.
    asked: Arc<AtomicBool>,
    /// Commits of which it is not known whether the remote took them.
    doubtful: RefCell<Vec<ObjectId>>,
    publication: Publication,
}

impl<'r> Upstream<'r> {
    /// Names a ledger's branch on a remote, by the remote's name or address.
    pub(super) fn new(repository: &'r Repository, name: &str, branch: &str) -> Self {
        Self {
            repository,
            remote: Remote::new(repository, name, &format!("refs/heads/{branch}")),
            name: masked(name),
            branch: branch.to_owned(),
            tracking: format!("refs/handoff/remotes/{}/{branch}", folder(name)),
            reach: RefCell::new(Reach::Unasked),
            turn: RefCell::new(None),
            deadline: Cell::new(Instant::now()),
            attempt: Cell::new(Instant::now()),
            losses: Cell::new(0),
            set_aside: Cell::new(false),
            lost_at: Cell::new(None),
            unmoved: Cell::new(0),
            failures: Cell::new(0),
            asked: Arc::default(),
            doubtful: RefCell::default(),
            publication: Publication::default(),
        }
    }

    /// Where the remote's branch was when it was seen last.
    ///
    /// # Errors
    /// [`LedgerError`] when the ref can't be read.
    pub(super) fn known(&self) -> Result<Option<ObjectId>, LedgerError> {
        Ok(self.repository.resolve(&self.tracking)?)
    }

    /// The remote, as the user calls it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Says whether steps that failed so are to be kept aside.
    fn sets_aside(&self, error: &LedgerError) -> bool {
        self.set_aside.get() && error.is_of_a_hook()
    }

    /// Where it is noted what the last write did not reach.
    pub(super) fn publication(&self) -> Publication {
        Rc::clone(&self.publication)
    }

    /// Says whether the remote was asked, or is not to be.
    pub(super) fn is_settled(&self) -> bool {
        !matches!(*self.reach.borrow(), Reach::Unasked)
    }

    pub(super) fn is_reached(&self) -> bool {
        matches!(*self.reach.borrow(), Reach::Reached)
    }

    /// How long may still be waited for the remote.
    fn left(&self) -> Duration {
        self.deadline
            .get()
            .saturating_duration_since(Instant::now())
    }

    /// Gives the operation more time, since it spent this long without the remote.
    fn prolong(&self, by: Duration) {
        self.deadline.set(self.deadline.get() + by);
    }

    /// Begins an operation, which may take this long, and waits for this clone's
    /// turn.
    fn begin(&self, session: &Session) {
        self.deadline.set(Instant::now() + session.patience);
        self.attempt.set(Instant::now());
        self.losses.set(0);
        if self.turn.borrow().is_none() {
            let common_dir = self.repository.common_dir();
            // Half of the time is kept for the remote, should the turn never come.
            let turn = Queue::join(common_dir, TURN, session.patience / 2);
            *self.turn.borrow_mut() = Some(turn);
        }
    }

    /// Gives the turn to the next process.
    fn end(&self) {
        *self.turn.borrow_mut() = None;
    }

    /// Says whether another process of this clone looked at the remote after this
    /// one began to wait: then that look counts for this one too.
    fn was_seen_since(&self, session: &Session, known: Option<ObjectId>) -> bool {
        let turn = self.turn.borrow();
        let note = turn.as_ref().and_then(Queue::note);
        let seen = note.and_then(|note| SeenTip::parse(note, &self.tracking));
        // A clock may have been set back since.
        let meanwhile = nanoseconds(session.began)..=nanoseconds((session.wall)());
        seen.is_some_and(|look| meanwhile.contains(&look.at) && Some(look.tip) == known)
    }

    /// Notes where the remote's branch was at a moment.
    fn saw(&self, at: SystemTime, tip: ObjectId) {
        if let Some(turn) = &mut *self.turn.borrow_mut() {
            let at = nanoseconds(at);
            turn.leave(Some(&SeenTip { at, tip }.text(&self.tracking)));
        }
    }

    /// Brings the remote's branch here, into the tracking ref. What can't be
    /// reached is noted, and no error.
    ///
    /// # Errors
    /// [`LedgerError`] when the remote refuses, when its branch was rewritten or
    /// removed, or when a ref can't be read.
    fn look(&self, session: &Session, depth: Depth) -> Result<Option<ObjectId>, LedgerError> {
        let known = self.known()?;
        let at = (session.wall)();
        self.attempt.set(Instant::now());
        let patience = Patience {
            deadline: Some(self.deadline.get()),
            interrupted: &self.asked,
        };
        let (depth, anew) = self.fetch_plan(known, depth)?;
        let track = || {
            let there = (self.remote).track(&self.tracking, known, depth, anew, &patience)?;
            let moved = self.repository.resolve(&self.tracking).ok().flatten();
            // A fetch of the user's own may have brought commits without what is in them.
            if let (false, Some(known), Some(tip)) = (anew, known, moved)
                && self.repository.is_partial()
                && tip != known
            {
                self.remote.fill(tip, Some(known), &patience)?;
            }
            Ok(there)
        };
        match track() {
            Ok(true) => {
                let tip = self.known()?;
                if let Some(tip) = tip {
                    self.saw(at, tip);
                }
                *self.reach.borrow_mut() = Reach::Reached;
                Ok(tip)
            }
            Ok(false) if known.is_some() => Err(LedgerError::RemoteGone {
                remote: self.name.clone(),
                branch: self.branch.clone(),
            }),
            Ok(false) => {
                *self.reach.borrow_mut() = Reach::Reached;
                Ok(None)
            }
            Err(RemoteError::Failed { said }) => Ok(self.missed(said, known)),
            Err(error @ (RemoteError::TimedOut | RemoteError::Interrupted)) => {
                Ok(self.missed(error.to_string(), known))
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// How deep to fetch, and whether to bring what seems to be here already: a clone
    /// that began with a part of the remote gets the part that the ledger needs.
    fn fetch_plan(
        &self,
        known: Option<ObjectId>,
        depth: Depth,
    ) -> Result<(Depth, bool), LedgerError> {
        let here = self
            .repository
            .resolve(&format!("refs/heads/{}", self.branch))?;
        let depth = match (depth, self.repository.is_shallow()) {
            // The tip is enough to read and to write; in any other repository, this
            // would cut history off.
            (Depth::Missing, true) if known.is_none() && here.is_none() => Depth::Tip,
            (Depth::All, false) => Depth::Missing,
            (depth, _) => depth,
        };
        let anew = known.is_none() || depth == Depth::All;
        Ok((depth, anew && self.repository.is_partial()))
    }

    /// Brings what a partial clone was left without of the remote's last commit.
    fn fill(&self, tip: ObjectId) -> Result<(), LedgerError> {
        if !self.repository.is_partial() {
            return Ok(());
        }
        let asked = AtomicBool::new(false);
        let patience = Patience {
            deadline: Some(self.deadline.get()),
            interrupted: &asked,
        };
        let filled = self.remote.fill(tip, None, &patience);
        filled.map_err(|source| self.refused(source))
    }

    /// What could not be reached and why, if it could not.
    pub(super) fn unreachable_reason(&self) -> Option<Unpublished> {
        Some(Unpublished {
            remote: self.name.clone(),
            trouble: Some(self.trouble()?),
        })
    }

    /// Notes that the remote can't be reached.
    fn missed(&self, trouble: String, known: Option<ObjectId>) -> Option<ObjectId> {
        *self.reach.borrow_mut() = Reach::Unreachable(trouble);
        known
    }

    fn refused(&self, source: RemoteError) -> LedgerError {
        LedgerError::Remote {
            remote: self.name.clone(),
            source,
        }
    }

    /// Notes whether the remote has a commit.
    pub(super) fn settle(&self, tip: Option<ObjectId>) -> Result<(), LedgerError> {
        self.end();
        let trouble = match &*self.reach.borrow() {
            Reach::Unasked | Reach::Reached => return Ok(()),
            Reach::Offline => None,
            Reach::Unreachable(trouble) => Some(trouble.clone()),
        };
        let published = match (tip, self.known()?) {
            (Some(tip), Some(known)) => self.repository.is_in_history(tip, known)?,
            (tip, _) => tip.is_none(),
        };
        *self.publication.borrow_mut() = (!published).then(|| Unpublished {
            remote: self.name.clone(),
            trouble,
        });
        Ok(())
    }
}

/// A look at a remote's branch: when, and where it was.
struct SeenTip {
    at: u128,
    tip: ObjectId,
}

impl SeenTip {
    fn text(&self, tracking: &str) -> String {
        format!("{} {} {tracking}", self.at, self.tip)
    }

    fn parse(note: &str, tracking: &str) -> Option<Self> {
        let mut words = note.splitn(3, ' ');
        let (at, tip) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        (words.next()? == tracking).then_some(Self { at, tip })
    }
}

fn nanoseconds(at: SystemTime) -> u128 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// The part of a ref's name that stands for a remote: its own name, or for an
/// address, which no ref can have in its name, a digest.
fn folder(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = name.chars().all(plain) && Repository::is_ref_name(&format!("refs/{name}"));
    if is_name {
        return name.to_owned();
    }
    const DIGITS: usize = 16;
    let digest = digest(name.as_bytes());
    format!("address-{}", &digest[..DIGITS])
}
