//! What needs attention in an issue, and what to do about it.

use std::collections::BTreeMap;

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::{Action, Protocol, TaskState};

use crate::decision::{Advice, advise, decider, is_to_decide};
use crate::record::{Issue, IssueStatus, OpenHandoff, Record, Task, View};

/// The oldest handoff that needs attention, with advice; if there is none, the newest answer that a
/// rule covers.
///
/// # Errors
/// If a record can't be read.
pub fn needs_attention<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    issue: &Issue,
    at: Moment,
) -> Result<Option<(Advice, Record)>, E> {
    if issue.status != IssueStatus::Open {
        return Ok(None);
    }
    // A stuck handoff may be with the deciding agent already, by a report on it.
    let going = || {
        issue
            .open
            .iter()
            .filter(|open| issue.held_back(&open.to).is_none())
    };
    for open in going() {
        if let Some(record) = view.record(open.id.number())?
            && is_to_decide(protocol, &record)
            && let Some(mut advice) = advise(protocol, issue, &record, None, at)
        {
            if advice.action == Action::Advance && advice.to.is_none() {
                advice.to = asker(protocol, view, &record)?;
            }
            return Ok(Some((advice, record)));
        }
    }
    let late = |open: &OpenHandoff| open.expires_at.is_some_and(|end| end <= at);
    let is_stuck = |open: &&OpenHandoff| open.state.is_stuck() || late(open);
    // A decision that was made waits for somebody to act, so one that is still to be made goes
    // first.
    let mut decided = None;
    for open in going().filter(is_stuck) {
        let Some(record) = view.record(open.id.number())? else {
            continue;
        };
        match stuck_advice(protocol, view, issue, &record, at)? {
            Some(advice) if advice.decided.is_none() => return Ok(Some((advice, record))),
            Some(advice) if decided.is_none() => decided = Some((advice, record)),
            _ => {}
        }
    }
    if decided.is_some() || issue.paused.is_some() {
        return Ok(decided);
    }
    if let Some(found) = waits_in_vain(protocol, view, issue)? {
        return Ok(Some(found));
    }
    answered(protocol, view, issue, at)
}

/// The protocol's advice about a stuck handoff: failed, dead, blocked or expired.
///
/// # Errors
/// If a record can't be read.
pub fn stuck_advice<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    issue: &Issue,
    record: &Record,
    at: Moment,
) -> Result<Option<Advice>, E> {
    let answer = record.latest().and_then(|t| t.sent.as_ref());
    let answer = answer.map(|id| view.record(id.number())).transpose()?;
    let answer = answer.flatten();
    Ok(advise(protocol, issue, record, answer.as_ref(), at))
}

/// The advice about the newest answer, if a rule covers it and no decision was recorded yet.
fn answered<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    issue: &Issue,
    at: Moment,
) -> Result<Option<(Advice, Record)>, E> {
    let Some(answer) = view.record(issue.handoffs)? else {
        return Ok(None);
    };
    let Some(request) = &answer.answers else {
        return Ok(None);
    };
    let Some(record) = view.record(request.number())? else {
        return Ok(None);
    };
    let advice = advise(protocol, issue, &record, Some(&answer), at);
    // Escalation is the default rule, which does not cover an answered request.
    let own = |advice: &Advice| advice.action != Action::Escalate && advice.decided.is_none();
    Ok(advice.filter(own).map(|advice| (advice, record)))
}

/// The agent to which a person's answer goes back: the sender of the newest work before it that was
/// not just passed on.
fn asker<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    answer: &Record,
) -> Result<Option<AgentName>, E> {
    let passes_on = |record: &Record| protocol.steps_in(&record.from);
    if !protocol.is_person(answer.from.as_str()) {
        return Ok(None);
    }
    let mut record = answer.clone();
    while passes_on(&record) {
        // Guards against a loop: in a tampered ledger, a record may follow a later one.
        let number = record.id.number();
        let before = record.follows.map(|id| id.number()).filter(|n| *n < number);
        let Some(before) = before else {
            return Ok(None);
        };
        record = match view.record(before)? {
            Some(before) => before,
            None => return Ok(None),
        };
    }
    Ok(Some(record.from))
}

/// The first handoff that can never start because a dependency was rejected or cancelled.
fn waits_in_vain<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    issue: &Issue,
) -> Result<Option<(Advice, Record)>, E> {
    let waiting = issue.tasks.iter().filter(|task| {
        let given_up = |on: &Task| {
            let before = on.parent == task.parent && task.depends_on.contains(&on.id);
            before && matches!(on.state, TaskState::Rejected | TaskState::Cancelled)
        };
        task.state == TaskState::Pending && is_open(issue, task) && issue.tasks.iter().any(given_up)
    });
    for task in waiting {
        let Some(record) = view.record(task.handoff.number())? else {
            continue;
        };
        let mut states = BTreeMap::new();
        for id in &record.waits_for {
            let before = view.record(id.number())?;
            states.extend(before.map(|before| (id.number(), before.state)));
        }
        let state = |id: &HandoffId| states.get(&id.number()).copied();
        let Some((on, state)) = record.waits_in_vain(state) else {
            continue;
        };
        let advice = Advice {
            id: record.id.clone(),
            action: Action::Escalate,
            agent: decider(protocol, &record.from).clone(),
            to: None,
            why: format!(
                "{} waits for {on}, which is {state}: plan its task again, or cancel it",
                record.id
            ),
            questions: Vec::new(),
            instructions: None,
            by_contract: false,
            revives: false,
            decided: None,
        };
        return Ok(Some((advice, record)));
    }
    Ok(None)
}

fn is_open(issue: &Issue, task: &Task) -> bool {
    issue.open.iter().any(|open| open.id == task.handoff)
}
