//! What is recorded of the checks of a contract.

use handoff_protocol::{Check, Policy};
use serde::{Deserialize, Serialize};

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The repository is as the contract says.
    Passed,
    /// It is not.
    Contradicted,
    /// It could not be told.
    Skipped,
}

impl Verdict {
    /// The verdict as stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Contradicted => "contradicted",
            Self::Skipped => "skipped",
        }
    }
}

/// A report that a check was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportFile {
    /// The file, as its sender named it.
    pub name: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// One check of a contract, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// What was checked.
    pub check: Check,
    /// What becomes of a contradiction.
    pub policy: Policy,
    /// What was found.
    pub result: Verdict,
    /// Why it was not passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The branch's commit that it was judged at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// The base branch's commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The branch's commit when its sender got the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The reports that were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ReportFile>,
}

impl Evidence {
    /// A check that was not made.
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
