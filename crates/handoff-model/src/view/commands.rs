//! Commands for what can be done next, ready to type, the likeliest first. Words in capitals are
//! placeholders.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::word;
use handoff_protocol::{Action, Event, Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::decision::{Advice, Choice, answer, decider};
use crate::record::{IssueStatus, Paused, Record, View};
use crate::step::Receipt;
use crate::view::needs::next_limit;
use crate::view::{choices, stuck_advice};

/// An option for a handoff that needs attention.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Option")]
pub struct ActionOption {
    /// `retry`, `reassign`, `ask` or `terminate`
    pub action: Action,
    /// the command that does it
    pub command: String,
}

/// The options for a handoff that needs attention.
///
/// # Errors
/// If a record can't be read.
pub fn options<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    record: &Record,
    at: Moment,
) -> Result<Vec<ActionOption>, E> {
    let issue = view.shared_issue()?;
    let advice = issue.map(|issue| stuck_advice(protocol, view, &issue, record, at));
    let advice = advice.transpose()?.flatten();
    let by = chooser(protocol, record, advice.as_ref());
    let choices = choices(protocol, view, record, by, at)?;
    let option = |choice: Choice| {
        let action = match &choice {
            Choice::Retry | Choice::Redrive => Action::Retry,
            Choice::Reassign(_) => Action::Reassign,
            Choice::Answer | Choice::Ask(..) => Action::Ask,
            Choice::Terminate => Action::Terminate,
        };
        let command = command(protocol, record, &choice, by);
        ActionOption { action, command }
    };
    Ok(choices.into_iter().map(option).collect())
}

/// The agent that decides about a stuck handoff: the one to whom the advice gives it, else the
/// decider for its sender.
fn chooser<'a>(
    protocol: &'a Protocol,
    record: &'a Record,
    advice: Option<&'a Advice>,
) -> &'a AgentName {
    advice.map_or_else(|| decider(protocol, &record.from), |advice| &advice.agent)
}

/// The command for a retry with a corrected contract, if the failure's code asks for one. Only the
/// sender can run it.
fn correction(protocol: &Protocol, record: &Record, by: &AgentName) -> Option<String> {
    let code = record.failure().map(|failure| failure.code.as_str());
    let takes = protocol.definition().takes_correction(code) && record.from == *by;
    takes.then(|| correct(&record.id, by))
}

/// The command for a retry with a corrected contract.
pub(crate) fn correct(id: &HandoffId, by: &AgentName) -> String {
    format!("git handoff retry {id} --with FILE --as {by}")
}

fn command(protocol: &Protocol, record: &Record, choice: &Choice, by: &AgentName) -> String {
    let id = &record.id;
    match choice {
        Choice::Retry | Choice::Redrive => correction(protocol, record, by)
            .unwrap_or_else(|| format!("git handoff retry {id} --as {by} --reason WHY")),
        Choice::Reassign(to) => {
            format!("git handoff reassign {id} --to {to} --as {by} --reason WHY")
        }
        Choice::Answer => answer(record, by),
        Choice::Ask(from, person) => {
            format!(
                "git handoff new --issue {} --from {from} --to {person}",
                id.issue()
            )
        }
        Choice::Terminate => format!("git handoff cancel {id} --as {by} --reason WHY"),
    }
}

/// The commands that carry out advice or, if it was recorded as decided, those that come after.
///
/// # Errors
/// If a record can't be read.
pub fn commands<E>(
    (advice, record): (&Advice, &Record),
    view: &impl View<E>,
    protocol: &Protocol,
    now: Moment,
) -> Result<Vec<String>, E> {
    let (id, by) = (&advice.id, &advice.agent);
    let apply = format!("git handoff next {} --apply --as {by}", id.issue());
    if advice.by_contract {
        // If no agent is named, all that the routes allow.
        let any = || {
            protocol
                .onward(by.as_str(), None)
                .into_iter()
                .map(|(to, _)| to)
        };
        let to: Vec<AgentName> = advice
            .to
            .clone()
            .map_or_else(|| any().collect(), |to| vec![to]);
        let send = |to: &AgentName| {
            let issue = id.issue();
            format!("git handoff new --issue {issue} --from {by} --to {to}")
        };
        let waits = record.state == State::Pending;
        let claim = waits.then(|| take_up(record, by, now)).into_iter();
        return Ok(claim.chain(to.iter().map(send)).collect());
    }
    Ok(match advice.action {
        Action::Ask => vec![answer(record, by)],
        // It waits for a handoff that will never be completed.
        Action::Escalate if record.state == State::Pending => vec![
            format!(
                "git handoff new --issue {} --from {by} --to {}",
                id.issue(),
                record.to
            ),
            format!("git handoff cancel {id} --as {by} --reason WHY"),
        ],
        // A person knows without a record that it is with them.
        Action::Escalate | Action::FallBack
            if advice.decided.is_some() || protocol.is_person(by.as_str()) =>
        {
            let choices = choices(protocol, view, record, by, now)?;
            let choices = choices
                .iter()
                .map(|choice| command(protocol, record, choice, by));
            let show = format!("git handoff show {id}");
            let raise = raise_first(protocol, view, (record, by), now)?;
            raise.into_iter().chain(choices).chain([show]).collect()
        }
        Action::Escalate | Action::FallBack => vec![format!("git handoff show {id}"), apply],
        Action::Advance => Vec::new(),
        Action::Retry => match correction(protocol, record, by) {
            Some(correct) => vec![correct],
            None => vec![command(protocol, record, &Choice::Retry, by), apply],
        },
        _ => vec![apply],
    })
}

/// The command by which a person raises the limit that another attempt would meet again, if there is
/// one.
fn raise_first<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    (record, by): (&Record, &AgentName),
    now: Moment,
) -> Result<Option<String>, E> {
    let issue = view.shared_issue()?;
    let limit = issue.and_then(|issue| next_limit(protocol, &issue, &record.to, now));
    let limit = limit.filter(|_| protocol.is_person(by.as_str()));
    let raise = limit.and_then(|(limit, _)| limit.raise(protocol.name()));
    Ok(raise.map(|raise| format!("{raise} --as {by}")))
}

/// The command by which an agent that ran out of time gives itself another attempt, if the
/// protocol's rules advise one.
///
/// # Errors
/// If a record can't be read.
pub fn another_attempt<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    record: &Record,
    now: Moment,
) -> Result<Option<String>, E> {
    let Some(issue) = view.shared_issue()?.filter(|_| is_late(record, now)) else {
        return Ok(None);
    };
    let advice = stuck_advice(protocol, view, &issue, record, now)?;
    let (id, by) = (&record.id, &record.to);
    let is_advised = advice.is_some_and(|advice| advice.action == Action::Retry);
    let may = is_advised && choices(protocol, view, record, by, now)?.contains(&Choice::Retry);
    Ok(may.then(|| format!("git handoff retry {id} --as {by}")))
}

/// Whether a handoff's agent ran out of time, recorded or not.
pub fn is_late(record: &Record, now: Moment) -> bool {
    let last = record.latest().and_then(|last| last.event);
    record.is_expired(now) || last == Some(Event::Expire)
}

/// The command by which an agent claims an open handoff, waits for the time from which it can, or
/// continues with it.
pub(crate) fn take_up(record: &Record, agent: &AgentName, at: Moment) -> String {
    match record.state {
        State::Pending if record.waits_until(at).is_some() => wait(agent),
        State::Pending => format!("git handoff claim {} --as {agent}", record.id),
        _ => format!("git handoff prime --as {agent}"),
    }
}

/// The command by which an agent waits for work.
fn wait(agent: &AgentName) -> String {
    format!("git handoff wait --inbox --as {agent}")
}

/// The command that gives up an issue without open handoffs.
pub(crate) fn give_up(issue: &IssueKey, by: &AgentName) -> String {
    format!("git handoff cancel {issue} --as {by} --reason WHY")
}

/// The default reason of a resumption.
pub const RESUMED: &str = "the work goes on";

/// The pause of its issue that holds a receipt's handoff back, if any.
pub fn held_back(receipt: &Receipt) -> Option<&Paused> {
    let (record, issue) = (&receipt.record, &receipt.issue);
    let goes_on = matches!(record.state, State::InProgress | State::Completed);
    issue.held_back(&record.to).filter(|_| !goes_on)
}

/// The commands that can come after a step.
pub fn next_steps(receipt: &Receipt) -> Vec<String> {
    let (record, issue) = (&receipt.record, &receipt.issue);
    let (id, from, to, key) = (&record.id, &record.from, &record.to, &issue.issue);
    if issue.status != IssueStatus::Open {
        return Vec::new();
    }
    if let Some(paused) = held_back(receipt) {
        return vec![paused.resume(key, RESUMED)];
    }
    let contracts = |from: &AgentName, targets: &[(AgentName, Option<String>)]| {
        let one = |(to, kind): &(AgentName, Option<String>)| {
            let kind = kind.as_ref().map(|kind| format!(" --type {}", word(kind)));
            let kind = kind.unwrap_or_default();
            format!("git handoff new --issue {key} --from {from} --to {to}{kind}")
        };
        targets.iter().map(one).collect::<Vec<String>>()
    };
    let hand_on = |targets: &[(AgentName, Option<String>)]| contracts(to, targets);
    let back = [(to.clone(), receipt.again.clone())];
    let lead = receipt.lead.as_ref().unwrap_or(from);
    // The open handoff that the receipt's one reports as failed or blocked.
    let reported = issue
        .open
        .iter()
        .find(|o| Some(&o.id) == record.follows.as_ref());
    let recover = |id: &HandoffId, state, by| {
        let advice = || format!("git handoff next {}", id.issue());
        let command = recover(id, state, by)?;
        let is_undecided = receipt.needs_decision && matches!(state, State::Failed | State::Dead);
        Some(if is_undecided { advice() } else { command })
    };
    let recovery = reported.and_then(|open| recover(&open.id, open.state, lead));
    match record.state {
        State::Pending if record.not_before.is_some() => vec![wait(to)],
        // Until then, another task of the same contract may be claimable.
        State::Pending if !record.waits_for.is_empty() => {
            vec![format!("git handoff claim --next --as {to}")]
        }
        State::Pending => vec![format!("git handoff claim {id} --as {to}")],
        State::InProgress if receipt.onward.is_empty() => {
            let complete = format!("git handoff complete {id} --as {to}");
            recovery.into_iter().chain([complete]).collect()
        }
        // A report on a task need not be followed by a contract.
        State::InProgress
            if record.task.is_some() && issue.tasks.iter().all(|t| t.handoff != *id) =>
        {
            let complete = format!("git handoff complete {id} --as {to}");
            [complete]
                .into_iter()
                .chain(hand_on(&receipt.onward))
                .collect()
        }
        State::InProgress => hand_on(&receipt.onward),
        State::Dead => {
            let cancel = format!("git handoff cancel {id} --as {lead} --reason WHY");
            let retry = recover(id, record.state, lead);
            retry.into_iter().chain([cancel]).collect()
        }
        State::Blocked => vec![answer(record, lead)],
        State::Failed => recover(id, record.state, lead).into_iter().collect(),
        State::Completed if record.answers.is_some() => reported
            .iter()
            .filter_map(|open| recover(&open.id, open.state, to))
            .collect(),
        State::Completed if issue.unfollowed.contains(id) => hand_on(&receipt.onward),
        State::Completed if receipt.onward.is_empty() && recovery.is_some() => {
            recovery.into_iter().collect()
        }
        State::Cancelled if is_terminated(receipt) => vec![give_up(key, lead)],
        // The sender has the work again.
        State::Rejected | State::Cancelled => {
            let approval = receipt.approval.iter().cloned();
            approval.chain(contracts(from, &back)).collect()
        }
        State::Completed => Vec::new(),
    }
}

/// The agent whose turn it is after a step: it gives the next commands.
pub fn next_agent(receipt: &Receipt) -> &AgentName {
    let record = &receipt.record;
    let lead = receipt.lead.as_ref().unwrap_or(&record.from);
    match record.state {
        State::Dead | State::Blocked | State::Failed => lead,
        State::Cancelled if is_terminated(receipt) => lead,
        State::Rejected | State::Cancelled => &record.from,
        State::Pending | State::InProgress | State::Completed => &record.to,
    }
}

/// Whether a handoff was cancelled by a decision to end its issue.
fn is_terminated(receipt: &Receipt) -> bool {
    let mut decisions = receipt.issue.decisions.iter().rev();
    let newest = decisions.find(|one| one.id == receipt.record.id);
    newest.is_some_and(|one| one.action == Action::Terminate)
}

/// The command that resumes a failed or blocked handoff.
fn recover(id: &HandoffId, state: State, lead: &AgentName) -> Option<String> {
    match state {
        State::Failed | State::Dead => {
            Some(format!("git handoff retry {id} --as {lead} --reason WHY"))
        }
        State::Blocked => Some(format!("git handoff answer {id} ANSWER --as {lead}")),
        _ => None,
    }
}
