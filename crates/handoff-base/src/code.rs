//! The position of a code branch.

use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The commit of a code branch that a contract is about: for a review the reviewed one, for others
/// the branch's newest when the contract was sent.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The commit.
    pub commit: String,
    /// That commit's tree, which is the same after a squash or rebase; `None` if the sender's
    /// repository did not have the commit.
    pub tree: Option<String>,
}
