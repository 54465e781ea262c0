//! What commit messages say of a protocol's issues, in the protocol's own words.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::traces::TraceValue;

/// What commit messages say in addition to what every step has.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrailRules {
    /// The fact that names the pull request: the trailer `Pull-Request`.
    pub pull_request: Option<String>,
    /// The counts of a review's findings, by name: the trailer `Findings`. Each is the place of a
    /// number, or `{"count": POINTER}`; a contract has those that it has the places of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub findings: BTreeMap<String, TraceValue>,
}

impl TrailRules {
    /// The counts that a contract has: `critical=1, important=2`.
    pub fn counts(&self, contract: &Value) -> Option<String> {
        let read = |(name, place): (&String, &TraceValue)| {
            let count = place.read(contract)?.as_u64()?;
            Some(format!("{name}={count}"))
        };
        let counts: Vec<String> = self.findings.iter().filter_map(read).collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }

    /// Every JSON Pointer, with its place in the definition.
    pub fn pointers(&self) -> Vec<(String, &str)> {
        let counts = self.findings.iter();
        counts
            .map(|(name, place)| (format!("/trail/findings/{name}"), place.pointer()))
            .collect()
    }
}
