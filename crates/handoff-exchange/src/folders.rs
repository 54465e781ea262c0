//! The folders of states: one document for each handoff that is not an answer, in the folder of its
//! state, as programs that move such files read them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId};
use handoff::base::pointer::parts;
use handoff::contract::Input;
use handoff::ledger::{LedgerError, Rules, Snapshot};
use handoff::model::{Record, layout, review_imported};
use handoff::protocol::{ContractType, Event, FailureFields, Protocol, State};
use serde_json::{Map, Value, json};

use super::ExchangeError;
use super::places::{CONTEXT, Names, REQUESTS, STATES, extension, inside, state_folder};
use super::records::Reader;
use super::shared_folder::{Put, SharedFolder};

/// The maximum number of handoffs whose files are planned and written at once.
const BATCH: usize = 500;

/// The number of earlier attempts in a request; a failure's type has the same member.
pub(super) const RETRY_COUNT: &str = "/retry_count";

/// The result of writing folders of states.
#[derive(Clone, Debug, Default)]
pub struct PutOut {
    /// The files that were written, created or replaced.
    pub written: Vec<String>,
    /// The files of an earlier state that were removed.
    pub removed: Vec<String>,
    /// Files of other programs where one would be written; they stay as they are.
    pub kept: Vec<String>,
}

/// A file to write.
struct Planned {
    path: String,
    bytes: Vec<u8>,
    shows: Option<String>,
    /// The files of the same handoff in the folders of other states.
    stale: Vec<String>,
}

/// The state that a handoff's file shows, as an id in the index.
pub(super) fn shows(record: &Record) -> String {
    format!("{}:{}", record.id, record.transitions.len())
}

/// Writes the documents of these handoffs; with `only_moved`, only those that other systems move
/// from state to state.
pub(super) fn write(
    folder: &mut SharedFolder,
    top: &str,
    reader: &mut Reader<'_, '_>,
    sent: &mut [HandoffId],
    only_moved: bool,
) -> Result<PutOut, ExchangeError> {
    sent.sort();
    let mut done = PutOut::default();
    let mut names = Names::default();
    let mut rules = RulesByName::default();
    for state in STATES {
        folder.create(&inside(top, state))?;
    }
    let mut replaced = HashSet::new();
    for id in sent.iter() {
        replaced.extend(reader.record(id)?.replaces);
    }
    for batch in sent.chunks(BATCH) {
        let mut planned = Vec::new();
        for id in batch {
            let record = reader.record(id)?;
            if record.answers.is_some() || replaced.contains(id) {
                continue;
            }
            let rules = rules.of(reader, &record.protocol)?;
            let document = Document::new(&rules, &record);
            if only_moved && !document.is_moved {
                continue;
            }
            let stem = names.free(top, document.wanted_name().as_deref(), &id.to_string());
            planned.extend(document.plan(folder, (top, &stem), reader, &mut done)?);
        }
        carry_out(folder, &planned, &mut done)?;
    }
    contexts(folder, reader.snapshot, &mut done)?;
    folder.save()?;
    Ok(done)
}

fn carry_out(
    folder: &mut SharedFolder,
    planned: &[Planned],
    done: &mut PutOut,
) -> Result<(), ExchangeError> {
    if planned.is_empty() {
        return Ok(());
    }
    let files = planned.iter().map(|file| {
        let bytes = file.bytes.as_slice();
        (file.path.as_str(), bytes, file.shows.clone())
    });
    folder.plan(files)?;
    for file in planned {
        let mut is_free = true;
        for stale in &file.stale {
            if folder.remove(stale)? {
                done.removed.push(stale.clone());
            } else {
                // Another program changed it just now: import that first.
                is_free = !folder.has(stale) && !folder.knew(stale);
            }
        }
        if !is_free {
            continue;
        }
        match folder.put(&file.path, &file.bytes)? {
            Put::Written => done.written.push(file.path.clone()),
            Put::Same => {}
            Put::Foreign => done.kept.push(file.path.clone()),
        }
    }
    folder.save()
}

/// Writes the documents that all issues share.
fn contexts(
    folder: &mut SharedFolder,
    tip: &Snapshot<'_>,
    done: &mut PutOut,
) -> Result<(), ExchangeError> {
    let mut planned: Vec<Planned> = Vec::new();
    for protocol in tip.protocols()? {
        let rules = tip.rules(&protocol)?;
        for name in rules.protocol().definition().documents.keys() {
            let Some(bytes) = tip.file(&layout::document(&protocol, name))? else {
                continue;
            };
            let path = format!("{CONTEXT}/{name}.json");
            // If protocols have documents of the same name, the first wins.
            if planned.iter().all(|file| file.path != path) {
                let bytes = bytes.to_vec();
                planned.push(Planned {
                    path,
                    bytes,
                    shows: None,
                    stale: Vec::new(),
                });
            }
        }
    }
    carry_out(folder, &planned, done)
}

#[derive(Default)]
struct RulesByName<'r>(HashMap<AgentName, Rc<Rules<'r>>>);

impl<'r> RulesByName<'r> {
    fn of(
        &mut self,
        reader: &Reader<'_, 'r>,
        protocol: &AgentName,
    ) -> Result<Rc<Rules<'r>>, LedgerError> {
        if let Some(known) = self.0.get(protocol) {
            return Ok(Rc::clone(known));
        }
        let rules = Rc::new(reader.snapshot.rules(protocol.as_str())?);
        self.0.insert(protocol.clone(), Rc::clone(&rules));
        Ok(rules)
    }
}

/// A handoff and its rules.
struct Document<'a, 'r> {
    rules: &'a Rules<'r>,
    record: &'a Record,
    kind: Option<&'a ContractType>,
    /// Whether other systems move such handoffs' files from state to state.
    is_moved: bool,
}

impl<'a, 'r> Document<'a, 'r> {
    fn new(rules: &'a Rules<'r>, record: &'a Record) -> Self {
        let protocol = rules.protocol();
        let mut profiles = protocol.definition().imports.values();
        let is_moved =
            profiles.any(|profile| profile.contracts.contains_key(&record.contract_type));
        Self {
            rules,
            record,
            kind: protocol.contract_type(&record.contract_type),
            is_moved,
        }
    }

    fn protocol(&self) -> &'a Protocol {
        self.rules.protocol()
    }

    /// Its file name: the one it was imported by, or else its id.
    fn wanted_name(&self) -> Option<String> {
        let came_as = self.record.imported.as_ref().filter(|_| self.is_moved);
        let came_as = came_as.and_then(|source| {
            let (folder, name) = source.file.rsplit_once('/')?;
            let state = folder.rsplit('/').next()?;
            let (stem, _) = name.rsplit_once('.')?;
            let is_moved = state == REQUESTS || STATES.contains(&state);
            is_moved.then(|| stem.to_owned())
        });
        came_as.or_else(|| self.record.contract_id.clone())
    }

    /// Plans its files, unless another program has one, or they are current.
    fn plan(
        &self,
        folder: &SharedFolder,
        (top, stem): (&str, &str),
        reader: &mut Reader<'_, '_>,
        done: &mut PutOut,
    ) -> Result<Vec<Planned>, ExchangeError> {
        let state = state_folder(self.record.state);
        let end = self.end();
        let name = |state: &str| inside(top, &format!("{state}/{stem}.{end}"));
        let own = name(state);
        let stale: Vec<String> = {
            let others = STATES.iter().filter(|other| **other != state);
            others.map(|other| name(other)).collect()
        };
        let mut present = Vec::new();
        // Twice, since a scan can miss a file that is moved during it.
        for _ in 0..2 {
            present.clear();
            for path in STATES.iter().map(|state| name(state)) {
                if folder.is_foreign(&path)? {
                    done.kept.push(path);
                    return Ok(Vec::new());
                }
                if folder.has(&path) {
                    present.push(path);
                }
            }
            if !present.is_empty() {
                break;
            }
        }
        let shown = Some(shows(self.record));
        let stale: Vec<String> = stale
            .into_iter()
            .filter(|path| present.contains(path))
            .collect();
        let is_shown =
            present.contains(&own) && folder.known(&own).is_some_and(|known| known.shows == shown);
        if is_shown && stale.is_empty() {
            return Ok(Vec::new());
        }
        let Some(answer) = self.answer(reader)? else {
            let bytes = self.bytes(reader)?;
            return Ok(vec![Planned {
                path: own,
                bytes,
                shows: shown,
                stale,
            }]);
        };
        let request = Planned {
            path: inside(top, &format!("{REQUESTS}/{stem}.{end}")),
            bytes: self.sent_bytes(reader, self.record)?,
            shows: None,
            stale: Vec::new(),
        };
        let answer = Planned {
            path: own,
            bytes: self.sent_bytes(reader, &answer)?,
            shows: shown,
            stale,
        };
        Ok(vec![request, answer])
    }

    /// The extension: moved files are JSON, which every program reads; others keep their format.
    fn end(&self) -> &str {
        if self.is_json() {
            "json"
        } else {
            extension(&self.record.contract.file)
        }
    }

    fn is_json(&self) -> bool {
        let formats = &self.protocol().definition().formats;
        self.is_moved && formats.iter().any(|format| format == "json")
    }

    /// The answer that ended it, if any.
    fn answer(&self, reader: &mut Reader<'_, '_>) -> Result<Option<Record>, LedgerError> {
        let record = self.record;
        if !matches!(record.state, State::Completed | State::Failed | State::Dead) {
            return Ok(None);
        }
        let Some(sent) = record.latest().and_then(|last| last.sent.clone()) else {
            return Ok(None);
        };
        if sent.issue() != record.id.issue() {
            return Ok(None);
        }
        let answer = reader.record(&sent)?;
        Ok(Some(answer).filter(|answer| answer.answers.as_ref() == Some(&record.id)))
    }

    /// A contract as it was sent, or as JSON.
    fn sent_bytes(
        &self,
        reader: &mut Reader<'_, '_>,
        record: &Record,
    ) -> Result<Vec<u8>, ExchangeError> {
        let bytes = reader.contract(record)?;
        match self.value(record, &bytes)? {
            Some(value) if is_xml(record) && self.is_json() => Ok(pretty(&value)),
            _ => Ok(bytes),
        }
    }

    /// A contract's value, if it can be parsed.
    fn value(&self, record: &Record, bytes: &[u8]) -> Result<Option<Value>, LedgerError> {
        if let Ok(value) = serde_json::from_slice(bytes) {
            return Ok(Some(value));
        }
        let input = Input::read(bytes);
        let imported = record.imported.as_ref();
        let key = Some(record.id.issue());
        let review = review_imported(self.protocol(), self.rules, &input, key, imported)?;
        Ok(review.contract.map(|contract| contract.value))
    }

    /// The request, as written to the folder of its state.
    fn bytes(&self, reader: &mut Reader<'_, '_>) -> Result<Vec<u8>, ExchangeError> {
        let bytes = reader.contract(self.record)?;
        let value = self.value(self.record, &bytes)?.filter(|_| self.is_json());
        let (Some(own), Some(kind)) = (value, self.kind) else {
            return Ok(bytes);
        };
        let mut value = own.clone();
        let record = self.record;
        let folder = state_folder(record.state);
        if let Some(at) = self.protocol().field(kind, |f| &f.status)
            && let Some(word) = self.word(kind, at, folder, value.pointer(at))
        {
            set(&mut value, at, Value::String(word));
        }
        if let Some(at) = self.profile_time(kind, |imported| imported.claimed_at.as_ref()) {
            let claim = record.transitions.iter().rev();
            let claim = claim
                .filter(|t| t.event.is_some_and(Event::is_claim))
                .map(|t| t.at)
                .next();
            match claim.filter(|_| record.state != State::Pending) {
                Some(claim) if same_second(value.pointer(at), claim) => {}
                Some(claim) => set(&mut value, at, json!(claim.rfc3339())),
                None => unset(&mut value, at),
            }
        }
        if record.retries() > 0 && value.pointer(RETRY_COUNT).is_none() {
            set(&mut value, RETRY_COUNT, json!(record.retries()));
        }
        if folder == STATES[3] {
            self.fail(&mut value)?;
        }
        Ok(if value == own && !is_xml(record) {
            bytes
        } else {
            pretty(&value)
        })
    }

    /// The status word for a folder; the contract's own word if it means the same state.
    fn word(
        &self,
        kind: &ContractType,
        at: &str,
        folder: &str,
        own: Option<&Value>,
    ) -> Option<String> {
        let words = &self.protocol().definition().words.status;
        let fits = |word: &str| {
            words
                .get(word)
                .is_some_and(|state| state_folder(*state) == folder)
        };
        if let Some(own) = own.and_then(Value::as_str).filter(|own| fits(own)) {
            return Some(own.to_owned());
        }
        // The request's own words first: an answer may have others.
        let own = kind
            .when
            .get(at)
            .into_iter()
            .flat_map(|words| words.texts().iter());
        let all = own.chain(words.keys());
        all.map(String::as_str)
            .find(|word| fits(word))
            .map(str::to_owned)
    }

    fn profile_time(
        &self,
        kind: &ContractType,
        of: impl Fn(&handoff::protocol::ImportedType) -> Option<&String>,
    ) -> Option<&'a String> {
        let profiles = self.protocol().definition().imports.values();
        let mut imported = profiles.filter_map(|profile| profile.contracts.get(&kind.name));
        imported.find_map(of)
    }

    /// Adds a failure that no contract reports to a document: in the members of the failure type,
    /// with its template's fixed values.
    fn fail(&self, value: &mut Value) -> Result<(), ExchangeError> {
        let answers = self.protocol().answers_to(&self.record.contract_type);
        let found = answers
            .into_iter()
            .find_map(|kind| Some((kind, kind.failure.as_ref()?)));
        let Some((kind, fields)) = found else {
            return Ok(());
        };
        let record = self.record;
        let at = record.latest().map_or_else(Moment::default, |last| last.at);
        let template = self.rules.bytes(&kind.template)?;
        let template = serde_json::from_slice(&template).unwrap_or(Value::Null);
        let filled = filled(&template, at, record.retries());
        if let (Some(Value::Object(filled)), Some(own)) = (filled, value.as_object_mut()) {
            for (name, member) in filled {
                own.entry(name).or_insert(member);
            }
        }
        if let Some(pointer) = self.profile_time(kind, |imported| imported.at.as_ref()) {
            set(value, pointer, json!(at.rfc3339()));
        }
        self.failure(fields, value);
        Ok(())
    }

    fn failure(&self, fields: &FailureFields, value: &mut Value) {
        let record = self.record;
        let failure = record.failure();
        let codes = &self.protocol().definition().words.errors;
        let mut code = failure
            .map_or("", |failure| failure.code.as_str())
            .to_owned();
        let reason = record.latest().and_then(|last| last.reason.as_deref());
        let mut message = match failure {
            Some(failure) => failure.message.clone(),
            None => match reason {
                Some(reason) => format!("{}: {reason}", record.state.words()),
                None => record.state.words().to_owned(),
            },
        };
        if !codes.is_empty() && !codes.contains_key(&code) {
            if !code.is_empty() {
                message = format!("{code}: {message}");
            }
            let first = codes.iter().find(|(_, known)| !known.runs.is_empty());
            code = first
                .or(codes.iter().next())
                .map_or(code, |(code, _)| code.clone());
        }
        let again = json!(record.state == State::Failed);
        let own = [
            (&fields.code, json!(code)),
            (&fields.message, json!(message)),
        ];
        for (at, text) in own.into_iter().filter(|(at, _)| at.starts_with('/')) {
            set(value, at, text);
        }
        for at in [&fields.recoverable, &fields.retry_available]
            .into_iter()
            .flatten()
        {
            set(value, at, again.clone());
        }
    }
}

fn is_xml(record: &Record) -> bool {
    extension(&record.contract.file) == "xml"
}

pub(super) fn pretty(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("a value has string keys");
    bytes.push(b'\n');
    bytes
}

/// The values of a template that need no contract: fixed ones, the time, and the number of retries.
fn filled(template: &Value, at: Moment, retries: u32) -> Option<Value> {
    match template {
        Value::String(text) => match text.strip_prefix("{{") {
            None => Some(template.clone()),
            Some(rest) if rest.starts_with("now:") => Some(json!(at.rfc3339())),
            Some(rest) if rest.starts_with("retries:") => Some(json!(retries)),
            Some(_) => None,
        },
        Value::Object(members) => {
            let filled = members
                .iter()
                .filter_map(|(name, member)| Some((name.clone(), filled(member, at, retries)?)));
            let filled: Map<String, Value> = filled.collect();
            (!filled.is_empty()).then_some(Value::Object(filled))
        }
        Value::Array(_) => None,
        other => Some(other.clone()),
    }
}

fn same_second(value: Option<&Value>, at: Moment) -> bool {
    let text = value.and_then(Value::as_str);
    let said = text.and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok());
    said.is_some_and(|said| said.timestamp() == at.timestamp())
}

/// Sets a member, and creates the objects around it.
fn set(value: &mut Value, pointer: &str, to: Value) {
    let mut place = value;
    for part in parts(pointer) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Some(members) = place.as_object_mut() else {
            return;
        };
        place = members.entry(part).or_insert(Value::Null);
    }
    *place = to;
}

pub(super) fn unset(value: &mut Value, pointer: &str) {
    if let Some((above, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(members)) = value.pointer_mut(above)
    {
        members.shift_remove(name);
    }
}
