//! The event of a step, and its state changes.

use handoff_base::ids::HandoffId;
use handoff_protocol::{Event, State};
use schemars::JsonSchema;
use serde::Serialize;

/// A change of a handoff's state, for trailers and receipts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// The handoff.
    pub id: HandoffId,
    /// The state before; `None` for a new handoff.
    pub from: Option<State>,
    /// The state after.
    pub to: State,
}

impl std::fmt::Display for Change {
    /// Writes `123.3 in_progress..completed`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = self.from.map_or("none", State::as_str);
        write!(f, "{} {from}..{}", self.id, self.to)
    }
}

/// The event of a step, as in its `Event` trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEvent {
    /// Work was sent to its receiver.
    Send,
    /// An event of a handoff's lifecycle.
    Lifecycle(Event),
    /// A decision was recorded.
    Decide,
    /// A note was added.
    Annotate,
    /// A person approved a handoff's result.
    Approve,
    /// A person disapproved of it.
    Disapprove,
    /// A completed or cancelled issue was reopened, or a paused one resumed.
    Reopen,
    /// An issue was given up.
    GiveUp,
    /// An issue was paused.
    Pause,
    /// A field that orders the queue was set.
    Set,
    /// A refused contract was put on record.
    Refuse,
    /// Ended issues were archived.
    Archive,
    /// An archived issue was restored.
    Unarchive,
}

impl StepEvent {
    /// Every event that a step can have.
    pub fn all() -> impl Iterator<Item = Self> {
        // Exhausting attempts is part of the failure before it.
        let lifecycle = Event::ALL.into_iter().filter(|e| *e != Event::Exhaust);
        std::iter::once(Self::Send)
            .chain(lifecycle.map(Self::Lifecycle))
            .chain([Self::Decide, Self::Annotate])
            .chain([Self::Approve, Self::Disapprove])
            .chain([
                Self::Reopen,
                Self::GiveUp,
                Self::Pause,
                Self::Set,
                Self::Refuse,
            ])
            .chain([Self::Archive, Self::Unarchive])
    }

    /// The event's word in its trailer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Lifecycle(event) => event.as_str(),
            Self::Decide => "decide",
            Self::Annotate => "annotate",
            Self::Approve => "approve",
            Self::Disapprove => "disapprove",
            Self::Reopen => "reopen",
            Self::GiveUp => "give_up",
            Self::Pause => "pause",
            Self::Set => "set",
            Self::Refuse => "refuse",
            Self::Archive => "archive",
            Self::Unarchive => "unarchive",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StepEvent;

    #[test]
    fn every_event_has_its_own_name() {
        let mut names: Vec<&str> = StepEvent::all().map(StepEvent::as_str).collect();
        assert!(names.contains(&"send") && !names.contains(&"exhaust"));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
