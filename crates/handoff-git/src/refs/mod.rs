//! The storage formats of refs: `files` (loose and packed) and `tables` (reftable). Nothing outside
//! this folder depends on the format.
//!
//! `git_command` changes and lists refs through git, `kept_commit` manages refs that keep commits,
//! `pending_change` infers from git's locks and logs what git is about to do to a loose ref, and
//! `write_trial` finds what can't be written.

mod files;
mod git_command;
mod kept_commit;
mod pending_change;
mod tables;
mod write_trial;

pub use kept_commit::Kept;

use git2::{ErrorClass, ErrorCode};

use crate::error::GitError;
use crate::repository::RefStore;

/// The maximum number of reflog entries read.
const LOGGED: usize = 64;

/// The ref store of a repository, by its configuration.
///
/// # Errors
/// [`GitError`] when it is of an unknown kind.
pub(super) fn store(inner: &git2::Repository) -> Result<Box<dyn RefStore>, GitError> {
    let storage = inner
        .config()
        .and_then(|mut config| config.snapshot()?.get_string("extensions.refstorage"));
    match storage.as_deref() {
        Err(_) | Ok("files") => Ok(Box::new(files::RefFiles)),
        Ok("reftable") => Ok(Box::new(tables::RefTables::default())),
        Ok(other) => {
            let text = format!("unknown ref storage format '{other}'");
            Err(git2::Error::new(ErrorCode::Invalid, ErrorClass::Repository, text).into())
        }
    }
}
