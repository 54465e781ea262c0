//! Temporary files that killed processes left behind.

use std::path::{Path, PathBuf};

/// Temporary files for this file whose process is gone.
pub(super) fn beside(file: &Path) -> Vec<PathBuf> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let begin = format!(".{name}.git-handoff-");
    let entries = file.parent().and_then(|folder| folder.read_dir().ok());
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(&begin));
            let number = number.and_then(|number| number.parse::<i32>().ok());
            number.is_some_and(is_gone)
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Whether no other process has this id.
#[cfg(unix)]
fn is_gone(number: i32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let pid = Pid::from_raw(number).filter(|pid| *pid != rustix::process::getpid());
    pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn is_gone(_: i32) -> bool {
    false
}
