//! Limits on the number and the rate of handoffs.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_base::{Moment, words};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Definition;
use super::budget::Budget;
use super::contract_type::Words;
use super::timing::Retry;

words! {
    /// A kind of refused contract that the ledger keeps on record.
    pub enum OnRecord {
        /// It would have exceeded a limit.
        Limits = "limits",
        /// The work would have gone in circles.
        Cycles = "cycles",
        /// It is incomplete, or contradicts its issue, its protocol or the repository.
        RefusedContracts = "refused_contracts",
    }
}

impl OnRecord {
    /// The kind in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Limits => "a limit",
            Self::Cycles => "a cycle",
            Self::RefusedContracts => "a contract",
        }
    }
}

/// A limit on handoffs about one item of an issue.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemLimit {
    /// The place where a contract names its item.
    pub at: String,
    /// The item of a contract that names none.
    pub otherwise: String,
    /// The most handoffs about an item; one to a person is never too many.
    pub handoffs: u32,
}

/// A limit on handoffs with the same sender, receiver and reason.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CycleLimit {
    /// The place where a contract gives its reason.
    pub reason: String,
    /// The number of newest handoffs to check.
    pub among: u32,
    /// The number of them that may be alike.
    pub most: u32,
}

/// A limit on contracts that start another round.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundLimit {
    /// Their types.
    pub contracts: Vec<String>,
    /// The texts that their fields must have, by JSON Pointer.
    #[serde(default)]
    pub when: BTreeMap<String, Words>,
    /// The texts of which their fields must have none, by JSON Pointer.
    #[serde(default)]
    pub unless: BTreeMap<String, Words>,
    /// Whether further attempts at such handoffs count too; beyond, only a person gives one.
    #[serde(default)]
    pub attempts: bool,
    /// The maximum number of them in an issue.
    pub most: u32,
}

/// Work that is taken up in turn, since each piece moves the base of the others: among the issues with
/// one base, the most urgent first, the oldest of these, and one at a time until it is handed on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// The agent that merges it.
    pub agent: AgentName,
    /// The kind of round, one of `rounds`, during which an issue keeps its turn, for as long as a lease.
    pub kept_through: Option<String>,
}

/// The limits of work: how long a claim and anything else may take, when failed work is retried, and
/// those of an issue, which count from when it was opened or last reopened.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How long a claim holds, by default; without end, if not given.
    pub lease_seconds: Option<u64>,
    /// The longest lease that a command may request.
    pub longest_lease_seconds: Option<u64>,
    /// The longest that `work` lets an agent run for one claim; by default any time.
    pub longest_run_seconds: Option<u64>,
    /// How long a person's claim holds, whatever contracts say; by default as an agent's.
    pub person_lease_seconds: Option<u64>,
    /// How soon an agent, not a person, must claim; contracts and routes precede; by default any
    /// time.
    pub acknowledge_seconds: Option<u64>,
    /// How long after its last step an ended issue is archived; by default never.
    pub archive_after_seconds: Option<u64>,
    /// When failed work is retried.
    pub retry: Option<Retry>,
    /// The maximum number of handoffs in the issue.
    pub handoffs: Option<u32>,
    /// The limit on handoffs about one item.
    pub item: Option<ItemLimit>,
    /// The time in which work may be handed over.
    pub deadline_seconds: Option<u64>,
    /// How long a sender waits before sending to the same receiver again.
    pub cooldown_seconds: Option<u64>,
    /// When handoffs go in circles: same sender, receiver and reason.
    pub cycle: Option<CycleLimit>,
    /// The limits on rounds, by a name that is shown.
    pub rounds: BTreeMap<String, RoundLimit>,
    /// What is merged in turn.
    pub turns: Option<Turns>,
    /// Why a request must not go to who waits for its sender; by default it may.
    pub loops: Option<String>,
    /// What work may cost, [by name](work.md#cost-and-budgets).
    pub budgets: BTreeMap<String, Budget>,
    /// The kinds of refused contracts kept on record, without content; by default none.
    pub on_record: Vec<OnRecord>,
}

impl Definition {
    /// The deadline for handing over work in an issue, counted from this moment.
    pub fn deadline(&self, since: Moment) -> Option<Moment> {
        let limits = self.limits.as_ref()?;
        limits.deadline_seconds.map(|seconds| since.later(seconds))
    }
}

impl RoundLimit {
    /// Whether a contract of a counted type starts a round: its fields match `when` and not
    /// `unless`.
    pub fn fits(&self, text: impl Fn(&str) -> Option<String>) -> bool {
        let has = |(at, words): (&String, &Words)| text(at).is_some_and(|text| words.accept(&text));
        self.when.iter().all(has) && !self.unless.iter().any(has)
    }
}

impl Limits {
    /// Whether these limits can refuse a contract.
    pub fn refuse(&self) -> bool {
        let others = self.deadline_seconds.is_some() || self.loops.is_some();
        self.count_all() || others || !self.rounds.is_empty()
    }

    /// Whether these limits must count every handoff of an issue, not only those that start a
    /// round.
    pub fn count_all(&self) -> bool {
        self.handoffs.is_some()
            || self.item.is_some()
            || self.cooldown_seconds.is_some()
            || self.cycle.is_some()
    }
}
