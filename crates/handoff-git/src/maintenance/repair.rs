//! What a power cut leaves: files of objects and refs that exist and are empty.

use std::path::PathBuf;
use std::process::Command;
use std::{fs, io};

use handoff_base::ObjectId;

use crate::files::remove_if_empty;
use crate::objects::is_object_name;
use crate::process::{self, ProcessError};
use crate::repository::Repository;

impl Repository {
    /// Removes the empty files among the loose objects, which keep git from writing or fetching the
    /// objects again. Returns how many there were.
    ///
    /// # Errors
    /// When a folder can't be read or a file can't be removed.
    pub fn remove_empty_objects(&self) -> io::Result<usize> {
        let mut removed = 0;
        for (_, file) in self.loose_files()? {
            removed += usize::from(remove_if_empty(&file)?);
        }
        Ok(removed)
    }

    /// The loose objects, with their files.
    pub(super) fn loose_files(&self) -> io::Result<Vec<(ObjectId, PathBuf)>> {
        let mut files = Vec::new();
        for folder in fs::read_dir(self.common_dir().join("objects"))? {
            let folder = folder?;
            if folder.file_name().len() != 2 || !folder.file_type()?.is_dir() {
                continue;
            }
            let first = folder.file_name();
            for file in fs::read_dir(folder.path())? {
                let file = file?;
                let name = file.file_name();
                // git begins a new object as an empty file with another name.
                if is_object_name(name.as_encoded_bytes())
                    && let Ok(id) = format!("{}{}", first.display(), name.display()).parse()
                {
                    files.push((id, file.path()));
                }
            }
        }
        Ok(files)
    }

    /// Removes a ref's own file if it is empty; the value that is packed counts again, if there is
    /// one. Returns whether it was.
    ///
    /// # Errors
    /// When it can't be removed.
    pub fn remove_empty_ref(&self, refname: &str) -> io::Result<bool> {
        remove_if_empty(&self.common_dir().join(refname))
    }

    /// Whether every object is here, and can be read, that a commit needs and another does not.
    /// What a partial clone left out counts as here.
    ///
    /// # Errors
    /// When git can't say: it could not be run, took too long, or refuses the repository. Then
    /// nothing is known to be missing.
    pub fn is_whole(&self, commit: ObjectId, without: Option<ObjectId>) -> io::Result<bool> {
        let mut command = self.git();
        if self.is_partial() {
            command.args(["rev-list", "--objects", "--quiet", "--stdin"]);
        } else {
            // What makes a pack of objects reads all of them.
            command.args(["pack-objects", "--revs", "--stdout", "-q"]);
            command.args(["--no-reuse-object", "--window=0", "--compression=0"]);
        }
        let without = without.map_or(String::new(), |id| format!("^{id}\n"));
        if said_yes(command, Some(format!("{commit}\n{without}")))? {
            return Ok(true);
        }
        // git has one exit code for what is missing and for a repository that it does not read.
        let mut command = self.git();
        command.args(["rev-parse", "--git-dir"]);
        if said_yes(command, None)? {
            return Ok(false);
        }
        Err(io::Error::other("git does not read this repository"))
    }
}

/// Whether git ended without an error.
fn said_yes(command: Command, input: Option<String>) -> io::Result<bool> {
    match process::run_until(None, command, input.map(String::into_bytes)) {
        Ok(ended) if ended.status.code().is_some() => Ok(ended.status.success()),
        Err(ProcessError::NoStart(error)) => Err(error),
        Ok(_) | Err(_) => Err(io::Error::other("git did not end in time")),
    }
}
