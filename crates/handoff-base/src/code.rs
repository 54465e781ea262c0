//! Where a code branch is.

use serde::{Deserialize, Serialize};

/// Where a code branch stood when a contract was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Its commit.
    pub commit: String,
    /// That commit's tree, which survives a squash or a rebase.
    pub tree: String,
}
