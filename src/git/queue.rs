//! A queue for the writers of one machine: an advisory lock on a file in the
//! folder that all worktrees share.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::repository::ObjectId;

/// A place at the head of the queue, given up when dropped.
///
/// The queue only spares writers the work of losing: what keeps a branch
/// correct is the compare-and-swap. So a queue that can't be joined, or that
/// doesn't move, is passed by.
///
/// The file also says which commit its holder is about to publish. A process
/// that is killed in that moment leaves the ref's lock file behind; whoever
/// comes next finds the announcement, and knows that the lock is nobody's.
pub struct Queue {
    file: Option<File>,
    abandoned: Option<String>,
}

/// An announcement: a commit's id in hexadecimal.
const ANNOUNCEMENT: u64 = 40;

impl Queue {
    /// Waits for the head of the queue, at most this long.
    pub fn join(common_dir: &Path, patience: Duration) -> Self {
        let dir = common_dir.join("handoff");
        let path = dir.join("queue.lock");
        let open = || {
            fs::create_dir_all(&dir).ok()?;
            // Anything but a plain file was not put there by this program.
            if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
                return None;
            }
            let mut options = File::options();
            options.create(true).truncate(false).read(true).write(true);
            options.open(&path).ok()
        };
        let passed_by = Self {
            file: None,
            abandoned: None,
        };
        let Some(mut file) = open() else {
            return passed_by;
        };
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match file.try_lock() {
                Ok(()) => {
                    let mut text = String::new();
                    let read = (&mut file).take(ANNOUNCEMENT).read_to_string(&mut text);
                    let abandoned = read.ok().map(|_| text).filter(|text| !text.is_empty());
                    return Self {
                        file: Some(file),
                        abandoned,
                    };
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(4));
                }
                Err(_) => return passed_by,
            }
        }
    }

    /// The commit that an earlier holder of this place died over, if one did.
    pub fn abandoned(&self) -> Option<&str> {
        self.abandoned.as_deref()
    }

    /// Says which commit is published next, or that none is.
    pub fn announce(&mut self, commit: Option<ObjectId>) {
        let Some(file) = &mut self.file else {
            return;
        };
        // An announcement that can't be written only leaves the next writer
        // without its help.
        let _ = match commit {
            Some(id) => file
                .rewind()
                .and_then(|()| file.write_all(id.to_string().as_bytes())),
            None => file.set_len(0),
        };
    }
}
