//! The four layouts of an export: the paths of contracts, and the files about them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::contract::Input;
use handoff::ledger::{RefusedContract, Rules, Snapshot};
use handoff::model::{IssueStatus, Record, View, review_imported};
use handoff::protocol::{ForeignFile, State};
use serde_json::{Value, json};

use super::out::{Lines, Out};
use super::places::{ARCHIVE, CONTRACTS, ENTRIES, FAILED, FAILURES, LINES, LOG, STATE, extension};
use super::records::Reader;
use super::{ExchangeError, Layout};

/// The path of a contract in the export folder.
pub(super) fn contract_place(
    out: &mut Out,
    layout: Layout,
    id: &HandoffId,
    own: Option<&str>,
    name: &str,
) -> String {
    match layout {
        Layout::Files => format!("{}/{name}", id.issue()),
        Layout::Folders | Layout::Log => format!("{CONTRACTS}/{}/{name}", id.issue()),
        Layout::Archive => {
            let stem = out.names.free(ARCHIVE, own, &id.to_string());
            format!("{ARCHIVE}/{stem}.{}", extension(name))
        }
    }
}

/// The handoffs and refusals to write.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    /// All handoffs, in order.
    pub(super) sent: &'a [HandoffId],
    /// The refusals in this clone.
    pub(super) refused: &'a [RefusedContract],
}

/// Writes a layout's files about handoffs, other than the contracts. `places` has the contracts'
/// paths.
pub(super) fn write(
    out: &mut Out,
    layout: Layout,
    snapshot: &Snapshot<'_>,
    told: Told<'_>,
    places: &HashMap<HandoffId, String>,
) -> Result<(), ExchangeError> {
    let sent = told.sent;
    let mut reader = Reader::new(snapshot);
    match layout {
        Layout::Files => Ok(()),
        Layout::Folders => out.states(&mut reader, sent),
        Layout::Log => log(out, &mut reader, told),
        Layout::Archive => archive(out, &mut reader, sent, places),
    }
}

/// Writes one document with an entry for each attempt that ended and each refusal, and a file for
/// each failed handoff.
fn log(
    out: &mut Out,
    reader: &mut Reader<'_, '_>,
    Told { sent, refused }: Told<'_>,
) -> Result<(), ExchangeError> {
    let mut rules: HashMap<AgentName, Rules<'_>> = HashMap::new();
    let mut entries: Vec<(Moment, Value)> = Vec::with_capacity(sent.len());
    for id in sent {
        let record = reader.record(id)?;
        let rules = match rules.entry(record.protocol.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(reader.snapshot.rules(record.protocol.as_str())?),
        };
        let kind = rules.protocol().contract_type(&record.contract_type);
        let foreign = kind.and_then(|kind| kind.foreign);
        let failed = matches!(record.state, State::Failed | State::Dead);
        if foreign.is_some() || failed {
            let bytes = reader.contract(&record)?;
            let input = Input::read(&bytes);
            let imported = record.imported.as_ref();
            let protocol = rules.protocol();
            let review = review_imported(protocol, rules, &input, Some(id.issue()), imported)?;
            let value = review.contract.map(|contract| contract.value);
            let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
            let value = value.unwrap_or_else(text);
            match foreign {
                Some(ForeignFile::LogEntry) => {
                    entries.push((record.sent_at().unwrap_or_default(), value));
                    continue;
                }
                Some(ForeignFile::HandoffFailed) => {
                    write_json(out, &failed_place(id), &value)?;
                    continue;
                }
                None => write_json(out, &failed_place(id), &failed_handoff(&record, value))?,
            }
        }
        let trigger = kind.and_then(|kind| kind.trigger.as_ref());
        let trigger = trigger.unwrap_or(&record.contract_type);
        let attempts = attempts(&record).into_iter();
        entries.extend(attempts.map(|attempt| {
            let entry = json!({
                "timestamp": attempt.since.rfc3339(),
                "from": record.from,
                "to": record.to,
                "trigger": trigger,
                "data_size": record.contract.bytes,
                "success": attempt.success,
                "duration_ms": (attempt.end - attempt.since).num_milliseconds().max(0),
            });
            (attempt.since, entry)
        }));
    }
    let issues: HashSet<&IssueKey> = sent.iter().map(HandoffId::issue).collect();
    for attempt in refused {
        let RefusedContract { at, from, to, .. } = attempt;
        let about = attempt.issue.as_ref().filter(|key| issues.contains(key));
        let (Some(_), Some(from), Some(to)) = (about, from, to) else {
            continue;
        };
        let protocol = attempt.protocol.as_ref().and_then(|name| rules.get(name));
        let kind = attempt.contract_type.as_deref();
        let trigger = protocol.zip(kind).and_then(|(rules, kind)| {
            let kind = rules.protocol().contract_type(kind)?;
            kind.trigger.as_deref()
        });
        let entry = json!({
            "timestamp": at.rfc3339(),
            "from": from,
            "to": to,
            "trigger": trigger.or(kind).unwrap_or(&attempt.code),
            "data_size": attempt.bytes.unwrap_or_default(),
            "success": false,
            "duration_ms": 0,
        });
        entries.push((*at, entry));
    }
    entries.sort_by_key(|(since, _)| *since);
    let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
    write_json(out, LOG, &json!({ ENTRIES: entries }))
}

fn write_json(out: &mut Out, inside: &str, value: &Value) -> Result<(), ExchangeError> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("a value has string keys");
    bytes.push(b'\n');
    out.write(inside, &bytes)
}

/// An ended attempt to hand over: from its start to the receiver's claim, or to its end without
/// one. The work itself does not count.
struct Attempt {
    since: Moment,
    end: Moment,
    success: bool,
}

/// The attempts of a handoff that have ended.
fn attempts(record: &Record) -> Vec<Attempt> {
    let mut ended = Vec::new();
    let (mut since, mut claimed) = (None, None);
    for transition in &record.transitions {
        if transition.to == State::InProgress {
            claimed.get_or_insert(transition.at);
        }
        match transition.to {
            // Blocked work continues the same attempt.
            State::Pending | State::InProgress | State::Blocked => {
                since.get_or_insert(transition.at);
            }
            State::Completed | State::Failed | State::Dead | State::Rejected | State::Cancelled => {
                // A handoff that ends with its first transition is an attempt without duration.
                let is_note = transition.from.is_none().then_some(transition.at);
                ended.extend(since.take().or(is_note).map(|since| Attempt {
                    since,
                    end: claimed.take().unwrap_or(transition.at),
                    success: transition.to == State::Completed,
                }));
            }
        }
    }
    ended
}

/// The path of the file that describes a failed handoff.
fn failed_place(id: &HandoffId) -> String {
    format!("{FAILURES}/{id}/{FAILED}")
}

/// The description of a failed handoff: its receiver, and what there is to start with.
fn failed_handoff(record: &Record, contract: Value) -> Value {
    let mut transitions = record.transitions.iter().rev();
    let kept = transitions.find_map(|transition| transition.context.as_ref());
    json!({
        "failed_at": record.latest().map(|t| t.at.rfc3339()),
        "from_agent": record.from,
        "to_agent": record.to,
        "preserved_context": {
            "handoff": record.id.to_string(),
            "contract_type": record.contract_type,
            "contract": contract,
            "failure": record.failure(),
            "kept": kept.map(|context| &context.folder),
        },
        "retry_count": record.retries(),
    })
}

/// Writes one line for each contract that was sent.
fn archive(
    out: &mut Out,
    reader: &mut Reader<'_, '_>,
    sent: &[HandoffId],
    places: &HashMap<HandoffId, String>,
) -> Result<(), ExchangeError> {
    let mut lines = Lines::begin(out, LINES)?;
    for id in sent {
        // Tasks that were opened by the same contract share it.
        let Some(place) = places.get(id) else {
            continue;
        };
        let record = reader.record(id)?;
        let name = place.rsplit('/').next().unwrap_or_default();
        let (stem, _) = name.rsplit_once('.').unwrap_or((name, ""));
        let status = record.status.clone();
        lines.add(&json!({
            "handoff_id": stem,
            "from": record.from,
            "to": record.to,
            "status": status.unwrap_or_else(|| record.state.to_string()),
            "timestamp": record.sent_at().map(Moment::rfc3339),
        }))?;
    }
    lines.end()?;
    let mut keys: Vec<&IssueKey> = sent.iter().map(HandoffId::issue).collect();
    keys.sort();
    keys.dedup();
    for key in &keys {
        let name = match keys.len() {
            1 => STATE.to_owned(),
            _ => format!("{key}.{STATE}"),
        };
        if let Some(state) = workflow_state(reader, key)? {
            write_json(out, &name, &state)?;
        }
    }
    Ok(())
}

/// The state of an issue: its previous and current agents, and its facts.
fn workflow_state(
    reader: &mut Reader<'_, '_>,
    key: &IssueKey,
) -> Result<Option<Value>, ExchangeError> {
    let Some(issue) = reader.snapshot.issue(key)?.issue()? else {
        return Ok(None);
    };
    let newest = reader.record(&HandoffId::new(key.clone(), issue.handoffs))?;
    let is_open = issue.status == IssueStatus::Open;
    Ok(Some(json!({
        "workflow_id": key,
        "status": issue.status.as_str(),
        "updated_at": issue.updated_at.rfc3339(),
        "previous_agent": newest.from,
        "current_agent": is_open.then_some(newest.to),
        "artifacts_available": issue.facts.get("artifacts"),
        "context_snapshot": newest.summary,
        "facts": issue.facts,
    })))
}
