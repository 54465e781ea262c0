//! The temporary folder of a scratch ledger: removed at the end, or by a later run after a kill.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

/// The prefix of the folders' names.
const PREFIX: &str = "git-handoff-trial-";

/// The age at which a folder counts as left over: no run takes this long.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Creates a folder for a scratch ledger, and removes leftover ones.
///
/// # Errors
/// The system's error if it can't be created.
pub(super) fn folder() -> io::Result<TempDir> {
    sweep(&std::env::temp_dir());
    tempfile::Builder::new().prefix(PREFIX).tempdir()
}

/// Removes leftover folders. Those that can't be removed stay for the next run.
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
