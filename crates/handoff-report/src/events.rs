//! Events of handoffs that metrics and alerts count.

use std::collections::BTreeSet;

use handoff::base::Moment;
use handoff::ledger::IssueSurvey;
use handoff::protocol::{Event, Metric, Protocol, State};

/// The counted events, in the order of their display.
pub(super) const EVENTS: [Metric; 6] = [
    Metric::Failures,
    Metric::Timeouts,
    Metric::Retries,
    Metric::Escalated,
    Metric::Contradicted,
    Metric::Violations,
];

/// The time of each event of this kind in an issue, and the number of its handoff.
pub(super) fn events(
    issue: &IssueSurvey<'_>,
    protocol: Option<&Protocol>,
    metric: Metric,
) -> Vec<(Moment, u32)> {
    let mut found = Vec::new();
    for_each(issue, protocol, metric, |at, number| {
        found.push((at, number))
    });
    found
}

/// Calls `take` for each event of this kind, with its time and its handoff's number.
pub(super) fn for_each(
    issue: &IssueSurvey<'_>,
    protocol: Option<&Protocol>,
    metric: Metric,
    mut take: impl FnMut(Moment, u32),
) {
    if metric == Metric::Escalated {
        let found = escalations(issue, protocol).into_iter();
        return found.for_each(|(at, number)| take(at, number));
    }
    for handoff in &issue.handoffs {
        let number = handoff.number;
        let count = match metric {
            Metric::Contradicted => handoff.contradicted,
            Metric::Violations => handoff.violations,
            // A corrected contract counts as a retry of the failed one.
            Metric::Retries => u32::from(handoff.replaces.is_some()),
            _ => 0,
        };
        for _ in 0..count {
            if let Some(at) = handoff.sent_at() {
                take(at, number);
            }
        }
        let counts = |event| match metric {
            Metric::Failures => matches!(event, Event::Fail | Event::Expire),
            Metric::Timeouts => event == Event::Expire,
            Metric::Retries => matches!(event, Event::Retry | Event::Redrive),
            Metric::Rejected => event == Event::Reject,
            Metric::Cancelled => event == Event::Cancel,
            _ => false,
        };
        let changes = handoff.changes.iter();
        let changes = changes.filter(|change| change.event.is_some_and(counts));
        changes.for_each(|change| take(change.at, number));
    }
}

/// Steps by which a handoff reached a person: it was sent or reassigned to one, escalated by a
/// decision, or blocked by an answer. Each step counts once.
pub(crate) fn escalations(
    issue: &IssueSurvey<'_>,
    protocol: Option<&Protocol>,
) -> Vec<(Moment, u32)> {
    let is_person = |name: &str| protocol.is_some_and(|protocol| protocol.is_person(name));
    let blocked = |number: u32, at: Option<Moment>| {
        let mut handoffs = issue.handoffs.iter();
        let request = handoffs.find(|handoff| handoff.number == number);
        let mut changes = request.into_iter().flat_map(|request| &request.changes);
        changes.any(|change| change.to == State::Blocked && Some(change.at) == at)
    };
    let mut found = BTreeSet::new();
    for handoff in &issue.handoffs {
        let sent = handoff.sent_at();
        if is_person(handoff.sent_to.as_str()) {
            found.extend(sent.map(|at| (at, handoff.number)));
        }
        if let Some(request) = handoff.answers.filter(|n| blocked(*n, sent)) {
            found.extend(sent.map(|at| (at, request)));
        }
        for change in &handoff.changes {
            let receiver = change.receiver.as_ref();
            if receiver.is_some_and(|agent| is_person(agent.as_str())) {
                found.insert((change.at, handoff.number));
            }
        }
    }
    for decision in &issue.decisions {
        if decision.action.is_with_person() {
            found.insert((decision.at, decision.number));
        }
    }
    found.into_iter().collect()
}
