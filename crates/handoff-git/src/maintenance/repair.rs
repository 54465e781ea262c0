//! Repairs what a power cut leaves: empty files of objects and refs.

use std::path::PathBuf;
use std::process::Command;
use std::{fs, io};

use handoff_base::ObjectId;

use crate::files::remove_if_empty;
use crate::objects::is_object_name;
use crate::process::{self, ProcessError};
use crate::repository::Repository;

impl Repository {
    /// Removes empty files of loose objects, which prevent git from writing or fetching the objects
    /// again. Returns their number.
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
                // git creates new objects under temporary names.
                if is_object_name(name.as_encoded_bytes())
                    && let Ok(id) = format!("{}{}", first.display(), name.display()).parse()
                {
                    files.push((id, file.path()));
                }
            }
        }
        Ok(files)
    }

    /// Removes a loose ref's file if it is empty, so that the packed value, if any, applies again.
    /// Returns whether it was empty.
    ///
    /// # Errors
    /// When it can't be removed.
    pub fn remove_empty_ref(&self, refname: &str) -> io::Result<bool> {
        remove_if_empty(&self.common_dir().join(refname))
    }

    /// Whether every object that `commit` needs and `without` does not exists and is readable.
    /// Objects that a partial clone left out count as existing.
    ///
    /// # Errors
    /// When git can't say: it could not run, timed out, or refuses the repository. That proves
    /// nothing missing.
    pub fn is_whole(&self, commit: ObjectId, without: Option<ObjectId>) -> io::Result<bool> {
        let mut command = self.git();
        if self.is_partial() {
            command.args(["rev-list", "--objects", "--quiet", "--stdin"]);
        } else {
            // Packing reads every object.
            command.args(["pack-objects", "--revs", "--stdout", "-q"]);
            command.args(["--no-reuse-object", "--window=0", "--compression=0"]);
        }
        let without = without.map_or(String::new(), |id| format!("^{id}\n"));
        if said_yes(command, Some(format!("{commit}\n{without}")))? {
            return Ok(true);
        }
        // git's exit code is the same for a missing object and for an unreadable repository.
        let mut command = self.git();
        command.args(["rev-parse", "--git-dir"]);
        if said_yes(command, None)? {
            return Ok(false);
        }
        Err(io::Error::other("git does not read this repository"))
    }
}

/// Whether git exits successfully.
fn said_yes(command: Command, input: Option<String>) -> io::Result<bool> {
    match process::run_until(None, command, input.map(String::into_bytes)) {
        Ok(ended) if ended.status.code().is_some() => Ok(ended.status.success()),
        Err(ProcessError::NoStart(error)) => Err(error),
        Ok(_) | Err(_) => Err(io::Error::other("git did not end in time")),
    }
}
