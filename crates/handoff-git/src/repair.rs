//! What a power cut leaves: files of objects and refs that exist and are empty.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::{fs, io};

use handoff_base::ObjectId;

use super::maintenance::is_object_name;
use super::process;
use super::process::{Patience, ProcessError};
use super::repository::Repository;

impl Repository {
    /// Removes the empty files among the loose objects, which keep git from writing or fetching the
    /// objects again. Returns how many there were.
    ///
    /// # Errors
    /// When a folder can't be read or a file can't be removed.
    pub fn remove_empty_objects(&self) -> io::Result<usize> {
        let mut removed = 0;
        for folder in fs::read_dir(self.common_dir().join("objects"))? {
            let folder = folder?;
            if folder.file_name().len() != 2 || !folder.file_type()?.is_dir() {
                continue;
            }
            for file in fs::read_dir(folder.path())? {
                let file = file?;
                // git begins a new object as an empty file with another name.
                if is_object_name(file.file_name().as_encoded_bytes()) {
                    removed += usize::from(remove_if_empty(&file.path())?);
                }
            }
        }
        Ok(removed)
    }

    /// Removes a ref's own file if it is empty; the value that is packed counts again, if there is
    /// one. Returns whether it was.
    ///
    /// # Errors
    /// When it can't be removed.
    pub fn remove_empty_ref(&self, refname: &str) -> io::Result<bool> {
        remove_if_empty(&self.common_dir().join(refname))
    }

    /// Whether every object is here that a commit needs and another does not.
    ///
    /// # Errors
    /// When git can't say: it could not be run, took too long, or refuses the repository. Then
    /// nothing is known to be missing.
    pub fn is_whole(&self, commit: ObjectId, without: Option<ObjectId>) -> io::Result<bool> {
        let mut command = self.git();
        command.args(["rev-list", "--objects", "--quiet", &commit.to_string()]);
        command.args(without.map(|id| format!("^{id}")));
        if said_yes(command)? {
            return Ok(true);
        }
        // git has one exit code for what is missing and for a repository that it does not read.
        let mut command = self.git();
        command.args(["rev-parse", "--git-dir"]);
        if said_yes(command)? {
            return Ok(false);
        }
        Err(io::Error::other("git does not read this repository"))
    }
}

/// Whether git ended without an error.
fn said_yes(command: Command) -> io::Result<bool> {
    let interrupted = AtomicBool::new(false);
    let patience = Patience {
        deadline: None,
        interrupted: &interrupted,
    };
    match process::run(command, None, &patience) {
        Ok(ended) if ended.status.code().is_some() => Ok(ended.status.success()),
        Err(ProcessError::NoStart(error)) => Err(error),
        Ok(_) | Err(_) => Err(io::Error::other("git did not end in time")),
    }
}

/// Removes a file without contents: it is empty, or the file system filled it with zeros, with
/// which neither an object nor a ref begins.
pub(super) fn remove_if_empty(path: &Path) -> io::Result<bool> {
    let mut first = [0];
    let is_empty = match fs::File::open(path) {
        Ok(mut file) => file.metadata()?.is_file() && (file.read(&mut first)? == 0 || first == [0]),
        // Where refs are in tables, what would be a folder of refs is a file.
        Err(error) if is_absent(&error) => false,
        Err(error) => return Err(error),
    };
    if is_empty {
        fs::remove_file(path)?;
    }
    Ok(is_empty)
}

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    [NotFound, NotADirectory].contains(&error.kind())
}
