//! How a handoff spent its time: the definition shared by metrics, alerts, traces and pages.

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::base::ids::AgentRef;
use handoff::ledger::{ChangeSurvey, HandoffSurvey, IssueSurvey};
use handoff::protocol::{Event, State};

/// A period that a handoff spent in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spell<'a> {
    /// The state.
    pub state: State,
    /// The agent that the time counts for: the receiver, or whoever worked on it.
    pub agent: AgentRef<'a>,
    /// When it began.
    pub since: Moment,
    /// When it ended; `None` if it has not.
    pub until: Option<Moment>,
    /// The end of the lease, or of the time to claim it; later time counts as failed.
    pub lease_until: Option<Moment>,
    /// The event that began it.
    pub began_by: &'a ChangeSurvey<'a>,
    /// The event that ended it.
    pub ended_by: Option<&'a ChangeSurvey<'a>>,
}

impl Spell<'_> {
    /// Its duration so far; work ends with the lease. Zero if a clock was set back.
    pub fn length(&self, now: Moment) -> TimeDelta {
        let end = self.until.unwrap_or(now);
        let end = self.lease_until.map_or(end, |lease| lease.min(end));
        between(self.since, end)
    }

    /// How long ago the lease ran out, if that is not recorded yet.
    pub fn overdue(&self, now: Moment) -> TimeDelta {
        match self.lease_until {
            Some(end) if self.until.is_none() => between(end.max(self.since), now),
            _ => TimeDelta::zero(),
        }
    }
}

/// The time between two moments in milliseconds; zero if a clock was set back. `chrono` subtracts
/// dates several times slower.
fn between(from: Moment, to: Moment) -> TimeDelta {
    let length = to.timestamp_millis() - from.timestamp_millis();
    TimeDelta::milliseconds(length.max(0))
}

/// The periods of a handoff in non-terminal states, in order.
pub fn spells<'h>(handoff: &'h HandoffSurvey<'h>) -> Vec<Spell<'h>> {
    let mut spells = Vec::with_capacity(handoff.changes.len());
    find_spells(handoff, &mut spells);
    spells
}

/// Like [`spells`], but reuses a list.
pub fn find_spells<'h>(handoff: &'h HandoffSurvey<'h>, spells: &mut Vec<Spell<'h>>) {
    spells.clear();
    let mut agent = handoff.sent_to;
    for change in &handoff.changes {
        agent = match (change.receiver, change.event) {
            (Some(receiver), _) => receiver,
            (None, Some(Event::Claim)) => change.by,
            (None, _) => agent,
        };
        // The failure began when the lease ran out, whenever that was recorded.
        let begun = spells.last().map(|last| last.since);
        let ran_out_at = change.ran_out_at.filter(|end| Some(*end) >= begun);
        let since = ran_out_at.map_or(change.at, |end| end.min(change.at));
        // A heartbeat does not end a period.
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
    if let Some(last) = spells.last_mut().filter(|last| last.until.is_none()) {
        last.lease_until = handoff.expires_at;
    }
}

/// The total time that a handoff spent in each kind of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Pending.
    pub waiting: TimeDelta,
    /// In progress, until the lease ran out.
    pub working: TimeDelta,
    /// Blocked.
    pub blocked: TimeDelta,
    /// Failed or dead, or after the lease ran out.
    pub failed: TimeDelta,
}

impl Times {
    /// Adds other times.
    pub fn add_all(&mut self, other: &Self) {
        let sums = [
            (&mut self.waiting, other.waiting),
            (&mut self.working, other.working),
            (&mut self.blocked, other.blocked),
            (&mut self.failed, other.failed),
        ];
        // Skips zeros: `chrono` adds slowly.
        for (sum, more) in sums.into_iter().filter(|(_, more)| !more.is_zero()) {
            *sum += more;
        }
    }

    /// The times of one period. Time after the lease ran out counts as failed.
    pub fn of(spell: &Spell<'_>, now: Moment) -> Self {
        let length = spell.length(now);
        let mut times = Self {
            failed: spell.overdue(now),
            ..Self::default()
        };
        match spell.state {
            State::Pending => times.waiting = length,
            State::InProgress => times.working = length,
            State::Blocked => times.blocked = length,
            State::Failed | State::Dead => times.failed += length,
            State::Completed | State::Rejected | State::Cancelled => {}
        }
        times
    }
}

/// The times of a handoff so far.
pub fn times(handoff: &HandoffSurvey<'_>, now: Moment) -> Times {
    let mut times = Times::default();
    for spell in spells(handoff) {
        times.add_all(&Times::of(&spell, now));
    }
    times
}

/// The time from sending to the first claim.
pub fn acknowledgment(handoff: &HandoffSurvey<'_>) -> Option<TimeDelta> {
    let claimed = |event| event == Some(Event::Claim);
    let mut changes = handoff.changes.iter();
    let claim = changes.find(|change| claimed(change.event))?;
    Some(between(handoff.sent_at()?, claim.at))
}

/// The time from sending to the end: completed, rejected or cancelled.
pub fn resolution(handoff: &HandoffSurvey<'_>) -> Option<TimeDelta> {
    let last = handoff.changes.last().filter(|c| c.to.is_terminal())?;
    Some(between(handoff.sent_at()?, last.at))
}

/// The times from each failure to the next claim, with the date of that claim.
pub fn recovered(handoff: &HandoffSurvey<'_>) -> Vec<(Moment, TimeDelta)> {
    let mut found = Vec::new();
    let mut failed = None;
    for change in &handoff.changes {
        match change.event {
            Some(Event::Fail | Event::Expire) => failed = Some(change.at),
            Some(Event::Claim) => {
                let length = failed.take().map(|at| between(at, change.at));
                found.extend(length.map(|length| (change.at, length)));
            }
            _ => {}
        }
    }
    found
}

/// The durations of all recoveries.
pub fn recoveries(handoff: &HandoffSurvey<'_>) -> Vec<TimeDelta> {
    let found = recovered(handoff).into_iter();
    found.map(|(_, length)| length).collect()
}

/// The time from an issue's first contract to its completion.
pub fn cycle_time(issue: &IssueSurvey<'_>) -> Option<TimeDelta> {
    Some(between(issue.opened_at, issue.completed_at?))
}

/// The nearest rank of a quantile, from 1; `None` without samples.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
pub fn rank(quantile: f64, count: usize) -> Option<usize> {
    // Rounds off the floating-point error, so that whole numbers stay whole.
    let exact = (quantile * count as f64 * 1e9).round() / 1e9;
    (count > 0).then(|| (exact.ceil() as usize).clamp(1, count))
}
