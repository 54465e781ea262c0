//! What an agent may claim, as far as a record tells.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;
use handoff_protocol::State;
use serde::{Deserialize, Serialize};

use crate::record::{Record, lasts};

/// What waits for an agent, as far as a choice among it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimable {
    /// The most urgent, then the oldest handoff that can be claimed now.
    pub first: Option<HandoffId>,
    /// The first handoff that others must be completed for, and the first of
    /// these.
    pub waits: Option<(HandoffId, HandoffId)>,
    /// The handoff whose next attempt may begin first, and when.
    pub later: Option<(Moment, HandoffId)>,
}

/// What can be said of all handoffs with the same brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// They can be claimed, with this urgency: the lower, the sooner.
    Claimable(usize),
    /// They wait for another one.
    Waits,
    /// They can be claimed from this moment on.
    Later(Moment),
    /// Someone works on them, or must decide.
    No,
}

/// When a handoff was sent, in seconds.
pub fn sent_at(record: &Record) -> Option<i64> {
    record.sent_at().map(|at| at.timestamp())
}

/// What a choice needs to know of a record, besides when it was sent: many have
/// the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Brief {
    /// The state that the record has.
    pub state: State,
    /// The protocol of its issue, whose priorities count.
    pub protocol: String,
    /// The protocol's word for its urgency.
    pub priority: Option<String>,
    /// Since when it waits for another attempt, and until when.
    pause: Option<(i64, i64)>,
    /// The first handoff that must be completed before.
    pub waits_for: Option<HandoffId>,
}

impl Brief {
    /// What a record says.
    pub fn of(record: &Record) -> Self {
        Self {
            state: record.state,
            protocol: record.protocol.to_string(),
            priority: record.priority.clone(),
            pause: record
                .pause()
                .map(|(since, end)| (since.timestamp(), end.timestamp())),
            waits_for: record.waits_for.first().cloned(),
        }
    }

    /// Why such a handoff can't be claimed now.
    pub fn hindrance(&self, now: Moment) -> Option<ClaimVerdict> {
        let second = |at| Moment::from_timestamp(at, 0);
        let pause = self
            .pause
            .and_then(|(since, end)| Some((second(since)?, second(end)?)));
        match pause {
            _ if self.state != State::Pending => Some(ClaimVerdict::No),
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
            pause: Some((40, 100)),
            waits_for: None,
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
