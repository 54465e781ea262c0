//! The stored form of a protocol: what `protocol.json` may say, and nothing of whether it fits
//! together, which `check` finds out.
//!
//! Here live the types that serde reads, and what is read off one of them alone. What takes a
//! contract, a whole protocol or a finding has its place outside.

mod alerts;
mod contract_type;
mod decision;
mod evidence;
mod fields;
mod github;
mod limits;
mod requirement;
mod tasks;
mod timing;
mod traces;

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use serde::{Deserialize, Serialize};

use crate::lifecycle::State;

pub use alerts::{Alert, Level, Measure, Metric, Side, Threshold};
pub use contract_type::{
    ArtifactFields, ContractType, CriticalInputs, ExpectedFields, FailureFields, InputFields,
    NamedSchema, Outcome, Words,
};
pub use decision::{Action, Circumstances, DecisionRule};
pub use evidence::{
    Check, ClaimedPlace, Claims, CommitsClaim, EvidenceRules, MergeClaim, Policy, Strategy,
    TestsClaim,
};
pub use fields::Fields;
pub use github::{
    Condition, ContractRule, Effect, EventKind, EventRule, Github, Source, SourceRule, Take, select,
};
pub use limits::{CycleLimit, ItemLimit, Limits, RoundLimit};
pub use requirement::{COMPLETED, Requirement};
pub use tasks::{TaskFields, TaskState};
pub use timing::{Jitter, LONGEST, Leases, OwnRetry, Retry, TimeField, Unit};
pub use traces::{TraceEvent, TraceValue, Traces};

/// How work moves from one agent to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Sending onward completes the handoff that the sender held.
    Relay,
    /// A request is answered to its requester, who goes on with what it holds.
    Call,
}

/// What kind of party an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// Routes work and decides about failures.
    Orchestrator,
    /// Does one kind of work.
    Specialist,
    /// A person.
    Human,
    /// Not an agent but the end: a contract sent here closes its issue.
    End,
}

impl AgentKind {
    /// The kind as a definition names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Specialist => "specialist",
            Self::Human => "human",
            Self::End => "end",
        }
    }
}

/// One party of a protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name.
    pub id: AgentName,
    /// Other names that contracts have for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its part, in a few words.
    pub role: String,
    /// What kind of party it is.
    pub kind: AgentKind,
    /// Its place in the workflow, from 1; lower goes first where two compete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    /// What it may do, in words that contracts name actions with; anything that
    /// is not forbidden, if this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// What it must not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
    /// What its commits may touch, as patterns of paths; anything, if this is
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// A way from one agent to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The sender; `*` is every agent but the receiver.
    pub from: String,
    /// The receiver.
    pub to: AgentName,
    /// The contract types that may travel it.
    pub contracts: Vec<String>,
    /// Whether a contract on this route may open an issue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opens: bool,
    /// Who gets the contract first, and decides before the work moves on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<AgentName>,
}

/// A way that must not be taken, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forbidden {
    /// The sender.
    pub from: AgentName,
    /// The receiver.
    pub to: AgentName,
    /// The reason that is shown.
    pub reason: String,
}

/// How a fact about an issue is gathered from its contracts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum FactRule {
    /// The value at the first of these pointers that the newest contract has.
    Last(Vec<String>),
    /// The sum over all contracts of these pointers: a number counts as itself,
    /// an array as its length.
    Sum(Vec<String>),
    /// How many contracts of these types were sent.
    Count(Vec<String>),
    /// The items of the lists at these pointers, each once, in the order in
    /// which they came.
    Collect(Vec<String>),
}

/// An error that a failure may report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorCode {
    /// What happened.
    pub meaning: String,
    /// What to do about it.
    pub recovery: String,
}

/// A document that all issues share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// What it is, in a few words.
    pub title: String,
    /// The JSON Schema's file, relative to the protocol's folder.
    pub schema: String,
}

/// A property that every handoff must have; each failure is a finding of its
/// own, beside the findings that say what exactly is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Nothing that the contract's type requires is missing.
    RequiredFields,
    /// Every value is what it should be, and the values fit one another.
    DataIntegrity,
    /// What the contract says of tasks agrees with their state.
    StateConsistency,
    /// Every task has a parent that is known and a place in the plan.
    NoOrphanedTasks,
    /// The sender may send this contract to this receiver now.
    ValidTransition,
}

impl Gate {
    /// The code of the finding that says that the gate failed.
    pub fn code(self) -> &'static str {
        match self {
            Self::RequiredFields => "gate.required_fields",
            Self::DataIntegrity => "gate.data_integrity",
            Self::StateConsistency => "gate.state_consistency",
            Self::NoOrphanedTasks => "gate.no_orphaned_tasks",
            Self::ValidTransition => "gate.valid_transition",
        }
    }
}

/// Why a request may not go to an agent that waits for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loops {
    /// The reason that is shown.
    pub reason: String,
}

/// What is kept although it looks like a secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRules {
    /// Each kind of value that is allowed.
    pub allow: Vec<AllowedSecret>,
}

/// A kind of value that looks like a secret and is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedSecret {
    /// The id of the rule that takes it for one.
    pub rule: String,
    /// The one place where it is allowed, as findings name it; everywhere, if
    /// none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A protocol as `protocol.json` holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The version of this file's form: 1.
    pub format: u32,
    /// The protocol's name.
    pub name: AgentName,
    /// The protocol's own version.
    pub version: String,
    /// What it is for, in one line.
    pub title: String,
    /// How work moves.
    pub style: Style,
    /// The formats that contracts may have: `xml`, `json`, `md`.
    pub formats: Vec<String>,
    /// Where the envelope's fields are.
    pub fields: Fields,
    /// Priority words, the most urgent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<String>,
    /// Status words and the lifecycle states they stand for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<String, State>,
    /// The parties.
    pub agents: Vec<Agent>,
    /// The contract types.
    pub contracts: Vec<ContractType>,
    /// The ways.
    pub routes: Vec<Route>,
    /// The ways that must not be taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<Forbidden>,
    /// What is gathered about an issue, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, FactRule>,
    /// What traces tell of its contracts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
    /// The error codes that failures may have; any, if there are none here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, ErrorCode>,
    /// What every handoff must pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// The documents that all issues share, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub documents: BTreeMap<AgentName, Document>,
    /// Set where a request must not go back to an agent that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<Loops>,
    /// Who goes first where two agents act on one task, by the task's state;
    /// otherwise the lower phase does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub turns: BTreeMap<TaskState, AgentName>,
    /// How long a claim holds; for ever, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases: Option<Leases>,
    /// When failed work is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How much may be handed over, and how often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What to do about what stands still: the first rule that applies and that
    /// can be carried out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionRule>,
    /// What becomes of claims that the repository contradicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceRules>,
    /// What an issue can be required to show, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requirements: BTreeMap<String, Requirement>,
    /// The requirements of a merge; that the issue is completed, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merge: Vec<String>,
    /// What is kept although it looks like a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<SecretRules>,
    /// Of what someone is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Alert>,
    /// What follows from events of GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<Github>,
}
