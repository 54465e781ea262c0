//! What can be done when work stands still, and which of it when.

use handoff_base::ids::AgentName;
use serde::{Deserialize, Serialize};

use crate::lifecycle::State;

/// What should happen next to a handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The work goes on: someone claims it, or sends it on.
    Advance,
    /// Someone has to answer.
    Ask,
    /// The same agent tries again, with adjusted instructions.
    Retry,
    /// Another agent tries.
    Reassign,
    /// The work goes on with what was delivered.
    ProceedPartial,
    /// The work goes on without it.
    Skip,
    /// A person does by hand what no agent did.
    FallBack,
    /// A person decides.
    Escalate,
    /// The work ends here.
    Terminate,
}

impl Action {
    /// The action as it is stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Advance => "advance",
            Self::Ask => "ask",
            Self::Retry => "retry",
            Self::Reassign => "reassign",
            Self::ProceedPartial => "proceed_partial",
            Self::Skip => "skip",
            Self::FallBack => "fall_back",
            Self::Escalate => "escalate",
            Self::Terminate => "terminate",
        }
    }
}

/// When a rule applies: every condition that is given must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Circumstances {
    /// The handoff's state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The failure's code is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// The answer's status word is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// The priority is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority: Vec<String>,
    /// Whether its agent says that another attempt may succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recoverable: Option<bool>,
    /// Whether attempts are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_left: Option<bool>,
    /// It was handed to none of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_to: Vec<AgentName>,
    /// Rounds that the limits leave no room for any more, by their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reached: Vec<String>,
    /// It does not stand still: its contract, whose status counts here, is with the
    /// agent that decides what follows from it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub to_decide: bool,
}

/// What to do about a handoff that stands still, or that was answered in part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionRule {
    /// When.
    #[serde(default)]
    pub when: Circumstances,
    /// What.
    pub action: Action,
    /// The agent that it goes to, where it goes to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentName>,
    /// Why, in a few words that are recorded with the decision.
    pub why: String,
}
