//! Options of libgit2 that are unsafe to set, because they are globals that libgit2 does not lock:
//! how much of a repository's packs it maps, whether it waits for the disk, and what it opens.
//!
//! They are in a crate of their own because the rest of the program forbids unsafe code.

use std::ffi::c_int;
use std::sync::Once;

use libgit2_sys::GIT_OPT_ENABLE_FSYNC_GITDIR;

/// Bounds the windows to this many bytes each and together, for the whole process. Only the first
/// call counts.
///
/// libgit2 maps packs in windows of a gigabyte, and lets go of none before it holds eight: whoever
/// walks all of a history has all of its packs in memory. Call it before another thread opens a
/// repository: the options are read whenever a window is mapped.
pub fn bound_pack_windows(each: usize, together: usize) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: libgit2 reads these two numbers when it maps a window, and nothing
        // writes them but this call, which is made once.
        // A value that is not taken leaves the default, which is correct and larger.
        unsafe {
            let _ = git2::opts::set_mwindow_size(each);
            let _ = git2::opts::set_mwindow_mapped_limit(together);
        }
    });
}

/// Has objects, refs and packs written through to the disk, with the folders they are in, for the
/// whole process. Call it before a ref is read: the store of refs reads the option when it is
/// opened.
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

/// Has libgit2 open repositories with extensions that it does not know, but that this program does,
/// for the whole process. Call it before a repository is opened.
///
/// `refStorage`: libgit2 must not read or write a ref there, since it knows none but files.
/// `relativeWorktrees`: paths between a repository and its worktrees may be relative.
pub fn allow_extensions() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: libgit2 reads its list of extensions when it opens a repository, and nothing
        // writes it but this call, which is made once.
        // If the list is not taken, such repositories are refused when they are opened.
        unsafe {
            let _ = git2::opts::set_extensions(&["refstorage", "relativeworktrees"]);
        }
    });
}

/// Has libgit2 open repositories that belong to another user, for the whole process. Call it once
/// git has said that it trusts the repository.
pub fn trust_owners() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: libgit2 reads this flag when it opens a repository, and nothing writes it but this
        // call, which is made once.
        // If it is not taken, such repositories are refused when they are opened.
        unsafe {
            let _ = git2::opts::set_verify_owner_validation(false);
        }
    });
}
