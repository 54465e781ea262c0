//! Errors of repository operations.

use std::path::PathBuf;

use git2::{ErrorClass, ErrorCode};

/// A failure that libgit2 reports: input and output, damage, permissions.
#[derive(Debug, thiserror::Error)]
#[error("{}", .error.message())]
pub struct GitError {
    error: git2::Error,
    /// Whether the missing object was left out of this clone by a filter.
    left_out: bool,
}

// Not `#[from]`: as a source, the inner error would repeat the message, with numbers.
impl From<git2::Error> for GitError {
    fn from(error: git2::Error) -> Self {
        Self {
            error,
            left_out: false,
        }
    }
}

impl GitError {
    /// Whether the repository itself is damaged: an object or a ref is missing or
    /// corrupted.
    pub fn is_damage(&self) -> bool {
        use ErrorClass as C;
        let class = self.error.class();
        if self.left_out {
            return false;
        }
        self.is_not_found()
            || [C::Odb, C::Object, C::Tree, C::Zlib, C::Sha1, C::Indexer].contains(&class)
            || (class == C::Reference && self.error.message().contains("corrupted"))
    }

    /// The failure to read an object that a filter left out of this clone.
    pub(super) fn left_out(error: git2::Error) -> Self {
        Self {
            error,
            left_out: true,
        }
    }

    /// Whether an object is missing because a filter left it out when this
    /// repository was cloned.
    pub fn is_left_out(&self) -> bool {
        self.left_out
    }

    /// Whether the object or ref does not exist.
    pub fn is_not_found(&self) -> bool {
        self.error.code() == ErrorCode::NotFound
    }
}

/// Why a repository could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no repository here or above.
    #[error("this is not a Git repository, nor is any folder above it")]
    NotFound,
    /// The repository belongs to another user.
    #[error("the repository belongs to another user")]
    Owner(#[source] GitError),
    /// libgit2 does not support the repository's format.
    #[error("unsupported repository format: {0}")]
    Unsupported(String),
    /// Anything else that libgit2 reports.
    #[error("the repository cannot be opened")]
    Git(#[source] GitError),
}

/// Why a prepared commit was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The ref is no longer where the commit expects it.
    #[error("the ref moved")]
    Moved,
    /// Another process holds the ref's lock file.
    #[error("the ref is locked by {}", .0.display())]
    Locked(PathBuf),
    /// libgit2 failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
