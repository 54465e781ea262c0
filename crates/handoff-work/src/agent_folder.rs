//! The folder in a worktree for files between an agent and the worker, so that an agent that may
//! only edit files needs nothing else. git ignores it.
//!
//! An agent may put anything there: links, pipes, devices, other folders. So every access starts at
//! the worktree's folder, follows no link, and accepts only regular files of limited size.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, open, openat, unlinkat};
use rustix::io::Errno;

pub(super) use handoff_cli::context::left_for_worker::{
    BLOCKED, CONTRACT_FILE as CONTRACT, FAILED,
};

/// The folder's name.
pub(super) const NAME: &str = ".git-handoff";

/// The file with the usage of a command.
pub(super) const USAGE: &str = "usage.json";

/// The file for the prompt.
pub(super) const PROMPT: &str = "prompt.md";

/// The files that an agent leaves.
const LEFT: [&str; 4] = [CONTRACT, USAGE, BLOCKED, FAILED];

/// The folder of one worktree.
#[derive(Debug)]
pub(super) struct AgentFolder {
    /// The worktree, opened when the folder was created.
    worktree: OwnedFd,
    path: PathBuf,
}

impl AgentFolder {
    /// Creates the folder in a worktree, or opens the existing one.
    ///
    /// # Errors
    /// The system's error, with the path.
    pub(super) fn create(worktree: &Path) -> Result<Self, String> {
        let path = worktree.join(NAME);
        let failed = |error: Errno| format!("{}: {error}", path.display());
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let worktree = open(worktree, flags, Mode::empty()).map_err(failed)?;
        let mode = Mode::from_raw_mode(0o755);
        match mkdirat(&worktree, NAME, mode) {
            Err(Errno::EXIST) if openat(&worktree, NAME, flags, Mode::empty()).is_err() => {
                // Remove what an earlier agent left under the name: a file or a link.
                unlinkat(&worktree, NAME, AtFlags::empty()).map_err(failed)?;
                mkdirat(&worktree, NAME, mode).map_err(failed)?;
            }
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let folder = Self { worktree, path };
        folder.write(".gitignore", b"*\n")?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        openat(&self.worktree, NAME, flags, Mode::empty())
    }

    /// Writes a file, replacing what is there.
    ///
    /// # Errors
    /// The system's error, with the path.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("{} can't be written: {error}", self.file(name).display())
        };
        self.remove(name);
        let folder = self.open().map_err(|error| failed(&error))?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, name, flags, Mode::from_raw_mode(0o644));
        let file = file.map_err(|error| failed(&error))?;
        File::from(file)
            .write_all(bytes)
            .map_err(|error| failed(&error))
    }

    /// Reads a file up to a size limit; `None` if it does not exist.
    ///
    /// # Errors
    /// Why it can't be read.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = self
            .open()
            .and_then(|folder| openat(&folder, name, flags, Mode::empty()));
        let file = match opened {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err("it is a link, not a regular file".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let found = fstat(&file).map_err(|error| error.to_string())?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err("it is not a regular file".to_owned());
        }
        if found.st_nlink > 1 {
            return Err("it is a link to a file that is elsewhere too".to_owned());
        }
        let mut bytes = Vec::new();
        // Read one byte more, to detect a file that is too large.
        let read = File::from(file).take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        if bytes.len() as u64 > most {
            return Err(format!("it has more than {most} bytes"));
        }
        Ok(Some(bytes))
    }

    /// Reads a text; `None` if it is missing or blank.
    ///
    /// # Errors
    /// Why it can't be read.
    pub(super) fn text(&self, name: &str, most: u64) -> Result<Option<String>, String> {
        let bytes = self.read(name, most)?;
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    /// Writes each text that is too long for a prompt into its file.
    pub(super) fn add(&self, long: &[(String, String)]) {
        for (name, text) in long {
            // If a file can't be written, `git handoff context` prints its text.
            let _ = self.write(name, text.as_bytes());
        }
    }

    /// Removes the files of an earlier run.
    pub(super) fn clear(&self) {
        for name in LEFT {
            self.remove(name);
        }
    }

    fn remove(&self, name: &str) {
        let Ok(folder) = self.open() else { return };
        // A folder may be in the file's place.
        if matches!(
            unlinkat(&folder, name, AtFlags::empty()),
            Err(Errno::ISDIR | Errno::PERM)
        ) {
            let _ = fs::remove_dir_all(self.file(name));
        }
    }

    /// Removes the folder of a worktree that was verified to be the original one.
    pub(super) fn discard(&self) {
        // git ignores the folder if it can't be removed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::{AgentFolder, CONTRACT, NAME};

    #[test]
    fn nothing_but_a_regular_file_of_its_size_is_read_and_no_link_is_followed() {
        let tree = tempfile::tempdir().expect("a folder");
        let secret = tree.path().join("secret");
        fs::write(&secret, "mine").expect("it is written");
        let folder = AgentFolder::create(tree.path()).expect("it is made");
        let path = folder.file(CONTRACT);
        assert_eq!(folder.read(CONTRACT, 9), Ok(None));
        let refused = |why: &str| {
            assert_eq!(folder.read(CONTRACT, 9), Err(why.to_owned()));
            folder.clear();
            assert_eq!(folder.read(CONTRACT, 9), Ok(None));
        };
        symlink(&secret, &path).expect("a link");
        refused("it is a link, not a regular file");
        fs::hard_link(&secret, &path).expect("a hard link");
        refused("it is a link to a file that is elsewhere too");
        let made = Command::new("mkfifo").arg(&path).status().expect("it runs");
        assert!(made.success());
        refused("it is not a regular file");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("x"), "x").expect("it is written");
        refused("it is not a regular file");
        fs::write(&path, "0123456789").expect("it is written");
        refused("it has more than 9 bytes");
        // A write replaces a link, and follows none.
        symlink(&secret, &path).expect("a link");
        folder.write(CONTRACT, b"new").expect("it is written");
        assert_eq!(fs::read(&secret).expect("it is there"), b"mine");
        assert_eq!(folder.read(CONTRACT, 9), Ok(Some(b"new".to_vec())));
        // The folder itself may be a link by now.
        let moved = tree.path().join("moved");
        fs::rename(tree.path().join(NAME), &moved).expect("it is moved");
        symlink(&moved, tree.path().join(NAME)).expect("a link");
        assert!(folder.read(CONTRACT, 9).is_err());
        assert!(folder.write(CONTRACT, b"x").is_err());
        let again = AgentFolder::create(tree.path()).expect("it is made anew");
        assert_eq!(again.read(CONTRACT, 9), Ok(None));
        assert_eq!(fs::read(moved.join(CONTRACT)).expect("it is there"), b"new");
    }
}
