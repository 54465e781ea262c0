//! What an issue must show before something like a merge is allowed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A requirement that an issue's contracts can meet. The newest contract of all the types named
/// here decides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Its meaning, in a few words.
    pub title: String,
    /// The contract types that meet it.
    pub shown_by: Vec<String>,
    /// The status words of which such a contract must have one; if empty, any that is not a
    /// failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// The contract types after which it must be met again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone_by: Vec<String>,
}

/// The requirement that every protocol has: the issue is completed.
pub const COMPLETED: &str = "completed";
