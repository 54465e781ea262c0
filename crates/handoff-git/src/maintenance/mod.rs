//! git's own maintenance, started in the background as git does after a fetch; and repairs.

mod aside;
mod repair;

pub use aside::Aside;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use git2::{Config, ErrorCode};

use crate::objects::is_object_name;
use crate::process::git_alone;
use crate::repository::Repository;

/// git's default thresholds for loose objects and packs.
const LOOSE: i64 = 6700;
const PACKS: i64 = 50;

/// git estimates the number of loose objects from this one folder of 256.
const SAMPLE: &str = "17";
const FOLDERS: i64 = 256;

/// Never prune: the user may have configured less than git's two weeks, and a step's objects are
/// unreachable until it is published.
const KEEP_ALL: [&str; 2] = ["-c", "gc.pruneExpire=never"];

/// The reflogs of the user's refs are left to the user's own `git gc`.
const KEEP_LOGS: [&str; 4] = [
    "-c",
    "gc.reflogExpire=never",
    "-c",
    "gc.reflogExpireUnreachable=never",
];

impl Repository {
    /// Starts git's maintenance in the background if this handle added objects and git's thresholds
    /// (`gc.auto`, `gc.autoPackLimit`) are exceeded. Errors are ignored: it is retried after the
    /// next write.
    pub fn maintain(&self) {
        if self.grown.is_noted() && self.is_maintenance_due() {
            let mut command = self.maintenance();
            // In its own process group, so that ending the caller's does not interrupt it.
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            // If it can't start, it is retried later.
            let _ = command.spawn();
        }
    }

    /// Estimates like git: loose objects in one folder of 256, and packs without `.keep`.
    fn is_maintenance_due(&self) -> bool {
        let Ok(config) = self.inner.config().and_then(|mut all| all.snapshot()) else {
            return false;
        };
        if config.get_bool("maintenance.auto") == Ok(false) {
            return false;
        }
        let (Some(loose), Some(packs)) = (
            number(&config, "gc.auto", LOOSE),
            number(&config, "gc.autoPackLimit", PACKS),
        ) else {
            return false;
        };
        let objects = self.common_dir().join("objects");
        loose > 0
            && (loose_objects(&objects.join(SAMPLE)) > (loose + FOLDERS - 1) / FOLDERS
                || (packs > 0 && packs_to_join(&objects.join("pack")) > packs))
            // Another process runs it already.
            && !objects.join("maintenance.lock").exists()
    }

    fn maintenance(&self) -> Command {
        let folder = self.common_dir();
        let mut command = git_alone(folder, None);
        command.args(KEEP_LOGS);
        if self.config("gc.pruneExpire").is_some() {
            command.args(KEEP_ALL);
        }
        command.args(["maintenance", "run", "--auto", "--quiet"]);
        // Not in a linked worktree, which may be removed meanwhile.
        command.current_dir(folder);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// A number in the configuration; `otherwise` if it is unset, `None` if it is not a number.
fn number(config: &Config, key: &str, otherwise: i64) -> Option<i64> {
    match config.get_i64(key) {
        Ok(set) => Some(set),
        Err(error) if error.code() == ErrorCode::NotFound => Some(otherwise),
        Err(_) => None,
    }
}

/// The number of files in a folder that are named like the rest of an object id.
fn loose_objects(folder: &Path) -> i64 {
    sum(folder, |name| i64::from(is_object_name(name)))
}

/// The number of packs in a folder without a `.keep` file.
fn packs_to_join(folder: &Path) -> i64 {
    let is = |name: &[u8], end: &[u8]| i64::from(name.ends_with(end));
    sum(folder, |name| is(name, b".pack") - is(name, b".keep"))
}

/// Sums `counts` over the file names in a folder; 0 if it can't be read.
fn sum(folder: &Path, counts: impl Fn(&[u8]) -> i64) -> i64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let counted = entries.map(|entry| counts(entry.file_name().as_encoded_bytes()));
    counted.sum()
}
