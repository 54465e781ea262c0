//! The stored form of a protocol, and the checks it passes when it is loaded.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::faults::faults;
use super::lifecycle::{Event, State};
use crate::finding::Finding;
use crate::ids::AgentName;

/// How work moves from one agent to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Sending onward completes the handoff that the sender held.
    Relay,
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

/// One party of a protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name in contracts.
    pub id: AgentName,
    /// Its part, in a few words.
    pub role: String,
    /// What kind of party it is.
    pub kind: AgentKind,
    /// Its place in the workflow, from 1; lower goes first where two compete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
}

/// What a sender's own handoff becomes when it sends a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The sender finished.
    Complete,
    /// The sender failed.
    Fail,
    /// The sender is blocked.
    Block,
}

impl Outcome {
    /// The lifecycle event that this outcome is.
    pub fn event(self) -> Event {
        match self {
            Self::Complete => Event::Complete,
            Self::Fail => Event::Fail,
            Self::Block => Event::Block,
        }
    }
}

/// Where a contract says what went wrong: a JSON Pointer each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureFields {
    /// A short, stable word.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// More of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Whether another attempt may succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoverable: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<String>,
}

/// What one kind of contract must contain.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractType {
    /// The type's name, unique in its protocol.
    #[serde(rename = "type")]
    pub name: String,
    /// What it says, in a few words; the summary of a contract that has none.
    pub title: String,
    /// The XML root element, and the key of the wrapped JSON form.
    pub root: String,
    /// Discriminating fields: a JSON Pointer and the text found there, for
    /// types that share a route.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, String>,
    /// The sender of a contract that does not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implied_from: Option<AgentName>,
    /// The receiver of a contract that does not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implied_to: Option<AgentName>,
    /// Where a contract of this type says in one line what it is about, if not
    /// in the envelope's summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Where it says what went wrong, for types that fail or block their
    /// sender's handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureFields>,
    /// The JSON Schema's file, relative to the protocol's folder.
    pub schema: String,
    /// The XML Schema's file, where contracts may be XML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xsd: Option<String>,
    /// The skeleton's file.
    pub template: String,
    /// Status words that make the sender's own handoff something else than
    /// completed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcome: BTreeMap<String, Outcome>,
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

/// Where the envelope's fields are: a JSON Pointer each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// The issue key.
    pub issue: String,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The status word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When the contract was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The priority word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The one-line summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The code branch that the work is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
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
    /// The formats that contracts may have: `xml`, `json`.
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
}

/// A protocol whose parts fit together.
#[derive(Clone, Debug)]
pub struct Protocol {
    definition: Definition,
}

impl Protocol {
    /// Loads a `protocol.json`.
    ///
    /// # Errors
    /// Every fault found in it, each naming its place as a JSON Pointer.
    pub fn load(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let definition: Definition = serde_json::from_slice(bytes).map_err(|e| {
            let shown = e.to_string();
            let said = shown
                .rsplit_once(" at line ")
                .map_or(&*shown, |(said, _)| said);
            let mut finding = Finding::error("protocol.syntax", "", said);
            finding.line = u32::try_from(e.line()).ok();
            finding.column = u32::try_from(e.column()).ok();
            vec![finding]
        })?;
        let findings = faults(&definition);
        if findings.is_empty() {
            Ok(Self { definition })
        } else {
            Err(findings)
        }
    }

    /// The protocol's name.
    pub fn name(&self) -> &str {
        self.definition.name.as_str()
    }

    /// Everything the file says.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Finds an agent by name.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.definition
            .agents
            .iter()
            .find(|a| a.id.as_str() == name)
    }

    /// Says whether an agent is of this kind.
    pub fn is_kind(&self, name: &str, kind: AgentKind) -> bool {
        self.agent(name).is_some_and(|a| a.kind == kind)
    }

    /// The names of all agents that can act, in the definition's order.
    pub fn agent_names(&self) -> Vec<&str> {
        let acting = |a: &&Agent| a.kind != AgentKind::End;
        let agents = self.definition.agents.iter().filter(acting);
        agents.map(|a| a.id.as_str()).collect()
    }

    /// Finds a contract type by name.
    pub fn contract_type(&self, name: &str) -> Option<&ContractType> {
        self.definition.contracts.iter().find(|c| c.name == name)
    }

    /// Every root element that a contract may have.
    pub fn roots(&self) -> Vec<&str> {
        let roots: BTreeSet<&str> = self
            .definition
            .contracts
            .iter()
            .map(|c| c.root.as_str())
            .collect();
        roots.into_iter().collect()
    }

    /// The routes from one agent to another, wildcards included.
    pub fn routes<'a>(&'a self, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a Route> {
        self.routes_from(from).filter(move |r| r.to.as_str() == to)
    }

    /// The routes that leave an agent, wildcards included.
    pub fn routes_from<'a>(&'a self, from: &'a str) -> impl Iterator<Item = &'a Route> {
        self.definition.routes.iter().filter(move |r| {
            r.from == from || (r.from == "*" && r.to.as_str() != from && !self.is_end(from))
        })
    }

    /// Whom an agent may hand on to, each once, in the definition's order.
    pub fn receivers<'a>(&'a self, from: &'a str) -> Vec<&'a AgentName> {
        let mut receivers: Vec<&AgentName> = Vec::new();
        for route in self.routes_from(from) {
            if !receivers.contains(&&route.to) {
                receivers.push(&route.to);
            }
        }
        receivers
    }

    fn is_end(&self, name: &str) -> bool {
        self.is_kind(name, AgentKind::End)
    }

    /// The rank of a priority word, 0 the most urgent; unknown words and none
    /// rank in the middle of the list.
    pub fn priority_rank(&self, word: Option<&str>) -> usize {
        let words = &self.definition.priorities;
        word.and_then(|w| words.iter().position(|p| p == w))
            .unwrap_or(words.len() / 2)
    }

    /// What becomes of the sender's own handoff for a contract of this type
    /// with this status word.
    pub fn outcome(&self, kind: &ContractType, status: Option<&str>) -> Outcome {
        status
            .and_then(|word| kind.outcome.get(word))
            .copied()
            .unwrap_or(Outcome::Complete)
    }
}
