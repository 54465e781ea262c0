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

/// What to do about damage.
pub const REPAIR: &str = "`git handoff fetch --repair` brings what is missing or damaged from the ledger's remote, or with --from PATH from another clone, a backup or a bundle";

/// What to do about tables of refs that are damaged.
const TABLES: &str = "nothing was written; git keeps its refs there: see what `git for-each-ref` says, and restore the folder from a backup, or clone the repository again";

/// What to do about a git that does not know tables of refs.
pub const NEWER_GIT: &str = "nothing was written; put git 2.45 or later on the PATH: the repository keeps its refs in tables";

/// How to get the objects that a partial clone lacks.
pub const LEFT_OUT: &str = "this clone was made without some objects: a command gets those that it reads once the remote can be reached, and `git handoff fetch --full` gets all of them; if the ledger has no remote, set one: `git config handoff.remote NAME`";

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
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
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
    pub(crate) fn is_about_old_git(&self) -> bool {
        self.reason == Reason::OldGit
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
