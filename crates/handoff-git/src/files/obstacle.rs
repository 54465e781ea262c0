//! What prevents a file from being written.

use std::io::{Error, ErrorKind};

/// Why the system refuses to write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The disk or the user's quota is full.
    Full,
    /// The file would be larger than the user or the file system allows.
    TooLarge,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The user has no permission.
    Denied,
}

impl Obstacle {
    /// The obstacle behind an I/O error, if it is one of these.
    pub fn of(error: &Error) -> Option<Self> {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(Self::Full),
            ErrorKind::FileTooLarge => Some(Self::TooLarge),
            ErrorKind::ReadOnlyFilesystem => Some(Self::ReadOnly),
            ErrorKind::PermissionDenied => Some(Self::Denied),
            _ => None,
        }
    }

    /// The problem and what to do; `unknown` if the obstacle is not known.
    pub fn explained(
        known: Option<Self>,
        unknown: (&'static str, &'static str),
    ) -> (&'static str, &'static str) {
        match known {
            Some(Self::Full) => ("the disk is full", "free some space on it"),
            Some(Self::TooLarge) => (
                "files this large are not allowed here",
                "see `ulimit -f` and the file system's limits",
            ),
            Some(Self::ReadOnly) => (
                "the file system is mounted read-only",
                "reading works; to write, use a clone on another disk, or remount it read-write",
            ),
            Some(Self::Denied) => (
                "this user may not write there",
                "reading works; check `ls -ld` on it, and run the command as the repository's owner or in your own clone",
            ),
            None => unknown,
        }
    }

    /// The obstacle in a message of libgit2 or git, which contain only the system's text.
    pub(crate) fn in_words(said: &str) -> Option<Self> {
        let known = [
            ("No space left on device", Self::Full),
            ("Disk quota exceeded", Self::Full),
            ("File too large", Self::TooLarge),
            ("Read-only file system", Self::ReadOnly),
            ("Permission denied", Self::Denied),
        ];
        let found = known.into_iter().find(|(words, _)| said.contains(words));
        found.map(|(_, obstacle)| obstacle)
    }
}
