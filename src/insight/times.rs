//! Where a handoff's time went: the one definition of waiting, working, answering
//! and recovering that every figure, alarm, trace and page uses.

use chrono::TimeDelta;

use crate::ids::AgentName;
use crate::ledger::{ChangeSurvey, HandoffSurvey, Moment};
use crate::protocol::{Event, State};

/// A stretch of time that a handoff spent in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spell<'a> {
    /// The state.
    pub state: State,
    /// Whose time it was: the receiver that it waited for, or that worked on it.
    pub agent: &'a AgentName,
    /// When it began.
    pub since: Moment,
    /// When it ended; none, if it has not.
    pub until: Option<Moment>,
    /// The change that began it.
    pub began_by: &'a ChangeSurvey,
    /// The change that ended it.
    pub ended_by: Option<&'a ChangeSurvey>,
}

impl Spell<'_> {
    /// How long it took, or has taken so far. A clock that was set back made it
    /// take no time, never less.
    pub fn length(&self, now: Moment) -> TimeDelta {
        (self.until.unwrap_or(now) - self.since).max(TimeDelta::zero())
    }
}

/// The states that a handoff was in, one after the other; what it is in for good
/// is none of them.
pub fn spells(handoff: &HandoffSurvey) -> Vec<Spell<'_>> {
    let mut agent = &handoff.sent_to;
    let mut spells: Vec<Spell<'_>> = Vec::with_capacity(handoff.changes.len());
    for change in &handoff.changes {
        agent = match (&change.receiver, change.event) {
            (Some(receiver), _) => receiver,
            (None, Some(Event::Claim)) => &change.by,
            (None, _) => agent,
        };
        // A sign of life ends nothing.
        if let Some(last) = spells.last_mut() {
            if last.state == change.to && last.agent == agent {
                continue;
            }
            last.until = Some(change.at);
            last.ended_by = Some(change);
        }
        spells.push(Spell {
            state: change.to,
            agent,
            since: change.at,
            until: None,
            began_by: change,
            ended_by: None,
        });
    }
    spells.retain(|spell| !spell.state.is_terminal());
    spells
}

/// How long a handoff was in which kind of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Pending: nobody had taken it up.
    pub waiting: TimeDelta,
    /// In progress.
    pub working: TimeDelta,
    /// Blocked: an answer was missing.
    pub blocked: TimeDelta,
    /// Failed or dead: nobody had decided what becomes of it.
    pub failed: TimeDelta,
}

impl Times {
    /// Adds a stretch of time.
    pub fn add(&mut self, state: State, length: TimeDelta) {
        match state {
            State::Pending => self.waiting += length,
            State::InProgress => self.working += length,
            State::Blocked => self.blocked += length,
            State::Failed | State::Dead => self.failed += length,
            State::Completed | State::Rejected | State::Cancelled => {}
        }
    }
}

/// How long a handoff was in which kind of state up to now.
pub fn times(handoff: &HandoffSurvey, now: Moment) -> Times {
    let mut times = Times::default();
    for spell in spells(handoff) {
        times.add(spell.state, spell.length(now));
    }
    times
}

/// From the sending to the first claim, which is the acknowledgment.
pub fn acknowledgment(handoff: &HandoffSurvey) -> Option<TimeDelta> {
    let claimed = |event| event == Some(Event::Claim);
    let mut changes = handoff.changes.iter();
    let claim = changes.find(|change| claimed(change.event))?;
    Some((claim.at - handoff.sent_at()?).max(TimeDelta::zero()))
}

/// From the sending to the end: completed, rejected or cancelled.
pub fn resolution(handoff: &HandoffSurvey) -> Option<TimeDelta> {
    let last = handoff.changes.last().filter(|c| c.to.is_terminal())?;
    Some((last.at - handoff.sent_at()?).max(TimeDelta::zero()))
}

/// From each failure to the claim that took the work up again, with the moment of
/// that claim.
pub fn recovered(handoff: &HandoffSurvey) -> Vec<(Moment, TimeDelta)> {
    let mut found = Vec::new();
    let mut failed = None;
    for change in &handoff.changes {
        match change.event {
            Some(Event::Fail | Event::Expire) => failed = Some(change.at),
            Some(Event::Claim) => {
                let length = failed.take().map(|at| change.at - at);
                found.extend(length.map(|length| (change.at, length.max(TimeDelta::zero()))));
            }
            _ => {}
        }
    }
    found
}

/// From each failure to the claim that took the work up again.
pub fn recoveries(handoff: &HandoffSurvey) -> Vec<TimeDelta> {
    let found = recovered(handoff).into_iter();
    found.map(|(_, length)| length).collect()
}
