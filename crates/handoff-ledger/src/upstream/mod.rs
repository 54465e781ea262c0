//! The remote's branch as this clone knows it, and this process's lock for talking to the remote.
//!
//! `look` reads the branch, directly or through another process of the clone; `push` pushes one
//! commit.

mod look;
mod push;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use handoff_base::{ObjectId, digest};
use handoff_git::{Contents, Depth, Patience, Queue, Remote, RemoteError, Repository, masked};

use super::error::{LedgerError, UpstreamError};
use super::session::Session;

pub use look::RemoteLook;
use look::{SeenTip, nanoseconds};
pub(super) use push::Landing;

/// The age at which a lock of the tracking ref counts as abandoned: git holds one for milliseconds,
/// and only the holder of the remote's lock moves the ref.
const ABANDONED: Duration = Duration::from_secs(2);

/// Removes the lock of a killed process. If that fails, git reports it.
fn remove_abandoned(lock: &Path, session: &Session) {
    let began = Instant::now();
    while let Ok(found) = fs::symlink_metadata(lock) {
        let age = found.modified().ok();
        let age = age.and_then(|made| (session.wall)().duration_since(made).ok());
        if age.unwrap_or_default().max(began.elapsed()) >= ABANDONED {
            let _ = fs::remove_file(lock);
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The lock file of a clone's processes for talking to a remote.
const TURN: &str = "remote.lock";

/// Never set: only looks at the remote can be interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);

/// What the remote lacks of the last write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpublished {
    /// The remote, without a password.
    pub remote: String,
    /// Why it was unreachable; `None` if the caller asked to stay offline.
    pub trouble: Option<String>,
}

/// The remote's answer to this process.
pub(super) enum Reach {
    /// Not contacted yet.
    Unasked,
    /// It answered, and its branch equals the tracking ref.
    Reached,
    /// It must not be contacted.
    Offline,
    /// It is unreachable, for this reason.
    Unreachable(String),
}

/// The attempts of one operation, from [`Upstream::begin`].
pub(super) struct Attempts {
    pub(super) deadline: Instant,
    /// The start of the current attempt.
    began: Instant,
    /// How many attempts were lost to other writers.
    lost: u32,
}

impl Attempts {
    pub(super) fn within(patience: Duration) -> Self {
        let began = Instant::now();
        Self {
            deadline: began + patience,
            began,
            lost: 0,
        }
    }
}

/// The results of this process's pushes.
#[derive(Default)]
struct Pushes {
    /// The branch's commit when a push was last lost to another writer.
    lost_at: Option<ObjectId>,
    /// How many pushes in a row were lost although the branch did not move.
    unmoved: u32,
    failures: u32,
    /// Commits that the remote may or may not have accepted.
    doubtful: Vec<ObjectId>,
}

/// The folder of this program's tracking refs.
pub(super) const TRACKING: &str = "refs/handoff/remotes";

/// The branch of a remote, as this clone knows it.
pub(super) struct Upstream<'r> {
    repository: &'r Repository,
    pub(super) remote: Remote,
    /// Without a password, if it is a URL.
    pub(super) name: String,
    pub(super) branch: String,
    pub(super) tracking: String,
    /// Set by another thread to end looks at the remote.
    pub(super) interrupted: Arc<AtomicBool>,
    pub(super) reach: Reach,
    /// This process's lock, while it has it.
    turn: Option<Queue>,
    pub(super) attempts: Attempts,
    pushes: Pushes,
    /// Whether to fetch objects that seem to exist here.
    pub(super) anew: bool,
    /// Whether a partial clone gets all objects, not only those that a command reads.
    pub(super) brings_all: bool,
    /// Whether offline steps that a hook of the remote refuses are kept as refused steps.
    pub(super) set_aside: bool,
    /// What the remote lacks of the last write, if anything.
    pub(super) unpublished: Option<Unpublished>,
    /// The lock that kept this clone's branch from following.
    pub(super) left_lock: Option<PathBuf>,
}

impl<'r> Upstream<'r> {
    /// A ledger's branch on a remote, given by name or address.
    pub(super) fn new(repository: &'r Repository, name: &str, branch: &str) -> Self {
        Self {
            repository,
            remote: Remote::new(repository, name, &format!("refs/heads/{branch}")),
            name: masked(name),
            branch: branch.to_owned(),
            tracking: format!("{TRACKING}/{}/{branch}", folder(name)),
            interrupted: Arc::default(),
            reach: Reach::Unasked,
            turn: None,
            attempts: Attempts::within(Duration::ZERO),
            pushes: Pushes::default(),
            anew: false,
            brings_all: false,
            set_aside: false,
            unpublished: None,
            left_lock: None,
        }
    }

    /// The remote's branch as last seen.
    pub(super) fn known(&self) -> Result<Option<ObjectId>, LedgerError> {
        Ok(self.repository.resolve(&self.tracking)?)
    }

    /// The remote, without a password.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a step that failed with this error is to be kept as a refused step.
    pub(super) fn sets_aside(&self, error: &LedgerError) -> bool {
        self.set_aside && error.is_of_a_hook()
    }

    /// Whether the remote was contacted, or must not be.
    pub(super) fn is_settled(&self) -> bool {
        !matches!(self.reach, Reach::Unasked)
    }

    pub(super) fn is_reached(&self) -> bool {
        matches!(self.reach, Reach::Reached)
    }

    /// Fails if the remote is unreachable.
    pub(super) fn ensure_reached(&self) -> Result<(), LedgerError> {
        match self.trouble() {
            None => Ok(()),
            Some(trouble) => Err(UpstreamError::Unreachable {
                remote: self.name.clone(),
                trouble,
            }
            .into()),
        }
    }

    /// The remaining time for the remote.
    pub(super) fn left(&self) -> Duration {
        self.attempts
            .deadline
            .saturating_duration_since(Instant::now())
    }

    /// The time limit of git for the remote.
    pub(super) fn patience<'a>(&self, interrupted: &'a AtomicBool) -> Patience<'a> {
        Patience {
            deadline: Some(self.attempts.deadline),
            interrupted,
        }
    }

    /// Begins an operation, and waits for the remote's lock if this process lacks it.
    pub(super) fn begin(&mut self, session: &Session) {
        self.attempts = Attempts::within(session.patience);
        if self.turn.is_none() {
            let common_dir = self.repository.common_dir();
            // Half of the time is kept for the remote, in case the lock stays taken.
            let turn = Queue::join(common_dir, TURN, session.patience / 2);
            if turn.is_held() {
                let lock = common_dir.join(format!("{}.lock", self.tracking));
                remove_abandoned(&lock, session);
            }
            self.turn = Some(turn);
        }
    }

    /// Takes the remote's lock for another write of this process, if it goes to the remote.
    pub(super) fn ensure_turn(&mut self, session: &Session) {
        if self.is_reached() && self.turn.is_none() {
            self.begin(session);
        }
    }

    /// Fails if the remote is unreachable now.
    pub(super) fn ensure_answers(&mut self, session: &Session) -> Result<(), LedgerError> {
        self.begin(session);
        match self.remote.tip(&self.patience(&NEVER)) {
            Ok(_) => Ok(()),
            Err(error @ RemoteError::Failed { .. } | error @ RemoteError::TimedOut) => {
                Err(UpstreamError::unreachable(self.name.clone(), &error).into())
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Releases the remote's lock.
    pub(super) fn end(&mut self) {
        self.turn = None;
    }

    /// Whether another process of this clone looked at the remote after this one began to wait;
    /// that look counts for this one too.
    pub(super) fn was_seen_since(&self, session: &Session, known: Option<ObjectId>) -> bool {
        let note = self.turn.as_ref().and_then(Queue::note);
        let seen = note.and_then(|note| SeenTip::parse(note, &self.tracking));
        // The clock may have been set back since.
        let meanwhile = nanoseconds(session.began)..=nanoseconds((session.wall)());
        seen.is_some_and(|look| meanwhile.contains(&look.at) && Some(look.tip) == known)
    }

    /// Leaves a note for the next process: the remote's branch, and the time.
    fn saw(&mut self, at: SystemTime, tip: ObjectId) {
        let note = self.note(at, tip);
        if let Some(turn) = &mut self.turn {
            turn.leave(Some(&note));
        }
    }

    /// The note with the commit of the remote's branch.
    fn note(&self, at: SystemTime, tip: ObjectId) -> String {
        let at = nanoseconds(at);
        SeenTip { at, tip }.text(&self.tracking)
    }

    /// Fetches the remote's branch into the tracking ref. An unreachable remote is recorded and is
    /// not an error.
    ///
    /// # Errors
    /// [`LedgerError`] if the remote refuses, if its branch was rewritten or removed, or if a ref
    /// can't be read.
    pub(super) fn look(
        &mut self,
        session: &Session,
        depth: Depth,
    ) -> Result<Option<ObjectId>, LedgerError> {
        let known = self.known()?;
        let at = (session.wall)();
        self.attempts.began = Instant::now();
        let patience = self.patience(&self.interrupted);
        let (depth, contents) = self.fetch_plan(known, depth)?;
        let track = || {
            let there = (self.remote).track(&self.tracking, known, depth, contents, &patience)?;
            let moved = self.repository.resolve(&self.tracking).ok().flatten();
            // The user's own fetch may have brought commits without their contents; a clone that
            // was complete so far gets them.
            if let (Contents::New, Some(known), Some(tip)) = (contents, known, moved)
                && self.repository.is_partial()
                && tip != known
                && self.remote.lacks(tip, Some(known), &patience)?
                && !self.remote.lacks(known, None, &patience)?
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
                self.reach = Reach::Reached;
                Ok(tip)
            }
            Ok(false) if known.is_some() => Err(self.gone().into()),
            Ok(false) => {
                self.reach = Reach::Reached;
                Ok(None)
            }
            Err(RemoteError::Failed { message }) => {
                self.reach = Reach::Unreachable(message);
                Ok(known)
            }
            Err(error @ (RemoteError::TimedOut | RemoteError::Interrupted)) => {
                self.reach = Reach::Unreachable(error.to_string());
                Ok(known)
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// The depth and the objects to fetch: a clone that began with a part of the remote fetches the
    /// part that the ledger needs.
    fn fetch_plan(
        &self,
        known: Option<ObjectId>,
        depth: Depth,
    ) -> Result<(Depth, Contents), LedgerError> {
        let whole = known.is_none() || depth == Depth::All;
        let here = self
            .repository
            .resolve(&format!("refs/heads/{}", self.branch))?;
        let depth = match (depth, self.repository.is_shallow()) {
            // The tip is enough for reading and writing; in a clone that is not shallow, this depth
            // would cut off history.
            (Depth::Missing, true) if known.is_none() && here.is_none() => Depth::Tip,
            // Existing history is kept.
            (Depth::Tip, _) if known.is_some() || here.is_some() => Depth::Missing,
            (Depth::All, false) => Depth::Missing,
            (depth, _) => depth,
        };
        let contents = if self.anew {
            Contents::All
        } else if !whole || !self.repository.is_partial() {
            Contents::New
        } else if self.is_on_demand() {
            Contents::Filtered
        } else {
            Contents::All
        };
        Ok((depth, contents))
    }

    /// Whether missing objects are fetched when they are read.
    fn is_on_demand(&self) -> bool {
        !self.brings_all && self.repository.is_promised_by(&self.name)
    }

    /// Fetches the objects of the remote's last commit that a partial clone lacks, unless they are
    /// fetched when they are read.
    pub(super) fn fill(&self, tip: ObjectId) -> Result<(), LedgerError> {
        if !self.repository.is_partial() || self.is_on_demand() {
            return Ok(());
        }
        let filled = self.remote.fill(tip, None, &self.patience(&NEVER));
        filled.map_err(|source| self.refused(source))
    }

    /// Why the remote is unreachable, if it is.
    fn trouble(&self) -> Option<String> {
        match &self.reach {
            Reach::Unreachable(trouble) => Some(trouble.clone()),
            _ => None,
        }
    }

    /// Like [`Self::trouble`], with the remote's name.
    pub(super) fn unreachable_reason(&self) -> Option<Unpublished> {
        Some(Unpublished {
            remote: self.name.clone(),
            trouble: Some(self.trouble()?),
        })
    }

    fn refused(&self, source: RemoteError) -> LedgerError {
        let remote = self.name.clone();
        UpstreamError::Refused { remote, source }.into()
    }

    fn gone(&self) -> UpstreamError {
        UpstreamError::Gone {
            remote: self.name.clone(),
            branch: self.branch.clone(),
        }
    }

    /// Ends the operation, and records whether the remote has a commit.
    pub(super) fn settle(&mut self, tip: Option<ObjectId>) -> Result<(), LedgerError> {
        self.end();
        if matches!(self.reach, Reach::Unasked | Reach::Reached) {
            return Ok(());
        }
        let published = match (tip, self.known()?) {
            (Some(tip), Some(known)) => self.repository.is_in_history(tip, known)?,
            (tip, _) => tip.is_none(),
        };
        self.unpublished = (!published).then(|| Unpublished {
            remote: self.name.clone(),
            trouble: self.trouble(),
        });
        Ok(())
    }
}

/// The part of a ref's name for a remote: its own name, or a digest of a URL, which can't be part
/// of a ref's name.
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
