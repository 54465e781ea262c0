//! The four layouts of an export: the places of contracts, and the files written about them.

use std::collections::HashMap;

use handoff_base::ObjectId;
use handoff_base::ids::HandoffId;
use handoff_base::moment::rfc3339;
use handoff_model::{Record, View};
use handoff_protocol::State;
use serde_json::{Value, json};

use super::export::{Lines, Out};
use super::{ExchangeError, Layout};
use crate::error::LedgerError;
use crate::snapshot::{IssueFolder, Snapshot};

/// The folder with the versions of protocols.
pub(super) const PROTOCOLS: &str = "shared/protocols";
/// The folder with the versions of documents.
pub(super) const DOCUMENTS: &str = "shared/documents";

/// The path of an object from a failure's context: a file, or a folder in git's stored form, by its
/// id.
pub(super) fn object_place(id: ObjectId) -> String {
    let name = id.to_string();
    let (start, rest) = name.split_at(2);
    format!("shared/objects/{start}/{rest}")
}
/// The folder for contracts that have no place in the layout.
pub(super) const CONTRACTS: &str = "contracts";
/// The folder of handoffs by their state.
pub(super) const HANDOFFS: &str = "handoffs";
/// The folder for answered requests.
pub(super) const REQUESTS: &str = "requests";
/// The folders of handoffs by state, in the order of the lifecycle.
pub(super) const STATES: [&str; 4] = ["pending", "in-progress", "completed", "failed"];
/// The log that is a single document.
pub(super) const LOG: &str = "handoff_log.json";
/// The log's only member.
pub(super) const ENTRIES: &str = "handoff_log";
/// The log with one entry per line.
pub(super) const LINES: &str = "handoffs.log";
pub(super) const ARCHIVE: &str = "handoff_contracts";

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
            let stem = out.free(ARCHIVE, own, &id.to_string());
            format!("{ARCHIVE}/{stem}.{}", extension(name))
        }
    }
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("json", |(_, end)| end)
}

/// Writes what a layout records about handoffs, apart from the contracts. `sent` has all handoffs
/// in order, `places` the paths of their contracts.
pub(super) fn write(
    out: &mut Out,
    layout: Layout,
    snapshot: &Snapshot<'_>,
    sent: &[HandoffId],
    places: &HashMap<HandoffId, String>,
) -> Result<(), ExchangeError> {
    let mut reader = Reader {
        snapshot,
        open: None,
    };
    match layout {
        Layout::Files => Ok(()),
        Layout::Folders => folders(out, &mut reader, sent),
        Layout::Log => log(out, &mut reader, sent),
        Layout::Archive => archive(out, &mut reader, sent, places),
    }
}

/// Reads records; those of one issue must be read one after the other.
struct Reader<'a, 'r> {
    snapshot: &'a Snapshot<'r>,
    open: Option<IssueFolder<'r>>,
}

impl<'r> Reader<'_, 'r> {
    fn folder(&mut self, id: &HandoffId) -> Result<&IssueFolder<'r>, LedgerError> {
        let folder = match self.open.take().filter(|open| open.key() == id.issue()) {
            Some(open) => open,
            None => self.snapshot.issue(id.issue())?,
        };
        Ok(self.open.insert(folder))
    }

    fn record(&mut self, id: &HandoffId) -> Result<Record, LedgerError> {
        let found = self.folder(id)?.record(id.number())?;
        found.ok_or_else(|| LedgerError::missing(handoff_model::record_file(id)))
    }

    fn contract(&mut self, record: &Record) -> Result<Vec<u8>, LedgerError> {
        Ok(self.folder(&record.id)?.contract(record)?.to_vec())
    }
}

/// The folder for a handoff's state.
fn state_folder(state: State) -> &'static str {
    let [pending, in_progress, completed, failed] = STATES;
    match state {
        State::Pending => pending,
        State::InProgress | State::Blocked => in_progress,
        State::Completed => completed,
        State::Failed | State::Dead | State::Rejected | State::Cancelled => failed,
    }
}

/// Writes one document for each handoff that is not an answer, in the folder of its state.
fn folders(
    out: &mut Out,
    reader: &mut Reader<'_, '_>,
    sent: &[HandoffId],
) -> Result<(), ExchangeError> {
    for state in STATES {
        out.folder(&format!("{HANDOFFS}/{state}"))?;
    }
    // The newest answer counts.
    let mut answers: HashMap<HandoffId, HandoffId> = HashMap::new();
    for id in sent {
        if let Some(request) = reader.record(id)?.answers {
            answers.insert(request, id.clone());
        }
    }
    for id in sent {
        let record = reader.record(id)?;
        if record.answers.is_some() {
            continue;
        }
        let folder = format!("{HANDOFFS}/{}", state_folder(record.state));
        let stem = out.free(HANDOFFS, record.contract_id.as_deref(), &id.to_string());
        let over = matches!(record.state, State::Completed | State::Failed | State::Dead);
        let answer = answers.get(id).filter(|_| over);
        let newest = match answer {
            Some(answer) => reader.record(answer)?,
            None => record.clone(),
        };
        let bytes = reader.contract(&newest)?;
        let end = extension(&newest.contract.file);
        out.write(&format!("{folder}/{stem}.{end}"), &bytes)?;
        if answer.is_some() {
            let bytes = reader.contract(&record)?;
            let end = extension(&record.contract.file);
            out.write(&format!("{HANDOFFS}/{REQUESTS}/{stem}.{end}"), &bytes)?;
        }
    }
    Ok(())
}

/// Writes one entry for each handoff, in one document.
fn log(
    out: &mut Out,
    reader: &mut Reader<'_, '_>,
    sent: &[HandoffId],
) -> Result<(), ExchangeError> {
    let mut entries: Vec<Value> = Vec::with_capacity(sent.len());
    for id in sent {
        let record = reader.record(id)?;
        let begin = record.sent_at().unwrap_or_default();
        // An open handoff has lasted until its newest transition.
        let ended = record
            .transitions
            .iter()
            .rfind(|t| t.to.is_terminal() || t.to == State::Failed);
        let end = ended.or(record.latest()).map_or(begin, |t| t.at);
        let bad = [
            State::Failed,
            State::Dead,
            State::Rejected,
            State::Cancelled,
        ];
        entries.push(json!({
            "timestamp": rfc3339(begin),
            "from": record.from,
            "to": record.to,
            "trigger": record.contract_type,
            "data_size": record.contract.bytes,
            "success": !bad.contains(&record.state),
            "duration_ms": (end - begin).num_milliseconds().max(0),
        }));
    }
    let document = json!({ ENTRIES: entries });
    let mut bytes = serde_json::to_vec_pretty(&document).expect("a value has string keys");
    bytes.push(b'\n');
    out.write(LOG, &bytes)
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
            "timestamp": record.sent_at().map(rfc3339),
        }))?;
    }
    lines.end().map(drop)
}
