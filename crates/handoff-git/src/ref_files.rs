//! Refs as git keeps them in files: its locks show what it is about to do to one, and its logs which
//! renaming it has begun.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use handoff_base::ObjectId;

use super::error::GitError;
use super::repository::Repository;

/// How many times a lock is looked at that another process may hold for a moment.
const LOOKS: u32 = 500;

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// What a lock says of the hook's caller, who holds it as long as the hook runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// The caller can't hold it: nobody does.
    Free,
    /// The caller holds it.
    Callers,
    /// Somebody holds it.
    Held,
}

/// Says whether a lock is free at one of many looks.
fn is_free_once(look: impl Fn() -> Lock) -> bool {
    for again in 0..LOOKS {
        if again > 0 {
            thread::sleep(PAUSE);
        }
        match look() {
            Lock::Free => return true,
            Lock::Callers => return false,
            Lock::Held => {}
        }
    }
    false
}

impl Repository {
    /// Says whether a ref stays where it is when its own file goes: it is packed with the same value,
    /// and packed refs are not about to be rewritten.
    ///
    /// git packs refs first and then deletes their files, which looks to a hook as if they were deleted.
    /// A real deletion holds the lock of the packed refs as long as the hook runs; anybody else does
    /// for a moment.
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

    /// Says whether a ref stays where it is when the packed refs get this value for it: it has a file of
    /// its own, which counts more and is not about to be written.
    ///
    /// To pack refs git writes down what it read a moment ago, which looks to a hook as if they were
    /// moved. A real move holds the lock of the ref's own file as long as the hook runs, with the new
    /// value in it.
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

    /// Says whether a branch that is about to be deleted may only be on its way to another name: git
    /// takes its log away first.
    pub fn has_no_log(&self, refname: &str) -> bool {
        !self.log_of(refname).exists()
    }

    /// The last commit of the branch that git began to rename, and did not rename to the end.
    pub fn half_renamed(&self) -> Option<ObjectId> {
        let log = fs::read_to_string(self.taken_log()).ok()?;
        let last = log.lines().last()?;
        last.split(' ').nth(1)?.parse().ok()
    }

    /// Puts a branch's log back that git took away to rename the branch, and would leave away. Any other
    /// branch's log stays where it is.
    pub fn put_log_back(&self, refname: &str) -> bool {
        let at = self.resolve(refname).ok().flatten();
        if !self.has_no_log(refname) || at.is_none() || self.half_renamed() != at {
            return false;
        }
        fs::rename(self.taken_log(), self.log_of(refname)).is_ok()
    }

    fn log_of(&self, refname: &str) -> PathBuf {
        self.common_dir().join("logs").join(refname)
    }

    /// Where git keeps the log of a branch meanwhile.
    fn taken_log(&self) -> PathBuf {
        self.log_of("refs/.tmp-renamed-log")
    }
}
