//! What an agent may claim, as far as a record shows.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;
use handoff_protocol::{Event, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Record, lasts};

/// What waits for an agent, reduced to what is needed to choose among it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimable {
    /// The most urgent handoff that can be claimed now, the oldest first.
    pub first: Option<HandoffId>,
    /// The first handoff that waits for others, and the first one it waits for.
    pub waits: Option<(HandoffId, HandoffId)>,
    /// The handoff whose next attempt may start soonest, and when.
    pub later: Option<(Moment, HandoffId)>,
    /// The first handoff that was not claimed in time.
    pub late: Option<HandoffId>,
}

/// The verdict for all handoffs with the same brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// They can be claimed; a lower number is more urgent.
    Claimable(usize),
    /// They wait for another handoff.
    Waits,
    /// They can be claimed from this moment on.
    Later(Moment),
    /// They were not claimed in time.
    Late,
    /// They can't be claimed: an agent works on them or must decide.
    No,
}

/// When a handoff was sent, in milliseconds since 1970.
pub fn sent_at(record: &Record) -> Option<i64> {
    record.sent_at().map(|at| at.timestamp_millis())
}

/// What choosing needs to know of a record, except when it was sent. Many records share the same
/// brief.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    /// The state that the record has.
    pub state: State,
    /// The protocol of its issue, which defines the priorities.
    pub protocol: String,
    /// Its priority, in the protocol's words.
    pub priority: Option<String>,
    /// The start and the end of its pause before another attempt, as all times here in milliseconds
    /// since 1970.
    pause: Option<(i64, i64)>,
    /// When it must be claimed.
    acknowledge_by: Option<i64>,
    /// The first handoff that must be completed before it, or the first that a part of its task is
    /// with.
    pub waits_for: Option<HandoffId>,
    /// Whether it is pending because its question was answered.
    pub answered: bool,
}

impl Brief {
    /// The brief of a record.
    pub fn of(record: &Record) -> Self {
        Self {
            state: record.state,
            protocol: record.protocol.to_string(),
            priority: record.priority.clone(),
            pause: record
                .pause()
                .map(|(since, end)| (since.timestamp_millis(), end.timestamp_millis())),
            acknowledge_by: record.acknowledge_by.map(|at| at.timestamp_millis()),
            waits_for: record.waits_for.iter().chain(&record.parts).next().cloned(),
            answered: record.state == State::Pending
                && record
                    .latest()
                    .is_some_and(|t| t.event == Some(Event::Answer)),
        }
    }

    /// Whether the time to claim it ran out, even if nobody has recorded that yet.
    pub fn is_unacknowledged(&self, now: Moment) -> bool {
        self.acknowledge_by
            .is_some_and(|end| end <= now.timestamp_millis())
    }

    /// Why a handoff with this brief can't be claimed now.
    pub fn hindrance(&self, now: Moment) -> Option<ClaimVerdict> {
        let moment = Moment::from_timestamp_millis;
        let pause = self
            .pause
            .and_then(|(since, end)| Some((moment(since)?, moment(end)?)));
        match pause {
            _ if self.state != State::Pending => Some(ClaimVerdict::No),
            _ if self.is_unacknowledged(now) => Some(ClaimVerdict::Late),
            _ if self.waits_for.is_some() => Some(ClaimVerdict::Waits),
            Some(pause) if lasts(pause, now) => Some(ClaimVerdict::Later(pause.1)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Brief, ClaimVerdict, State};
    use handoff_base::Moment;

    #[test]
    fn what_can_be_claimed_is_pending_waits_for_nothing_and_may_begin() {
        let at = |second| Moment::from_timestamp(second, 0).unwrap();
        let brief = Brief {
            state: State::Pending,
            protocol: "p".to_owned(),
            priority: None,
            pause: Some((40_000, 100_000)),
            acknowledge_by: None,
            waits_for: None,
            answered: false,
        };
        assert_eq!(brief.hindrance(at(99)), Some(ClaimVerdict::Later(at(100))));
        assert_eq!(brief.hindrance(at(100)), None);
        // By a clock that was set back, it has waited long enough.
        assert_eq!(brief.hindrance(at(-20)), None);
        assert_eq!(brief.hindrance(at(-19)), Some(ClaimVerdict::Later(at(100))));
        let waits_for = Some("7.1".parse().unwrap());
        let waits = Brief {
            waits_for,
            ..brief.clone()
        };
        assert_eq!(waits.hindrance(at(99)), Some(ClaimVerdict::Waits));
        for state in State::ALL {
            let brief = Brief {
                state,
                pause: None,
                ..brief.clone()
            };
            let hindered = brief.hindrance(at(0));
            let expected = (state != State::Pending).then_some(ClaimVerdict::No);
            assert_eq!(hindered, expected, "{state}");
        }
    }
}
