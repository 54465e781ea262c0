//! Watches refs and other folders for changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

/// The polling interval if refs can't be watched.
const POLL: Duration = Duration::from_secs(1);

enum Signal {
    /// One of the refs may have moved.
    Moved,
    /// A parent folder of the refs was created or removed, or events were lost.
    Stale,
    /// A [`Waker`] was used.
    Woken,
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
    watcher: Result<RecommendedWatcher, String>,
}

/// Ends a wait from another thread.
#[derive(Clone)]
pub struct Waker(Sender<Signal>);

impl Waker {
    /// Ends the current wait, or the next one.
    pub fn wake(&self) {
        // Fails only once the watch is dropped: then nobody waits.
        let _ = self.0.send(Signal::Woken);
    }
}

impl RefWatch {
    /// Watches the files of refs, in the folder that all worktrees share.
    pub(crate) fn new(common_dir: &Path, files: &[PathBuf]) -> Self {
        // Canonical, as in the events that the system reports.
        let common_dir = fs::canonicalize(common_dir).unwrap_or_else(|_| common_dir.to_owned());
        let files: Vec<PathBuf> = files.iter().map(|file| common_dir.join(file)).collect();
        let (sender, signals) = channel();
        let watcher = arm(&common_dir, &files, &[], &sender);
        Self {
            common_dir,
            files,
            folders: Vec::new(),
            sender,
            signals,
            watcher,
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
        self.watcher = arm(&self.common_dir, &self.files, &self.folders, &self.sender);
    }

    /// Why the refs are polled instead of watched, if so.
    pub fn trouble(&self) -> Option<&str> {
        self.watcher.as_ref().err().map(String::as_str)
    }

    /// Creates a handle that ends waits from another thread.
    pub fn waker(&self) -> Waker {
        Waker(self.sender.clone())
    }

    /// Waits until a ref may have moved, a [`Waker`] is used, or this time is over.
    pub fn wait(&mut self, limit: Option<Duration>) {
        let limit = match self.watcher {
            Ok(_) => limit,
            Err(_) => Some(limit.map_or(POLL, |limit| limit.min(POLL))),
        };
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
        if stale.filter(|s| matches!(s, Signal::Stale)).count() > 0 {
            self.arm();
        }
    }
}

/// Watches every existing folder from the common directory down to the refs' files.
fn arm(
    common_dir: &Path,
    files: &[PathBuf],
    folders: &[PathBuf],
    sender: &Sender<Signal>,
) -> Result<RecommendedWatcher, String> {
    if let Some(kind) = remote_file_system(common_dir) {
        return Err(format!(
            "the repository is on a network file system ({kind})"
        ));
    }
    if let Some(kind) = folders.iter().find_map(|folder| remote_file_system(folder)) {
        return Err(format!("the folder is on a network file system ({kind})"));
    }
    let packed = common_dir.join("packed-refs");
    let own = files.to_owned();
    let watched_too = folders.to_owned();
    let events = sender.clone();
    let on_event = move |event: notify::Result<Event>| {
        let signal = match event {
            Err(_) => Signal::Stale,
            Ok(event) if event.need_rescan() => Signal::Stale,
            // Reads must not wake the reader.
            Ok(event) if event.kind.is_access() => return,
            Ok(event) => {
                let is_ref = |path: &PathBuf| own.contains(path) || *path == packed;
                let is_above = |path: &PathBuf| own.iter().any(|file| file.starts_with(path));
                // Temporary files of this program are hidden until they are renamed.
                let is_visible = |path: &PathBuf| {
                    let name = path.file_name().and_then(|name| name.to_str());
                    name.is_some_and(|name| !name.starts_with('.'))
                };
                let is_inside = |path: &PathBuf| {
                    let above = path.parent();
                    is_visible(path) && watched_too.iter().any(|f| Some(f.as_path()) == above)
                };
                if event
                    .paths
                    .iter()
                    .any(|path| is_ref(path) || is_inside(path))
                {
                    Signal::Moved
                } else if event.paths.iter().any(is_above) {
                    Signal::Stale
                } else {
                    return;
                }
            }
        };
        // Fails only once the watch is dropped: then nobody waits.
        let _ = events.send(signal);
    };
    let failed = |error: notify::Error| error.to_string();
    let mut watcher = notify::recommended_watcher(on_event).map_err(failed)?;
    watcher
        .watch(common_dir, RecursiveMode::NonRecursive)
        .map_err(failed)?;
    for folder in folders {
        // A folder that was removed meanwhile needs no watch.
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive)
            && folder.is_dir()
        {
            return Err(error.to_string());
        }
    }
    let mut watched = BTreeSet::new();
    for file in files {
        let inside = file.parent().and_then(|p| p.strip_prefix(common_dir).ok());
        let mut folder = common_dir.to_owned();
        for part in inside.into_iter().flat_map(Path::components) {
            folder.push(part);
            if !watched.insert(folder.clone()) {
                continue;
            }
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // Once it is created, the watch on its parent reports it.
                Err(_) if !folder.is_dir() => break,
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    Ok(watcher)
}

/// The name of a network file system, where other machines' changes are not reported.
#[cfg(target_os = "linux")]
fn remote_file_system(path: &Path) -> Option<&'static str> {
    // From linux/magic.h and the file systems' sources.
    const REMOTE: [(u32, &str); 8] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x0102_1997, "9P"),
        (0x5346_414f, "AFS"),
        (0x00c3_6400, "Ceph"),
        (0x6573_5546, "FUSE"),
    ];
    // The type is in the low 32 bits; the width differs by architecture.
    let found = rustix::fs::statfs(path).ok()?.f_type as u32;
    let known = REMOTE.iter().find(|(magic, _)| *magic == found);
    known.map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn remote_file_system(_: &Path) -> Option<&'static str> {
    None
}
