//! Outcomes of fetching from and pushing to a remote.

use handoff_base::codes::{ErrorCode, FindingCode};
use handoff_base::explained::Explanation;
use handoff_base::finding::Finding;
use handoff_base::hint;

use crate::error::NEWER_GIT;
use crate::process::OLD_GIT;

/// Why a remote could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The `git` command could not be started.
    #[error("git cannot be started")]
    NoGit(#[source] std::io::Error),
    /// It is unreachable, or failed temporarily.
    #[error("git says: {message}")]
    Failed {
        /// git's message, in one line.
        message: String,
    },
    /// The user may not read it, or not write to it.
    #[error("the remote denied permission: {message}")]
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
    /// The branch no longer descends from what was last fetched.
    #[error("the remote's branch was rewritten")]
    Rewritten {
        /// The branch.
        branch: String,
    },
    /// It is a shallow clone, from which this repository can't continue.
    #[error("the remote is a shallow clone: it has only the end of the branch's history")]
    Shallow,
    /// It uses another object format.
    #[error("the remote uses another object format: SHA-1 and SHA-256 can't be mixed")]
    Format,
    /// The `git` command does not support the ref storage of one of the repositories.
    #[error("{}", OLD_GIT)]
    OldGit,
    /// Its address was changed while a worker ran.
    #[error("{message}")]
    Redirected {
        /// What was changed, in one line.
        message: String,
    },
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

impl RemoteError {
    /// The explanation for users, with the remote's name.
    pub fn explanation(&self, remote: &str) -> Explanation {
        match self {
            Self::NoGit(_) => {
                ErrorCode::NoGit.hint("remotes need the `git` command: put it on the PATH")
            }
            Self::Denied { .. } => ErrorCode::RemoteDenied.hint(hint!(
                "nothing was written; make sure this user may push to {}. A write with --offline is recorded in this clone only",
                remote
            )),
            Self::Protected { .. } => ErrorCode::RemoteProtected.hint(
                "nothing was written; ask the remote's administrator to allow this user to push to the ledger's branch",
            ),
            Self::Refused { message } => {
                let line = |line: &String| Finding::error(FindingCode::RemoteHook, "", line);
                ErrorCode::RemoteRefused
                    .hint("nothing was written; fix what the hook reports, then run the command again. If it refused a step made offline, `git handoff sync --set-aside` sets that step aside and continues with the rest")
                    .findings(&message.iter().map(line).collect::<Vec<_>>())
            }
            Self::Rewritten { branch } => ErrorCode::RemoteRewritten.hint(hint!(
                "nothing was written here or there; find out who rewrote it. If it was only reset to an older commit, `git push {} {}` restores this clone's copy; `git handoff help remotes.md` covers other cases",
                remote,
                branch
            )),
            Self::Shallow => ErrorCode::RemoteShallow.hint(
                "nothing was written; complete the remote where it is, with `git fetch --unshallow`, or use the repository that it was cloned from",
            ),
            Self::Format => ErrorCode::RemoteFormat.hint(
                "nothing was written; use a remote of this repository's format (`git rev-parse --show-object-format`), or move the issues: `git handoff export` here, `git handoff import` in a clone of the remote",
            ),
            Self::OldGit => ErrorCode::Git.hint(NEWER_GIT),
            Self::Redirected { .. } => ErrorCode::RemoteRedirected
                .hint("nothing was written; set it back, or start the worker again if it is right"),
            Self::Failed { .. } | Self::TimedOut | Self::Interrupted | Self::Answer => {
                ErrorCode::RemoteUnreachable.hint("nothing was written; try again later")
            }
        }
    }
}

/// The result of a push that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The branch moved to the commit.
    Done,
    /// The branch already had the commit.
    Already,
    /// Somebody else moved the branch first.
    Behind,
}
