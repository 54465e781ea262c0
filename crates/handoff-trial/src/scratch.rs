//! The temporary folder of a scratch ledger: removed at the end, or by a later run if its process was killed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

/// How the folders' names begin.
const PREFIX: &str = "git-handoff-trial-";

/// After this time a folder is left over: no run lasts as long.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes a folder for a scratch ledger, and removes those left over.
///
/// # Errors
/// The system's error if there can be none.
pub(super) fn folder() -> io::Result<TempDir> {
    sweep(&std::env::temp_dir());
    tempfile::Builder::new().prefix(PREFIX).tempdir()
}

/// Removes folders that are left over. What can't be removed stays for the next run.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry.metadata().and_then(|found| found.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > LEFT_OVER) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
