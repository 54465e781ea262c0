//! Infers what git is about to do to a ref in the files backend: lock files show what it writes,
//! and logs which rename has begun. Reftables have neither: git writes them at once.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use handoff_base::ObjectId;

use crate::error::GitError;
use crate::repository::Repository;

/// How often to check a lock that another process may hold briefly.
const CHECKS: u32 = 500;

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// The state of a lock; a hook's caller holds its lock while the hook runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// Not held.
    Free,
    /// Possibly held by the caller.
    Callers,
    /// Held by some process.
    Held,
}

/// Whether a lock becomes free within `CHECKS` checks.
fn is_free_once(check: impl Fn() -> Lock) -> bool {
    for again in 0..CHECKS {
        if again > 0 {
            thread::sleep(PAUSE);
        }
        match check() {
            Lock::Free => return true,
            Lock::Callers => return false,
            Lock::Held => {}
        }
    }
    false
}

impl Repository {
    /// Whether a ref keeps its value when its loose file is deleted: it is packed with the same
    /// value, and the packed refs are not about to be rewritten.
    ///
    /// git packs refs and then deletes their files, which looks like a deletion to a hook. A real
    /// deletion holds the lock of the packed refs while the hook runs; any other process holds it
    /// only briefly.
    ///
    /// # Errors
    /// [`GitError`] when the ref can't be read.
    pub fn is_packed_for_good(&self, refname: &str) -> Result<bool, GitError> {
        let packed = self.common_dir().join("packed-refs");
        let Some(id) = self.resolve(refname)? else {
            return Ok(false);
        };
        let line = format!("{id} {refname}");
        let is_packed = || {
            let listed = fs::read_to_string(&packed).unwrap_or_default();
            listed.lines().any(|known| known == line)
        };
        let lock = packed.with_extension("lock");
        let free = || {
            if lock.exists() {
                Lock::Held
            } else {
                Lock::Free
            }
        };
        Ok(is_packed() && is_free_once(free) && is_packed())
    }

    /// Whether a ref keeps its value when it is packed with this value: its loose file takes
    /// precedence and is not about to be written.
    ///
    /// To pack refs, git writes values that it read before, which looks like an update to a hook. A
    /// real update holds the lock of the loose file, with the new value in it, while the hook runs.
    pub fn is_left_in_its_file(&self, refname: &str, value: ObjectId) -> bool {
        let file = self.common_dir().join(refname);
        let lock = self.common_dir().join(format!("{refname}.lock"));
        let value = value.to_string();
        let free = || match fs::read_to_string(&lock) {
            Ok(text) if text.trim_end() == value => Lock::Callers,
            Ok(_) => Lock::Held,
            Err(_) if lock.exists() => Lock::Held,
            Err(_) => Lock::Free,
        };
        file.is_file() && is_free_once(free)
    }

    /// Whether a branch to be deleted may be in a rename: git moves its log away first.
    pub fn has_no_log(&self, refname: &str) -> bool {
        !self.log_of(refname).exists()
    }

    /// The last commit of a branch whose rename is unfinished.
    pub fn half_renamed(&self) -> Option<ObjectId> {
        let log = fs::read_to_string(self.taken_log()).ok()?;
        let last = log.lines().last()?;
        last.split(' ').nth(1)?.parse().ok()
    }

    /// Restores a branch's log that git moved away for a rename and would lose. Other branches'
    /// logs stay.
    pub fn put_log_back(&self, refname: &str) -> bool {
        let at = self.resolve(refname).ok().flatten();
        if !self.has_no_log(refname) || at.is_none() || self.half_renamed() != at {
            return false;
        }
        fs::rename(self.taken_log(), self.log_of(refname)).is_ok()
    }

    pub(super) fn log_of(&self, refname: &str) -> PathBuf {
        self.common_dir().join("logs").join(refname)
    }

    /// Where git keeps a branch's log during a rename.
    fn taken_log(&self) -> PathBuf {
        self.log_of("refs/.tmp-renamed-log")
    }
}
