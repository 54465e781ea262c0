//! Reads issues on several threads, because unpacking objects takes most of the time.

use std::sync::{Mutex, PoisonError};
use std::thread;

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::Repository;

use super::issues::Encoded;
use crate::error::LedgerError;
use crate::snapshot::IssueFolder;

/// How many issues a thread takes at once.
const PART: usize = 64;

/// An issue's folder, in the tip or in history.
pub(super) struct Folder {
    pub(super) issue: IssueKey,
    pub(super) tree: ObjectId,
    /// The commit that contains it, if the issue is archived.
    pub(super) archived_in: Option<ObjectId>,
}

/// Reads the issues in these folders with this many threads, in any order.
pub(super) fn issues(
    folders: &[Folder],
    threads: usize,
) -> Result<Vec<Encoded<'static>>, LedgerError> {
    let parts = Mutex::new(folders.chunks(PART));
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let read = || -> Result<Vec<Encoded<'static>>, LedgerError> {
        // libgit2's handles must not be shared between threads.
        let repository = Repository::open_for_survey()?;
        let mut found = Vec::new();
        while let Some(part) = next() {
            for folder in part {
                let (tree, archived_in) = (folder.tree, folder.archived_in);
                let folder = IssueFolder::at(&repository, &folder.issue, tree, archived_in)?;
                found.extend(folder.encoded()?);
            }
        }
        Ok(found)
    };
    let threads = threads.min(folders.len().div_ceil(PART));
    thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        let mut found = Vec::with_capacity(folders.len());
        for reader in readers {
            match reader.join() {
                Ok(read) => found.extend(read?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(found)
    })
}
