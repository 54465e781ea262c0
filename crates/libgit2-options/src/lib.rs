//! Options of libgit2 that are unsafe to set, because they are unsynchronized globals: the mapping
//! of packs, syncing to disk, and repository extensions and ownership.
//!
//! They have their own crate because the rest of the program forbids unsafe code.

use std::ffi::c_int;
use std::sync::Once;

use libgit2_sys::GIT_OPT_ENABLE_FSYNC_GITDIR;

/// Limits the size of one pack window and of all together, for the whole process. Only the first
/// call has an effect.
///
/// libgit2 maps packs in windows of a gigabyte and releases none before it holds eight: a walk over
/// all history would keep all packs in memory. Call it before another thread opens a repository:
/// the options are read whenever a window is mapped.
pub fn bound_pack_windows(each: usize, together: usize) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: libgit2 reads these two numbers when it maps a window, and nothing
        // writes them but this call, which is made once.
        // If it fails, the default stays, which is correct and larger.
        unsafe {
            let _ = git2::opts::set_mwindow_size(each);
            let _ = git2::opts::set_mwindow_mapped_limit(together);
        }
    });
}

/// Syncs objects, refs and packs with their folders to disk, for the whole process. Call it before
/// a ref is read: the ref store reads the option when it is opened.
pub fn sync_files() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the option takes one int. libgit2 reads the flag when it writes a file, and
        // nothing writes it but this call, which is made once.
        unsafe {
            libgit2_sys::git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR as c_int, 1 as c_int);
        }
    });
}

/// Lets libgit2 open repositories with extensions that only this program supports, for the whole
/// process. Call it before a repository is opened.
///
/// `refStorage`: libgit2 must not access refs there, since it supports only files.
/// `relativeWorktrees`: paths between a repository and its worktrees may be relative.
pub fn allow_extensions() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: libgit2 reads its list of extensions when it opens a repository, and nothing
        // writes it but this call, which is made once.
        // If it fails, opening such repositories is refused.
        unsafe {
            let _ = git2::opts::set_extensions(&["refstorage", "relativeworktrees"]);
        }
    });
}

/// Lets libgit2 open other users' repositories, for the whole process. Call it once git has said
/// that it trusts the repository.
pub fn trust_owners() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: libgit2 reads this flag when it opens a repository, and nothing writes it but this
        // call, which is made once.
        // If it fails, opening such repositories is refused.
        unsafe {
            let _ = git2::opts::set_verify_owner_validation(false);
        }
    });
}
