//! The lifecycle of a handoff: the same states and events for every protocol.

use handoff_base::words;

words! {
    /// The state of one handoff.
    pub enum State {
        /// Sent, and waiting for its receiver.
        Pending = "pending",
        /// Claimed: the receiver works on it.
        InProgress = "in_progress",
        /// The receiver waits for an answer.
        Blocked = "blocked",
        /// The receiver could not do it; it may be retried.
        Failed = "failed",
        /// Failed, with no attempt left; only a person's redrive revives it.
        Dead = "dead",
        /// Done. Terminal.
        Completed = "completed",
        /// Rejected by its receiver before work began. Terminal.
        Rejected = "rejected",
        /// Cancelled. Terminal.
        Cancelled = "cancelled",
    }
}

impl State {
    /// The state's name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            other => other.as_str(),
        }
    }

    /// Whether a handoff in this state never changes again.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Rejected | Self::Cancelled)
    }

    /// Whether a handoff in this state stays there until somebody decides about it.
    pub fn is_stuck(self) -> bool {
        matches!(self, Self::Failed | Self::Dead | Self::Blocked)
    }

    /// Whether work stopped before it was completed, so that its reason matters.
    pub fn is_stopped(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::Dead | Self::Blocked | Self::Rejected | Self::Cancelled
        )
    }

    /// Applies an event.
    ///
    /// # Errors
    /// [`IllegalEvent`] if the lifecycle has no such transition.
    pub fn on(self, event: Event) -> Result<Self, IllegalEvent> {
        use Event as E;
        match (self, event) {
            (Self::Pending, E::Claim) => Ok(Self::InProgress),
            (Self::Pending, E::Reject) => Ok(Self::Rejected),
            (Self::InProgress, E::Complete) => Ok(Self::Completed),
            (Self::InProgress, E::Fail | E::Expire) | (Self::Pending, E::Expire) => {
                Ok(Self::Failed)
            }
            (Self::InProgress, E::Extend | E::TakeOver) => Ok(Self::InProgress),
            (Self::InProgress, E::Block) => Ok(Self::Blocked),
            (Self::InProgress, E::Release)
            | (Self::Blocked, E::Answer)
            | (Self::Failed, E::Retry)
            | (Self::Dead, E::Redrive)
            | (Self::Pending | Self::Failed, E::Reassign) => Ok(Self::Pending),
            (Self::Failed, E::Exhaust) => Ok(Self::Dead),
            (state, E::Cancel) if !state.is_terminal() => Ok(Self::Cancelled),
            (state, event) => Err(IllegalEvent { state, event }),
        }
    }

    /// The events that this state accepts.
    pub fn accepts(self) -> impl Iterator<Item = Event> {
        Event::ALL.into_iter().filter(move |&e| self.on(e).is_ok())
    }
}

words! {
    /// An event of a handoff.
    pub enum Event {
        /// The receiver takes it.
        Claim = "claim",
        /// The holder finished.
        Complete = "complete",
        /// The holder could not do it.
        Fail = "fail",
        /// The holder needs an answer first.
        Block = "block",
        /// The receiver rejects it.
        Reject = "reject",
        /// It is withdrawn.
        Cancel = "cancel",
        /// A failed handoff gets another attempt.
        Retry = "retry",
        /// A blocked handoff got its answer.
        Answer = "answer",
        /// No attempt is left.
        Exhaust = "exhaust",
        /// A dead handoff gets new attempts.
        Redrive = "redrive",
        /// Another agent takes over.
        Reassign = "reassign",
        /// The holder is still working.
        Extend = "extend",
        /// The holder's lease ran out, or nobody claimed it in time.
        Expire = "expire",
        /// Another worker of the receiver takes it from the one that holds it.
        TakeOver = "take_over",
        /// The holder gives it back: this was no attempt.
        Release = "release",
    }
}

impl Event {
    /// Whether the event starts a lease.
    pub fn is_claim(self) -> bool {
        matches!(self, Self::Claim | Self::TakeOver)
    }

    /// Whether only the holder of a handoff's lease may cause this event.
    pub fn is_holders(self) -> bool {
        matches!(
            self,
            Self::Complete | Self::Fail | Self::Block | Self::Extend | Self::Release
        )
    }

    /// Whether only the handoff's receiver may cause this event (a person may reject, too). All
    /// others are open to its sender, its receiver, orchestrators and people.
    pub fn is_receivers(self) -> bool {
        matches!(
            self,
            Self::Claim
                | Self::Complete
                | Self::Fail
                | Self::Block
                | Self::Reject
                | Self::Extend
                | Self::Expire
                | Self::TakeOver
                | Self::Release
        )
    }
}

/// An event that the lifecycle does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a handoff that is {state} does not accept `{event}`")]
pub struct IllegalEvent {
    /// The current state.
    pub state: State,
    /// The event that was tried.
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::{Event, State};

    /// Every state against every event: the whole lifecycle, including refusals.
    #[test]
    fn state_event_table() {
        let short = |s: State| match s {
            State::InProgress => "work",
            State::Pending => "pend",
            State::Completed => "done",
            State::Failed => "fail",
            State::Blocked => "blck",
            State::Rejected => "rjct",
            State::Cancelled => "cncl",
            State::Dead => "dead",
        };
        let mut table = String::new();
        for state in State::ALL {
            table += &format!("{state:<11}");
            for event in Event::ALL {
                let to = state.on(event).map_or("-", short);
                table += &format!(" {event}:{to}");
            }
            table.push('\n');
        }
        insta::assert_snapshot!(table, @"
        pending     claim:work complete:- fail:- block:- reject:rjct cancel:cncl retry:- answer:- exhaust:- redrive:- reassign:pend extend:- expire:fail take_over:- release:-
        in_progress claim:- complete:done fail:fail block:blck reject:- cancel:cncl retry:- answer:- exhaust:- redrive:- reassign:- extend:work expire:fail take_over:work release:pend
        blocked     claim:- complete:- fail:- block:- reject:- cancel:cncl retry:- answer:pend exhaust:- redrive:- reassign:- extend:- expire:- take_over:- release:-
        failed      claim:- complete:- fail:- block:- reject:- cancel:cncl retry:pend answer:- exhaust:dead redrive:- reassign:pend extend:- expire:- take_over:- release:-
        dead        claim:- complete:- fail:- block:- reject:- cancel:cncl retry:- answer:- exhaust:- redrive:pend reassign:- extend:- expire:- take_over:- release:-
        completed   claim:- complete:- fail:- block:- reject:- cancel:- retry:- answer:- exhaust:- redrive:- reassign:- extend:- expire:- take_over:- release:-
        rejected    claim:- complete:- fail:- block:- reject:- cancel:- retry:- answer:- exhaust:- redrive:- reassign:- extend:- expire:- take_over:- release:-
        cancelled   claim:- complete:- fail:- block:- reject:- cancel:- retry:- answer:- exhaust:- redrive:- reassign:- extend:- expire:- take_over:- release:-
        ");
    }
}
