//! The system reports changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::Signal;

/// The polling interval if refs can't be watched.
const POLL: Duration = Duration::from_secs(1);

/// The system's watch, or why there is none.
pub(super) struct Source(Result<RecommendedWatcher, String>);

impl Source {
    pub(super) fn arm(
        common_dir: &Path,
        files: &[PathBuf],
        folders: &[PathBuf],
        sender: &Sender<Signal>,
    ) -> Self {
        Self(arm(common_dir, files, folders, sender))
    }

    pub(super) fn trouble(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// The polling interval, if changes are not reported.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.0.is_err().then_some(POLL)
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
        let is_stale = match event {
            Err(_) => true,
            Ok(event) if event.need_rescan() => true,
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
                    false
                } else if event.paths.iter().any(is_above) {
                    true
                } else {
                    return;
                }
            }
        };
        // Fails only once the watch is dropped: then nobody waits.
        let _ = events.send(Signal { is_stale });
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
