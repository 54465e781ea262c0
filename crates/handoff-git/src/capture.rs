//! Paths of a working tree, and why what is at them can't be kept.

use std::io;

use super::error::GitError;

/// A path as git holds it: bytes from the root, with `/` between names.
pub type RawPath = Vec<u8>;

/// Why a working tree can't be kept.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is none.
    #[error("a bare repository has no working tree")]
    Bare,
    /// The index has a form that libgit2 does not read.
    #[error("the index cannot be read (a sparse or a split index has to be made a plain one)")]
    Index(#[source] GitError),
    /// A folder is another repository.
    #[error("{shown} is a repository of its own")]
    Nested {
        /// Its path, for display.
        shown: String,
    },
    /// A submodule is not as HEAD says.
    #[error("the submodule {shown} is not as HEAD has it")]
    Submodule {
        /// Its path, for display.
        shown: String,
    },
    /// Whoever asked does not want it.
    #[error("the work is not accepted")]
    NotAccepted,
    /// A path is something that can't be kept.
    #[error("{shown} is a device, a pipe or a socket")]
    Special {
        /// Its path, for display.
        shown: String,
    },
    /// A file can't be read.
    #[error("{shown} cannot be read")]
    Unreadable {
        /// Its path, for display.
        shown: String,
        /// Why.
        source: io::Error,
    },
    /// A file was changed whenever it was read.
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
        /// The cap.
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
        /// The cap.
        limit: u64,
    },
    /// There are too many files.
    #[error("{count} files are changed or new, and at most {limit} are kept; most are in {shown}")]
    TooMany {
        /// The folder that most of them are in, for display.
        shown: String,
        /// How many there are.
        count: usize,
        /// The cap.
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
