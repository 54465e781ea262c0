//! Advice: what should happen next to a handoff, and the [`Update`] that does it.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::{Action, Event};

use crate::record::{Decision, Question};
use crate::step::{EventArgs, Update};

/// What should happen next, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The handoff.
    pub id: HandoffId,
    /// The recommended action.
    pub action: Action,
    /// The agent that should act.
    pub agent: AgentName,
    /// The agent that should take over, if work moves.
    pub to: Option<AgentName>,
    /// Why.
    pub why: String,
    /// The questions to answer.
    pub questions: Vec<Question>,
    /// What the next attempt should do differently, or what a person must do by hand.
    pub instructions: Option<String>,
    /// Whether carrying it out takes a contract.
    pub by_contract: bool,
    /// Whether the handoff is dead, so that another attempt restarts the count.
    pub revives: bool,
    /// The same decision, if it was already recorded since the handoff last changed.
    pub decided: Option<Decision>,
}

impl Advice {
    /// The update that carries it out or, if that takes more than a state change, records it.
    /// `jitter` is the random part of a retry's delay, in thousandths.
    pub fn update(&self, jitter: u32) -> Update {
        let handoff = self.id.number();
        let event = match self.action {
            Action::Retry if !self.by_contract && self.revives => Event::Redrive,
            Action::Retry if !self.by_contract => Event::Retry,
            Action::Reassign if !self.by_contract => Event::Reassign,
            Action::Escalate if self.to.is_some() && !self.by_contract => Event::Reassign,
            Action::Skip | Action::Terminate if !self.by_contract => Event::Cancel,
            action => {
                return Update::Decide {
                    handoff,
                    action,
                    why: self.why.clone(),
                };
            }
        };
        let reason = self.instructions.as_ref().unwrap_or(&self.why);
        let arguments = EventArgs {
            reason: Some(reason.clone()),
            receiver: self.to.clone(),
            jitter: Some(jitter),
            decision: Some((self.action, self.why.clone())),
            ..EventArgs::default()
        };
        Update::change(handoff, event, arguments)
    }
}

/// What can be done about a failed or blocked handoff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Another attempt by the same agent.
    Retry,
    /// An attempt by another agent.
    Reassign(AgentName),
    /// An answer to the open questions.
    Answer,
    /// A question from the first agent to the second, who is a person.
    Ask(AgentName, AgentName),
    /// New attempts for a dead handoff.
    Redrive,
    /// Giving the handoff up.
    Terminate,
}
