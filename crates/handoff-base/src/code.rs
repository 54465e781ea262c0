//! The position of a code branch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The commit of a code branch that a contract is about: for most, its newest one when the contract
/// was sent; for a review, the one that was reviewed.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The commit.
    pub commit: String,
    /// That commit's tree, which survives a squash or a rebase; none if the sender's repository did
    /// not have the commit.
    pub tree: Option<String>,
}
