//! The upkeep of a repository: git's own, started as git starts it after a command
//! that brought objects; it runs beside everyone's work and never within it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use git2::{Config, ErrorCode};

use super::repository::Repository;

/// What is set in this repository, where the configuration says nothing: git's own
/// numbers of loose objects and of packs.
const LOOSE: i64 = 6700;
const PACKS: i64 = 50;

/// The folder of loose objects that git counts, one of this many.
const SAMPLE: &str = "17";
const FOLDERS: i64 = 256;

/// Where the user has objects that nothing points to removed at another age than
/// git's own two weeks, that is left to the user's own runs: a step's objects are
/// such until it is published.
const KEEP_ALL: [&str; 2] = ["-c", "gc.pruneExpire=never"];

/// The logs of the user's own refs are left alone: what git forgets of them when is for
/// the user's own runs.
const KEEP_LOGS: [&str; 4] = [
    "-c",
    "gc.reflogExpire=never",
    "-c",
    "gc.reflogExpireUnreachable=never",
];

impl Repository {
    /// Starts git's own maintenance beside this process, where something was written
    /// or fetched through this handle and the numbers by which git decides it
    /// (`gc.auto`, `gc.autoPackLimit`) are passed. Waits for nothing, and says
    /// nothing: what can't be started now is due again after the next write.
    pub fn maintain(&self) {
        if self.grown.is_noted() && self.is_maintenance_due() {
            let mut command = self.maintenance();
            // A group of its own: what ends the caller's does not end it halfway.
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            // git has what it needs to go on the next time.
            let _ = command.spawn();
        }
    }

    /// Counts as git does: the loose objects in one folder of 256, and the packs
    /// that are not to be kept as they are.
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
            // Someone is at it.
            && !objects.join("maintenance.lock").exists()
    }

    fn maintenance(&self) -> Command {
        let folder = self.common_dir();
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(folder).args(KEEP_LOGS);
        if self.config("gc.pruneExpire").is_some() {
            command.args(KEEP_ALL);
        }
        command.args(["maintenance", "run", "--auto", "--quiet"]);
        // Not in a worktree that someone may want to remove meanwhile.
        command.current_dir(folder);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// A number of the configuration; none where what stands there is not one.
fn number(config: &Config, key: &str, otherwise: i64) -> Option<i64> {
    match config.get_i64(key) {
        Ok(set) => Some(set),
        Err(error) if error.code() == ErrorCode::NotFound => Some(otherwise),
        Err(_) => None,
    }
}

/// How many loose objects a folder has: files with the rest of an id as their name.
fn loose_objects(folder: &Path) -> i64 {
    const REST: usize = 38;
    let is_object =
        |name: &[u8]| name.len() == REST && name.iter().all(|digit| digit.is_ascii_hexdigit());
    sum(folder, |name| i64::from(is_object(name)))
}

/// How many packs a folder has that are not marked to be kept.
fn packs_to_join(folder: &Path) -> i64 {
    let is = |name: &[u8], end: &[u8]| i64::from(name.ends_with(end));
    sum(folder, |name| is(name, b".pack") - is(name, b".keep"))
}

/// Adds up what the names in a folder count; nothing in a folder that can't be read.
fn sum(folder: &Path, counts: impl Fn(&[u8]) -> i64) -> i64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let counted = entries.map(|entry| counts(entry.file_name().as_encoded_bytes()));
    counted.sum()
}
