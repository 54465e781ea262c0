//! Disposable cache files for the next run, shared by all worktrees.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{SharedModes, replace};

/// The maximum size that is read, in bytes.
const LARGEST: u64 = 32 << 20;

/// A cache file that nothing depends on.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// The cache file with this name.
    pub fn new(common_dir: &Path, name: &str) -> Self {
        Self {
            path: common_dir.join("handoff").join(name),
        }
    }

    /// Its content, if it exists and is not too large.
    pub fn read(&self) -> Option<Vec<u8>> {
        self.read_up_to(LARGEST)
    }

    /// Its content, if it exists and is at most this large.
    pub fn read_up_to(&self, largest: u64) -> Option<Vec<u8>> {
        let (file, size) = self.open(largest)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        file.take(largest).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Opens it for reading, if it exists and is at most this large; with its size.
    fn open(&self, largest: u64) -> Option<(File, u64)> {
        let found = fs::symlink_metadata(&self.path).ok()?;
        if !found.is_file() || found.len() > largest {
            return None;
        }
        let file = File::open(&self.path).ok()?;
        let size = file.metadata().ok()?.len();
        (size <= largest).then_some((file, size))
    }

    /// Overwrites it in place with the same number of bytes: readers see the old or the new bytes,
    /// at a tenth of the cost of replacing the file.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn write_over(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.opened(File::options().create(true).truncate(false).write(true))?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)
    }

    /// Appends bytes in one write, and returns the new size.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut file = self.opened(File::options().create(true).append(true))?;
        file.write_all(bytes)?;
        Ok(file.metadata()?.len())
    }

    /// Replaces it atomically: readers see the old or the new file, never a mix.
    ///
    /// # Errors
    /// Any I/O error; then the old file stays.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        replace(&self.path, bytes)
    }

    /// Opens it for writing, creating its folder if needed.
    fn opened(&self, options: &OpenOptions) -> io::Result<File> {
        let _modes = SharedModes::begin();
        options.open(&self.path).or_else(|_| {
            fs::create_dir_all(self.path.parent().unwrap_or(&self.path))?;
            options.open(&self.path)
        })
    }
}
