//! Contradictions in accepted contracts.

use handoff_base::finding::{Finding, FindingCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A contradiction that a contract was accepted with, because the rule only warns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contradiction {
    /// The rule that it breaks.
    pub rule: String,
    /// The place in the contract, as a JSON Pointer.
    pub path: String,
    /// A message with both values and the source of the known one.
    pub message: String,
}

impl Contradiction {
    /// The warning about it.
    pub fn finding(&self) -> Finding {
        Finding::warning(FindingCode::ContractInconsistent, &self.path, &self.message)
    }
}
