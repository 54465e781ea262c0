//! Watches refs and other folders for changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use source::Source;

#[cfg_attr(feature = "file-events", path = "watch/events.rs")]
#[cfg_attr(not(feature = "file-events"), path = "watch/polling.rs")]
mod source;

/// Ends a wait: one of the refs may have moved, or a [`Waker`] was used.
struct Signal {
    /// A parent folder of the refs was created or removed, or events were lost.
    is_stale: bool,
}

/// A watch on refs, active from its creation: create it, read the refs, then wait, and no change is
/// missed.
///
/// A loose ref is a file whose folders may not exist, or a line of `packed-refs`; with reftables,
/// the list of tables is watched.
pub struct RefWatch {
    common_dir: PathBuf,
    files: Vec<PathBuf>,
    /// Other watched folders.
    folders: Vec<PathBuf>,
    sender: Sender<Signal>,
    signals: Receiver<Signal>,
    source: Source,
}

/// Ends a wait from another thread.
#[derive(Clone)]
pub struct Waker(Sender<Signal>);

impl Waker {
    /// Ends the current wait, or the next one.
    pub fn wake(&self) {
        // Fails only once the watch is dropped: then nobody waits.
        let _ = self.0.send(Signal { is_stale: false });
    }
}

impl RefWatch {
    /// Watches the files of refs, in the folder that all worktrees share.
    pub(crate) fn new(common_dir: &Path, files: &[PathBuf]) -> Self {
        // Canonical, as in the events that the system reports.
        let common_dir = fs::canonicalize(common_dir).unwrap_or_else(|_| common_dir.to_owned());
        let files: Vec<PathBuf> = files.iter().map(|file| common_dir.join(file)).collect();
        let (sender, signals) = channel();
        let source = Source::arm(&common_dir, &files, &[], &sender);
        Self {
            common_dir,
            files,
            folders: Vec::new(),
            sender,
            signals,
            source,
        }
    }

    /// Also watches these folders, not recursively.
    pub fn watch_also(&mut self, folders: Vec<PathBuf>) {
        if self.folders != folders {
            self.folders = folders;
            self.arm();
        }
    }

    fn arm(&mut self) {
        self.source = Source::arm(&self.common_dir, &self.files, &self.folders, &self.sender);
    }

    /// Why the refs are polled instead of watched, if they should be watched.
    pub fn trouble(&self) -> Option<&str> {
        self.source.trouble()
    }

    /// Creates a handle that ends waits from another thread.
    pub fn waker(&self) -> Waker {
        Waker(self.sender.clone())
    }

    /// Waits until a ref may have moved, a [`Waker`] is used, or this time is over.
    pub fn wait(&mut self, limit: Option<Duration>) {
        let limit = self.source.interval().into_iter().chain(limit).min();
        // A deadline that cannot be represented means no deadline.
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let first = match deadline {
            None => self
                .signals
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.signals.recv_timeout(left)
            }
        };
        let rest = self.signals.try_iter();
        let stale = first.into_iter().chain(rest);
        if stale.filter(|signal| signal.is_stale).count() > 0 {
            self.arm();
        }
    }
}
