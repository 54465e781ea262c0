//! Watches the ledger for a waiting command: a change of the local ref wakes it, and a thread polls
//! the remote.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use handoff::base::ObjectId;
use handoff::base::text::{continued, quoted};
use handoff::git::{RefWatch, RemoteError, Repository, Waker, masked};
use handoff::ledger::{Ledger, LedgerError, RemoteLook, Session, Snapshot, UpstreamError};

use super::Context;
use super::interruption::Interruption;
use crate::args::remote::PollArgs;
use crate::environment;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;

/// The default polling interval of a remote.
const POLL: Duration = Duration::from_secs(5);

/// The time limit of one poll.
const LONGEST: Duration = Duration::from_secs(25);

/// The time limit for moving the local branch at the end.
const MOVING: Duration = Duration::from_secs(5);

/// Which ledgers are watched.
pub enum Place {
    /// The local one.
    Here,
    /// This remote's.
    There(String),
    /// The local one, and its remote's if it has one.
    Both(Option<String>),
}

impl Place {
    /// The local ledger, and its remote if that is to be polled.
    pub fn of(
        looks: PollArgs,
        context: &Context,
        repository: &Repository,
    ) -> Result<Self, Failure> {
        if looks.offline {
            return Ok(Self::Here);
        }
        Ok(Self::Both(context.remote(repository)?))
    }
}

/// Watches the ledger.
pub struct Lookout<'r> {
    ledger: Ledger<'r>,
    has_here: bool,
    /// Whether the polled remote is the ledger's own.
    is_own: bool,
    watch: RefWatch,
    is_told: bool,
    is_announced: bool,
    patrol: Option<Patrol>,
}

/// The polling thread and its results.
struct Patrol {
    /// The remote's name for display, without a password.
    remote: String,
    reports: Receiver<Report>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Whether a poll has finished.
    is_over_once: bool,
    /// Whether the remote was read.
    is_read: bool,
    trouble: Option<String>,
}

/// The result of a poll.
enum Report {
    Seen,
    Missed(String),
    /// Retrying is pointless.
    Failed(Failure),
    /// Retrying is pointless unless the remote was read before.
    Refused(Failure),
}

impl<'r> Lookout<'r> {
    /// Starts watching.
    ///
    /// # Errors
    /// A [`Failure`] of usage if a remote is to be polled and there is none.
    pub fn open(
        ledger: Ledger<'r>,
        place: Place,
        poll: Option<Duration>,
        deadline: Option<Instant>,
    ) -> Result<Self, Failure> {
        let has_here = !matches!(place, Place::There(_));
        let own = ledger.tracking_ref().map(str::to_owned);
        let (ledger, remote) = match place {
            Place::Here | Place::Both(None) => (ledger.alone(), None),
            Place::Both(Some(name)) => (ledger, Some(name)),
            Place::There(name) => (ledger.shared_through(&name), Some(name)),
        };
        let is_own = own.is_some() && ledger.tracking_ref() == own.as_deref();
        if remote.is_none() && poll.is_some() {
            return Err(UpstreamError::NoRemote.into());
        }
        let own = has_here.then_some(ledger.refname());
        let refs: Vec<&str> = own.into_iter().chain(ledger.tracking_ref()).collect();
        // Before the first read, so that no later change is missed.
        let watch = ledger.repository().watch(&refs);
        let begin = |remote: String| {
            Patrol::begin(
                Beat {
                    remote,
                    branch: ledger.branch().to_owned(),
                    poll: poll.unwrap_or(POLL),
                    deadline,
                },
                watch.waker(),
            )
        };
        let patrol = remote.map(begin);
        Ok(Self {
            ledger,
            has_here,
            is_own,
            watch,
            is_told: false,
            is_announced: false,
            patrol,
        })
    }

    /// The watched ledger.
    pub fn ledger(&self) -> &Ledger<'r> {
        &self.ledger
    }

    /// A handle that ends a wait from another thread.
    pub fn waker(&self) -> Waker {
        self.watch.waker()
    }

    /// Also ends waits on changes in these folders.
    pub fn watch_also(&mut self, folders: Vec<std::path::PathBuf>) {
        self.watch.watch_also(folders);
    }

    /// Lets signals end the wait, if a child process must not be left behind.
    ///
    /// # Errors
    /// A [`Failure`] if signals can't be caught.
    pub fn interruption(&self) -> Result<Option<Interruption>, Failure> {
        let patrol = self.patrol.as_ref();
        patrol.map(|_| self.catch()).transpose()
    }

    /// Lets signals end the wait.
    ///
    /// # Errors
    /// A [`Failure`] if signals can't be caught.
    pub fn catch(&self) -> Result<Interruption, Failure> {
        let waker = self.waker();
        Interruption::catch(move || waker.wake()).map_err(|error| {
            let text = format!("signals cannot be caught: {error}");
            Failure::new(ErrorCode::Signals, text)
        })
    }

    /// The newest states: one, or two if the local and the remote ledger diverged. Empty before the
    /// first poll has finished, or if there is no state.
    ///
    /// # Errors
    /// A [`Failure`] if waiting is pointless.
    pub fn tips(&mut self, output: &mut Output) -> Result<Vec<Snapshot<'r>>, Failure> {
        self.hear(output)?;
        let Some(patrol) = &self.patrol else {
            return Ok(vec![self.ledger.tip()?]);
        };
        if !patrol.is_over_once {
            return Ok(Vec::new());
        }
        // A state fetched by an earlier process may be stale.
        let there = if patrol.is_read {
            self.ledger.seen_there()?
        } else {
            None
        };
        let here = if self.has_here {
            self.ledger.tip_id()?
        } else {
            None
        };
        let repository = self.ledger.repository();
        let tips = match (here, there) {
            (None, None) if patrol.is_read => return Err(self.no_branch()),
            (Some(here), Some(there)) if repository.is_in_history(here, there)? => vec![there],
            (Some(here), Some(there)) if repository.is_in_history(there, here)? => vec![here],
            (here, there) => there.into_iter().chain(here).collect(),
        };
        let branch = self.ledger.branch();
        let read = |id| Snapshot::at(repository, id, branch).map_err(Failure::from);
        tips.into_iter().map(read).collect()
    }

    /// The tip of the history to follow: the remote's if there is one, because only published steps
    /// are immutable. `None` before its first poll has finished, or if it was never read.
    ///
    /// # Errors
    /// A [`Failure`] if waiting is pointless.
    pub fn followed(&mut self, output: &mut Output) -> Result<Option<ObjectId>, Failure> {
        self.hear(output)?;
        let Some(patrol) = &self.patrol else {
            return Ok(self.ledger.tip_id()?);
        };
        if !patrol.is_over_once {
            return Ok(None);
        }
        let there = self.ledger.seen_there()?;
        match there {
            None if patrol.is_read => Err(self.no_branch()),
            there => Ok(there),
        }
    }

    /// Whether all watched ledgers were read.
    pub fn is_read(&self) -> bool {
        self.patrol.as_ref().is_none_or(|patrol| patrol.is_read)
    }

    /// Whether the first poll has finished, successfully or not.
    pub fn has_looked(&self) -> bool {
        self.patrol
            .as_ref()
            .is_none_or(|patrol| patrol.is_over_once)
    }

    /// Why the remote can't be read at the moment.
    pub fn trouble(&self) -> Option<&str> {
        self.patrol.as_ref()?.trouble.as_deref()
    }

    /// The polled remote, if any.
    pub fn remote(&self) -> Option<&str> {
        self.patrol.as_ref().map(|patrol| patrol.remote.as_str())
    }

    /// Waits until something may have changed, at most this long.
    pub fn pause(&mut self, limit: Option<Duration>, output: &mut Output) {
        self.pause_saying(limit, true, output);
    }

    /// The same; what it waits for is said only if nothing else goes on.
    pub fn pause_saying(&mut self, limit: Option<Duration>, is_idle: bool, output: &mut Output) {
        if let Some(trouble) = self.watch.trouble().filter(|_| !self.is_told) {
            output.say(&format!("looking at the branch every second: {trouble}"));
            self.is_told = true;
        }
        // No change is missed: any later one wakes it.
        if is_idle && self.has_looked() && !self.is_announced {
            output.say(&format!(
                "waiting for changes of {}",
                continued(&self.subject())
            ));
            self.is_announced = true;
        }
        self.watch.wait(limit);
    }

    /// After the deadline: waits for the running poll, which also ends by then.
    pub fn finish(&mut self) {
        let patrol = self.patrol.as_mut();
        if let Some(thread) = patrol.and_then(|patrol| patrol.thread.take()) {
            thread.thread().unpark();
            // A panic was already reported.
            let _ = thread.join();
        }
    }

    /// Stops polling, and fast-forwards the local branch to what was fetched, so that the next
    /// command sees it.
    pub fn leave_fetched(&mut self) {
        let Some(patrol) = self.patrol.as_ref().filter(|_| self.is_own) else {
            return;
        };
        patrol.stop.store(true, Ordering::SeqCst);
        let Ok(session) = environment::reader() else {
            return;
        };
        let session = Session {
            patience: MOVING,
            ..session
        };
        // If the branch can't be moved, the next write moves it.
        let _ = self.ledger.follow_remote(&session);
    }

    /// Stops the thread and waits for it.
    pub fn stop(&mut self) {
        self.patrol = None;
    }

    /// The names of the watched ledgers.
    fn subject(&self) -> String {
        let own = self.has_here.then(|| self.ledger.refname().to_owned());
        let branch = self.ledger.branch();
        let there = self.remote().map(|remote| format!("{branch} at {remote}"));
        let both: Vec<String> = own.into_iter().chain(there).collect();
        both.join(" and of ")
    }

    fn no_branch(&self) -> Failure {
        let remote = self.remote().unwrap_or_default();
        let text = format!("{} has no branch {}", quoted(remote), self.ledger.branch());
        Failure::new(ErrorCode::NoLedger, text)
            .hint("name the ledger's branch there with --branch; where there is none yet, `git handoff init --remote REMOTE` starts one")
    }

    /// Handles the results of polls.
    fn hear(&mut self, output: &mut Output) -> Result<(), Failure> {
        let Some(patrol) = &mut self.patrol else {
            return Ok(());
        };
        for report in patrol.reports.try_iter().collect::<Vec<_>>() {
            patrol.is_over_once = true;
            let trouble = match report {
                Report::Seen => {
                    patrol.is_read = true;
                    patrol.trouble = None;
                    continue;
                }
                Report::Failed(failure) => return Err(failure),
                Report::Refused(failure) if !patrol.is_read => return Err(failure),
                Report::Refused(failure) => failure.message,
                Report::Missed(trouble) => trouble,
            };
            if patrol.trouble.as_ref() != Some(&trouble) {
                let text = format!("{} cannot be read, trying on: {trouble}", patrol.remote);
                output.say(&continued(&text));
                patrol.trouble = Some(trouble);
            }
        }
        Ok(())
    }
}

/// The polling loop of a remote.
struct Beat {
    remote: String,
    branch: String,
    poll: Duration,
    deadline: Option<Instant>,
}

impl Patrol {
    fn begin(beat: Beat, waker: Waker) -> Self {
        let (sender, reports) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let remote = masked(&beat.remote);
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            if let Err(failure) = beat.walk(&stopped, &sender, &waker) {
                // If the receiver is gone, no one waits for the result.
                let _ = sender.send(Report::Failed(failure));
                waker.wake();
            }
        });
        Self {
            remote,
            reports,
            stop,
            thread: Some(thread),
            is_over_once: false,
            is_read: false,
            trouble: None,
        }
    }
}

impl Drop for Patrol {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was already reported.
            let _ = thread.join();
        }
    }
}

impl Beat {
    /// Polls until it is stopped or the deadline passes.
    fn walk(
        &self,
        stop: &Arc<AtomicBool>,
        sender: &Sender<Report>,
        waker: &Waker,
    ) -> Result<(), Failure> {
        let repository = Repository::open_here()?;
        let mut ledger = Ledger::new(&repository, &self.branch)?
            .shared_through(&self.remote)
            .ended_by(Arc::clone(stop));
        let mut session = environment::session(&repository)?;
        // A state fetched before this process started may be stale.
        let mut since = session.began;
        let mut has_told = false;
        loop {
            session.patience = self.left().map_or(LONGEST, |left| left.min(LONGEST));
            let mut next = Instant::now() + self.poll;
            let glimpse = ledger.glimpse(&session, since);
            let is_late = self.left() == Some(Duration::ZERO);
            let report = match glimpse {
                Ok(RemoteLook::Seen { at, .. }) => {
                    let age = SystemTime::now().duration_since(at).unwrap_or_default();
                    next = Instant::now() + self.poll.saturating_sub(age);
                    Report::Seen
                }
                // An interrupted poll must not replace the previous result.
                Ok(RemoteLook::Missed(_)) if is_late && has_told => return Ok(()),
                Ok(RemoteLook::Missed(trouble)) => Report::Missed(trouble),
                Err(
                    error @ LedgerError::Upstream(UpstreamError::Refused {
                        source: RemoteError::Denied { .. },
                        ..
                    }),
                ) => Report::Refused(error.into()),
                Err(error) => Report::Failed(error.into()),
            };
            if stop.load(Ordering::SeqCst) || sender.send(report).is_err() {
                return Ok(());
            }
            has_told = true;
            waker.wake();
            while Instant::now() < next {
                if stop.load(Ordering::SeqCst) || self.left() == Some(Duration::ZERO) {
                    return Ok(());
                }
                let pause = next.saturating_duration_since(Instant::now());
                thread::park_timeout(self.left().map_or(pause, |left| left.min(pause)));
            }
            let now = SystemTime::now();
            since = now.checked_sub(self.poll).unwrap_or(now);
        }
    }

    /// The remaining time; `None` without a limit.
    fn left(&self) -> Option<Duration> {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.deadline.map(left)
    }
}

/// The failure if the ledger could not be read, or not completely.
pub fn unreached(lookout: &Lookout<'_>) -> Failure {
    let (Some(remote), Some(trouble)) = (lookout.remote(), lookout.trouble()) else {
        // Without a remote, the local ledger is missing.
        return match lookout.ledger().tip() {
            Ok(_) => gone(lookout.ledger(), None),
            Err(error) => error.into(),
        };
    };
    UpstreamError::Unreachable {
        remote: remote.to_owned(),
        trouble: trouble.to_owned(),
    }
    .into()
}

/// The failure for a deleted branch, with the last commit seen.
pub fn gone(ledger: &Ledger<'_>, seen: Option<ObjectId>) -> Failure {
    let text = format!("branch {} was deleted", ledger.branch());
    let failure = Failure::new(ErrorCode::NoLedger, text);
    match seen {
        Some(seen) => failure.hint(format!(
            "once it is back, continue with: git handoff watch --from {seen}"
        )),
        None => failure,
    }
}
