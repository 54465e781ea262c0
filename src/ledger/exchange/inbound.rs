//! What other systems keep, read as contracts in the order of their work.

use std::collections::{HashMap, HashSet};

use chrono::DateTime;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::deliver::{Delivery, Importer, names_issue};
use super::fault::Fault;
use super::files::Folder;
use super::layouts::{ARCHIVE, DOCUMENTS, ENTRIES, HANDOFFS, LINES, LOG, PROTOCOLS};
use super::layouts::{REQUESTS, STATES};
use super::line::STEPS;
use super::{ExchangeError, Layout, Source};
use crate::ids::{IssueKey, quoted};
use crate::ledger::choice::Chosen;
use crate::ledger::error::LedgerError;
use crate::ledger::intake::scalar;
use crate::ledger::snapshot::{Rules, Snapshot};
use crate::ledger::step::View;
use crate::protocol::ContractType;

/// The ends of the names of files that may be contracts.
const ENDS: [&str; 3] = [".xml", ".json", ".md"];

/// The issue of what a log tells, where none is named.
const LOG_ISSUE: &str = "log";

/// The longest log that is one document, in bytes.
const LONGEST_LOG: u64 = 64 << 20;

/// Says what a folder, or a file in it, is.
pub(super) fn source_of(folder: &Folder, file: Option<&str>) -> Source {
    let layout = match file {
        Some(STEPS) => return Source::Steps,
        Some(LINES) => Layout::Archive,
        Some(file) if is_log(folder, file) => Layout::Log,
        Some(_) => Layout::Files,
        None if folder.has(STEPS) => return Source::Steps,
        None if states_in(folder).is_some() => Layout::Folders,
        None if folder.has(LOG) => Layout::Log,
        None if folder.has(LINES) || folder.has_folder(ARCHIVE) => Layout::Archive,
        None => Layout::Files,
    };
    Source::Layout(layout)
}

/// Says whether a file is a log that is one document.
fn is_log(folder: &Folder, file: &str) -> bool {
    let bytes = folder.read_up_to(file, LONGEST_LOG).unwrap_or_default();
    #[derive(Deserialize)]
    struct Log {
        #[serde(rename = "handoff_log")]
        _entries: Vec<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Log>(&bytes).is_ok()
}

/// The folder that holds the folders of states.
fn states_in(folder: &Folder) -> Option<&'static str> {
    let inside = |top: &str, state: &str| match top {
        "" => folder.has_folder(state),
        _ => folder.has_folder(&format!("{top}/{state}")),
    };
    let holds = |top: &&str| STATES.iter().any(|state| inside(top, state));
    [HANDOFFS, ""].into_iter().find(holds)
}

/// Imports what is there.
pub(super) fn read(
    folder: &Folder,
    file: Option<&str>,
    layout: Layout,
    importer: &mut Importer<'_, '_>,
) -> Result<(), ExchangeError> {
    match (layout, file) {
        (Layout::Log, file) => log(folder, file.unwrap_or(LOG), importer),
        (Layout::Archive, file) => archive(folder, file.unwrap_or(LINES), importer),
        (Layout::Files | Layout::Folders, Some(file)) => {
            one(folder, file, false, importer).map(drop)
        }
        (Layout::Files, None) => {
            for file in contracts_in(folder)? {
                one(folder, &file, false, importer)?;
            }
            Ok(())
        }
        (Layout::Folders, None) => folders(folder, importer),
    }
}

/// Every file of a folder that may be a contract; what an export adds for
/// itself is none.
fn contracts_in(folder: &Folder) -> Result<Vec<String>, ExchangeError> {
    let mut files = folder.list("", &ENDS)?;
    files.retain(|file| {
        let within = |top: &str| file.strip_prefix(top).is_some_and(|f| f.starts_with('/'));
        !within(PROTOCOLS) && !within(DOCUMENTS)
    });
    Ok(files)
}

/// Imports a file that is one contract.
fn one(
    folder: &Folder,
    file: &str,
    claimed: bool,
    importer: &mut Importer<'_, '_>,
) -> Result<bool, ExchangeError> {
    match folder.contract(file) {
        Ok(bytes) => importer.deliver(&Delivery {
            file,
            bytes: &bytes,
            claimed,
        }),
        Err(fault) => {
            importer.refuse(file, fault);
            Ok(false)
        }
    }
}

/// Imports a log: each entry is a contract of its own.
fn log(folder: &Folder, file: &str, importer: &mut Importer<'_, '_>) -> Result<(), ExchangeError> {
    let refused = |text: String| Fault::unreadable("import.log", text);
    let read = folder.read_up_to(file, LONGEST_LOG).and_then(|bytes| {
        if bytes.len() as u64 > LONGEST_LOG {
            return Err(refused(format!("at most {LONGEST_LOG} bytes are read")));
        }
        let document: Value =
            serde_json::from_slice(&bytes).map_err(|e| refused(format!("it is not JSON: {e}")))?;
        match document.get(ENTRIES) {
            Some(Value::Array(entries)) => Ok(entries.clone()),
            _ => Err(refused(format!("it has no list `{ENTRIES}`"))),
        }
    });
    let entries = match read {
        Ok(entries) => entries,
        Err(fault) => {
            importer.refuse(file, fault);
            return Ok(());
        }
    };
    if importer.issue.is_none() {
        importer.issue = LOG_ISSUE.parse().ok();
    }
    for (index, entry) in entries.iter().enumerate() {
        let mut bytes = serde_json::to_vec_pretty(entry).expect("a value has string keys");
        bytes.push(b'\n');
        importer.deliver(&Delivery {
            file: &format!("{file}#/{ENTRIES}/{index}"),
            bytes: &bytes,
            claimed: false,
        })?;
    }
    Ok(())
}

/// An entry of a log of lines; the rest of it is told by the contract.
#[derive(Deserialize)]
struct Entry {
    handoff_id: String,
}

/// Imports an archive in the order of its log. Contracts that the log does not
/// name come last, unless the log is broken where they may have been.
fn archive(
    folder: &Folder,
    file: &str,
    importer: &mut Importer<'_, '_>,
) -> Result<(), ExchangeError> {
    let mut unnamed: Vec<String> = Vec::new();
    if folder.has_folder(ARCHIVE) {
        unnamed = folder.list(ARCHIVE, &ENDS)?;
    }
    let mut order: Vec<(String, Result<String, Fault>)> = Vec::new();
    if folder.has(file) {
        match folder.lines(file) {
            Ok(lines) => {
                for line in lines {
                    let line = line?;
                    let place = format!("{file}:{}", line.number);
                    order.push((place, entry(line.text.as_deref(), &unnamed)));
                }
            }
            Err(fault) => importer.refuse(file, fault),
        }
    }
    let named: HashSet<&String> = order
        .iter()
        .filter_map(|(_, at)| at.as_ref().ok())
        .collect();
    let named: HashSet<String> = named.into_iter().cloned().collect();
    unnamed.retain(|contract| !named.contains(contract));
    // What can't be placed holds up what comes after it in its issue.
    let mut held: HashSet<Option<IssueKey>> = HashSet::new();
    for (place, contract) in order {
        match contract {
            Ok(contract) => {
                let key = issue_of(folder, &contract, importer)?;
                if held.contains(&key) {
                    importer.refuse(&contract, behind());
                } else {
                    one(folder, &contract, false, importer)?;
                }
            }
            Err(fault) => {
                if matches!(&fault, Fault::Unreadable { findings } if findings.iter().any(|f| f.code == "import.line"))
                {
                    for contract in &unnamed {
                        held.insert(issue_of(folder, contract, importer)?);
                    }
                }
                importer.refuse(&place, fault);
            }
        }
    }
    for contract in unnamed {
        let key = issue_of(folder, &contract, importer)?;
        if held.contains(&key) {
            importer.refuse(&contract, behind());
        } else {
            one(folder, &contract, false, importer)?;
        }
    }
    Ok(())
}

fn behind() -> Fault {
    let why = "the log is broken where a contract of its issue may have been".to_owned();
    Fault::Behind { why }
}

/// The contract of a log's line.
fn entry(text: Option<&str>, contracts: &[String]) -> Result<String, Fault> {
    let broken = |text: String| Fault::unreadable("import.line", text);
    let text = text.ok_or_else(|| broken("the line is too long, or is not UTF-8".to_owned()))?;
    let entry: Entry = serde_json::from_str(text)
        .map_err(|error| broken(format!("the line is no entry: {error}")))?;
    let id = &entry.handoff_id;
    let paths = ENDS.map(|end| format!("{ARCHIVE}/{id}{end}"));
    let mut found = contracts.iter().filter(|file| paths.contains(file));
    found.next().cloned().ok_or_else(|| {
        let text = format!("{ARCHIVE} has no contract {}", quoted(id));
        Fault::unreadable("import.contract", text)
    })
}

/// The issue that a contract names, or that all that name none are about.
fn issue_of(
    folder: &Folder,
    contract: &str,
    importer: &Importer<'_, '_>,
) -> Result<Option<IssueKey>, ExchangeError> {
    let Ok(bytes) = folder.contract(contract) else {
        return Ok(None);
    };
    let tip = importer.ledger.tip()?;
    let Chosen { rules, review } = importer.choose(&tip, &bytes)?;
    Ok(review
        .contract
        .filter(|contract| names_issue(&rules, contract))
        .map(|contract| contract.issue))
}

/// A document of a folder of states.
struct Document {
    file: String,
    bytes: Vec<u8>,
    /// When it was written, as far as it says.
    at: Option<i64>,
    /// Whether it is in the folder of what is worked on.
    claimed: bool,
    /// The id of the request that it is, in its protocol.
    request: Option<(String, String)>,
    /// The request that it answers, and whose members it may have.
    answers: Option<Answered>,
}

/// What is known of the request that a document answers.
struct Answered {
    /// The protocol and the request's own id.
    request: (String, String),
    /// The request, if the document carries it along, or what it lacks of it.
    carried: Result<Vec<u8>, Vec<String>>,
    /// When that was written, as far as it says.
    at: Option<i64>,
}

/// Imports folders of states in the order of the documents' times.
fn folders(folder: &Folder, importer: &mut Importer<'_, '_>) -> Result<(), ExchangeError> {
    let top = states_in(folder).unwrap_or_default();
    let tip = importer.ledger.tip()?;
    let mut documents = Vec::new();
    for state in [REQUESTS].into_iter().chain(STATES) {
        let below = match top {
            "" => state.to_owned(),
            _ => format!("{top}/{state}"),
        };
        if !folder.has_folder(&below) {
            continue;
        }
        for file in folder.list(&below, &ENDS)? {
            match folder.contract(&file) {
                Ok(bytes) => {
                    let claimed = state == STATES[1];
                    documents.push(document(importer, &tip, file, bytes, claimed)?);
                }
                Err(fault) => importer.refuse(&file, fault),
            }
        }
    }
    let mut known: HashSet<(String, String)> = { documents.iter() }
        .filter_map(|document| document.request.clone())
        .collect();
    // What is written later is sent later; a request before what answers it.
    let mut work: Vec<(Option<i64>, u8, Document)> = Vec::new();
    let mut lacking: HashMap<String, Fault> = HashMap::new();
    for mut document in documents {
        if let Some(answered) = document.answers.take() {
            let carried = answered.carried;
            let there = known.contains(&answered.request) || in_ledger(&tip, &answered.request)?;
            match carried {
                _ if there => {}
                Ok(bytes) => {
                    known.insert(answered.request.clone());
                    let request = Document {
                        file: document.file.clone(),
                        bytes,
                        at: answered.at,
                        claimed: true,
                        request: None,
                        answers: None,
                    };
                    work.push((request.at, 0, request));
                }
                Err(lacks) => {
                    let fault = no_request(&answered.request.1, &lacks);
                    lacking.insert(document.file.clone(), fault);
                }
            }
            work.push((document.at, 1, document));
        } else {
            work.push((document.at, 0, document));
        }
    }
    work.sort_by_key(|(at, rank, _)| (at.unwrap_or(i64::MAX), *rank));
    for (_, _, document) in work {
        if let Some(fault) = lacking.remove(&document.file) {
            importer.refuse(&document.file, fault);
            continue;
        }
        importer.deliver(&Delivery {
            file: &document.file,
            bytes: &document.bytes,
            claimed: document.claimed,
        })?;
    }
    Ok(())
}

fn no_request(id: &str, lacks: &[String]) -> Fault {
    let text = format!(
        "neither the ledger nor the folder has the request {}, and the document lacks of it: {}",
        quoted(id),
        lacks.join(", ")
    );
    Fault::unreadable("import.request", text)
}

/// Reads what a document is, as far as it can be told.
fn document<'r>(
    importer: &Importer<'_, 'r>,
    tip: &Snapshot<'r>,
    file: String,
    bytes: Vec<u8>,
    claimed: bool,
) -> Result<Document, ExchangeError> {
    let Chosen { rules, review } = importer.choose(tip, &bytes)?;
    let protocol = rules.protocol();
    let kind = review
        .kind
        .as_deref()
        .and_then(|kind| protocol.contract_type(kind));
    let value: Option<Value> = match &review.contract {
        Some(contract) => Some(contract.value.clone()),
        None => serde_json::from_slice(&bytes).ok(),
    };
    let mut document = Document {
        file,
        bytes,
        at: None,
        claimed,
        request: None,
        answers: None,
    };
    let (Some(kind), Some(value)) = (kind, value) else {
        return Ok(document);
    };
    let time = |kind: &ContractType| {
        let at = protocol.field(kind, |f| &f.at)?;
        let at = DateTime::parse_from_rfc3339(value.pointer(at)?.as_str()?).ok()?;
        Some(at.timestamp())
    };
    let id = protocol
        .field(kind, |f| &f.id)
        .and_then(|at| value.pointer(at));
    let id = id
        .and_then(scalar)
        .map(|id| (protocol.name().to_owned(), id));
    document.at = time(kind);
    match (kind.answers.first(), id) {
        (None, id) => document.request = id,
        (Some(asked), Some(request)) => {
            let asked = protocol.contract_type(asked);
            let carried = match asked {
                Some(asked) => carried(&rules, asked, &value)?,
                None => Err(Vec::new()),
            };
            document.answers = Some(Answered {
                request,
                at: asked.and_then(time),
                carried,
            });
        }
        (Some(_), None) => {}
    }
    Ok(document)
}

/// The request that a document carries along: the members that its type has,
/// with the first of the words that tell the type.
fn carried(
    rules: &Rules<'_>,
    asked: &ContractType,
    value: &Value,
) -> Result<Result<Vec<u8>, Vec<String>>, LedgerError> {
    let schema: Value = serde_json::from_slice(&rules.bytes(&asked.schema)?).unwrap_or(Value::Null);
    let (Some(members), Some(value)) = (schema["properties"].as_object(), value.as_object()) else {
        return Ok(Err(Vec::new()));
    };
    let own = value.iter().filter(|(name, _)| members.contains_key(*name));
    let mut request: Map<String, Value> = own.map(|(n, v)| (n.clone(), v.clone())).collect();
    for (pointer, words) in &asked.when {
        if let Some(name) = pointer.strip_prefix('/').filter(|name| !name.contains('/'))
            && let Some(word) = words.texts().iter().find(|word| *word != "*")
        {
            request.insert(name.to_owned(), Value::String(word.clone()));
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(Value::as_str);
    let lacks = required.filter(|name| !request.contains_key(*name));
    let lacks: Vec<String> = lacks.map(|name| format!("`{name}`")).collect();
    if !lacks.is_empty() {
        return Ok(Err(lacks));
    }
    let mut bytes = serde_json::to_vec_pretty(&request).expect("a value has string keys");
    bytes.push(b'\n');
    Ok(Ok(bytes))
}

/// Says whether the ledger has a request with this id.
fn in_ledger(tip: &Snapshot<'_>, (protocol, id): &(String, String)) -> Result<bool, LedgerError> {
    let Ok(key) = id.parse::<IssueKey>() else {
        return Ok(false);
    };
    let Some(issue) = tip.issue(&key)?.issue()? else {
        return Ok(false);
    };
    let has = |ids: &std::collections::BTreeMap<String, u32>| ids.contains_key(id);
    Ok(issue.protocol.as_str() == protocol && issue.contract_ids.values().any(has))
}
