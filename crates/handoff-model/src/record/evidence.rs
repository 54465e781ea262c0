//! The stored form of evidence checks.

use handoff_base::words;
use handoff_macros::skip_serializing_none;
use handoff_protocol::{Check, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// The result of a check.
    pub enum Verdict {
        /// The repository matches the contract.
        Passed = "passed",
        /// The repository contradicts the contract.
        Contradicted = "contradicted",
        /// The claim could not be checked.
        Skipped = "skipped",
    }
}

/// A report that a check used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportFile {
    /// The file, as its sender named it.
    pub name: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// One check of a contract, as recorded.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// What was checked.
    pub check: Check,
    /// The policy on contradiction.
    pub policy: Policy,
    /// The result.
    pub result: Verdict,
    /// Why it did not pass.
    pub reason: Option<String>,
    /// The branch tip at which it was checked.
    pub tip: Option<String>,
    /// The tip of the base branch.
    pub base: Option<String>,
    /// The tip of the branch when the sender received the work.
    pub since: Option<String>,
    /// The reports that were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ReportFile>,
}

impl Evidence {
    /// A check that was skipped.
    pub fn skipped(check: Check, policy: Policy, reason: impl Into<String>) -> Self {
        Self {
            check,
            policy,
            result: Verdict::Skipped,
            reason: Some(reason.into()),
            tip: None,
            base: None,
            since: None,
            files: Vec::new(),
        }
    }
}
