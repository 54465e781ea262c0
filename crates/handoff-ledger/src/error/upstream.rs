//! The ledger's remote.

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::RemoteError;

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
        /// Boxed, as the folder is, so that no result is large for the sake of this error.
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
