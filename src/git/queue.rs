//! A queue for the writers of one machine: an advisory lock on a file in the
//! folder that all worktrees share.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// A place at the head of the queue, given up when dropped.
///
/// The queue only spares writers the work of losing: what keeps a branch
/// correct is the compare-and-swap. So a queue that can't be joined, or that
/// doesn't move, is passed by.
pub struct Queue {
    _file: Option<File>,
}

impl Queue {
    /// Waits for the head of the queue, at most this long.
    pub fn join(common_dir: &Path, patience: Duration) -> Self {
        let dir = common_dir.join("handoff");
        let open = || {
            fs::create_dir_all(&dir).ok()?;
            let mut options = File::options();
            options.create(true).truncate(false).write(true);
            options.open(dir.join("queue.lock")).ok()
        };
        let Some(file) = open() else {
            return Self { _file: None };
        };
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match file.try_lock() {
                Ok(()) => return Self { _file: Some(file) },
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(4));
                }
                Err(_) => return Self { _file: None },
            }
        }
    }
}
