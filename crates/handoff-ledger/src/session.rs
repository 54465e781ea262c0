//! The environment of a write: the user, the clock, and the limits.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset};
use handoff_base::ids::{AgentName, WorkerId};
use handoff_base::{Moment, to_second};
use handoff_git::Person;
use handoff_model::{Delivery, ModelUsage, Request, Step, TraceParent};

use super::error::WriteError;
use super::order::is_postdated;
use super::tally::Tally;

/// The source of times; the library has no clock.
pub trait Clock {
    /// The time of the step, used as the commit's author date.
    fn author(&self) -> DateTime<FixedOffset>;
    /// The time at which the step is recorded.
    fn committer(&self) -> DateTime<FixedOffset>;
}

/// The environment in which the program runs.
#[derive(Clone)]
pub struct Session {
    /// The clock.
    pub clock: Rc<dyn Clock>,
    /// The name of the person or machine that runs it.
    pub name: String,
    /// The worker that makes the steps; `None` if it is not known.
    pub worker: Option<WorkerId>,
    /// The agent that changes a protocol; `None` for a person at a terminal.
    pub agent: Option<AgentName>,
    /// The email address of that person or machine.
    pub email: String,
    /// How long a write may wait for other writers and for a remote.
    pub patience: Duration,
    /// Whether to record steps only locally for now, even with a remote.
    pub offline: bool,
    /// When the program started.
    pub began: SystemTime,
    /// The system's time, regardless of the clock.
    pub wall: fn() -> SystemTime,
    /// A random number below its argument.
    pub jitter: fn(u64) -> u64,
    /// Whether to sign every commit.
    pub sign: bool,
    /// The trace that its steps belong to.
    pub traceparent: Option<TraceParent>,
    /// The usage to report with the next step; empty if there is none.
    pub usage: Vec<ModelUsage>,
    /// The outside event that its steps apply.
    pub delivery: Option<Delivery>,
    /// Whether this runs in a hook that receives a push.
    pub quarantined: bool,
    /// Whether this belongs to a run of `work`, whose agent may name any branch.
    pub is_run: bool,
    /// Counts the progress of long operations.
    pub tally: Arc<Tally>,
}

/// A settable time; while it is `None`, the clock runs.
#[doc(hidden)]
pub type SetTime = Rc<Cell<Option<DateTime<FixedOffset>>>>;

/// A clock that can be set back to the time of a step.
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

/// How long a write waits for others by default.
const PATIENCE: Duration = Duration::from_secs(60);

impl Session {
    /// The session of a person or machine, by name and email address. Its steps are not signed, and
    /// a write waits for others up to a minute. `wall` is the system's time, `jitter` draws a random
    /// number below its argument.
    pub fn new(
        clock: Rc<dyn Clock>,
        (name, email): (&str, &str),
        wall: fn() -> SystemTime,
        jitter: fn(u64) -> u64,
    ) -> Self {
        Self {
            clock,
            name: name.to_owned(),
            worker: None,
            agent: None,
            email: email.to_owned(),
            patience: PATIENCE,
            offline: false,
            began: wall(),
            wall,
            jitter,
            sign: false,
            traceparent: None,
            usage: Vec::new(),
            delivery: None,
            quarantined: false,
            is_run: false,
            tally: Arc::default(),
        }
    }

    /// The same session with settable step times.
    #[doc(hidden)]
    #[must_use]
    pub fn timed(self) -> (Self, SetTime) {
        let at = SetTime::default();
        let clock = Rc::new(StepClock {
            clock: self.clock,
            at: Rc::clone(&at),
        });
        (Self { clock, ..self }, at)
    }

    /// The same session for a step that replaces another: with that step's worker, trace, usage
    /// report and outside event.
    #[doc(hidden)]
    #[must_use]
    pub fn instead_of(&self, step: &Step) -> Self {
        Self {
            worker: step.worker.clone(),
            traceparent: step.traceparent,
            usage: step.usage.clone(),
            delivery: step.delivery.clone(),
            ..self.clone()
        }
    }

    /// The same session, whose steps apply an outside event.
    #[must_use]
    pub fn delivering(&self, delivery: Delivery) -> Self {
        Self {
            delivery: Some(delivery),
            ..self.clone()
        }
    }

    /// Waits for a lock's holder, longer after each attempt.
    #[doc(hidden)]
    pub fn back_off(&self, attempts: u32) {
        const LONGEST: u64 = 50_000;
        let pause = LONGEST.min(1_000 << attempts.min(6));
        std::thread::sleep(Duration::from_micros(pause + (self.jitter)(pause)));
    }

    /// The step that an agent makes now.
    pub(super) fn step(&self, by: AgentName, at: Moment, request: Request) -> Step {
        Step {
            worker: self.worker.clone(),
            traceparent: self.traceparent,
            usage: self.usage.clone(),
            delivery: self.delivery.clone(),
            ..Step::new(by, at, request)
        }
    }

    /// Refuses a step dated more than a day after its recording, and a clock more than a day ahead
    /// of the system's: later steps could not have earlier times.
    ///
    /// # Errors
    /// [`WriteError::Postdated`].
    pub(super) fn ensure_not_ahead(&self, at: Moment, recorded: Moment) -> Result<(), WriteError> {
        let own = to_second(self.clock.committer());
        let late = [(at, recorded), (own, self.now())];
        let late = late
            .into_iter()
            .find(|(at, known)| is_postdated(*at, *known));
        late.map_or(Ok(()), |(at, known)| {
            Err(WriteError::Postdated { at, known })
        })
    }

    /// The system's time.
    pub fn now(&self) -> Moment {
        Moment::from((self.wall)())
    }

    /// The person or machine that records a step now.
    pub fn committer(&self) -> Person {
        Person::new(&self.name, &self.email, self.clock.committer())
    }
}

/// The agent that is the author of a step; `None` for the person who runs the program.
pub(super) fn agent_of(author: &Person) -> Option<AgentName> {
    let name = author.email.strip_suffix("@handoff.invalid")?;
    name.parse().ok().filter(|_| name == author.name)
}

/// An agent as the author of a step.
pub(super) fn author(agent: &AgentName, at: DateTime<FixedOffset>) -> Person {
    Person::new(agent.as_str(), &format!("{agent}@handoff.invalid"), at)
}
