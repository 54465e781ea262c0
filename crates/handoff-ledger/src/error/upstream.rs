//! The ledger's remote.

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
    /// The ledger has no remote to sync with.
    #[error("the ledger has no remote")]
    NoRemote,
}
