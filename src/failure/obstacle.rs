//! What keeps a file from being written.

/// Why a file can't be written, according to the system's message, and what is
/// safe to do.
pub(crate) fn obstacle(said: &str) -> Option<(&'static str, &'static str)> {
    const FULL: (&str, &str) = ("the disk is full", "free some space on it");
    [
        ("No space left on device", FULL),
        ("Disk quota exceeded", FULL),
        (
            "File too large",
            (
                "files this large are not allowed here",
                "see `ulimit -f` and the file system's limits",
            ),
        ),
        (
            "Read-only file system",
            (
                "the file system is mounted read-only",
                "reading works; to write, use a clone on another disk, or remount it read-write",
            ),
        ),
        (
            "Permission denied",
            (
                "this user may not write there",
                "reading works; check `ls -ld` on it, and run the command as the repository's owner or in your own clone",
            ),
        ),
    ]
    .into_iter()
    .find_map(|(text, found)| said.contains(text).then_some(found))
}
