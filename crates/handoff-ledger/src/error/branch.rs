//! Errors about the ledger's branch: it is missing, or can't be written.

use std::path::PathBuf;

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::text::word;
use handoff_base::{ObjectId, hint};

/// The branch cannot be used as a ledger.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// The repository has no ledger.
    #[error("the repository has no ledger: there is no branch {branch}")]
    NoLedger {
        branch: String,
        /// The commit at which this clone last saw it, if any.
        seen: Option<ObjectId>,
        /// The ledger's remote, if one is set.
        remote: Option<String>,
        /// Another remote, which may have a ledger.
        other: Option<String>,
    },
    /// The branch exists but is not a ledger.
    #[error("branch {0} is not a ledger: it has no ledger.json")]
    NotALedger(String),
    /// The branch name is invalid.
    #[error("{0} is not a valid branch name")]
    Name(String),
    /// Another branch's name leaves no place for the ledger's.
    #[error("branch {branch} can't be made beside branch {other}")]
    InTheWay { branch: String, other: String },
    /// A working tree has the ledger's branch checked out.
    #[error("branch {branch} is checked out at {}", path.display())]
    CheckedOut {
        branch: String,
        path: PathBuf,
        /// Whether it has no commit yet.
        is_unborn: bool,
    },
    /// The branch was set back to before a commit that this clone saw on it.
    #[error("branch {branch} was set back to commit {}: this clone saw it at {}", tip.short(), seen.short())]
    SetBack {
        branch: String,
        tip: ObjectId,
        seen: ObjectId,
    },
    /// The branch is a symbolic ref.
    #[error("branch {0} is a symbolic ref, which cannot be a ledger")]
    Symbolic(String),
}

impl Explained for BranchError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::NoLedger { branch, seen: Some(seen), .. } => ErrorCode::NoLedger.hint(hint!(
                "it existed, but is gone: `git branch {} {}` restores what this clone last saw",
                branch,
                seen
            )),
            Self::NoLedger { remote: Some(remote), .. } => ErrorCode::NoLedger.hint(hint!(
                "`git handoff fetch` gets the one on {}; if there is none yet, `git handoff init` starts one there and here",
                remote
            )),
            Self::NoLedger { other, .. } => {
                let start = hint!("start one with `git handoff init --protocol review`");
                ErrorCode::NoLedger.hint(match other {
                    Some(remote) => start.and(hint!(
                        ", or join a remote's: `git handoff init --remote {}`",
                        remote
                    )),
                    None => start,
                })
            }
            Self::NotALedger(_) => ErrorCode::NotALedger
                .hint("name the ledger's branch with --branch, or start one on another branch: `git handoff init --branch NAME`; if it was one, `git handoff doctor` names the commit that destroyed it"),
            Self::Name(_) => ErrorCode::Usage.into(),
            Self::InTheWay { other, .. } => ErrorCode::Usage.hint(hint!(
                "nothing was written; name another with --branch NAME, or rename that one: `git branch -m {} NEW`",
                other
            )),
            Self::CheckedOut { path, is_unborn: true, .. } => ErrorCode::CheckedOut.hint(hint!(
                "the next commit there would start it; give that working tree another branch: `git -C {} symbolic-ref HEAD refs/heads/main`",
                path.display()
            )),
            Self::CheckedOut { path, .. } => ErrorCode::CheckedOut.hint(hint!(
                "the next commit there would undo a step; free the branch: `git -C {} checkout --detach`",
                path.display()
            )),
            Self::SetBack { branch, tip, seen } => {
                let back = brought_back(branch, *tip, *seen);
                ErrorCode::LedgerDamaged.hint(format!("nothing was written; {back}"))
            }
            Self::Symbolic(_) => {
                ErrorCode::SymbolicBranch.hint("name the branch itself with --branch")
            }
        }
    }
}

/// How a branch that was set back gets its last commits again.
pub(crate) fn brought_back(branch: &str, tip: ObjectId, seen: ObjectId) -> String {
    // Unlike `git branch --force`, refused if the branch has moved since.
    let name = format!("refs/heads/{branch}");
    format!(
        "`git update-ref {} {seen} {tip}` brings its later steps back, for `git handoff sync` to send; where it was meant to be, `git handoff verify --accept-rewritten`",
        word(&name)
    )
}
