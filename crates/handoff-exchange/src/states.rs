//! Imports one folder per state, from systems that move a document from state to state, ordered by
//! the documents' times.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, FixedOffset};
use handoff::base::digest;
use handoff::base::finding::FindingCode;
use handoff::base::ids::AgentName;
use handoff::base::text::quoted;
use handoff::contract::Input;
use handoff::ledger::{ContractMatch, LedgerError, Rules, Snapshot};
use handoff::model::value::scalar;
use handoff::model::{ImportSource, Record, View};
use handoff::protocol::{ContractType, Protocol};
use serde_json::{Map, Value};

use super::ExchangeError;
use super::deliver::{Delivery, IN_PROGRESS, Importer, Movement, RequestKey, request_in};
use super::fault::Fault;
use super::files::Folder;
use super::folders::{RETRY_COUNT, pretty, unset};
use super::places::{CONTEXT, ENDS, HANDOFFS, REQUESTS, STATES, state_folder};

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
    delivery: Delivery,
    /// The key of its request: its own, or that of the request it answers.
    key: Option<RequestKey>,
    /// The request that an answer repeats.
    answers: Option<Carried>,
    /// Whether a request with this key is an issue of its own.
    alone: bool,
}

/// The kind of a file.
enum Found {
    Document(Document),
    /// A request that the ledger has, which was moved.
    Moved(Movement),
}

/// A time, with the zone that it was written in.
type Moment = DateTime<FixedOffset>;

/// The parts of its request in an answer: all of it, or else the missing members.
type Carried = Result<Delivery, Vec<String>>;

/// Imports folders of states, ordered by the documents' times, and the documents that all issues
/// share.
pub(super) fn read(folder: &Folder, importer: &mut Importer<'_, '_>) -> Result<(), ExchangeError> {
    let top = top_of(folder).unwrap_or_default();
    let tip = importer.ledger.tip()?;
    let (mut documents, mut moved) = (Vec::new(), Vec::new());
    for (state, name) in [None, Some(0), Some(1), Some(2), Some(3)]
        .into_iter()
        .map(|state| (state, state.map_or(REQUESTS, |state| STATES[state])))
    {
        let below = match top {
            "" => name.to_owned(),
            _ => format!("{top}/{name}"),
        };
        if !folder.has_folder(&below) {
            continue;
        }
        for file in folder.list(&below, &ENDS)? {
            let read = folder.contract(&file).map(|bytes| (file.clone(), bytes));
            let found = match read {
                Ok((file, bytes)) if importer.knows(&file, &bytes) => continue,
                Ok((file, bytes)) => document(importer, &tip, file, bytes, state)?,
                Err(fault) => Err(fault),
            };
            match found {
                Ok(Found::Document(document)) => documents.push(document),
                Ok(Found::Moved(movement)) => moved.push(movement),
                Err(fault) => importer.refuse(&file, fault),
            }
        }
    }
    shared_documents(folder, importer)?;
    for movement in moved {
        if importer.follow(&movement)? {
            // The ledger writes a requested retry to a file of its own, so this one shows no
            // request.
            let is_shown = movement.state == IN_PROGRESS;
            let delivery = movement.delivery;
            importer.note(
                &delivery.file,
                &delivery.bytes,
                Some(movement.key).filter(|_| is_shown),
            )?;
        }
    }
    let mut items = items(&tip, documents, importer)?;
    // Ordered by time; a request comes before its answer.
    items.sort_by_key(|item| {
        let first = item.first();
        let at = first.and_then(|first| first.0.at).map(|at| at.timestamp());
        (at.unwrap_or(i64::MAX), first.is_some_and(|first| first.1))
    });
    for item in items {
        let files: Vec<String> = item.iter().map(|(d, _)| d.file.clone()).collect();
        let item: Vec<Delivery> = item.into_iter().map(|(delivery, _)| delivery).collect();
        if importer.deliver(&item)? {
            for delivery in item.into_iter().rev() {
                importer.note(&delivery.file, &delivery.file_bytes, delivery.about)?;
            }
            continue;
        }
        // Report the refusal for the answer; the request's own file was held back with it.
        if let [request, answer] = &files[..]
            && request != answer
        {
            let why = format!("its answer {} was refused", quoted(answer));
            importer.refuse(request, Fault::Behind { why });
        }
    }
    Ok(())
}

/// Imports one file: a contract, or a request and its answer together.
pub(super) fn single(
    folder: &Folder,
    file: &str,
    importer: &mut Importer<'_, '_>,
) -> Result<(), ExchangeError> {
    let read = folder.contract(file);
    let tip = importer.ledger.tip()?;
    let found = match read {
        Ok(bytes) => document(importer, &tip, file.to_owned(), bytes, None)?,
        Err(fault) => Err(fault),
    };
    match found {
        Ok(Found::Moved(movement)) => {
            importer.follow(&movement)?;
        }
        Ok(Found::Document(document)) if document.answers.as_ref().is_some_and(Result::is_ok) => {
            for item in items(&tip, vec![document], importer)? {
                let item: Vec<Delivery> = item.into_iter().map(|(delivery, _)| delivery).collect();
                importer.deliver(&item)?;
            }
        }
        Ok(Found::Document(document)) => {
            let delivery = Delivery::new(file, document.delivery.bytes);
            importer.deliver(&[delivery])?;
        }
        Err(fault) => importer.refuse(file, fault),
    }
    Ok(())
}

/// Pairs each request with its answer, so that both are imported or none. In an issue that has
/// other work too, each is imported at its own time. The flag says whether it is an answer.
fn items(
    tip: &Snapshot<'_>,
    documents: Vec<Document>,
    importer: &mut Importer<'_, '_>,
) -> Result<Vec<Vec<(Delivery, bool)>>, ExchangeError> {
    let (answers, others): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|d| d.answers.is_some());
    let mut requests: HashMap<RequestKey, Delivery> = HashMap::new();
    let mut items: Vec<Vec<(Delivery, bool)>> = Vec::new();
    let mut known: HashSet<RequestKey> = HashSet::new();
    for other in others {
        match other.key.filter(|_| other.alone) {
            Some(key) if !requests.contains_key(&key) => {
                requests.insert(key, other.delivery);
            }
            _ => items.push(vec![(other.delivery, false)]),
        }
    }
    for answer in answers {
        let (Some(key), Some(carried)) = (answer.key, answer.answers) else {
            continue;
        };
        let mut item = Vec::new();
        if let Some(request) = requests.remove(&key) {
            item.push((request, false));
        } else if !known.contains(&key) && request_in(tip, &key)?.is_none() && answer.alone {
            match carried {
                Ok(request) => item.push((request, false)),
                Err(lacks) => {
                    importer.refuse(&answer.delivery.file, no_request(&key.1, &lacks));
                    continue;
                }
            }
        }
        known.insert(key);
        item.push((answer.delivery, true));
        items.push(item);
    }
    items.extend(requests.into_values().map(|request| vec![(request, false)]));
    // In the order of the files, unless their times differ.
    items.sort_by(|a, b| a[0].0.file.cmp(&b[0].0.file));
    Ok(items)
}

/// Imports the documents that all issues share: those in `context` that the protocol knows.
fn shared_documents(folder: &Folder, importer: &mut Importer<'_, '_>) -> Result<(), ExchangeError> {
    if !folder.has_folder(CONTEXT) {
        return Ok(());
    }
    for file in folder.list(CONTEXT, &[".json"])? {
        let stem = file.strip_prefix(&format!("{CONTEXT}/")).unwrap_or(&file);
        let Ok(name) = stem.trim_end_matches(".json").parse::<AgentName>() else {
            continue;
        };
        let tip = importer.ledger.tip()?;
        for protocol in tip.protocols()? {
            let rules = tip.rules(&protocol)?;
            let definition = rules.protocol().definition();
            if !definition.documents.contains_key(&name) {
                continue;
            }
            let protocol = definition.name.clone();
            let agent = importer.agent.clone();
            let Some(agent) = agent.or_else(|| rules.protocol().lead().cloned()) else {
                continue;
            };
            match folder.contract(&file) {
                Ok(bytes) if importer.knows(&file, &bytes) => {}
                Ok(bytes) => importer.document(&file, &agent, (&protocol, &name), &bytes)?,
                Err(fault) => importer.refuse(&file, fault),
            }
            break;
        }
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

/// Parses a document as far as possible, or returns why it does not belong in its folder.
fn document<'r>(
    importer: &Importer<'_, 'r>,
    tip: &Snapshot<'r>,
    file: String,
    bytes: Vec<u8>,
    state: Option<usize>,
) -> Result<Result<Found, Fault>, ExchangeError> {
    let (ContractMatch { rules, review }, imported) =
        importer.match_file(tip, &Input::read(&bytes), &file)?;
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
        delivery: Delivery {
            claimed: state == Some(1),
            ..Delivery::new(&file, bytes)
        },
        key: None,
        answers: None,
        alone: protocol.definition().fields.id == protocol.definition().fields.issue,
    };
    let (Some(kind), Some(value)) = (kind, value) else {
        return Ok(Ok(Found::Document(document)));
    };
    if let Some(fault) = misplaced(protocol, kind, &value, state) {
        return Ok(Err(fault));
    }
    let (at, claimed_at) = times(protocol, kind, &value);
    document.delivery.at = at;
    document.delivery.claimed_at = claimed_at;
    let id = protocol
        .field(kind, |f| &f.id)
        .and_then(|at| value.pointer(at));
    let id = id.and_then(scalar);
    document.key = id.map(|id| (protocol.name().to_owned(), id));
    document.delivery.about.clone_from(&document.key);
    if let (Some(state), Some(key)) = (state, &document.key)
        && let Some(record) = moved(importer, tip, kind, key, (state, &document.delivery.bytes))?
    {
        let corrected = corrected(&rules, kind, (&value, &imported), tip, &record)?;
        return Ok(Ok(Found::Moved(Movement {
            key: key.clone(),
            delivery: document.delivery,
            state,
            corrected,
        })));
    }
    if document.key.is_some()
        && let Some(answered) = kind.answers.first()
    {
        let answered = protocol.contract_type(answered);
        let carried = match answered {
            Some(answered) => carried(&rules, answered, &value, &imported)?,
            None => Err(Vec::new()),
        };
        document.answers = Some(carried.map(|bytes| Delivery {
            at: answered.and_then(|kind| times(protocol, kind, &value).0),
            ..Delivery::new(&file, bytes)
        }));
    }
    Ok(Ok(Found::Document(document)))
}

/// The ledger's request that a file of the first two folders is about, if the file shows a
/// movement. Without an index of the folder, its content must differ from the request's contract.
fn moved(
    importer: &Importer<'_, '_>,
    tip: &Snapshot<'_>,
    kind: &ContractType,
    key: &RequestKey,
    (state, bytes): (usize, &[u8]),
) -> Result<Option<Record>, ExchangeError> {
    // Without an index of the folder, a pending file is one that was imported before.
    let is_news = state == IN_PROGRESS || state == 0 && importer.known.is_some();
    if !is_news || !kind.answers.is_empty() {
        return Ok(None);
    }
    let record = request_in(tip, key)?;
    let record = record.filter(|record| record.contract_type == kind.name);
    let is_same = |record: &Record| record.contract.sha256 == digest(bytes);
    Ok(record.filter(|record| importer.known.is_some() || !is_same(record)))
}

/// The contract of a request's file, if it differs from the ledger's in more than the members that
/// a movement adds.
fn corrected(
    rules: &Rules<'_>,
    kind: &ContractType,
    (value, imported): (&Value, &ImportSource),
    tip: &Snapshot<'_>,
    record: &Record,
) -> Result<Option<Vec<u8>>, ExchangeError> {
    let protocol = rules.protocol();
    let sent = tip.issue(record.id.issue())?.contract(record)?;
    let Ok(mut sent) = serde_json::from_slice::<Value>(&sent) else {
        return Ok(None);
    };
    let Ok(bytes) = carried(rules, kind, value, imported)? else {
        return Ok(None);
    };
    let mut own: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let profiles = protocol.definition().imports.values();
    let profiles = profiles.filter_map(|profile| profile.contracts.get(&kind.name));
    let times = profiles.filter_map(|imported| imported.claimed_at.as_deref());
    let status = protocol.field(kind, |f| &f.status);
    for at in times.chain(status).chain([RETRY_COUNT]) {
        unset(&mut sent, at);
        unset(&mut own, at);
    }
    if own == sent {
        return Ok(None);
    }
    let Ok(mut again) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(None);
    };
    unset(&mut again, RETRY_COUNT);
    Ok(Some(pretty(&again)))
}

/// Why a document does not belong in this state's folder: its status is another one's.
fn misplaced(
    protocol: &Protocol,
    kind: &ContractType,
    value: &Value,
    folder: Option<usize>,
) -> Option<Fault> {
    let folder = STATES[folder?];
    let word = scalar(value.pointer(protocol.field(kind, |f| &f.status)?)?)?;
    let own = state_folder(*protocol.definition().words.status.get(&word)?);
    if own == folder {
        return None;
    }
    let text = format!(
        "its status is {}, which belongs into the folder {own}",
        quoted(&word)
    );
    Some(Fault::unreadable(FindingCode::ImportState, text))
}

/// When a document was written, and when its receiver claimed the work, if stated.
fn times(
    protocol: &Protocol,
    kind: &ContractType,
    value: &Value,
) -> (Option<Moment>, Option<Moment>) {
    let time = |at: &String| DateTime::parse_from_rfc3339(value.pointer(at)?.as_str()?).ok();
    let profiles = protocol.definition().imports.values();
    let imported = || profiles.clone().filter_map(|p| p.contracts.get(&kind.name));
    let own = protocol.field(kind, |f| &f.at).map(str::to_owned);
    let at = own.as_ref().and_then(time);
    let at = at.or_else(|| imported().find_map(|i| time(i.at.as_ref()?)));
    let claimed_at = imported().find_map(|i| time(i.claimed_at.as_ref()?));
    (at, claimed_at)
}

/// The request that a document repeats: the members of its type, with the first of the type's
/// identifying words.
fn carried(
    rules: &Rules<'_>,
    kind: &ContractType,
    value: &Value,
    imported: &ImportSource,
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
    let profiles = &rules.protocol().definition().imports;
    let profile = imported.profile.as_ref().and_then(|p| profiles.get(p));
    let lenient = profile.and_then(|profile| profile.contracts.get(&kind.name));
    let may_lack = |name: &str| lenient.is_some_and(|l| l.may_lack(&format!("/{name}")));
    let lacks = required.filter(|name| !request.contains_key(*name) && !may_lack(name));
    let lacks: Vec<String> = lacks.map(|name| format!("`{name}`")).collect();
    if !lacks.is_empty() {
        return Ok(Err(lacks));
    }
    let mut bytes = serde_json::to_vec_pretty(&request).expect("a value has string keys");
    bytes.push(b'\n');
    Ok(Ok(bytes))
}
