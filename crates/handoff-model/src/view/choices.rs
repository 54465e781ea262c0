//! The choices for a stuck handoff: requests that would be accepted now.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_protocol::{Event, Protocol, State, Style};

use crate::decision::{self, Choice};
use crate::planner::{Holder, plan};
use crate::record::{Issue, Record, View};
use crate::refusal::{Holding, LeaseRefusal, Refusal};
use crate::step::{EventArgs, Request, Step, Stop, Update};

/// What an agent can do about a handoff that failed, is dead, blocked or expired, the likeliest
/// first: the protocol's choices that the planner would accept from this agent now.
///
/// # Errors
/// If a record can't be read.
pub fn choices<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    record: &Record,
    by: &AgentName,
    at: Moment,
) -> Result<Vec<Choice>, E> {
    let mut accepted = Vec::new();
    let issue = view.shared_issue()?;
    let is_to_end = issue.is_some_and(|issue| decision::is_to_end(protocol, &issue, record));
    // If the rules end such work, only a person may redrive it.
    let is_theirs = is_to_end && !protocol.is_person(by.as_str());
    let mut choices = decision::choices(protocol, record, at);
    choices.retain(|choice| *choice != Choice::Redrive || !is_theirs);
    for choice in choices {
        if is_accepted(protocol, view, record, by, at, &choice)? {
            accepted.push(choice);
        }
    }
    Ok(accepted)
}

fn is_accepted<E>(
    protocol: &Protocol,
    view: &impl View<E>,
    record: &Record,
    by: &AgentName,
    at: Moment,
    choice: &Choice,
) -> Result<bool, E> {
    let (event, receiver) = match choice {
        Choice::Retry => (Event::Retry, None),
        Choice::Redrive => (Event::Redrive, None),
        Choice::Reassign(to) => (Event::Reassign, Some(to.clone())),
        Choice::Terminate => (Event::Cancel, None),
        // Only their content decides whether these are accepted.
        Choice::Answer | Choice::Ask(..) => return Ok(true),
    };
    let args = EventArgs {
        reason: Some("it is asked for".to_owned()),
        receiver,
        ..EventArgs::default()
    };
    let update = Update::change(record.id.number(), event, args);
    let step = Step::new(by.clone(), at, Request::Update(update));
    match plan(protocol, record.id.issue(), view, &step, None) {
        // It would be accepted once the expiry is recorded.
        Ok(_) | Err(Stop::Refused(Refusal::Lease(LeaseRefusal::Overdue(_)))) => Ok(true),
        Err(Stop::Refused(_)) => Ok(false),
        Err(Stop::Unreadable(error)) => Err(error),
    }
}

/// The refusal of an agent that holds nothing in an issue, or of a worker whose agent's other
/// worker does, if only held work can be sent on.
///
/// # Errors
/// If a record can't be read.
pub fn not_held_in<E>(
    view: &impl View<E>,
    (issue, protocol): (&Issue, &Protocol),
    from: Holder<'_>,
    at: Moment,
) -> Result<Option<LeaseRefusal>, E> {
    let Some(agent) = protocol.agent(from.agent.as_str()) else {
        return Ok(None);
    };
    let agent = &agent.id;
    let style = protocol.definition().style();
    // Completed work whose agent may send on needs no claim, nor does a request.
    if issue.open.is_empty() || !issue.unfollowed.is_empty() || style == Style::Call {
        return Ok(None);
    }
    let mine = issue.open.iter().filter(|open| open.to == *agent);
    let Some(newest) = mine.clone().next_back() else {
        return Ok(Some(LeaseRefusal::not_held(issue, agent)));
    };
    let held: Vec<_> = mine
        .filter(|open| open.state == State::InProgress)
        .collect();
    if !held.is_empty() {
        let mut others = None;
        for open in held {
            let Some(record) = view.shared_record(open.id.number())? else {
                return Ok(None);
            };
            match (from.worker, &record.lease) {
                (Some(worker), Some(lease)) if lease.worker != *worker => {
                    others = Some(LeaseRefusal::HeldByWorker(Holding::of(&record, lease)));
                }
                _ => return Ok(None),
            }
        }
        return Ok(others);
    }
    let record = view.shared_record(newest.id.number())?;
    let of = (protocol, issue);
    Ok(record.map(|record| decision::not_working(of, &record, agent, at)))
}
