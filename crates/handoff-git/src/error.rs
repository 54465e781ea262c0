//! Errors of repository operations.

use std::io;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode};

use crate::files::Obstacle;
use crate::process::{Ended, OLD_GIT};

/// A failure in libgit2: I/O, damage, permissions.
#[derive(Debug, thiserror::Error)]
#[error("{}", .error.message())]
pub struct GitError {
    error: git2::Error,
    obstacle: Option<Obstacle>,
    reason: Reason,
}

/// What is known of a failure beyond libgit2's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Nothing.
    Unknown,
    /// An object is missing because this is a partial clone.
    LeftOut,
    /// Tables of refs are damaged.
    DamagedTables,
    /// The `git` command does not know tables of refs.
    OldGit,
}

// Not `#[from]`: as a source, the inner error would repeat the message, with error numbers.
impl From<git2::Error> for GitError {
    fn from(error: git2::Error) -> Self {
        let is_systems = error.class() == ErrorClass::Os;
        let obstacle = Obstacle::in_words(error.message()).filter(|_| is_systems);
        Self {
            error,
            obstacle,
            reason: Reason::Unknown,
        }
    }
}

impl GitError {
    /// Whether the repository is damaged: an object or a ref is missing or corrupt.
    pub fn is_damage(&self) -> bool {
        use ErrorClass as C;
        let class = self.error.class();
        match self.reason {
            Reason::LeftOut | Reason::OldGit => return false,
            Reason::DamagedTables => return true,
            Reason::Unknown => {}
        }
        self.is_not_found()
            || [C::Odb, C::Object, C::Tree, C::Zlib, C::Sha1, C::Indexer].contains(&class)
            || (class == C::Reference && self.error.message().contains("corrupted"))
    }

    /// What git or the system says; the reason may be a full disk or a missing permission.
    pub(super) fn of_system(text: &str) -> Self {
        git2::Error::new(ErrorCode::GenericError, ErrorClass::Os, text).into()
    }

    /// The failure of git, or of one that is too old for the repository.
    pub(super) fn of_git(ended: &Ended) -> Self {
        if ended.is_of_old_git() {
            return Self::old_git();
        }
        Self::of_system(&format!("git says: {}", ended.complaint()))
    }

    /// The failure to write a file.
    pub(super) fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::of_system(&format!("{} cannot be written: {error}", path.display()))
    }

    /// The failure to read an object that a partial clone left out.
    pub(super) fn left_out(error: git2::Error) -> Self {
        Self {
            reason: Reason::LeftOut,
            ..Self::from(error)
        }
    }

    /// The failure of git to read tables of refs.
    pub(super) fn damaged_tables(error: git2::Error) -> Self {
        Self {
            reason: Reason::DamagedTables,
            ..Self::from(error)
        }
    }

    /// The failure of a git that does not know tables of refs.
    pub(super) fn old_git() -> Self {
        let error = git2::Error::new(ErrorCode::GenericError, ErrorClass::Repository, OLD_GIT);
        Self {
            reason: Reason::OldGit,
            ..Self::from(error)
        }
    }

    /// Whether the `git` command is too old for the repository.
    pub fn is_about_old_git(&self) -> bool {
        self.reason == Reason::OldGit
    }

    /// Whether tables of refs can't be read.
    pub fn is_about_tables(&self) -> bool {
        self.reason == Reason::DamagedTables
    }

    /// Whether an object is missing because this is a partial clone.
    pub fn is_left_out(&self) -> bool {
        self.reason == Reason::LeftOut
    }

    /// What kept a file from being written, if the system did.
    pub fn obstacle(&self) -> Option<Obstacle> {
        self.obstacle
    }

    /// Whether the object or ref does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.error.code() == ErrorCode::NotFound
    }
}

/// Why a repository could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no repository in this or a parent folder.
    #[error("this is not a Git repository, nor is any folder above it")]
    NotFound,
    /// The repository belongs to another user.
    #[error("the repository belongs to another user")]
    Owner(#[source] GitError),
    /// It is bare, was found by searching, and the user wants such ones to be named.
    #[error("{} is a bare repository, and git's safe.bareRepository is `explicit`", .0.display())]
    Bare(PathBuf),
    /// libgit2 does not support the repository's format.
    #[error("unsupported repository format: {0}")]
    Unsupported(String),
    /// Any other failure.
    #[error("the repository cannot be opened")]
    Git(#[source] GitError),
}

/// Why a prepared commit was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The ref has moved since the commit was prepared.
    #[error("the ref moved")]
    Moved,
    /// Another process holds the ref's lock file.
    #[error("the ref is locked by {}", .0.display())]
    Locked(PathBuf),
    /// libgit2 failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
