//! Errors about the ledger's remote.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::ids::IssueKey;
use handoff_base::{ObjectId, hint};
use handoff_git::{RemoteError, tells_of_damage};

/// The remote's ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The remote refused. Nothing was written.
    #[error("{remote} refused")]
    Refused { remote: String, source: RemoteError },
    /// The remote can't be reached, and the operation needs it.
    #[error("cannot get the ledger from {remote}: {trouble}")]
    Unreachable { remote: String, trouble: String },
    /// The remote no longer has the ledger's branch.
    #[error("{remote} no longer has the ledger's branch {branch}")]
    Gone { remote: String, branch: String },
    /// The remote's ledger and this one have no common commit.
    #[error("{remote} has a different ledger on branch {branch}: the two have no commit in common")]
    Unrelated { remote: String, branch: String },
    /// This clone does not have the folder of an archived issue, and can't get it.
    #[error("issue {issue} is archived, and its folder in commit {} is not in this clone: {trouble}", commit.short())]
    NotHere {
        issue: IssueKey,
        /// Boxed, like the tree, to keep results small.
        commit: Box<ObjectId>,
        /// The folder.
        tree: Box<ObjectId>,
        /// The remote that may have it.
        remote: Option<String>,
        trouble: String,
    },
    /// The ledger has no remote to sync with.
    #[error("the ledger has no remote")]
    NoRemote,
}

impl UpstreamError {
    /// An error of this remote.
    pub(crate) fn unreachable(remote: String, error: &RemoteError) -> Self {
        let trouble = error.to_string();
        Self::Unreachable { remote, trouble }
    }
}

impl Explained for UpstreamError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Refused { remote, source } => source.explanation(remote),
            Self::Unreachable { trouble, .. } if tells_of_damage(trouble) => ErrorCode::RemoteUnreachable.hint(
                "nothing was written; `git handoff fetch --repair` repairs this clone's copy, then run the command again",
            ),
            Self::Unreachable { remote, .. } => ErrorCode::RemoteUnreachable.hint(hint!(
                "nothing was written; `git ls-remote {}` shows whether git can reach it; try again later",
                remote
            )),
            Self::Gone { remote, branch } => ErrorCode::RemoteGone.hint(hint!(
                "find out who removed it; `git push {} {}` restores this clone's copy",
                remote,
                branch
            )),
            Self::Unrelated { .. } => ErrorCode::Unrelated.hint(
                "nothing was written; use another branch with --branch, or move the issues: `git handoff export` here, `git handoff import` in a clone of the other ledger",
            ),
            Self::NotHere { remote: Some(remote), tree, .. } => ErrorCode::LeftOut.hint(hint!(
                "run the command again once {} can be reached, or get the folder with `git fetch {} {}`",
                remote,
                remote,
                tree
            )),
            Self::NotHere { remote: None, .. } => ErrorCode::LeftOut.hint(
                "set the ledger's remote, which has it: `git config handoff.remote NAME`; `git remote -v` lists the remotes",
            ),
            Self::NoRemote => ErrorCode::NoRemote.hint(
                "set one of those that `git remote -v` lists, or that `git remote add NAME URL` adds: `git handoff init --remote NAME`",
            ),
        }
    }
}
