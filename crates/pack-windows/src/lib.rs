//! Bounds how much of a repository's packs libgit2 maps into memory at a time.
//!
//! libgit2 maps packs in windows of a gigabyte, and lets go of none before it holds
//! eight: whoever walks all of a history has all of its packs in memory. The options
//! that bound this are unsafe to call, because they are globals that libgit2 doesn't
//! lock. That is why they stand alone here, in a crate of their own: the rest of the
//! program forbids unsafe code.

use std::sync::Once;

/// Bounds the windows to this many bytes each and together, for the whole process.
/// Only the first call counts.
///
/// Call it before another thread opens a repository, as the program does: the
/// options are read whenever a window is mapped.
pub fn bound(each: usize, together: usize) {
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
