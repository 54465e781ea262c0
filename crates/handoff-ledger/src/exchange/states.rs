//! Imports one folder per state, as kept by systems that move a document from state to state, in
//! the order of the documents' times.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::DateTime;
use handoff_base::finding::FindingCode;
use handoff_base::ids::IssueKey;
use handoff_base::text::quoted;
use handoff_contract::Input;
use handoff_model::View;
use handoff_model::value::scalar;
use handoff_protocol::ContractType;
use serde_json::{Map, Value};

use super::ExchangeError;
use super::deliver::{Delivery, Importer};
use super::fault::Fault;
use super::files::Folder;
use super::inbound::ENDS;
use super::layouts::{HANDOFFS, REQUESTS, STATES};
use crate::contract_match::ContractMatch;
use crate::error::LedgerError;
use crate::snapshot::{Rules, Snapshot};

/// The folder that contains the folders of states.
pub(super) fn top_of(folder: &Folder) -> Option<&'static str> {
    let inside = |top: &str, state: &str| match top {
        "" => folder.has_folder(state),
        _ => folder.has_folder(&format!("{top}/{state}")),
    };
    let holds = |top: &&str| STATES.iter().any(|state| inside(top, state));
    [HANDOFFS, ""].into_iter().find(holds)
}

struct Document {
    file: String,
    bytes: Vec<u8>,
    /// When it was written, if it says.
    at: Option<i64>,
    /// Whether it is in the folder of work in progress.
    claimed: bool,
    /// If it is a request, its protocol and its id.
    request: Option<(String, String)>,
    /// The request that it answers, and whose members it may repeat.
    answers: Option<Answered>,
}

/// The request that a document answers.
struct Answered {
    request: (String, String),
    /// The request, if the document repeats it, or the members that it lacks.
    carried: Result<Vec<u8>, Vec<String>>,
    /// When the request was written, if it says.
    at: Option<i64>,
}

/// Imports folders of states, in the order of the documents' times.
pub(super) fn read(folder: &Folder, importer: &mut Importer<'_, '_>) -> Result<(), ExchangeError> {
    let top = top_of(folder).unwrap_or_default();
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
    let mut known: HashSet<(String, String)> = documents
        .iter()
        .filter_map(|document| document.request.clone())
        .collect();
    // A later document is sent later; a request comes before its answer.
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
    Fault::unreadable(FindingCode::ImportRequest, text)
}

/// Determines what a document is, as far as possible.
fn document<'r>(
    importer: &Importer<'_, 'r>,
    tip: &Snapshot<'r>,
    file: String,
    bytes: Vec<u8>,
    claimed: bool,
) -> Result<Document, ExchangeError> {
    let ContractMatch { rules, review } = importer.match_contract(tip, &Input::read(&bytes))?;
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
        (Some(answered), Some(request)) => {
            let answered = protocol.contract_type(answered);
            let carried = match answered {
                Some(answered) => carried(&rules, answered, &value)?,
                None => Err(Vec::new()),
            };
            document.answers = Some(Answered {
                request,
                at: answered.and_then(time),
                carried,
            });
        }
        (Some(_), None) => {}
    }
    Ok(document)
}

/// The request that a document repeats: the members of its type, with the first of the words that
/// identify the type.
fn carried(
    rules: &Rules<'_>,
    kind: &ContractType,
    value: &Value,
) -> Result<Result<Vec<u8>, Vec<String>>, LedgerError> {
    let schema: Value = serde_json::from_slice(&rules.bytes(&kind.schema)?).unwrap_or(Value::Null);
    let (Some(members), Some(value)) = (schema["properties"].as_object(), value.as_object()) else {
        return Ok(Err(Vec::new()));
    };
    let own = value.iter().filter(|(name, _)| members.contains_key(*name));
    let mut request: Map<String, Value> = own.map(|(n, v)| (n.clone(), v.clone())).collect();
    for (pointer, words) in &kind.when {
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

/// Whether the ledger has a request with this id.
fn in_ledger(tip: &Snapshot<'_>, (protocol, id): &(String, String)) -> Result<bool, LedgerError> {
    let Ok(key) = id.parse::<IssueKey>() else {
        return Ok(false);
    };
    let Some(issue) = tip.issue(&key)?.issue()? else {
        return Ok(false);
    };
    let has = |ids: &BTreeMap<String, u32>| ids.contains_key(id);
    Ok(issue.protocol.as_str() == protocol && issue.contract_ids.values().any(has))
}
