//! A queue of this machine's processes: an advisory lock on a file shared by all worktrees.

use std::fs;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A place at the head of a queue, given up when dropped.
///
/// The queue only saves processes the work of losing a race; compare-and-swap keeps the branch
/// correct. So a queue that can't be joined, or does not move, is skipped.
///
/// The file also holds a note from its holder to the next one, which survives if the holder is
/// killed.
pub struct Queue {
    file: Option<File>,
    note: Option<String>,
    is_taken: bool,
}

/// The largest note, in bytes.
const NOTE: u64 = 1 << 10;

impl Queue {
    /// The file of those who publish steps; its note is the commit that is being published.
    pub const WRITERS: &'static str = "queue.lock";

    /// Waits for the head of the queue in this file, at most this long.
    pub fn join(common_dir: &Path, name: &str, patience: Duration) -> Self {
        let dir = common_dir.join("handoff");
        let path = dir.join(name);
        let open = || {
            fs::create_dir_all(&dir).ok()?;
            // Only a plain file can be this program's.
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

    /// The note of the last holder that left one, read without waiting.
    pub fn peek(common_dir: &Path, name: &str) -> Option<String> {
        let path = common_dir.join("handoff").join(name);
        // Only a plain file can be this program's.
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

    /// Whether waiting ended with another process still at the head.
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
        // Without the note, the next holder only lacks a hint.
        let _ = match note {
            Some(text) => file
                .rewind()
                .and_then(|()| file.write_all(text.as_bytes()))
                .and_then(|()| file.set_len(text.len() as u64)),
            None => file.set_len(0),
        };
    }
}
