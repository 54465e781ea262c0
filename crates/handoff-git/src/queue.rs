//! A queue for the processes of one machine: an advisory lock on a file in the
//! folder that all worktrees share.

use std::fs;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A place at the head of a queue, given up when dropped.
///
/// A queue only spares processes the work of losing: what keeps a branch
/// correct is the compare-and-swap. So a queue that can't be joined, or that
/// doesn't move, is passed by.
///
/// The file also holds a note of its holder's for whoever comes next, also where
/// the holder was killed.
pub struct Queue {
    file: Option<File>,
    note: Option<String>,
    is_taken: bool,
}

/// The longest note, in bytes.
const NOTE: u64 = 1 << 10;

impl Queue {
    /// Waits for the head of a queue, named by its file, at most this long.
    pub fn join(common_dir: &Path, name: &str, patience: Duration) -> Self {
        let dir = common_dir.join("handoff");
        let path = dir.join(name);
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
            note: None,
            is_taken: false,
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
                    let read = (&mut file).take(NOTE).read_to_string(&mut text);
                    let note = read.ok().map(|_| text).filter(|text| !text.is_empty());
                    return Self {
                        file: Some(file),
                        note,
                        is_taken: false,
                    };
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(4));
                }
                Err(TryLockError::WouldBlock) => {
                    return Self {
                        is_taken: true,
                        ..passed_by
                    };
                }
                Err(_) => return passed_by,
            }
        }
    }

    /// Says whether another process was at its head all the time.
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// What the holder before left.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Leaves a note in the place of the one that is there, or none.
    pub fn leave(&mut self, note: Option<&str>) {
        let Some(file) = &mut self.file else {
            return;
        };
        // A note that can't be left only leaves the next one without its help.
        let _ = match note {
            Some(text) => file
                .rewind()
                .and_then(|()| file.write_all(text.as_bytes()))
                .and_then(|()| file.set_len(text.len() as u64)),
            None => file.set_len(0),
        };
    }
}
