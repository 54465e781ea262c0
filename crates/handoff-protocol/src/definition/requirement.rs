//! What an issue must show before something may follow from it, such as a merge.

use serde::{Deserialize, Serialize};

/// Something that an issue's contracts can show. The newest contract of all the
/// types that are named here decides.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// What it says, in a few words.
    pub title: String,
    /// The contract types that show it.
    pub shown_by: Vec<String>,
    /// The status words of which such a contract must have one; any that does not
    /// stand for a failure, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// The contract types after which it has to be shown again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone_by: Vec<String>,
}

/// The requirement that every protocol has: the issue is completed.
pub const COMPLETED: &str = "completed";
