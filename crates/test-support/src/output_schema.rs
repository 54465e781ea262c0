//! The JSON Schemas of what commands print, which every test's output is checked against.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use super::project;

/// Where the schemas refer to each other.
const BASE: &str = "json-schema:///output/";

/// Asserts that a document matches the schema of its command. Commands without a schema, and
/// output that is not a document, pass.
#[track_caller]
pub(crate) fn check(args: &[String], document: &Value) {
    if document["schema"] != "git-handoff/1" {
        return;
    }
    check_handoffs(args, document);
    let Some(validator) = validator(args) else {
        return;
    };
    let faults: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{args:?}: {faults:#?}\n{document:#}");
}

/// Asserts that what an answer has of handoffs has the one shape: `handoff`, if it is an object, and
/// each object in `handoffs` and in the buckets of `prime`, which may have more members.
#[track_caller]
fn check_handoffs(args: &[String], document: &Value) {
    static SHAPE: LazyLock<Validator> = LazyLock::new(|| {
        let schema = json!({ "$ref": "definitions.json#/$defs/Handoff" });
        validator_of(&schema, "handoff.json")
    });
    let data = &document["data"];
    let buckets = data.as_object().into_iter().flat_map(|data| data.values());
    let lists = buckets.map(|bucket| &bucket["first"]);
    let lists = lists.chain([&data["handoffs"]]).filter_map(Value::as_array);
    let alone = [&data["handoff"]].into_iter().cloned();
    let rows = lists.flatten().filter(|row| row.is_object());
    for handoff in alone.chain(rows.map(shape)).filter(Value::is_object) {
        let faults: Vec<String> = SHAPE
            .iter_errors(&handoff)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{args:?}: {faults:#?}\n{handoff:#}");
    }
}

/// The members that a row has in common with every answer about a handoff.
pub fn shape(row: &Value) -> Value {
    static NAMES: LazyLock<Value> =
        LazyLock::new(|| file("definitions").unwrap()["$defs"]["Handoff"]["properties"].take());
    let mut row = row.clone();
    if let Value::Object(members) = &mut row {
        members.retain(|name, _| NAMES.get(name).is_some());
    }
    row
}

/// The schema for a command, by its first words.
fn validator(args: &[String]) -> Option<Arc<Validator>> {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Option<Arc<Validator>>>>> =
        LazyLock::new(Mutex::default);
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
        .find(|name| is_name(name) && file(name).is_some())?;
    let mut known = KNOWN.lock().unwrap();
    let entry = known.entry(name.clone());
    entry
        .or_insert_with(|| compiled(&name).map(Arc::new))
        .clone()
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
}

fn file(name: &str) -> Option<Value> {
    let path = project()
        .join("schemas/output")
        .join(format!("{name}.json"));
    let mut schema = serde_json::from_slice(&fs::read(path).ok()?).unwrap();
    close(&mut schema);
    Some(schema)
}

/// Refuses fields that are not described, which readers of the schemas have to ignore.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
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

fn compiled(name: &str) -> Option<Validator> {
    Some(validator_of(&file(name)?, &format!("{name}.json")))
}

/// The validator of a schema that refers to the definitions beside it.
fn validator_of(schema: &Value, name: &str) -> Validator {
    let definitions = file("definitions").unwrap();
    let registry = Registry::new()
        .add(format!("{BASE}definitions.json"), definitions)
        .unwrap();
    let registry = registry.prepare().unwrap();
    let options = jsonschema::options()
        .with_registry(&registry)
        .with_base_uri(format!("{BASE}{name}"));
    options.build(schema).unwrap()
}
