//! Errors of repository operations.

use std::io;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode};

use handoff_base::codes::ErrorCode as Code;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint;

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

impl Explained for GitError {
    fn explanation(&self) -> Explanation {
        match self.reason {
            Reason::LeftOut => return Code::LeftOut.hint(LEFT_OUT),
            Reason::OldGit => return Code::Git.hint(NEWER_GIT),
            Reason::DamagedTables => return Code::LedgerDamaged.hint(TABLES),
            Reason::Unknown if self.is_damage() => return Code::LedgerDamaged.hint(REPAIR),
            Reason::Unknown => {}
        }
        let unknown = ("git failed", "check permissions and free space");
        let (problem, fix) = Obstacle::explained(self.obstacle, unknown);
        let hint = hint!("nothing was acknowledged; ").and(fix);
        let explanation = Code::Git.hint(hint.and(", then run the command again"));
        explanation.because(problem)
    }
}

/// The hint for damage.
pub const REPAIR: &str = "`git handoff fetch --repair` brings what is missing or damaged from the ledger's remote, or with --from PATH from another clone, a backup or a bundle";

/// The hint for damaged reftables.
const TABLES: &str = "nothing was written; git keeps its refs there: see what `git for-each-ref` says, and restore the folder from a backup, or clone the repository again";

/// The hint for a git without reftable support.
pub const NEWER_GIT: &str = "nothing was written; put git 2.45 or later on the PATH: the repository keeps its refs in tables";

/// The hint for objects that a partial clone lacks.
pub const LEFT_OUT: &str = "this clone was made without some objects: a command gets those that it reads once the remote can be reached, and `git handoff fetch --full` gets all of them; if the ledger has no remote, set one: `git config handoff.remote NAME`";

/// Why libgit2 failed, if more is known than its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Nothing.
    Unknown,
    /// An object is missing because this is a partial clone.
    LeftOut,
    /// A reftable is damaged.
    DamagedTables,
    /// The `git` command does not support reftables.
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

    /// An error with a message of git's or the system's, which may name a full disk or a missing
    /// permission.
    pub(super) fn of_system(text: &str) -> Self {
        git2::Error::new(ErrorCode::GenericError, ErrorClass::Os, text).into()
    }

    /// The error for a failed git command, or for one too old for the repository.
    pub(super) fn of_git(ended: &Ended) -> Self {
        if ended.is_of_old_git() {
            return Self::old_git();
        }
        Self::of_system(&format!("git says: {}", ended.complaint()))
    }

    /// The error for a file that can't be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::of_system(&format!("{} cannot be written: {error}", path.display()))
    }

    /// The error for an object that a partial clone left out.
    pub(super) fn left_out(error: git2::Error) -> Self {
        Self {
            reason: Reason::LeftOut,
            ..Self::from(error)
        }
    }

    /// The error for reftables that git can't read.
    pub(super) fn damaged_tables(error: git2::Error) -> Self {
        Self {
            reason: Reason::DamagedTables,
            ..Self::from(error)
        }
    }

    /// The error for a git without reftable support.
    pub(super) fn old_git() -> Self {
        let error = git2::Error::new(ErrorCode::GenericError, ErrorClass::Repository, OLD_GIT);
        Self {
            reason: Reason::OldGit,
            ..Self::from(error)
        }
    }

    /// Whether the `git` command is too old for the repository.
    pub(crate) fn is_about_old_git(&self) -> bool {
        self.reason == Reason::OldGit
    }

    /// Whether an object is missing because this is a partial clone.
    pub fn is_left_out(&self) -> bool {
        self.reason == Reason::LeftOut
    }

    /// The system's obstacle to writing a file, if that was the reason.
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
    /// There is no repository in this folder or above it.
    #[error("this is not a Git repository, nor is any folder above it")]
    NotFound,
    /// The repository belongs to another user.
    #[error("the repository belongs to another user")]
    Owner(#[source] GitError),
    /// It is bare and was found by discovery, which `safe.bareRepository` forbids.
    #[error("{} is a bare repository, and git's safe.bareRepository is `explicit`", .0.display())]
    Bare(PathBuf),
    /// libgit2 does not support the repository's format.
    #[error("unsupported repository format: {0}")]
    Unsupported(String),
    /// Any other failure.
    #[error("the repository cannot be opened")]
    Git(#[source] GitError),
}

impl Explained for OpenError {
    fn explanation(&self) -> Explanation {
        Code::Repository.hint(match self {
            Self::NotFound => hint!("change to a repository, or name one with -C DIR"),
            Self::Owner(_) => hint!("if you trust it, add its path to git's safe.directory"),
            Self::Bare(path) => hint!(
                "if you trust it, name it: `git --git-dir={} handoff status`",
                path.display()
            ),
            Self::Unsupported(_) => hint!(
                "a ledger needs objects with one name each, by SHA-1 or SHA-256, and refs in files or in tables; it can live in a separate clone"
            ),
            Self::Git(_) => hint!("see what `git status` says"),
        })
    }
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
