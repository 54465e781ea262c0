//! The JSON Schemas of commands' output, against which every test's output is validated.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::{prepared, project};

/// The prefixes by which commands' schemas refer to definitions, and definitions to each other.
const REFERENCES: [&str; 2] = ["definitions.json#/$defs/", "#/$defs/"];

/// Asserts that a document matches its command's schema. Commands without a schema, and output that
/// is not a document, pass.
#[track_caller]
pub(crate) fn check(args: &[String], document: &Value) {
    if document["schema"] != "git-handoff/2" {
        return;
    }
    check_shapes(args, document);
    let Some(validator) = validator(args) else {
        return;
    };
    let faults: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{args:?}: {faults:#?}\n{document:#}");
}

/// Asserts that an answer shows handoffs and issues in the common form, and repeats no value.
#[track_caller]
fn check_shapes(args: &[String], document: &Value) {
    let mut faults = Vec::new();
    let mut seen = BTreeMap::new();
    // The lines of `watch` are not wrapped in a document.
    let is_line = document["kind"].is_string();
    let answer = if is_line { document } else { &document["data"] };
    walk(answer, "", &mut seen, &mut faults);
    assert!(faults.is_empty(), "{args:?}: {faults:#?}\n{document:#}");
}

/// Further members allowed in rows about handoffs; below, about issues.
const BESIDE: [&str; 12] = [
    "record",
    "contract",
    "unpublished",
    "paused",
    "reason",
    "questions",
    "path",
    "commit",
    "repeated",
    "transitions",
    "next",
    "warnings",
];
const BESIDE_ISSUE: [&str; 1] = ["may_send"];

/// Members about the past, or stored elsewhere: they name handoffs by id.
const STORED: [&str; 5] = ["record", "transitions", "failures", "tasks", "annotations"];

/// Foreign content, in which equal values are allowed: definitions, contracts and facts.
const FOREIGN: [&str; 6] = [
    "definition",
    "contract",
    "known",
    "stated",
    "latest",
    "facts",
];

/// Collects the faults of a value, recursively. `seen` has the values shown of each handoff, by its
/// id and the member.
fn walk(value: &Value, at: &str, seen: &mut BTreeMap<String, String>, faults: &mut Vec<String>) {
    if let Value::Array(items) = value {
        for (n, item) in items.iter().enumerate() {
            walk(item, &format!("{at}/{n}"), seen, faults);
        }
    }
    let Value::Object(members) = value else {
        return;
    };
    let has = |names: &[&str]| names.iter().all(|name| members.contains_key(*name));
    for (kind, known, beside) in [
        ("Handoff", ["id", "state", "contract_type"], &BESIDE[..]),
        ("Issue", ["key", "protocol", "status"], &BESIDE_ISSUE),
    ] {
        let names = NAMES[kind].as_object().unwrap();
        if has(&known) {
            let lacks = names.keys().filter(|name| !members.contains_key(*name));
            faults.extend(lacks.map(|name| format!("{at}: no {name}")));
            let more = members.keys().filter(|name| !names.contains_key(*name));
            let more = more.filter(|name| !beside.contains(&name.as_str()));
            faults.extend(more.map(|name| format!("{at}: {name} beside its {kind}")));
        }
    }
    let is_past = at.contains("/steps/");
    for (name, member) in members {
        let place = format!("{at}/{name}");
        if name == "handoff" && !member.is_null() && !member["contract_type"].is_string() {
            faults.push(format!("{place}: not a handoff"));
        }
        let is_told = NAMES["Handoff"].get(name).is_some();
        let names_it = ["id", "issue", "title", "attempt"].contains(&name.as_str());
        if let (Some(id), true, false) = (value["id"].as_str(), is_told, names_it || is_past)
            && id.contains('.')
            && let Some(first) = seen.insert(format!("{id} {name}"), place.clone())
        {
            faults.push(format!("{place}: as {first}"));
        }
        let same = value["handoff"].get(name);
        if same.is_some_and(|same| same == member && !member.is_null()) && !names_it {
            faults.push(format!("{place}: its handoff has it"));
        }
        let mut others = members.iter().take_while(|(other, _)| *other != name);
        let same = others.find(|(_, other)| *other == member);
        if let Some((other, _)) = same.filter(|_| !member.is_string() && has_text(member)) {
            faults.push(format!("{place}: the same as {other}"));
        }
        if STORED.contains(&name.as_str()) {
            let told = member.as_object().into_iter().flatten();
            let again = told.filter(|(name, _)| NAMES["Handoff"].get(*name).is_some());
            faults.extend(again.map(|(name, _)| format!("{place}/{name}: its handoff has it")));
        } else if !FOREIGN.contains(&name.as_str()) {
            walk(member, &place, seen, faults);
        }
    }
}

/// Whether a value contains text.
fn has_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(has_text),
        Value::Object(members) => members.values().any(has_text),
        _ => false,
    }
}

/// The members of a handoff and an issue in every answer.
static NAMES: LazyLock<Value> = LazyLock::new(|| {
    let text = prepared::text("shapes.json", || {
        let definitions = read("definitions");
        let of = |name: &str| definitions["$defs"][name]["properties"].clone();
        json!({ "Handoff": of("Handoff"), "Issue": of("Issue") }).to_string()
    });
    serde_json::from_str(&text).unwrap()
});

/// The members that a row shares with every answer about a handoff.
pub fn shape(row: &Value) -> Value {
    let mut row = row.clone();
    if let Value::Object(members) = &mut row {
        members.retain(|name, _| NAMES["Handoff"].get(name).is_some());
    }
    row
}

/// A handoff in stored form, from an answer or row: its record plus its handoff's members.
pub fn stored(answer: &Value) -> Value {
    let handoff = match &answer["handoff"] {
        handoff @ Value::Object(_) => handoff,
        _ => answer,
    };
    if handoff.is_null() {
        return Value::Null;
    }
    let mut record = answer["record"].clone();
    let held = ["worker", "token", "expires_at"];
    for (name, value) in shape(handoff).as_object().unwrap() {
        let is_own = name != "issue" && name != "expired";
        if is_own && !held.contains(&name.as_str()) && !value.is_null() {
            record[name] = value.clone();
        }
    }
    if handoff["state"] == "pending" && !handoff["expires_at"].is_null() {
        record["acknowledge_by"] = handoff["expires_at"].clone();
    }
    if !handoff["worker"].is_null() {
        let mut steps = record["transitions"].as_array().unwrap().iter().rev();
        let began = steps.find(|step| step["to"] == "in_progress").unwrap();
        let mut lease = json!({ "holder": handoff["to"], "since": began["at"] });
        for name in held {
            lease[name] = handoff[name].clone();
        }
        let reports = record["progress"].as_array();
        lease["progress"] = reports.and_then(|all| all.last()).cloned().into();
        record["lease"] = lease;
    }
    record
}

/// An issue in stored form, from the answer of `status` or `context`.
pub fn stored_issue(answer: &Value) -> Value {
    let mut record = answer["record"].clone();
    for (name, value) in answer["issue"].as_object().unwrap() {
        record[name] = value.clone();
    }
    record["facts"] = answer["known"].clone();
    record
}

/// The schema validator for a command.
fn validator(args: &[String]) -> Option<Arc<Validator>> {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let words: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let (first, second) = (words.first()?, words.get(1));
    let both = second.map(|second| format!("{first}-{second}"));
    let names = both.into_iter().chain([(*first).to_owned()]);
    let name = names
        .into_iter()
        .find(|name| is_name(name) && path(name).is_file())?;
    let mut known = KNOWN.lock().unwrap();
    let entry = known.entry(name.clone());
    let validator = entry.or_insert_with(|| Arc::new(compiled(&name)));
    Some(Arc::clone(validator))
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
}

fn path(name: &str) -> PathBuf {
    let folder = project().join("schemas/output");
    folder.join(format!("{name}.json"))
}

fn read(name: &str) -> Value {
    let mut schema = serde_json::from_slice(&fs::read(path(name)).unwrap()).unwrap();
    close(&mut schema);
    schema
}

/// Forbids undescribed fields, which readers of the schemas must ignore, and drops descriptions.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, value| name != "description" || !value.is_string());
            members.values_mut().for_each(close);
            if members.get("type").is_some_and(|kind| kind == "object")
                && members.contains_key("properties")
            {
                members.insert("unevaluatedProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Compiles a command's schema. Reading all definitions takes longer than most tests, so only the
/// needed ones are kept.
fn compiled(name: &str) -> Validator {
    let text = prepared::text(&format!("{name}.json"), || {
        let (mut schema, mut needed) = (read(name), Map::new());
        take_definitions(&mut schema, &mut read("definitions")["$defs"], &mut needed);
        schema["$defs"] = needed.into();
        schema.to_string()
    });
    let schema = serde_json::from_str(&text).unwrap();
    jsonschema::options().build(&schema).unwrap()
}

/// Copies the definitions that a schema needs into it, and adjusts its references.
fn take_definitions(schema: &mut Value, all: &mut Value, needed: &mut Map<String, Value>) {
    match schema {
        Value::Object(members) => {
            for member in members.values_mut() {
                take_definitions(member, all, needed);
            }
            let Some(Value::String(reference)) = members.get_mut("$ref") else {
                return;
            };
            let strip = |prefix| reference.strip_prefix(prefix);
            let name = REFERENCES.into_iter().find_map(strip).unwrap().to_owned();
            *reference = format!("#/$defs/{name}");
            if !needed.contains_key(&name) {
                needed.insert(name.clone(), Value::Null);
                let mut definition = all[&name].take();
                assert!(definition.is_object(), "there is no definition of {name}");
                take_definitions(&mut definition, all, needed);
                needed.insert(name, definition);
            }
        }
        Value::Array(items) => {
            for item in items {
                take_definitions(item, all, needed);
            }
        }
        _ => {}
    }
}
