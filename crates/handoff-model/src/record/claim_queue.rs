//! What an agent can claim, by its handoffs' records.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;
use handoff_protocol::State;

use crate::record::{BudgetSpent, Halt, Record, lasts};

/// A summary of what waits for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimable {
    /// The most urgent claimable handoff; among equals, the oldest.
    pub first: Option<HandoffId>,
    /// A handoff that waits, and the first one that it waits for.
    pub waits: Option<(HandoffId, HandoffId)>,
    /// The handoff whose next attempt may start soonest, and when.
    pub later: Option<(Moment, HandoffId)>,
    /// A handoff that was not claimed in time.
    pub late: Option<HandoffId>,
    /// A handoff for which a budget leaves nothing.
    pub spent: Option<BudgetSpent>,
    /// A handoff that must wait for its turn, and the handoff whose turn it is.
    pub turn: Option<(HandoffId, HandoffId)>,
    /// The ledger-wide pause that holds the agent back, if nothing is claimable.
    pub halt: Option<Halt>,
}

/// Why a handoff can't be claimed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// It is not pending.
    Taken,
    /// It was not claimed in time.
    Late,
    /// It waits for another handoff.
    Waits,
    /// It can be claimed from this moment on.
    Later(Moment),
}

/// Why a handoff can't be claimed now; `None` if it can.
pub fn hindrance(record: &Record, now: Moment) -> Option<Hindrance> {
    match record.pause() {
        _ if record.state != State::Pending => Some(Hindrance::Taken),
        // Whether or not that is recorded yet.
        _ if record.acknowledge_by.is_some_and(|end| end <= now) => Some(Hindrance::Late),
        _ if waited_for(record).is_some() => Some(Hindrance::Waits),
        Some(pause) if lasts(pause, now) => Some(Hindrance::Later(pause.1)),
        _ => None,
    }
}

/// The first handoff that it waits for: of a dependency, or of a part of its task.
pub fn waited_for(record: &Record) -> Option<&HandoffId> {
    record.waits_for.iter().chain(&record.parts).next()
}
