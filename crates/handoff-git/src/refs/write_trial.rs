//! Trying to write, where a step would.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::files::new_beside;
use crate::repository::Repository;

/// How much is written to see whether the disk is full, in bytes.
const TRIAL: usize = 1 << 16;

/// How long a lock is waited for that a running process may hold.
const PATIENCE: Duration = Duration::from_millis(500);

impl Repository {
    /// The files and folders that a step on a ref could not write, each with the system's reason,
    /// found by trying. Nothing is left behind.
    pub fn unwritable(&self, refname: &str) -> Vec<(PathBuf, io::Error)> {
        let objects = self.common_dir().join("objects");
        let folders = fs::read_dir(&objects).into_iter().flatten().flatten();
        // git leaves an object's folder to whoever wrote the first object in it.
        let fans = folders.map(|entry| entry.path()).filter(|path| {
            let is_fan = |name: &std::ffi::OsStr| name.len() == 2;
            path.file_name().is_some_and(is_fan)
        });
        let mut places: Vec<PathBuf> = fans.collect();
        places.sort();
        let own = [self.common_dir().join("handoff"), self.log_of(refname)];
        let refs = self.common_dir().join(self.refs.watched(refname));
        let parents = refs.parent().map(Path::to_path_buf);
        places.splice(0..0, [objects].into_iter().chain(parents).chain(own));
        let failed = |at: PathBuf| match try_at(&at) {
            Err(error) => Some((at, error)),
            Ok(()) => None,
        };
        places.into_iter().filter_map(failed).collect()
    }

    /// The lock of a ref that is there and stays.
    pub fn left_lock(&self, refname: &str) -> Option<PathBuf> {
        let mut lock = self
            .common_dir()
            .join(self.refs.watched(refname))
            .into_os_string();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        lock.exists().then(|| thread::sleep(PATIENCE))?;
        lock.exists().then_some(lock)
    }
}

/// Writes to a file without changing it or, for a folder, to a new file that is removed again; where
/// there is neither, in the folder where it would be.
fn try_at(path: &Path) -> io::Result<()> {
    if path.is_file() {
        return File::options().append(true).open(path).map(drop);
    }
    let folder = path.ancestors().find(|folder| folder.is_dir());
    let mut file = new_beside(&folder.unwrap_or(path).join("trial"))?;
    file.write_all(&vec![0; TRIAL])
}
