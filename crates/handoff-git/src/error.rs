//! What can go wrong with a repository.

use std::path::PathBuf;

use git2::{ErrorClass, ErrorCode};

/// A failure that libgit2 reports: input and output, damage, permissions.
#[derive(Debug, thiserror::Error)]
#[error("{}", .error.message())]
pub struct GitError {
    error: git2::Error,
    /// Whether it is about an object that this clone does without.
    left_out: bool,
}

// Not `#[from]`: the error within says the same again, with numbers.
impl From<git2::Error> for GitError {
    fn from(error: git2::Error) -> Self {
        Self {
            error,
            left_out: false,
        }
    }
}

impl GitError {
    /// Says whether the repository itself is damaged: an object or a ref is
    /// missing or is not what it should be.
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

    /// The failure to read an object that this clone was left without.
    pub(super) fn left_out(error: git2::Error) -> Self {
        Self {
            error,
            left_out: true,
        }
    }

    /// Says whether an object is not here because a filter left it out when this
    /// repository was cloned.
    pub fn is_left_out(&self) -> bool {
        self.left_out
    }

    /// Says whether the object or ref was not there.
    pub fn is_not_found(&self) -> bool {
        self.error.code() == ErrorCode::NotFound
    }
}

/// Why a repository could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no repository here or above.
    #[error("this is not a Git repository, and neither is any folder above it")]
    NotFound,
    /// The repository belongs to another user.
    #[error("the repository belongs to another user")]
    Owner(#[source] GitError),
    /// The repository has a format that libgit2 does not read.
    #[error("the repository has a format that is not supported yet: {0}")]
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
