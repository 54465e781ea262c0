//! The position of a code branch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The position of a code branch when a contract was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Its commit.
    pub commit: String,
    /// That commit's tree, which survives a squash or a rebase.
    pub tree: String,
}
