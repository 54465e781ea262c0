//! Paths of a working tree, and why its files can't be captured.

use std::io;

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint;

use crate::error::GitError;

/// A path in git's form: bytes from the root, separated by `/`.
pub type RawPath = Vec<u8>;

/// Why a working tree can't be captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The repository is bare.
    #[error("a bare repository has no working tree")]
    Bare,
    /// libgit2 does not support the index's format.
    #[error("the index cannot be read")]
    Index(#[source] GitError),
    /// A folder is a nested repository.
    #[error("{shown} is a nested repository")]
    Nested {
        /// Its path, for display.
        shown: String,
    },
    /// A submodule differs from HEAD.
    #[error("the submodule {shown} differs from HEAD")]
    Submodule {
        /// Its path, for display.
        shown: String,
    },
    /// The caller's `accept` refused a file.
    #[error("the work is not accepted")]
    NotAccepted,
    /// A path is neither a file, a link nor a folder.
    #[error("{shown} is a device, a pipe or a socket")]
    Special {
        /// Its path, for display.
        shown: String,
    },
    /// A file's name means `.git` on some file system, so it could not be restored there.
    #[error("some systems treat {shown} as .git")]
    GitsOwn {
        /// Its path, for display.
        shown: String,
    },
    /// A file can't be read.
    #[error("{shown} cannot be read")]
    Unreadable {
        /// Its path, for display.
        shown: String,
        /// The cause.
        source: io::Error,
    },
    /// A file changed on every attempt to read it.
    #[error("{shown} changes while it is read")]
    Changing {
        /// Its path, for display.
        shown: String,
    },
    /// A file is too large.
    #[error("{shown} has {bytes} bytes, and at most {limit} are kept of a file")]
    TooLarge {
        /// Its path, for display.
        shown: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// All files together are too large.
    #[error(
        "the files have more than {limit} bytes together; the largest is {shown}, with {bytes}"
    )]
    TooMuch {
        /// The largest file, for display.
        shown: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// There are too many files.
    #[error("{count} files are changed or new, and at most {limit} are kept; most are in {shown}")]
    TooMany {
        /// The folder that most of them are in, for display.
        shown: String,
        /// How many there are.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// libgit2 failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Explained for CaptureError {
    fn explanation(&self) -> Explanation {
        let fix = match self {
            Self::Bare => "run it in the worktree that holds the work",
            Self::Index(_) => "see what `git status` says of the index",
            Self::Nested { .. } => "name it in .git/info/exclude if it is not part of the work",
            Self::Submodule { .. } => "commit what is in it, and the submodule's new commit",
            Self::GitsOwn { .. } => "rename it",
            Self::Special { .. } | Self::Unreadable { .. } => {
                "name it in .git/info/exclude, or move it away"
            }
            Self::Changing { .. } => "stop what writes to it, then run the command again",
            Self::TooLarge { .. } | Self::TooMuch { .. } | Self::TooMany { .. } => {
                "name in .git/info/exclude what is not part of the work"
            }
            Self::NotAccepted | Self::Git(_) => "see what `git status` says",
        };
        ErrorCode::SnapshotRefused.hint(
            hint!("nothing was written; ")
                .and(fix)
                .and(", or leave out --snapshot and --attach the files that matter"),
        )
    }
}

impl From<git2::Error> for CaptureError {
    fn from(error: git2::Error) -> Self {
        Self::Git(error.into())
    }
}
