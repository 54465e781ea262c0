//! Outcomes of fetching from and pushing to a remote.

use crate::process::OLD_GIT;

/// Why a remote could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The `git` command could not be started.
    #[error("git cannot be started")]
    NoGit(#[source] std::io::Error),
    /// It can't be reached, or failed temporarily.
    #[error("git says: {message}")]
    Failed {
        /// git's message, in one line.
        message: String,
    },
    /// The user may not access it, or not write.
    #[error("the remote gives no permission: {message}")]
    Denied {
        /// git's message, in one line.
        message: String,
    },
    /// Its rules protect the branch.
    #[error("the remote protects the branch: {message}")]
    Protected {
        /// The remote's message, in one line.
        message: String,
    },
    /// A hook of the remote refused the push.
    #[error("a hook of the remote refused it")]
    Refused {
        /// The hook's output, line by line.
        message: Vec<String>,
    },
    /// The branch is no longer a descendant of what was last fetched.
    #[error("the remote's branch was rewritten")]
    Rewritten,
    /// It is a shallow clone, which this repository can't continue from.
    #[error("the remote is a shallow clone: it has only the end of the branch's history")]
    Shallow,
    /// It names its objects by another format than this repository.
    #[error(
        "the remote names its objects by another format: one of the two has SHA-1, the other SHA-256"
    )]
    Format,
    /// git does not know how one of the two repositories keeps its refs.
    #[error("{}", OLD_GIT)]
    OldGit,
    /// It took too long and was killed.
    #[error("git did not answer in time")]
    TimedOut,
    /// The user interrupted.
    #[error("git was interrupted")]
    Interrupted,
    /// git's output could not be parsed.
    #[error("git's answer is not the id of a commit")]
    Answer,
}

/// The outcome of a push that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The branch moved to the commit.
    Done,
    /// The branch already had the commit.
    Already,
    /// Somebody else moved the branch first.
    Behind,
}
