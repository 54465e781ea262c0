//! What a protocol's traces include from its contracts, in the protocol's own words.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contract_type::Words;

/// What traces include from contracts, in addition to what every handoff has.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// The attributes, by name: a JSON Pointer, or `{"count": POINTER}` for the number of items in
    /// the list or object there. Each contract that has the value sets the attribute on its
    /// handoff, and an answer sets it on its request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, TraceValue>,
    /// Contracts that are events of their handoff, or of the request that they answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TraceEvent>,
}

/// A contract that becomes an event of its handoff; an answer becomes one of the request's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceEvent {
    /// The event's name.
    pub name: String,
    /// The contract types that become this event.
    pub contracts: Vec<String>,
    /// The texts that they must have at JSON Pointers, if not all of them match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Words>,
    /// Whether the event is every way of such a handoff to a person, rather than the contract.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalates: bool,
    /// The event's attributes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, TraceValue>,
}

/// A value from a contract.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// Whether a contract of a type becomes this event.
    pub fn is(&self, kind: &str, contract: &Value) -> bool {
        let said = |(pointer, words): (&String, &Words)| {
            let text = contract.pointer(pointer).and_then(Value::as_str);
            text.is_some_and(|text| words.accept(text))
        };
        self.contracts.iter().any(|k| k == kind) && self.when.iter().all(said)
    }
}

impl Traces {
    /// Every JSON Pointer, with its place in the definition.
    pub fn pointers(&self) -> Vec<(String, &str)> {
        let mut found: Vec<(String, &str)> = Vec::new();
        let own = self.attributes.iter();
        found
            .extend(own.map(|(name, told)| (format!("/traces/attributes/{name}"), told.pointer())));
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
