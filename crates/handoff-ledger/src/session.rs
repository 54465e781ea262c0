//! What the outside world gives to a write: who runs it, and the clock.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset};
use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_git::Person;
use handoff_model::{Actor, Delivery, TraceParent};

use super::tally::Tally;

/// Where times come from; the library has no clock of its own.
pub trait Clock {
    /// The time of the step, which its commit names as the author's.
    fn author(&self) -> DateTime<FixedOffset>;
    /// The time at which it is recorded.
    fn committer(&self) -> DateTime<FixedOffset>;
}

/// Who runs the program, and how long it may take.
#[derive(Clone)]
pub struct Session {
    /// The clock.
    pub clock: Rc<dyn Clock>,
    /// The name of the person or machine that runs it.
    pub name: String,
    /// Their address.
    pub email: String,
    /// How long a write may wait for others, and for a remote.
    pub patience: Duration,
    /// Whether steps are recorded here alone for now, though there is a remote.
    pub offline: bool,
    /// When the program began.
    pub began: SystemTime,
    /// The system's time, whatever the clock says.
    pub wall: fn() -> SystemTime,
    /// A number below its argument, by chance.
    pub jitter: fn(u64) -> u64,
    /// Whether commits are to be signed wherever they are written.
    pub sign: bool,
    /// The trace that its steps are made in.
    pub traceparent: Option<TraceParent>,
    /// The event from outside that its steps carry out.
    pub delivery: Option<Delivery>,
    /// Whether this runs inside a hook that receives a push.
    pub quarantined: bool,
    /// Where long work is counted.
    pub tally: Arc<Tally>,
}

/// A time that can be set, of a clock that goes on by itself until then.
pub(super) type SetTime = Rc<Cell<Option<DateTime<FixedOffset>>>>;

/// A clock that can be set back to when a step was taken.
struct StepClock {
    clock: Rc<dyn Clock>,
    at: SetTime,
}

impl Clock for StepClock {
    fn author(&self) -> DateTime<FixedOffset> {
        self.at.get().unwrap_or_else(|| self.clock.author())
    }

    fn committer(&self) -> DateTime<FixedOffset> {
        self.clock.committer()
    }
}

impl Session {
    /// The same session, in which the times of steps can be set.
    pub(super) fn timed(self) -> (Self, SetTime) {
        let at = SetTime::default();
        let clock = Rc::new(StepClock {
            clock: self.clock,
            at: Rc::clone(&at),
        });
        (Self { clock, ..self }, at)
    }

    /// The same session, in which a step is made for the reasons of another: in its
    /// trace, and for the event that it carried out.
    pub(super) fn instead_of(
        &self,
        traceparent: Option<TraceParent>,
        delivery: Option<Delivery>,
    ) -> Self {
        Self {
            traceparent,
            delivery,
            ..self.clone()
        }
    }

    /// The same session, in which steps carry out an event.
    #[must_use]
    pub fn delivering(&self, delivery: Delivery) -> Self {
        Self {
            delivery: Some(delivery),
            ..self.clone()
        }
    }

    /// An agent that acts now.
    pub(super) fn actor<'a>(&'a self, name: &'a AgentName, at: Moment) -> Actor<'a> {
        Actor {
            name,
            at,
            traceparent: self.traceparent,
            delivery: self.delivery.as_ref(),
        }
    }

    /// The person or machine that records a step now.
    pub fn committer(&self) -> Person {
        Person::new(&self.name, &self.email, self.clock.committer())
    }
}

/// The agent as the author of a step.
pub(super) fn author(agent: &AgentName, at: DateTime<FixedOffset>) -> Person {
    Person::new(agent.as_str(), &format!("{agent}@handoff.invalid"), at)
}
