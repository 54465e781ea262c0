//! What the outside world gives to a write: who runs it, and the clock.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use crate::git::Person;
use crate::ids::AgentName;

/// Where times come from; the library has no clock of its own.
pub trait Clock {
    /// The time of the step, which its commit names as the author's.
    fn author(&self) -> DateTime<FixedOffset>;
    /// The time at which it is recorded.
    fn committer(&self) -> DateTime<FixedOffset>;
}

/// Who runs the program, and how long it may take.
pub struct Session {
    /// The clock.
    pub clock: Box<dyn Clock>,
    /// The name of the person or machine that runs it.
    pub name: String,
    /// Their address.
    pub email: String,
    /// How long a write may wait for others.
    pub patience: Duration,
    /// A number below its argument, by chance.
    pub jitter: fn(u64) -> u64,
    /// Whether commits are to be signed wherever they are written.
    pub sign: bool,
    /// Whether this runs inside a hook that receives a push.
    pub quarantined: bool,
}

impl Session {
    /// The person or machine that records a step now.
    pub fn committer(&self) -> Person {
        Person::new(&self.name, &self.email, self.clock.committer())
    }
}

/// The agent as the author of a step.
pub(super) fn author(agent: &AgentName, at: DateTime<FixedOffset>) -> Person {
    Person::new(agent.as_str(), &format!("{agent}@handoff.invalid"), at)
}
