//! A queue of this machine's writers: an advisory file lock shared by all worktrees.

use std::fs;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::SharedModes;

/// The head of a queue, released when dropped.
///
/// The queue only avoids lost races; compare-and-swap keeps the branch correct. So a queue that
/// can't be joined, or does not advance, is skipped.
///
/// The file also holds a note from its holder to the next one, which survives a kill.
pub struct Queue {
    file: Option<File>,
    note: Option<String>,
    is_taken: bool,
}

/// The maximum size of a note, in bytes.
const NOTE: u64 = 1 << 10;

impl Queue {
    /// The queue of writers; its note is the commit being published.
    pub const WRITERS: &'static str = "queue.lock";

    /// Waits for the head of this queue, at most `patience`.
    pub fn join(common_dir: &Path, name: &str, patience: Duration) -> Self {
        let dir = common_dir.join("handoff");
        let path = dir.join(name);
        let open = || {
            let _modes = SharedModes::begin();
            fs::create_dir_all(&dir).ok()?;
            // This program only creates regular files.
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

    /// The note of the last holder, read without waiting.
    pub fn peek(common_dir: &Path, name: &str) -> Option<String> {
        let path = common_dir.join("handoff").join(name);
        // This program only creates regular files.
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            return None;
        }
        let mut text = String::new();
        let file = File::open(path).ok()?;
        file.take(NOTE).read_to_string(&mut text).ok()?;
        Some(text).filter(|text| !text.is_empty())
    }

    /// Whether this process is at the head.
    pub fn is_held(&self) -> bool {
        self.file.is_some()
    }

    /// Whether the wait timed out while another process was at the head.
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// The note of the previous holder.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Replaces the note.
    pub fn leave(&mut self, note: Option<&str>) {
        let Some(file) = &mut self.file else {
            return;
        };
        // The note is only a hint: a failed write does no harm.
        let _ = match note {
            Some(text) => file
                .rewind()
                .and_then(|()| file.write_all(text.as_bytes()))
                .and_then(|()| file.set_len(text.len() as u64)),
            None => file.set_len(0),
        };
    }
}
