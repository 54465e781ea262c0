//! Errors about writing a step: locks, clocks, signatures and saved work.

use std::path::PathBuf;

use handoff_base::Moment;
use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_base::hint;
use handoff_base::text::word;
use handoff_git::{CaptureError, SignError};

use super::DEEPEN;

/// The step was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// New objects are in quarantine: a push is being received.
    #[error(
        "objects are in quarantine here (a push is being received, or GIT_OBJECT_DIRECTORY is set), and the ledger's could be lost"
    )]
    Quarantine,
    /// Another process holds the lock of the branch, or left it behind.
    #[error("the branch stayed locked by {}", .0.display())]
    Locked(PathBuf),
    /// The branch moved during every attempt; nothing was written.
    #[error("the branch moved at each of {0} attempts")]
    Contended(u32),
    /// The step is dated before the last step of its issue.
    #[error("the step is dated {at}, before the last step of its issue at {previous}")]
    Backdated { at: Moment, previous: Moment },
    /// The step is dated more than a day after the time of its recording, or that time is more than
    /// a day ahead of the system's clock.
    #[error("the step is dated {at}, more than a day after {known}")]
    Postdated { at: Moment, known: Moment },
    /// The unfinished work can't be saved.
    #[error("cannot save the worktree")]
    Snapshot(#[source] Box<CaptureError>),
    /// Damage can't be repaired.
    #[error("the repair cannot go on")]
    Repair(#[source] std::io::Error),
    /// Later steps need a damaged object.
    #[error(
        "the last {0} steps need a damaged object that neither the remote nor another copy asked has"
    )]
    NoCopy(usize),
    /// Only a commit that is not a step can be quarantined.
    #[error("commit {0} is a sound step of the ledger")]
    NoStray(String),
    /// The commit is not in the ledger's history, or is its first.
    #[error("commit {0} is not on the ledger's branch after its first commit")]
    NotOnBranch(String),
    /// What came before the commit is not in this clone.
    #[error("what commit {0} stands on is not in this clone, whose history is cut off")]
    CutOff(String),
    /// Later steps depend on the commit.
    #[error("{} depend on commit {commit} and would be undone, too: {}", later.len(), later.join(", "))]
    StoodOn { commit: String, later: Vec<String> },
    /// A later step archived an issue that the commit changed.
    #[error("step {step} archived an issue that commit {commit} changed: it stays as it is")]
    Archived { commit: String, step: String },
    /// The commit could not be signed. Nothing was written.
    #[error("the commit could not be signed")]
    Signing(#[source] SignError),
    /// The commit has no signature that the protocol accepts. Nothing was
    /// written.
    #[error("the signature was refused")]
    Signature(Vec<Finding>),
}

impl Explained for WriteError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Quarantine => ErrorCode::Quarantine.into(),
            Self::Locked(path) => ErrorCode::Locked.hint(hint!(
                "nothing was written; wait for the git process that holds it, then run the command again. If no git runs on any machine that shares the disk (`pgrep -a git`), and it is not new (`ls -l {}`), it is stale: `rm {}`",
                path.display(),
                word(&path.to_string_lossy())
            )),
            Self::Contended(_) => {
                ErrorCode::Contended.hint("nothing was written; run the same command again")
            }
            Self::Backdated { .. } => ErrorCode::Backdated.hint(
                "nothing was written; unset GIT_AUTHOR_DATE, or set it to a later time; `date` shows this machine's clock",
            ),
            Self::Postdated { .. } => ErrorCode::Postdated.hint(
                "nothing was written; unset GIT_AUTHOR_DATE and GIT_COMMITTER_DATE; `date` shows this machine's clock",
            ),
            Self::Snapshot(error) => error.explanation(),
            Self::Repair(_) => ErrorCode::Git.hint(
                "check permissions, and that no git is running; then run the command again",
            ),
            Self::NoCopy(_) => ErrorCode::LedgerDamaged.into(),
            Self::NoStray(_) => ErrorCode::IllegalTransition.hint(
                "nothing was written; a legal step that is wrong is corrected by a new one: `git handoff annotate`, or `git handoff cancel`",
            ),
            Self::NotOnBranch(_) => ErrorCode::NoCommit
                .hint("nothing was written; `git handoff verify` names what is not a step"),
            Self::Archived { .. } => ErrorCode::IllegalTransition.hint(
                "nothing was written; `git handoff verify` goes on naming the commit; other issues are not concerned",
            ),
            Self::CutOff(_) => ErrorCode::Shallow.hint(DEEPEN),
            Self::StoodOn { .. } => ErrorCode::IllegalTransition.hint(
                "nothing was written; look at each with `git show --stat COMMIT`; with --with-later they are undone, too, and have to be made again",
            ),
            Self::Signing(_) => ErrorCode::SigningFailed.hint(
                "nothing was written; `git commit-tree -S \"$(git mktree </dev/null)\" -m test </dev/null` shows whether git can sign here, without moving a branch. Unlock a key with a passphrase first: `ssh-add`, or gpg's agent",
            ),
            Self::Signature(findings) => ErrorCode::SignatureRefused
                .hint("nothing was written; sign with a key listed for the step's author: `git handoff protocol show` lists the keys by owner")
                .findings(findings),
        }
    }
}
