//! Folders and texts created once per test run, and shared by its tests.
//!
//! With cargo-nextest each test is a separate process, so they can share only files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use crate::{built, files};

/// How long a finished run's folders are kept.
const KEPT: Duration = Duration::from_secs(3600);

/// This run's folder.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| {
    let all = built().join("../tmp/prepared");
    let own = std::env::var("NEXTEST_RUN_ID");
    let run = all.join(own.unwrap_or_else(|_| std::process::id().to_string()));
    if !run.is_dir() {
        for other in fs::read_dir(&all).into_iter().flatten().flatten() {
            let written = other.metadata().and_then(|found| found.modified());
            let age = written.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
            if age.is_ok_and(|age| age > KEPT) {
                // Another process may create it too.
                let _ = fs::remove_dir_all(other.path());
            }
        }
        fs::create_dir_all(&run).unwrap();
    }
    run
});

/// Copies a folder of this kind, creating it the first time.
pub(crate) fn copy(kind: &str, make: impl FnOnce(&Path), to: &Path) {
    files::copy(&made(kind, make), to);
}

/// The text of this name, created once per run.
pub(crate) fn text(name: &str, make: impl FnOnce() -> String) -> String {
    let path = made(name, |path| fs::write(path, make()).unwrap());
    fs::read_to_string(path).unwrap()
}

/// The path of this name, created once per run.
fn made(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let made = RUN.join(name);
    if made.exists() {
        return made;
    }
    let lock = File::create(RUN.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !made.exists() {
        // A test that was stopped may have left a partial one.
        let new = RUN.join(format!("{name}.new"));
        let _ = fs::remove_dir_all(&new);
        make(&new);
        fs::rename(&new, &made).unwrap();
    }
    made
}
