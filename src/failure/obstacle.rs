//! What keeps a file from being written, and what is safe to do about it.

use handoff_git::Obstacle;

use super::Hint;

/// What is the matter, and what to do.
pub(crate) fn explained(obstacle: Obstacle) -> (&'static str, Hint) {
    match obstacle {
        Obstacle::Full => ("the disk is full", Hint::advice("free some space on it")),
        Obstacle::TooLarge => (
            "files this large are not allowed here",
            Hint::advice("see `ulimit -f` and the file system's limits"),
        ),
        Obstacle::ReadOnly => (
            "the file system is mounted read-only",
            Hint::advice(
                "reading works; to write, use a clone on another disk, or remount it read-write",
            ),
        ),
        Obstacle::Denied => (
            "this user may not write there",
            "reading works; check `ls -ld` on it, and run the command as the repository's owner or in your own clone".into(),
        ),
    }
}
