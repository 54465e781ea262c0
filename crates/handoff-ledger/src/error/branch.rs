//! The ledger's branch: whether there is one, and whether it may be written.

use std::path::PathBuf;

use handoff_base::ObjectId;

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
    },
    /// The branch exists but is not a ledger.
    #[error("branch {0} is not a ledger: it has no ledger.json")]
    NotALedger(String),
    /// The branch name is invalid.
    #[error("{0} is not a valid branch name")]
    Name(String),
    /// A working tree has the ledger's branch checked out.
    #[error("branch {branch} is checked out at {}", path.display())]
    CheckedOut { branch: String, path: PathBuf },
    /// The branch is a symbolic ref.
    #[error("branch {0} is a symbolic ref, which cannot be a ledger")]
    Symbolic(String),
}
