//! What an agent may claim, as far as a record shows.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;
use handoff_protocol::State;

use crate::record::{BudgetSpent, Halt, Record, lasts};

/// What waits for an agent, reduced to what is needed to choose among it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimable {
    /// The most urgent handoff that can be claimed now, the oldest first.
    pub first: Option<HandoffId>,
    /// A handoff that waits for others, and the first one it waits for.
    pub waits: Option<(HandoffId, HandoffId)>,
    /// The handoff whose next attempt may start soonest, and when.
    pub later: Option<(Moment, HandoffId)>,
    /// A handoff that was not claimed in time.
    pub late: Option<HandoffId>,
    /// A handoff for which a budget leaves nothing.
    pub spent: Option<BudgetSpent>,
    /// A handoff that has to wait for its turn, and the one that has it.
    pub turn: Option<(HandoffId, HandoffId)>,
    /// The pause of more than an issue that holds the agent back, if nothing can be claimed.
    pub halt: Option<Halt>,
}

/// Why a handoff can't be claimed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// An agent works on it, or must decide.
    Taken,
    /// It was not claimed in time.
    Late,
    /// It waits for another handoff.
    Waits,
    /// It can be claimed from this moment on.
    Later(Moment),
}

/// Why a handoff can't be claimed now, if so.
pub fn hindrance(record: &Record, now: Moment) -> Option<Hindrance> {
    match record.pause() {
        _ if record.state != State::Pending => Some(Hindrance::Taken),
        // Even if nobody has recorded that yet.
        _ if record.acknowledge_by.is_some_and(|end| end <= now) => Some(Hindrance::Late),
        _ if waited_for(record).is_some() => Some(Hindrance::Waits),
        Some(pause) if lasts(pause, now) => Some(Hindrance::Later(pause.1)),
        _ => None,
    }
}

/// The first handoff that must be completed before it, or the first that a part of its task is with.
pub fn waited_for(record: &Record) -> Option<&HandoffId> {
    record.waits_for.iter().chain(&record.parts).next()
}
