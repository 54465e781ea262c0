//! Counts handoff by handoff.

use std::collections::BTreeMap;

use handoff::ledger::{HandoffSurvey, IssueSurvey, RefusedContract};
use handoff::model::{IssueStatus, Spent};
use handoff::protocol::{Event, Metric, Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::{Distribution, Samples, average};
use super::usage::UsageSum;
use crate::events::{EVENTS, for_each};
use handoff_graph::times::{self, Times, cycle_time};

/// How often each of [`EVENTS`] occurred in a handoff.
pub(super) type Counts = [u64; EVENTS.len()];

/// The counts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Without notes.
    handoffs: u64,
    notes: u64,
    claimed: u64,
    /// Indexed like [`State::ALL`].
    states: [u64; State::ALL.len()],
    events: Counts,
    refused: u64,
    contradicted: u64,
    cycles: u64,
    duration: Samples,
    acknowledgment: Samples,
    recovery: Samples,
    times: Times,
    open: u64,
    completed: u64,
    cycle: Samples,
    usage: Spent,
}

impl Tally {
    /// The events of each handoff of an issue, in their order.
    pub(super) fn events(issue: &IssueSurvey<'_>, protocol: Option<&Protocol>) -> Vec<Counts> {
        let mut counts = vec![Counts::default(); issue.handoffs.len()];
        for (i, metric) in EVENTS.into_iter().enumerate() {
            for_each(issue, protocol, metric, |_, number| {
                let index = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
                if let Some(counts) = index.and_then(|index| counts.get_mut(index)) {
                    counts[i] += 1;
                }
            });
        }
        counts
    }

    pub(super) fn add(&mut self, handoff: &HandoffSurvey<'_>, counts: &Counts, times: &Times) {
        for (sum, count) in self.events.iter_mut().zip(counts) {
            *sum += count;
        }
        handoff
            .usage
            .iter()
            .for_each(|usage| self.usage.add(&usage.spent));
        // A note is never claimed.
        if handoff.is_note() {
            self.notes += 1;
            return;
        }
        self.handoffs += 1;
        if let Some(at) = position(handoff.state) {
            self.states[at] += 1;
        }
        let claims = |event| event == Some(Event::Claim);
        self.claimed += u64::from(handoff.changes.iter().any(|c| claims(c.event)));
        self.duration.add(times::resolution(handoff));
        self.acknowledgment.add(times::acknowledgment(handoff));
        self.recovery.add(times::recoveries(handoff));
        self.times.add_all(times);
    }

    pub(super) fn add_issue(&mut self, issue: &IssueSurvey<'_>) {
        match issue.status {
            IssueStatus::Open => self.open += 1,
            IssueStatus::Completed => self.completed += 1,
            IssueStatus::Cancelled => {}
        }
        self.cycle.add(cycle_time(issue));
    }

    pub(super) fn add_refused(&mut self, refused: &RefusedContract) {
        self.refused += 1;
        self.contradicted += u64::from(refused.is_contradicted());
        self.cycles += u64::from(refused.is_cycle());
    }

    /// Adds the counts of another tally.
    pub(super) fn add_all(&mut self, other: &Self) {
        let sums = [
            (&mut self.handoffs, other.handoffs),
            (&mut self.notes, other.notes),
            (&mut self.claimed, other.claimed),
            (&mut self.refused, other.refused),
            (&mut self.contradicted, other.contradicted),
            (&mut self.cycles, other.cycles),
            (&mut self.open, other.open),
            (&mut self.completed, other.completed),
        ];
        for (sum, count) in sums {
            *sum += count;
        }
        for (sum, count) in self.states.iter_mut().zip(&other.states) {
            *sum += count;
        }
        for (sum, count) in self.events.iter_mut().zip(&other.events) {
            *sum += count;
        }
        self.times.add_all(&other.times);
        self.duration.add_all(&other.duration);
        self.acknowledgment.add_all(&other.acknowledgment);
        self.recovery.add_all(&other.recovery);
        self.cycle.add_all(&other.cycle);
        self.usage.add(&other.usage);
    }

    /// The resulting figures; `has_issues` if whole issues were counted.
    pub(super) fn figures(&mut self, has_issues: bool) -> Figures {
        let events = self.events;
        let count = |metric| {
            let index = EVENTS.iter().position(|known| *known == metric);
            index.map_or(0, |index| events[index])
        };
        let states = self.states;
        let in_state = |state| position(state).map_or(0, |at| states[at]);
        let share =
            |part: u64, of: u64| average(i64::try_from(part).ok()?, usize::try_from(of).ok()?);
        let completed = in_state(State::Completed);
        let judged = [
            State::Completed,
            State::Failed,
            State::Dead,
            State::Rejected,
        ];
        Figures {
            handoffs: self.handoffs + self.notes,
            notes: self.notes,
            states: State::ALL.map(|state| (state, in_state(state))).into(),
            failures: count(Metric::Failures),
            timeouts: count(Metric::Timeouts),
            retries: count(Metric::Retries),
            escalated: count(Metric::Escalated),
            contradicted: count(Metric::Contradicted),
            violations: count(Metric::Violations),
            cycles_blocked: self.cycles,
            contracts_refused: self.refused,
            contracts_contradicted: self.contradicted,
            success_rate: share(completed, judged.into_iter().map(in_state).sum()),
            acknowledgment_rate: share(self.claimed, self.handoffs),
            duration_seconds: Distribution::of(&mut self.duration),
            acknowledgment_seconds: Distribution::of(&mut self.acknowledgment),
            recovery_seconds: Distribution::of(&mut self.recovery),
            waiting_seconds: self.times.waiting.num_seconds(),
            working_seconds: self.times.working.num_seconds(),
            blocked_seconds: self.times.blocked.num_seconds(),
            failed_seconds: self.times.failed.num_seconds(),
            usage: (&self.usage).into(),
            issues: has_issues.then(|| IssueFigures {
                open: self.open,
                completed: self.completed,
                cycle_seconds: Distribution::of(&mut self.cycle),
            }),
        }
    }
}

fn position(state: State) -> Option<usize> {
    State::ALL.iter().position(|known| *known == state)
}

/// The figures of a group of handoffs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// How many were sent: as many as `verify` finds.
    pub handoffs: u64,
    /// Contracts that were completed on arrival, which nobody claims; of the figures below, only
    /// `escalated`, `contradicted` and `violations` count them.
    pub notes: u64,
    /// How many of the others are now in each state.
    pub states: BTreeMap<State, u64>,
    /// Attempts that failed: the events `fail` and `expire`.
    pub failures: u64,
    /// Failed attempts whose lease, or time to claim them, ran out: the event `expire`.
    pub timeouts: u64,
    /// How often they were retried.
    pub retries: u64,
    /// How often one reached a person: sent or reassigned to an agent of kind `human`, decided with
    /// `escalate` or `fall_back`, or answered with a status that the protocol maps to `blocked`.
    /// Each step counts once.
    pub escalated: u64,
    /// Statements that the repository contradicts, although the contract was accepted.
    pub contradicted: u64,
    /// Actions of senders against their roles.
    pub violations: u64,
    /// Contracts that this clone refused with `cycle` or `loop`.
    pub cycles_blocked: u64,
    /// Contracts that `send` refused in this clone with exit 3 or 4.
    pub contracts_refused: u64,
    /// How many of these have a statement that the repository contradicts.
    pub contracts_contradicted: u64,
    /// Completed as a share of completed, failed, dead and rejected, by current state, 0 to 1.
    pub success_rate: Option<f64>,
    /// The share that was ever claimed, 0 to 1.
    pub acknowledgment_rate: Option<f64>,
    /// From sent to completed, rejected or cancelled.
    pub duration_seconds: Distribution,
    /// From sent to the first claim.
    pub acknowledgment_seconds: Distribution,
    /// From a failure to the claim that resumed the work.
    pub recovery_seconds: Distribution,
    /// Total time spent waiting to be claimed.
    pub waiting_seconds: i64,
    /// Total time in progress, until the lease expired.
    pub working_seconds: i64,
    /// Total time spent waiting for answers.
    pub(crate) blocked_seconds: i64,
    /// Total time failed, dead or with an expired lease: nobody had decided what to do next.
    pub(crate) failed_seconds: i64,
    /// Reported usage.
    pub usage: UsageSum,
    /// Figures of whole issues; null in groups that split issues.
    pub issues: Option<IssueFigures>,
}

/// The figures of a group of issues.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IssueFigures {
    /// How many are open.
    pub open: u64,
    /// How many are completed.
    pub completed: u64,
    /// From their opening to their completion.
    pub cycle_seconds: Distribution,
}
