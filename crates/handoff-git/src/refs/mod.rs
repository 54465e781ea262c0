//! How a repository keeps its refs: in `files`, one for each ref and one for many, or in `tables`
//! that git sorts and compacts (reftable). Nothing outside this folder knows which one it is.
//!
//! `git_command` has git change and list refs, `kept_commit` has the refs under which the ledger
//! keeps commits, `pending_change` tells from git's locks and logs what git is about to do to a ref
//! that is a file.

mod files;
mod git_command;
mod kept_commit;
mod pending_change;
mod tables;

pub use kept_commit::Kept;

use git2::{ErrorClass, ErrorCode};

use crate::error::GitError;
use crate::repository::RefStore;

/// How many entries of a ref's log are looked at.
const LOGGED: usize = 64;

/// The store of a repository, by its configuration.
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
