//! What can be done about work that needs attention, and the rules for choosing.

use handoff_base::ids::AgentName;
use handoff_base::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::lifecycle::State;

words! {
    /// What should happen next to a handoff.
    pub enum Action {
        /// The work continues: an agent claims it or sends it on.
        Advance = "advance",
        /// Somebody must answer.
        Ask = "ask",
        /// The same agent tries again, with adjusted instructions; what is dead gets new attempts.
        Retry = "retry",
        /// Another agent tries.
        Reassign = "reassign",
        /// The work continues with what was delivered.
        ProceedPartial = "proceed_partial",
        /// The work continues without it.
        Skip = "skip",
        /// A person does by hand what no agent completed.
        FallBack = "fall_back",
        /// A person decides.
        Escalate = "escalate",
        /// The work ends here.
        Terminate = "terminate",
    }
}

impl Action {
    /// Whether a person steps in.
    pub fn is_with_person(self) -> bool {
        matches!(self, Self::Escalate | Self::FallBack)
    }
}

/// When a rule applies: every given condition must hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Circumstances {
    /// The handoff's state; `completed` for an answer.
    pub state: Option<State>,
    /// The failure's code is one of these.
    pub codes: Vec<String>,
    /// The answer's status word is one of these.
    pub status: Vec<String>,
    /// The priority is one of these.
    pub priority: Vec<String>,
    /// Whether the agent reported that another attempt may succeed.
    pub recoverable: Option<bool>,
    /// Whether attempts are left.
    pub retries_left: Option<bool>,
    /// It has been in its state for this many seconds.
    pub after_seconds: Option<u64>,
    /// It was given new attempts less often than this.
    pub redriven_below: Option<u32>,
    /// It was handed to none of these agents.
    pub not_to: Vec<AgentName>,
    /// Its sender recommends one of these agents.
    pub recommends: Vec<AgentName>,
    /// The issue has no rounds left of these kinds.
    pub reached: Vec<String>,
    /// Its contract, whose status is tested, is with the agent that decides.
    pub to_decide: bool,
}

/// What to do about a handoff that needs attention or was answered in part.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRule {
    /// When the rule applies: all of its conditions hold.
    #[serde(default)]
    pub when: Circumstances,
    /// The action to take.
    pub action: Action,
    /// The agent that takes over, if work moves.
    pub to: Option<AgentName>,
    /// The reason, in a few words, recorded with the decision.
    pub why: String,
}
