//! File modes under `core.sharedRepository`.

use std::sync::{Mutex, OnceLock, PoisonError};

/// The umask of the process, and the one for files of the repository.
static UMASKS: OnceLock<[u32; 2]> = OnceLock::new();

/// The number of live [`SharedModes`].
static USERS: Mutex<usize> = Mutex::new(0);

/// Records the umask that `core.sharedRepository` demands.
pub(crate) fn share(value: &str) {
    if let Some(own) = umask_of(value, u32::MAX) {
        // A umask can only be read by setting another.
        let before = set_umask(own);
        set_umask(before);
        let own = umask_of(value, before).unwrap_or(before);
        let _ = UMASKS.set([before, own]);
    }
}

/// The umask that gives new files the modes of git's `adjust_shared_perm`; `None` if nothing is
/// shared. New folders inherit the setgid bit from their parents.
fn umask_of(value: &str, before: u32) -> Option<u32> {
    let octal = u32::from_str_radix(value, 8);
    let umask = match (value.to_ascii_lowercase().as_str(), octal) {
        ("group" | "true" | "yes" | "on" | "1", _) => before & !0o070,
        ("all" | "world" | "everybody" | "2", _) => before & !0o075,
        (_, Ok(mode)) if mode & 0o600 == 0o600 => !(mode | (mode & 0o444) >> 2),
        _ => return None,
    };
    Some(umask & 0o777)
}

/// Sets the process's umask for shared files while it lives; libgit2's files get it, too. Child
/// processes started meanwhile inherit it.
pub struct SharedModes(());

impl SharedModes {
    /// Sets the umask.
    pub fn begin() -> Self {
        change(|users| *users += 1);
        Self(())
    }
}

impl Drop for SharedModes {
    fn drop(&mut self) {
        change(|users| *users -= 1);
    }
}

fn change(count: impl FnOnce(&mut usize)) {
    if let Some(umasks) = UMASKS.get() {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        count(&mut users);
        set_umask(umasks[usize::from(*users > 0)]);
    }
}

/// Sets the umask of the process, and returns the one before.
#[cfg(unix)]
#[allow(
    clippy::unnecessary_cast,
    reason = "modes have other sizes on other systems"
)]
fn set_umask(mask: u32) -> u32 {
    let mask = rustix::fs::Mode::from_raw_mode(mask as rustix::fs::RawMode);
    rustix::process::umask(mask).bits() as u32
}

#[cfg(not(unix))]
fn set_umask(mask: u32) -> u32 {
    mask
}

#[cfg(test)]
mod tests {
    use super::umask_of;

    #[test]
    fn umasks_give_the_modes_of_git() {
        for (value, before, umask) in [
            ("group", 0o077, Some(0o007)),
            ("true", 0o022, Some(0o002)),
            ("1", 0o027, Some(0o007)),
            ("all", 0o077, Some(0o002)),
            ("0660", 0o022, Some(0o007)),
            ("0640", 0o002, Some(0o027)),
            ("0664", 0o077, Some(0o002)),
            ("umask", 0o022, None),
            ("false", 0o022, None),
            ("0", 0o022, None),
            ("0060", 0o022, None),
        ] {
            assert_eq!(umask_of(value, before), umask, "{value}");
        }
    }
}
