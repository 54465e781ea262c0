//! Reads from the states before and after a step who asked for what, as the ledger's audit does.

use handoff_base::ids::HandoffId;
use handoff_model::{
    Delivery, Issue, ModelUsage, Record, View, layout, recorded_change, recorded_update,
};
use handoff_protocol::Event;

use super::act::{Act, Asked, Sending};
use super::invariants::Taken;
use super::state::State;

/// The request of a step.
///
/// # Errors
/// If there is none that it can be.
pub(crate) fn recorded(taken: &Taken<'_>) -> Result<Act, String> {
    let (was, is) = (taken.before.issue.as_deref(), taken.after.issue.as_deref());
    let is = is.ok_or("no issue")?;
    let had = was.map_or(0, |issue| issue.annotations.len());
    let note = is.annotations.get(had);
    let had = was.map_or(0, |issue| issue.deliveries.len());
    let act = Act {
        agent: taken.world.agents[0].clone(),
        // Of an approval; any other note has none.
        worker: note.and_then(|note| note.worker.clone()),
        at: is.updated_at,
        traceparent: None,
        usage: Vec::new(),
        delivery: is.deliveries.get(had).map(|new| Delivery {
            id: new.id.clone(),
            part: new.part.clone(),
        }),
        asked: Asked::Update(handoff_model::Update::GiveUp {
            reason: String::new(),
        }),
    };
    let handoffs = was.map_or(0, |issue| issue.handoffs);
    if is.handoffs > handoffs {
        return sent(taken, handoffs + 1, act);
    }
    let is_noted = note.is_some();
    let had = was.map_or(0, |issue| issue.resumed.len());
    let is_resumed = is.resumed.len() > had;
    match &about(taken)?[..] {
        _ if is_resumed => {
            let (agent, update) = recorded_update(was, is).ok_or("not an update of the issue")?;
            Ok(Act {
                agent,
                asked: Asked::Update(update),
                ..act
            })
        }
        [number] if is_noted => {
            let (agent, update) = recorded_update(was, is).ok_or("not an update of the issue")?;
            let before = record(taken.before, *number);
            let after = record(taken.after, *number).ok_or("no record")?;
            Ok(Act {
                agent,
                usage: reported(before.as_ref(), &after),
                asked: Asked::Update(update),
                ..act
            })
        }
        [number] => Ok(changed(taken, *number, (was, is), act)),
        [] => {
            let (agent, update) = recorded_update(was, is).ok_or("not an update of the issue")?;
            let asked = Asked::Update(update);
            Ok(Act {
                agent,
                asked,
                ..act
            })
        }
        several => Err(format!("it is about {several:?}")),
    }
}

fn record(state: &State, number: u32) -> Option<Record> {
    let Ok(record) = state.record(number);
    record
}

/// A step that sends a contract.
fn sent(taken: &Taken<'_>, number: u32, act: Act) -> Result<Act, String> {
    let record = record(taken.after, number).ok_or("no record")?;
    let Ok(bytes) = taken.after.contract(&record);
    let contract = taken.world.contract(&bytes).ok_or("an unknown contract")?;
    let first = &record.transitions[0];
    let sending = Sending {
        bytes: bytes.to_vec(),
        code: record.code.clone(),
        answers: record.answers.as_ref().map(HandoffId::number),
        replaces: record.replaces.as_ref().map(HandoffId::number),
        token: None,
    };
    Ok(Act {
        agent: contract.from.as_ref().unwrap_or(&record.from).clone(),
        worker: first.worker.clone(),
        traceparent: first.traceparent,
        usage: reported_with(taken, &record),
        asked: Asked::Send(Box::new(sending)),
        ..act
    })
}

/// What a step reported of a handoff.
fn reported(before: Option<&Record>, after: &Record) -> Vec<ModelUsage> {
    let usage = after.usage_since(before);
    usage.map_or_else(Vec::new, |usage| usage.models.clone())
}

/// What was reported with a contract.
fn reported_with(taken: &Taken<'_>, sent: &Record) -> Vec<ModelUsage> {
    match sent.follows.as_ref().filter(|_| sent.usage.is_empty()) {
        None => reported(None, sent),
        Some(held) => {
            let before = record(taken.before, held.number());
            let after = record(taken.after, held.number());
            after.map_or_else(Vec::new, |after| reported(before.as_ref(), &after))
        }
    }
}

/// A step of one handoff.
fn changed(taken: &Taken<'_>, number: u32, (was, is): (Option<&Issue>, &Issue), act: Act) -> Act {
    let old = record(taken.before, number);
    let new = &taken.after.records[number as usize - 1];
    let update = recorded_change(old.as_ref(), new, was, is);
    let last = match update.event() {
        Some(Event::Extend) => None,
        _ => new.latest(),
    };
    Act {
        agent: last.map_or(&new.to, |t| &t.by).clone(),
        worker: match last {
            Some(last) => last.worker.clone(),
            None => new.lease.as_ref().map(|lease| lease.worker.clone()),
        },
        traceparent: last.and_then(|t| t.traceparent),
        usage: reported(old.as_ref(), new),
        asked: Asked::Update(update),
        ..act
    }
}

/// The handoffs that a step without a contract is about.
fn about(taken: &Taken<'_>) -> Result<Vec<u32>, String> {
    let folder = format!("{}/", layout::issue_folder(&taken.world.key));
    let paths = taken.step.files.iter().map(|(path, _)| path);
    let names = paths.filter_map(|path| path.strip_prefix(&folder));
    let numbers = names.filter_map(|name| name.strip_suffix(".json")?.parse().ok());
    let numbers: Vec<u32> = numbers.collect();
    if numbers.len() < 2 {
        return Ok(numbers);
    }
    let mut about = Vec::new();
    for number in numbers {
        let new = record(taken.after, number).ok_or("no record")?;
        let old = record(taken.before, number).ok_or("no record")?;
        // A change that only follows from the step has no event.
        let own = new.latest().is_some_and(|t| t.sent.is_none());
        if own && new.transitions.len() != old.transitions.len() {
            about.push(number);
        }
    }
    Ok(about)
}
