//! A worktree as it was when it was made. An agent may have put something else in its place since, or
//! have made its `.git` name another repository: nothing is done there then.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A worktree of this clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkout {
    pub(super) path: PathBuf,
    /// Its own git directory, within the repository's.
    pub(super) git_dir: PathBuf,
    /// What its `.git` says.
    link: String,
    /// What its git directory says of the repository's.
    common: String,
    device: u64,
    inode: u64,
}

impl Checkout {
    /// One in which no agent has worked yet, of the repository with this git directory.
    ///
    /// # Errors
    /// Why it is not a checkout, in a sentence.
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

    /// Makes sure that the folder is still the one that was made.
    ///
    /// # Errors
    /// What is there instead, in a sentence; nothing may be done there.
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

    /// The same, and writes again what names its repository. Returns whether it had to.
    ///
    /// # Errors
    /// As [`check`](Self::check), and if it can't be written.
    pub(super) fn repair(&self) -> Result<bool, String> {
        self.check()?;
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        let common = write_again(&self.git_dir.join("commondir"), &self.common).map_err(failed)?;
        let link = write_again(&self.path.join(".git"), &self.link).map_err(failed)?;
        Ok(common || link)
    }
}

/// Writes a file again unless it is as it was; a link or a folder in its place goes. Returns whether
/// it had to.
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
