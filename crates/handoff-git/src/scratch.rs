//! Files that may be lost at any time: notes that a program leaves for its next
//! run, in the folder that all worktrees share.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The largest file that is read back, in bytes.
const LARGEST: u64 = 32 << 20;

/// A file that nothing depends on.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Names the file.
    pub fn new(common_dir: &Path, name: &str) -> Self {
        Self {
            path: common_dir.join("handoff").join(name),
        }
    }

    /// What it holds, if it is there and of a reasonable size.
    pub fn read(&self) -> Option<Vec<u8>> {
        self.read_up_to(LARGEST)
    }

    /// What it holds, if it is there and has no more bytes than this.
    pub fn read_up_to(&self, largest: u64) -> Option<Vec<u8>> {
        let found = fs::symlink_metadata(&self.path).ok()?;
        if !found.is_file() || found.len() > largest {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()?);
        let file = File::open(&self.path).ok()?;
        file.take(largest).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes over it with as many bytes as it has, so that whoever reads
    /// meanwhile finds the old or the new ones: a tenth of the cost of replacing.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_over(&self, bytes: &[u8]) -> io::Result<()> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let opened = options.open(&self.path).or_else(|_| {
            fs::create_dir_all(self.path.parent().unwrap_or(&self.path))?;
            options.open(&self.path)
        });
        let mut file = opened?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)
    }

    /// Adds bytes at its end, all at once, and says how large it is then.
    ///
    /// # Errors
    /// What the system says.
    pub fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut options = File::options();
        options.create(true).append(true);
        let opened = options.open(&self.path).or_else(|_| {
            fs::create_dir_all(self.path.parent().unwrap_or(&self.path))?;
            options.open(&self.path)
        });
        let mut file = opened?;
        file.write_all(bytes)?;
        Ok(file.metadata()?.len())
    }

    /// Replaces it whole: who reads meanwhile finds the old or the new one.
    ///
    /// # Errors
    /// What the system says; then the old one stays.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let new = self
            .path
            .with_extension(format!("{}.new", std::process::id()));
        let created = File::create_new(&new).or_else(|_| {
            fs::create_dir_all(new.parent().unwrap_or(&new))?;
            File::create_new(&new)
        });
        let written = created.and_then(|mut file| file.write_all(bytes));
        let renamed = written.and_then(|()| fs::rename(&new, &self.path));
        if renamed.is_err() {
            // Where it can't be removed, a small file is left over.
            let _ = fs::remove_file(&new);
        }
        renamed
    }
}
