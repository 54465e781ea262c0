//! Paths of a working tree, and why their files can't be kept.

use std::io;

use crate::error::GitError;

/// A path as git holds it: bytes from the root, with `/` between names.
pub type RawPath = Vec<u8>;

/// Why a working tree can't be kept.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The repository is bare.
    #[error("a bare repository has no working tree")]
    Bare,
    /// libgit2 does not support the index's format.
    #[error("the index cannot be read")]
    Index(#[source] GitError),
    /// A folder is another repository.
    #[error("{shown} is a repository of its own")]
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
    /// The caller refused a file.
    #[error("the work is not accepted")]
    NotAccepted,
    /// A path is neither a file, a link nor a folder.
    #[error("{shown} is a device, a pipe or a socket")]
    Special {
        /// Its path, for display.
        shown: String,
    },
    /// A file's name is `.git` on some file system, so that it could not be given back.
    #[error("{shown} is taken for git's own folder on some systems")]
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
    /// A file changed each time it was read.
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

impl From<git2::Error> for CaptureError {
    fn from(error: git2::Error) -> Self {
        Self::Git(error.into())
    }
}
