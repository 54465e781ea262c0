//! How much may be handed over, and how often.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::contract_type::Words;

/// Handoffs about one item of an issue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemLimit {
    /// Where a contract names its item: a JSON Pointer.
    pub at: String,
    /// The item of a contract that names none.
    pub otherwise: String,
    /// How many handoffs an item may have.
    pub handoffs: u32,
}

/// The same again and again: sender, receiver and reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycleLimit {
    /// Where a contract gives its reason: a JSON Pointer.
    pub reason: String,
    /// How many of the newest handoffs are looked at.
    pub among: u32,
    /// How many of them may be alike.
    pub most: u32,
}

/// Contracts that take the work round once more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundLimit {
    /// Their types.
    pub contracts: Vec<String>,
    /// What their fields say: a JSON Pointer and the text found there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Words>,
    /// How many of them an issue may have.
    pub most: u32,
}

/// The limits of an issue. Each counts from when the issue was opened, or opened
/// again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How many handoffs it may have, answers and notes aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoffs: Option<u32>,
    /// How many of them may be about one item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemLimit>,
    /// How long work may be handed over in it, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u64>,
    /// How long a sender waits before it asks the same receiver again, in
    /// seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_seconds: Option<u64>,
    /// What counts as going in circles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<CycleLimit>,
    /// How often work may go round, by a name that is shown.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rounds: BTreeMap<String, RoundLimit>,
}

impl Limits {
    /// Says whether the ledger has to remember every handoff of an issue for
    /// these limits, and not only those that take the work round.
    pub fn count_all(&self) -> bool {
        self.handoffs.is_some()
            || self.item.is_some()
            || self.cooldown_seconds.is_some()
            || self.cycle.is_some()
    }
}
