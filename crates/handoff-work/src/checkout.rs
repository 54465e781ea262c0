//! The identity of a worktree, noted when it was created. If an agent replaced the folder, or made
//! its `.git` name another repository, no git command runs there.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A worktree of this clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkout {
    pub(super) path: PathBuf,
    /// Its own git directory, inside the repository's.
    pub(super) git_dir: PathBuf,
    /// The content of its `.git`.
    link: String,
    /// The content of `commondir` in its git directory, which leads to the repository's.
    common: String,
    device: u64,
    inode: u64,
}

impl Checkout {
    /// What the repository's own list of ignored files says, as far as 64 KiB; all its worktrees share
    /// it.
    pub(super) fn excluded(&self) -> String {
        let common = self.git_dir.parent().and_then(Path::parent);
        let path = common.unwrap_or(&self.git_dir).join("info/exclude");
        let mut said = Vec::new();
        // An agent could have put a pipe there, which would never end.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            let file = fs::File::open(&path);
            let _ = file.and_then(|file| file.take(64 * 1024).read_to_end(&mut said));
        }
        String::from_utf8_lossy(&said).into_owned()
    }

    /// A worktree, of the repository with this git directory, in which no agent has worked yet.
    ///
    /// # Errors
    /// Why it is not a worktree, as a sentence.
    pub(super) fn of(common: &Path, path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let failed = |error: io::Error| format!("{shown}: {error}");
        let path = fs::canonicalize(path).map_err(failed)?;
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        let link = fs::read_to_string(path.join(".git")).map_err(failed)?;
        let git_dir = link.strip_prefix("gitdir: ").map(str::trim_end);
        let git_dir = git_dir.ok_or_else(|| format!("{shown} is not a linked worktree"))?;
        let git_dir = fs::canonicalize(path.join(git_dir)).map_err(failed)?;
        let common = fs::canonicalize(common).map_err(failed)?;
        if git_dir.parent() != Some(&common.join("worktrees")) {
            return Err(format!("{shown} is not a worktree of this repository"));
        }
        let common = fs::read_to_string(git_dir.join("commondir")).map_err(failed)?;
        Ok(Self {
            path,
            git_dir,
            link,
            common,
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Verifies that the folder is still the original one.
    ///
    /// # Errors
    /// What is there instead, as a sentence; then no git command may run there.
    pub(super) fn check(&self) -> Result<(), String> {
        let shown = self.path.display();
        let found =
            fs::symlink_metadata(&self.path).map_err(|error| format!("{shown}: {error}"))?;
        if !found.is_dir() || (found.dev(), found.ino()) != (self.device, self.inode) {
            return Err(format!("{shown} is not the folder that was made for it"));
        }
        let is_folder = fs::symlink_metadata(&self.git_dir).is_ok_and(|found| found.is_dir());
        if !is_folder {
            return Err(format!("{} is not there", self.git_dir.display()));
        }
        Ok(())
    }

    /// Verifies a worktree that is not in use, restores the files that link it to its repository,
    /// and removes the lock files of a killed git. Returns whether a link had to be restored.
    ///
    /// # Errors
    /// As [`check`](Self::check), and if a file can't be written.
    pub(super) fn repair(&self) -> Result<bool, String> {
        self.check()?;
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        let common = write_again(&self.git_dir.join("commondir"), &self.common).map_err(failed)?;
        let link = write_again(&self.path.join(".git"), &self.link).map_err(failed)?;
        for lock in ["index.lock", "HEAD.lock"] {
            match fs::remove_file(self.git_dir.join(lock)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(common || link)
    }
}

/// Restores the content of a file, in place of a link or a folder if need be. Returns whether it
/// differed.
fn write_again(path: &Path, text: &str) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            if found.len() == text.len() as u64 && fs::read(path)? == text.as_bytes() {
                return Ok(false);
            }
            fs::remove_file(path)?;
        }
        Ok(found) if found.is_dir() => fs::remove_dir_all(path)?,
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut new = fs::File::options()
        .write(true)
        .create_new(true)
        .open(path)?;
    io::Write::write_all(&mut new, text.as_bytes())?;
    Ok(true)
}
