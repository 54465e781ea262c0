//! Events of handoffs that metrics and alerts count.

use std::collections::BTreeSet;

use handoff_base::Moment;
use handoff_ledger::{HandoffSurvey, IssueSurvey};
use handoff_protocol::{Action, AgentKind, Event, Metric, Protocol, State};

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
    issue: &IssueSurvey,
    protocol: Option<&Protocol>,
    metric: Metric,
) -> Vec<(Moment, u32)> {
    if metric == Metric::Escalated {
        return escalations(issue, protocol);
    }
    let mut found = Vec::new();
    for handoff in &issue.handoffs {
        let number = handoff.number;
        let count = match metric {
            Metric::Contradicted => handoff.contradicted,
            Metric::Violations => handoff.violations,
            // A corrected contract is the next attempt of what failed.
            Metric::Retries => u32::from(handoff.replaces.is_some()),
            _ => 0,
        };
        for _ in 0..count {
            found.extend(handoff.sent_at().map(|at| (at, number)));
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
        found.extend(changes.map(|change| (change.at, number)));
    }
    found
}

/// Handoffs that reached a person: sent or reassigned to one, left to one by a decision, or answered
/// with a status that blocks the request. Each step counts once.
fn escalations(issue: &IssueSurvey, protocol: Option<&Protocol>) -> Vec<(Moment, u32)> {
    let is_person = |name: &str| protocol.is_some_and(|p| p.is_kind(name, AgentKind::Human));
    let blocks = |handoff: &HandoffSurvey| {
        let words = protocol.map(|protocol| &protocol.definition().status);
        let state = handoff.status.as_ref().and_then(|word| words?.get(word));
        state == Some(&State::Blocked)
    };
    let mut found = BTreeSet::new();
    for handoff in &issue.handoffs {
        let sent = handoff.sent_at();
        if is_person(handoff.sent_to.as_str()) {
            found.extend(sent.map(|at| (at, handoff.number)));
        }
        if let Some(request) = handoff.answers.filter(|_| blocks(handoff)) {
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
        if matches!(decision.action, Action::Escalate | Action::FallBack) {
            found.insert((decision.at, decision.number));
        }
    }
    found.into_iter().collect()
}
