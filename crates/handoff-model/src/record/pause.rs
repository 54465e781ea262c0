//! Pauses of an issue, and their ends.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::text::{continued, word};
use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::stored_form::stored;

/// A pause of an issue: nobody is handed its work until it is resumed.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    /// The version of the stored form: 4.
    pub version: u32,
    /// When it was paused.
    pub at: Moment,
    /// The agent that paused it.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// When it was said, if elsewhere and earlier.
    pub said_at: Option<Moment>,
    /// The agents that may continue, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<AgentName>,
    /// The issues whose end ends the pause; if empty, only `resume` ends it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<IssueKey>,
}

impl Paused {
    /// Whether it holds an agent's work back.
    pub fn holds_back(&self, agent: &AgentName) -> bool {
        !self.except.contains(agent)
    }

    /// The command that ends it, for who paused the issue.
    pub fn resume(&self, issue: &IssueKey, why: &str) -> String {
        let (by, why) = (&self.by, word(why));
        if self.after.is_empty() {
            return format!("git handoff resume {issue} --as {by} --reason {why}");
        }
        format!("git handoff set {issue} after=none --as {by} --reason {why}")
    }

    /// What ends it: ` until issue 7 has ended`; empty if only `resume` does.
    pub fn until(&self) -> String {
        let keys: Vec<&str> = self.after.iter().map(IssueKey::as_str).collect();
        match keys[..] {
            [] => String::new(),
            [key] => format!(" until issue {key} has ended"),
            _ => format!(" until issues {} have ended", keys.join(", ")),
        }
    }

    /// When it began, as said elsewhere or recorded.
    pub fn since(&self) -> Moment {
        self.said_at.unwrap_or(self.at)
    }
}

impl std::fmt::Display for Paused {
    /// Writes `paused since 2026-03-02 09:00:00Z by orchestrator: it was closed`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (at, reason) = (self.at, continued(&self.reason));
        write!(f, "paused since {at} by {}", self.by)?;
        if !self.except.is_empty() {
            let names: Vec<&str> = self.except.iter().map(AgentName::as_str).collect();
            write!(f, " except for {}", names.join(", "))?;
        }
        write!(f, "{}: {reason}", self.until())
    }
}

/// The end of a pause, or word from elsewhere that work continues.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// When the issue was resumed.
    pub at: Moment,
    /// The agent that resumed it.
    pub by: AgentName,
    /// Why.
    pub reason: String,
    /// When it was said, if elsewhere and earlier.
    pub said_at: Option<Moment>,
    /// The pause; `None` if the issue was not paused.
    pub paused: Option<Paused>,
}

stored!(Paused);
