//! What a protocol's traces and commit messages include from its contracts, in its own words.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::contract_type::Words;

/// What traces and commit messages include from contracts, in addition to what every handoff has.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// Attributes of the handoff, or of the answered request: pointers, or `{"count": POINTER}`.
    #[serde(default)]
    pub attributes: BTreeMap<String, TraceValue>,
    /// Contracts that are events of their handoff or its request.
    #[serde(default)]
    pub events: Vec<TraceEvent>,
    /// The fact with the pull request: the trailer `Pull-Request`.
    pub pull_request: Option<String>,
    /// Counts of a review's findings, by name: the trailer `Findings`. Pointers, or `{"count":
    /// POINTER}`.
    #[serde(default)]
    pub findings: BTreeMap<String, TraceValue>,
}

/// A contract that becomes an event of its handoff; an answer becomes one of the request's.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceEvent {
    /// The event's name.
    pub name: String,
    /// The contract types that become this event.
    pub contracts: Vec<String>,
    /// The texts that they must have at pointers, if not all match.
    #[serde(default)]
    pub when: BTreeMap<String, Words>,
    /// Whether any way to a person is the event, rather than the contract.
    #[serde(default)]
    pub escalates: bool,
    /// The event's attributes, by name.
    #[serde(default)]
    pub attributes: BTreeMap<String, TraceValue>,
}

/// A value from a contract.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a JSON Pointer or {\"count\": POINTER}"
)]
pub enum TraceValue {
    /// The value at this JSON Pointer.
    At(String),
    /// The number of items there.
    Count(Count),
}

/// Counts the items of a list or an object.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The JSON Pointer of the list or object.
    pub count: String,
}

impl TraceValue {
    /// The JSON Pointer.
    pub fn pointer(&self) -> &str {
        match self {
            Self::At(pointer) | Self::Count(Count { count: pointer }) => pointer,
        }
    }

    /// The value, if the contract has it.
    pub fn read(&self, contract: &Value) -> Option<Value> {
        let found = contract.pointer(self.pointer())?;
        match (self, found) {
            (Self::At(_), Value::Null) => None,
            (Self::At(_), found) => Some(found.clone()),
            (Self::Count(_), Value::Array(items)) => Some(items.len().into()),
            (Self::Count(_), Value::Object(members)) => Some(members.len().into()),
            (Self::Count(_), _) => None,
        }
    }
}

impl TraceEvent {
    /// Whether a contract of this type becomes this event.
    pub fn is(&self, kind: &str, contract: &Value) -> bool {
        let said = |(pointer, words): (&String, &Words)| {
            let text = contract.pointer(pointer).and_then(Value::as_str);
            text.is_some_and(|text| words.accept(text))
        };
        self.contracts.iter().any(|k| k == kind) && self.when.iter().all(said)
    }
}

impl Traces {
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
        let mut found: Vec<(String, &str)> = Vec::new();
        for (key, places) in [
            ("attributes", &self.attributes),
            ("findings", &self.findings),
        ] {
            let places = places.iter();
            found.extend(places.map(|(n, at)| (format!("/traces/{key}/{n}"), at.pointer())));
        }
        for (i, event) in self.events.iter().enumerate() {
            let at = format!("/traces/events/{i}");
            found.extend(
                event
                    .when
                    .keys()
                    .map(|p| (format!("{at}/when"), p.as_str())),
            );
            let own = event.attributes.iter();
            found.extend(own.map(|(n, told)| (format!("{at}/attributes/{n}"), told.pointer())));
        }
        found
    }
}
