//! Whose turn it is to write: files that several harnesses share are read and written by one
//! process after the other.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::AgentsError;

/// The turn of this process in a repository, until it is dropped.
#[must_use = "another process may write as soon as it is dropped"]
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for the turn, for a few seconds.
    ///
    /// # Errors
    /// [`AgentsError`] where another process doesn't end, or the lock can't be made.
    pub fn take(common_dir: &Path) -> Result<Self, AgentsError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let folder = common_dir.join("handoff");
        let path = folder.join("agents.lock");
        let failed = |source| AgentsError::Read {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let lock = options.open(&path).map_err(failed)?;
        let since = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { _lock: lock }),
                Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => {
                    sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => return Err(AgentsError::Busy),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }
}
