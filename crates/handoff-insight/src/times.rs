//! Where a handoff's time went: the one definition of waiting, working, answering
//! and recovering that every figure, alarm, trace and page uses.

use chrono::TimeDelta;
use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_ledger::{ChangeSurvey, HandoffSurvey, IssueSurvey};
use handoff_protocol::{Event, State};

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
    /// Until when whoever works on it said to be done; what comes after that is no work.
    pub lease_until: Option<Moment>,
    /// The change that began it.
    pub began_by: &'a ChangeSurvey,
    /// The change that ended it.
    pub ended_by: Option<&'a ChangeSurvey>,
}

impl Spell<'_> {
    /// How long it took, or has taken so far; of work, until the lease ran out. A
    /// clock that was set back made it take no time, never less.
    pub fn length(&self, now: Moment) -> TimeDelta {
        let end = self.until.unwrap_or(now);
        let end = self.lease_until.map_or(end, |lease| lease.min(end));
        (end - self.since).max(TimeDelta::zero())
    }

    /// How long the lease has been over, where nobody recorded that it ran out.
    pub fn overdue(&self, now: Moment) -> TimeDelta {
        let over = self.lease_until.filter(|_| self.until.is_none());
        let over = over.map(|end| (now - end).min(now - self.since));
        over.unwrap_or_default().max(TimeDelta::zero())
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
        // It has failed since its lease ran out, whenever that was recorded.
        let begun = spells.last().map(|last| last.since);
        let ran_out_at = change.ran_out_at.filter(|end| Some(*end) >= begun);
        let since = ran_out_at.map_or(change.at, |end| end.min(change.at));
        // A sign of life ends nothing.
        if let Some(last) = spells.last_mut() {
            if last.state == change.to && last.agent == agent {
                continue;
            }
            last.until = Some(since);
            last.ended_by = Some(change);
        }
        spells.push(Spell {
            state: change.to,
            agent,
            since,
            until: None,
            lease_until: None,
            began_by: change,
            ended_by: None,
        });
    }
    spells.retain(|spell| !spell.state.is_terminal());
    let working = spells
        .last_mut()
        .filter(|last| last.state == State::InProgress);
    if let Some(working) = working.filter(|last| last.until.is_none()) {
        working.lease_until = handoff.expires_at;
    }
    spells
}

/// How long a handoff was in which kind of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Pending: nobody had taken it up.
    pub waiting: TimeDelta,
    /// In progress, until the lease ran out.
    pub working: TimeDelta,
    /// Blocked: an answer was missing.
    pub blocked: TimeDelta,
    /// Failed or dead, or its lease over: nobody had decided what becomes of it.
    pub failed: TimeDelta,
}

impl Times {
    /// Adds a stretch of time. What nobody worked on any more had failed.
    pub fn add(&mut self, spell: &Spell<'_>, now: Moment) {
        let length = spell.length(now);
        self.failed += spell.overdue(now);
        match spell.state {
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
        times.add(&spell, now);
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

/// From an issue's first contract to its completion.
pub fn cycle_time(issue: &IssueSurvey) -> Option<TimeDelta> {
    let length = issue.completed_at? - issue.opened_at;
    Some(length.max(TimeDelta::zero()))
}
