//! The queue of claimable work: what is not ready yet.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};

use crate::record::Claimable;
use crate::refusal::time;

/// The work is not ready yet.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueRefusal {
    /// Nothing that waits for this agent can be claimed.
    #[error("nothing waits for {agent}{}", but(found))]
    NothingToClaim {
        agent: AgentName,
        /// What waits for it, and for what.
        found: Box<Claimable>,
    },
    /// Other handoffs must be completed first.
    #[error("{id} waits for {}", list(waits_for))]
    Waits {
        id: HandoffId,
        waits_for: Vec<HandoffId>,
    },
    /// The parts of its task must end first.
    #[error("{id} waits for its parts: {}", list(parts))]
    PartsRun {
        id: HandoffId,
        parts: Vec<HandoffId>,
    },
    /// The next attempt may not start yet.
    #[error("{id} cannot be claimed before {}", time(*not_before))]
    TooEarly { id: HandoffId, not_before: Moment },
}

/// What a sentence about an agent's queue ends with, if something is there that can't be claimed.
fn but(found: &Claimable) -> String {
    match &found.late {
        Some(id) => format!(" that can be claimed: {id} was not claimed in time"),
        None if *found == Claimable::default() => String::new(),
        None => " that can be claimed yet".to_owned(),
    }
}

fn list(ids: &[HandoffId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}
