//! `ledger.json`: the ledger's settings, and the pauses of more than one issue.

use handoff_base::ids::AgentName;
use handoff_base::text::continued;
use handoff_base::{Moment, ObjectId};
use handoff_macros::skip_serializing_none;
use handoff_protocol::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::stored_form::stored;

/// `ledger.json`: the ledger's settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the stored form: 4.
    pub version: u32,
    /// The protocol that a new issue is bound to.
    pub default_protocol: AgentName,
    /// The policy for statements that the repository contradicts, unless a protocol sets its own.
    pub evidence: Policy,
    /// When the ledger was created.
    pub created_at: Moment,
    /// What is paused beyond single issues, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<Halt>,
    /// The last such resumption.
    pub resumed: Option<HaltEnd>,
    /// The quarantined commits on its branch, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<Scar>,
}

/// A quarantined commit: it was not a step, and is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scar {
    /// When it was quarantined.
    pub at: Moment,
    /// The person who signed it off.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// The commit.
    pub commit: ObjectId,
    /// The later commits on top of it, which are ignored too, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<ObjectId>,
}

/// The scope of a pause beyond single issues: all work, or some.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HaltScope {
    /// Only this agent's work.
    pub agent: Option<AgentName>,
    /// Only work of this protocol.
    pub protocol: Option<AgentName>,
}

/// A pause beyond single issues: no such work is handed out until it is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Halt {
    /// When it was paused.
    pub at: Moment,
    /// The agent that paused it.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// Its scope; all work, if empty.
    #[serde(flatten)]
    pub scope: HaltScope,
    /// Whether running agents are ended, and their work given back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// The resumption after a pause beyond single issues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HaltEnd {
    /// When it was resumed.
    pub at: Moment,
    /// The agent that resumed it.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// The pause.
    pub paused: Halt,
}

impl HaltScope {
    /// The scope as an option of `pause` and `resume`.
    pub fn option(&self) -> String {
        let agent = self.agent.iter().map(|agent| format!("--agent {agent}"));
        let protocol = self.protocol.iter();
        let named: Vec<String> = agent
            .chain(protocol.map(|name| format!("--protocol {name}")))
            .collect();
        match &named[..] {
            [] => "--all".to_owned(),
            named => named.join(" "),
        }
    }

    /// The command that ends the pause.
    pub fn resume(&self, by: &AgentName) -> String {
        format!(
            "git handoff resume {} --as {by} --reason WHY",
            self.option()
        )
    }
}

impl std::fmt::Display for HaltScope {
    /// Writes `all work`, or `work of fixer-agent under issue-to-pr`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::default() {
            "all work"
        } else {
            "work"
        })?;
        self.agent
            .iter()
            .try_for_each(|agent| write!(f, " of {agent}"))?;
        let mut protocol = self.protocol.iter();
        protocol.try_for_each(|name| write!(f, " under {name}"))
    }
}

impl Halt {
    /// Whether it holds an agent's work under a protocol back.
    pub fn holds_back(&self, agent: &AgentName, protocol: &str) -> bool {
        let HaltScope {
            agent: only,
            protocol: of,
        } = &self.scope;
        only.as_ref().is_none_or(|only| only == agent)
            && of.as_ref().is_none_or(|of| of.as_str() == protocol)
    }
}

impl std::fmt::Display for Halt {
    /// Writes `all work is paused since 2026-03-02 09:00:00Z by orchestrator: the provider is down`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (scope, at, by) = (&self.scope, self.at, &self.by);
        let now = if self.now {
            ", and what runs is given back"
        } else {
            ""
        };
        let reason = continued(&self.reason);
        write!(f, "{scope} is paused since {at} by {by}{now}: {reason}")
    }
}

stored!(Manifest);
