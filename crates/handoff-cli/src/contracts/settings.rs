//! Field values for contracts: `--set FIELD=VALUE`, or members of a JSON object.
//!
//! A field is given by name, by path (`validation.build`), or by JSON Pointer. The schema
//! determines its value's type; a list gets one entry per setting, replacing known entries.

use std::str::FromStr;

use handoff::base::finding::{Finding, FindingCode};
use handoff::base::pointer::{escaped_part, parts};
use handoff::base::text::{quoted, quoted_word};
use handoff::contract::{BY_SEND, FILL, Source, decides};
use handoff::templates::left_to_fill;
use serde_json::{Map, Value, json};

use super::fields::{fields, resolved};
use crate::failure::{ErrorCode, Failure};

/// The maximum number of values of a member that are listed.
const LISTED_VALUES: usize = 6;

/// A value for a field.
#[derive(Clone, Debug)]
pub struct Setting {
    field: String,
    value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((field, value)) if !field.trim().is_empty() => Ok(Self {
                field: field.trim().to_owned(),
                value: value.to_owned(),
            }),
            _ => Err("write FIELD=VALUE".to_owned()),
        }
    }
}

impl Setting {
    /// A value for the field at a JSON Pointer.
    pub fn at(pointer: &str, value: &str) -> Self {
        Self {
            field: pointer.to_owned(),
            value: value.to_owned(),
        }
    }

    /// The settings for the members of a JSON object.
    ///
    /// # Errors
    /// A [`Failure`] for anything else.
    pub fn members(bytes: &[u8]) -> Result<Vec<Self>, Failure> {
        let source = Source::parse(bytes).map_err(|findings| {
            let text = "the fields can't be read";
            Failure::new(ErrorCode::ContractRefused, text).findings(findings)
        })?;
        let members: Map<String, Value> = serde_json::from_str(source.text()).map_err(|_| {
            Failure::usage("with --to, FILE is a JSON object of the contract's fields")
                .hint("leave out --to to send a whole contract")
        })?;
        let setting = |(field, value)| Self {
            field,
            value: match value {
                Value::String(text) => text,
                other => other.to_string(),
            },
        };
        Ok(members.into_iter().map(setting).collect())
    }

    /// Its value, if it is for this field.
    pub fn of(&self, field: &str) -> Option<&str> {
        (self.field.trim_start_matches('/') == field).then_some(&self.value)
    }

    /// Whether it leaves the value to `send`.
    fn is_by_send(&self) -> bool {
        self.value.trim_start().starts_with(BY_SEND)
    }
}

/// Sets fields of a contract.
///
/// # Errors
/// A usage [`Failure`] for an unknown field, or a value of the wrong type.
pub fn set(contract: &mut Value, schema: &Value, all: &[Setting]) -> Result<(), Failure> {
    let template = contract.clone();
    let mut given = Given::default();
    // A placeholder for `send` may be copied from a command: it sets nothing.
    for setting in all.iter().filter(|one| !one.is_by_send()) {
        let path = path_of(&setting.field, schema, contract)?;
        let kinds = schema_at(schema, &path);
        let is_list = kinds.is_some_and(|kind| accepts(kind, "array"));
        let items = kinds.and_then(|list| list.get("items"));
        let items = items.map(|items| resolved(schema, items));
        let text = setting.value.as_str();
        let wrong = |wanted: String| {
            let of_json = text.trim_start().starts_with(['{', '[']);
            let syntax = serde_json::from_str::<Value>(text).err();
            let text = match syntax.filter(|_| of_json) {
                Some(error) => format!("{} is not valid JSON: {error}", setting.field),
                None => format!("{} is {wanted}, not {}", setting.field, quoted(text)),
            };
            let at = pointer_of(&path);
            let mut members = left_to_fill(&template);
            members.retain(|(pointer, _)| is_in(&at, pointer) && *pointer != at);
            let failure = Failure::usage(text);
            if members.is_empty() {
                let kind = if is_list { items } else { kinds };
                let kind = kind.unwrap_or(&Value::Null);
                return failure.hint(match example(kind) {
                    Some(value) => format!("for example `--set {}={value}`", setting.field),
                    None => "a list or an object is given as JSON".to_owned(),
                });
            }
            failure.hint(format!(
                "give each member by itself: {}",
                expected(&members)
            ))
        };
        let known = |mut value: Value, kind: Option<&Value>| {
            let unknown = kind.and_then(|kind| unknown_member(schema, kind, &value));
            if let Some((name, hint)) = unknown {
                let text = format!("{} has no member {}", setting.field, quoted(&name));
                return Err(Failure::usage(text).hint(hint));
            }
            if let Some(kind) = kind {
                unquote(schema, kind, &mut value);
            }
            Ok(value)
        };
        let is_none =
            text.trim().is_empty() && items.is_some_and(|items| !accepts(items, "string"));
        if is_list && is_none {
            *place(contract, &template, &path) = Value::Array(Vec::new());
            given.forget(&path);
        } else if is_list && is_entry(text, items) {
            let entry = known(typed(text, items).map_err(wrong)?, items)?;
            given.add(place(contract, &template, &path), path, entry, setting);
        } else {
            given.ensure_new(&path, setting)?;
            let mut others = all.iter().filter(|one| one.field == setting.field);
            if let Some(other) = others.find(|one| one.value != setting.value && !one.is_by_send())
            {
                let (field, one, other) = (&setting.field, &setting.value, &other.value);
                let text = format!(
                    "{field} is given twice: {} and {}",
                    quoted(one),
                    quoted(other)
                );
                return Err(Failure::usage(text).hint("nothing was written; give it once"));
            }
            let value = known(typed(text, kinds).map_err(wrong)?, kinds)?;
            let place = place(contract, &template, &path);
            *place = with_known(value, place, (schema, kinds));
            given.forget(&path);
            given.parts.push(placed(contract, path));
        }
    }
    Ok(())
}

/// An object with those of its schema's members that it lacks and the template knows. What its
/// schema does not name, as in an object of any names, is given whole.
fn with_known(mut given: Value, template: &Value, (root, kind): (&Value, Option<&Value>)) -> Value {
    let described = kind.and_then(|kind| kind.get("properties")?.as_object());
    if let (Value::Object(members), Some(described)) = (&mut given, described) {
        for (name, inner) in described {
            let Some(known) = template.get(name) else {
                continue;
            };
            match members.get_mut(name) {
                Some(own) => {
                    *own = with_known(own.take(), known, (root, Some(resolved(root, inner))));
                }
                None if left_to_fill(known).is_empty() => {
                    members.insert(name.clone(), known.clone());
                }
                None => {}
            }
        }
    }
    given
}

/// What is given so far: entries of lists, whole or by index. Neither may replace the other.
#[derive(Default)]
struct Given<'s> {
    /// The paths of entries given whole, with their settings.
    whole: Vec<(Vec<String>, &'s Setting)>,
    /// The paths of what is given by path.
    parts: Vec<Vec<String>>,
}

impl<'s> Given<'s> {
    fn forget(&mut self, path: &[String]) {
        self.whole.retain(|(at, _)| !at.starts_with(path));
        self.parts.retain(|at| !at.starts_with(path) || at == path);
    }

    fn paths(&self) -> impl Iterator<Item = &Vec<String>> {
        let whole = self.whole.iter().map(|(at, _)| at);
        whole.chain(&self.parts)
    }

    /// Adds a whole entry to a list, after those that are given already. The template's entries
    /// give way.
    fn add(&mut self, list: &mut Value, path: Vec<String>, entry: Value, setting: &'s Setting) {
        let entry_at = |index: usize| [&path[..], &[index.to_string()]].concat();
        let is_begun = |path: &[String]| {
            let mut inside = self.paths().filter(|at| at.len() > path.len());
            inside.any(|at| at.starts_with(path))
        };
        let index = match list {
            Value::Array(entries) if is_begun(&path) => {
                let mut all = 0..entries.len();
                let free =
                    all.find(|index| !self.paths().any(|at| at.starts_with(&entry_at(*index))));
                match free {
                    Some(index) => entries[index] = entry,
                    None => entries.push(entry),
                }
                free.unwrap_or(entries.len() - 1)
            }
            filled_in => {
                *filled_in = Value::Array(vec![entry]);
                0
            }
        };
        let at = entry_at(index);
        self.whole.push((at, setting));
    }

    /// Refuses a path to what an entry given whole has already.
    fn ensure_new(&self, path: &[String], setting: &Setting) -> Result<(), Failure> {
        let has = |(at, whole): &&(Vec<String>, &Setting)| {
            let entry: Value = serde_json::from_str(&whole.value).unwrap_or_default();
            let member = path.strip_prefix(&at[..]).map(pointer_of);
            member.is_some_and(|member| match entry.pointer(&member) {
                Some(value) => left_to_fill(value).is_empty(),
                None => member.is_empty(),
            })
        };
        let Some((at, whole)) = self.whole.iter().find(has) else {
            return Ok(());
        };
        let text = format!(
            "{} is given twice: as {} and in the entry {}={}",
            setting.field,
            quoted(&setting.value),
            whole.field,
            whole.value
        );
        let hint = format!(
            "give it once; for a further entry give another whole `--set {}=…`",
            dotted(&pointer_of(&at[..at.len() - 1]))
        );
        Err(Failure::usage(text).hint(hint))
    }
}

/// A path as it is in a contract: an index past a list's end is its last entry's.
fn placed(contract: &Value, mut path: Vec<String>) -> Vec<String> {
    let mut here = contract;
    for name in &mut path {
        if let (Value::Array(entries), Ok(index)) = (here, name.parse::<usize>()) {
            let index = index.min(entries.len() - 1);
            *name = index.to_string();
            here = &entries[index];
        } else {
            here = &here[name.as_str()];
        }
    }
    path
}

/// Whether a text is one entry of a list rather than the whole list: it is not a list, or the
/// entries are lists too.
fn is_entry(text: &str, items: Option<&Value>) -> bool {
    if !text.trim_start().starts_with('[') {
        return true;
    }
    let of_lists = items.is_some_and(|items| accepts(items, "array"));
    let given = serde_json::from_str::<Vec<Value>>(text).unwrap_or_default();
    of_lists && !given.is_empty() && !given.iter().all(Value::is_array)
}

/// The path of a field: by JSON Pointer, by path of names, or by unique name.
fn path_of(field: &str, schema: &Value, contract: &Value) -> Result<Vec<String>, Failure> {
    if field.starts_with('/') {
        return Ok(parts(field).collect());
    }
    let path: Vec<String> = field.split('.').map(str::to_owned).collect();
    let root = resolved(schema, schema);
    let has = |name: &str| root["properties"].get(name).is_some() || contract.get(name).is_some();
    if path.first().is_some_and(|first| has(first)) {
        return Ok(path);
    }
    let known = fields(schema);
    let plain = known.iter().map(|field| field.path.as_str());
    let plain: Vec<&str> = plain.filter(|path| !path.contains('*')).collect();
    let mut named = plain
        .iter()
        .filter(|path| path.rsplit('/').next() == Some(field));
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(parts(only).collect()),
        (first, second) => {
            let text = format!(
                "the contract has {} field {}",
                if second.is_some() {
                    "more than one"
                } else {
                    "no"
                },
                quoted(field)
            );
            let candidates = match (first, second) {
                (Some(_), Some(_)) => plain
                    .into_iter()
                    .filter(|path| path.rsplit('/').next() == Some(field))
                    .collect(),
                _ => plain,
            };
            let names: Vec<String> = candidates.into_iter().map(dotted).collect();
            Err(Failure::usage(text).hint(format!("its fields are: {}", names.join(", "))))
        }
    }
}

/// Converts a JSON Pointer to a path for `--set`.
pub(super) fn dotted(pointer: &str) -> String {
    let names: Vec<String> = parts(pointer).collect();
    if names.iter().any(|name| name.contains('.')) {
        pointer.to_owned()
    } else {
        names.join(".")
    }
}

/// Converts a path to a JSON Pointer.
fn pointer_of(path: &[String]) -> String {
    let part = |name: &String| format!("/{}", escaped_part(name));
    path.iter().map(part).collect()
}

/// The schema at a path, if it is described.
pub(super) fn schema_at<'s>(root: &'s Value, path: &[String]) -> Option<&'s Value> {
    let start = resolved(root, root);
    path.iter().try_fold(start, |schema, name| {
        let inside = schema["properties"]
            .get(name)
            .or_else(|| schema.get("items"))?;
        Some(resolved(root, inside))
    })
}

/// Whether a schema accepts a type; one without types accepts all.
fn accepts(schema: &Value, kind: &str) -> bool {
    let is_kind = |value: &Value| match value {
        Value::String(_) => kind == "string",
        Value::Number(number) => kind == "number" || kind == "integer" && number.is_i64(),
        Value::Bool(_) => kind == "boolean",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
        Value::Null => kind == "null",
    };
    match (&schema["type"], &schema["enum"], schema.get("const")) {
        (Value::String(only), ..) => only == kind,
        (Value::Array(all), ..) => all.iter().any(|one| one == kind),
        (_, Value::Array(allowed), _) => allowed.iter().any(is_kind),
        (_, _, Some(only)) => is_kind(only),
        _ => kind != "array",
    }
}

/// A member that a closed object does not have, with the members it has. XML has no place for it,
/// so it would be lost silently.
fn unknown_member(root: &Value, schema: &Value, value: &Value) -> Option<(String, String)> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let known = schema["properties"].as_object()?;
            if let Some(own) = known.get(name) {
                return unknown_member(root, resolved(root, own), member);
            }
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let is_closed = schema["additionalProperties"] == Value::Bool(false);
            is_closed.then(|| {
                (
                    name.clone(),
                    format!("its members are: {}", names.join(", ")),
                )
            })
        }),
        Value::Array(entries) => {
            let items = resolved(root, schema.get("items")?);
            entries
                .iter()
                .find_map(|entry| unknown_member(root, items, entry))
        }
        _ => None,
    }
}

/// Converts quoted numbers and booleans within an entry: placeholders are always quoted, and the
/// quotes stay when they are filled in.
fn unquote(root: &Value, schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(own) = schema["properties"].get(name) {
                    unquote(root, resolved(root, own), member);
                }
            }
        }
        Value::Array(entries) => {
            if let Some(items) = schema.get("items") {
                let items = resolved(root, items);
                entries
                    .iter_mut()
                    .for_each(|entry| unquote(root, items, entry));
            }
        }
        Value::String(text) if !accepts(schema, "string") => {
            if let Ok(typed) = typed(text, Some(schema)) {
                *value = typed;
            }
        }
        _ => {}
    }
}

/// Parses a text as a value of its field's type.
///
/// # Errors
/// The types that the field accepts.
fn typed(text: &str, schema: Option<&Value>) -> Result<Value, String> {
    let all = Value::Null;
    let schema = schema.unwrap_or(&all);
    let takes_text = accepts(schema, "string");
    let kinds = ["integer", "number", "boolean", "array", "object", "null"];
    let taken: Vec<&str> = kinds
        .into_iter()
        .filter(|kind| accepts(schema, kind))
        .collect();
    if taken.is_empty() {
        return Ok(text.into());
    }
    let kind_of = |value: &Value| match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => &["integer", "number"][..],
        Value::Number(_) => &["number"],
        Value::Bool(_) => &["boolean"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
        Value::Null => &["null"],
        Value::String(_) => &[],
    };
    match serde_json::from_str::<Value>(text) {
        Ok(value) if kind_of(&value).iter().any(|kind| taken.contains(kind)) => Ok(value),
        _ if takes_text => Ok(text.into()),
        _ => Err(match taken[..] {
            ["integer", "number"] => "a number".to_owned(),
            ["integer"] => "a whole number".to_owned(),
            _ => format!("of type {}", taken.join(" or ")),
        }),
    }
}

/// A value that a schema of a number or of a truth value takes.
fn example(schema: &Value) -> Option<String> {
    let allowed = schema["enum"].as_array().and_then(|all| all.first());
    let bound = |name: &str| schema[name].as_u64();
    let number = bound("minimum").unwrap_or(0).max(12);
    let number = bound("maximum").map_or(number, |most| number.min(most));
    let is_number = accepts(schema, "integer") || accepts(schema, "number");
    let known = schema.get("const").or(allowed).cloned();
    let number = || is_number.then(|| number.into());
    let truth = || accepts(schema, "boolean").then_some(Value::Bool(true));
    let value = known.or_else(number).or_else(truth)?;
    Some(value.to_string())
}

/// The value at a path. Missing objects are created; another list entry is a copy of the template's
/// first.
fn place<'v>(contract: &'v mut Value, template: &Value, path: &[String]) -> &'v mut Value {
    let (mut here, mut model) = (contract, Some(template));
    for name in path {
        let index = name.parse::<usize>().ok();
        model = model.and_then(|model| match (model, index) {
            (Value::Array(entries), Some(_)) => entries.first(),
            (model, _) => model.get(name),
        });
        here = match (here, index) {
            (Value::Array(entries), Some(index)) => {
                if index >= entries.len() {
                    entries.push(model.cloned().unwrap_or_default());
                }
                let last = entries.len() - 1;
                &mut entries[index.min(last)]
            }
            (other, _) => {
                if !other.is_object() {
                    *other = Value::Object(Map::new());
                }
                &mut other[name.as_str()]
            }
        };
    }
    here
}

/// Which unfilled parts of a contract are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Optional {
    /// Parts that are never required.
    Always,
    /// Also parts that only one of several alternatives requires.
    Sometimes,
}

/// Removes unfilled optional parts, and containers that become empty.
pub fn without_optional(contract: &mut Value, schema: &Value, optional: Optional) {
    // A parent's schema may also require the value.
    fn walk<'s>(
        value: &mut Value,
        (root, schema): (&'s Value, &'s Value),
        above: &[&'s Value],
        optional: Optional,
    ) {
        let own = branches(schema, value, optional);
        let nested = above
            .iter()
            .flat_map(|part| branches(part, value, optional));
        let may: Vec<&Value> = above.iter().copied().chain(nested).chain(own).collect();
        match value {
            Value::Object(members) => {
                let is_required = |name: &str| {
                    requires(schema, name) || may.iter().any(|part| requires(part, name))
                };
                members.retain(|name, member| {
                    let was_empty = is_empty(member);
                    let of = |part: &&'s Value| part["properties"].get(name.as_str());
                    let about: Vec<&Value> = may.iter().filter_map(of).collect();
                    if let Some(own) = of(&schema) {
                        walk(member, (root, resolved(root, own)), &about, optional);
                    }
                    let became_empty = !was_empty && is_empty(member);
                    is_required(name) || left_to_fill(member).is_empty() && !became_empty
                });
            }
            Value::Array(entries) => {
                if let Some(items) = schema.get("items") {
                    let items = resolved(root, items);
                    entries.retain_mut(|entry| {
                        let was_empty = is_empty(entry);
                        walk(entry, (root, items), &[], optional);
                        was_empty || !is_empty(entry)
                    });
                }
            }
            _ => {}
        }
    }
    let whole = (schema, resolved(schema, schema));
    walk(contract, whole, &[], optional);
}

/// Makes a schema require the field at a pointer.
pub(super) fn require(schema: &mut Value, pointer: &str) {
    let mut here = Some(schema);
    for name in parts(pointer) {
        let Some(Value::Object(members)) = here else {
            return;
        };
        let required = members.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(names) = required {
            names.push(name.as_str().into());
        }
        here = members
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(&name));
    }
}

/// Whether a schema unconditionally requires a field.
fn requires(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|all| all.iter().any(|one| one == name))
}

/// The subschemas of conditions and alternatives that may apply to a value once it is filled in.
fn branches<'s>(schema: &'s Value, value: &Value, optional: Optional) -> Vec<&'s Value> {
    let holds = schema.get("if").and_then(|when| {
        let known = decides(when, value);
        known.filter(|holds| *holds || !waits_for(when, value))
    });
    let words = [("then", false), ("else", true)];
    let words = words
        .into_iter()
        .filter(|(_, unless)| holds != Some(*unless));
    let mut found: Vec<&Value> = words.filter_map(|(word, _)| schema.get(word)).collect();
    let lists: &[&str] = match optional {
        Optional::Always => &["allOf", "anyOf", "oneOf"],
        Optional::Sometimes => &["allOf"],
    };
    let lists = lists.iter().filter_map(|word| schema[*word].as_array());
    found.extend(lists.flatten());
    let nested = found
        .iter()
        .flat_map(|part| branches(part, value, optional));
    let nested: Vec<&Value> = nested.collect();
    found.extend(nested);
    found
}

/// Whether a condition depends on a value that is not filled in.
fn waits_for(when: &Value, value: &Value) -> bool {
    match when["properties"].as_object() {
        None => !left_to_fill(value).is_empty(),
        Some(about) => about.iter().any(|(name, part)| {
            let member = value.get(name.as_str());
            member.is_some_and(|member| waits_for(part, member))
        }),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        _ => false,
    }
}

/// `--set` options for what is left to fill in.
#[derive(Default)]
pub struct Options {
    /// The fields, each with its placeholder: a contract that still has one is refused.
    fields: Vec<(String, String)>,
    /// The list fields among them, whose option is repeated for each entry.
    pub lists: Vec<String>,
}

impl Options {
    /// The options for a contract.
    pub fn of(contract: &Value) -> Self {
        let mut options = Self::default();
        let mut entries: Vec<String> = Vec::new();
        for (pointer, about) in left_to_fill(contract) {
            let path: Vec<String> = parts(&pointer).collect();
            let Some(at) = path.iter().position(|name| name.parse::<usize>().is_ok()) else {
                options.add_mark(&pointer, &about);
                continue;
            };
            // One option has all placeholders of an entry.
            let entry = pointer_of(&path[..=at]);
            if entries.contains(&entry) {
                continue;
            }
            let list = dotted(&pointer_of(&path[..at]));
            match contract.pointer(&entry) {
                Some(Value::String(text)) => options.add(&list, text),
                Some(value) => options.add(&list, &value.to_string()),
                None => {}
            }
            entries.push(entry);
            if !options.lists.contains(&list) {
                options.lists.push(list);
            }
        }
        options
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The options, each with its placeholder.
    pub fn words(&self) -> Vec<String> {
        let word =
            |(field, value): &(String, String)| format!("--set {field}={}", quoted_word(value));
        self.fields.iter().map(word).collect()
    }

    /// A line per field: its name, its type unless it is text, and its description.
    pub fn lines(&self, schema: &Value) -> Vec<String> {
        let line = |(field, value): &(String, String)| {
            let about = value
                .strip_prefix(FILL)
                .and_then(|rest| rest.strip_prefix(": "));
            let about = about.and_then(|rest| rest.strip_suffix("}}"));
            let is_list = self.lists.contains(field);
            let path = path_of(field, schema, &Value::Null);
            let kind = match &path {
                _ if is_list => " (once for each entry)".to_owned(),
                Ok(path) => shape_of(schema, path),
                Err(_) => String::new(),
            };
            let own = path.ok().filter(|_| is_list);
            let own = own.and_then(|path| schema_at(schema, &path));
            let more = own.map_or_else(String::new, |own| further(schema, own, value));
            format!("{field}{kind}: {}{more}", about.unwrap_or(value))
        };
        self.fields.iter().map(line).collect()
    }

    /// Adds a field with its description.
    fn add_mark(&mut self, pointer: &str, about: &str) {
        self.add(&dotted(pointer), &format!("{FILL}: {about}}}}}"));
    }

    fn add(&mut self, field: &str, value: &str) {
        let new = (field.to_owned(), value.to_owned());
        if !self.fields.contains(&new) {
            self.fields.push(new);
        }
    }
}

/// The list that a pointer leads into, and the corresponding pointer in its next entry.
pub(super) fn next_entry(pointer: &str) -> Option<(String, String)> {
    let mut path: Vec<String> = parts(pointer).collect();
    let at = path.iter().position(|name| name.parse::<usize>().is_ok())?;
    let number: usize = path[at].parse().ok()?;
    path[at] = (number + 1).to_string();
    Some((pointer_of(&path[..at]), pointer_of(&path)))
}

/// The values that an entry's shown members may have, and the members that it may have besides.
fn further(root: &Value, list: &Value, shown: &str) -> String {
    let shown: Value = serde_json::from_str(shown).unwrap_or_default();
    let entry = list.get("items").map(|items| resolved(root, items));
    let members = entry.and_then(|entry| entry["properties"].as_object());
    let Some(members) = members.filter(|_| shown.is_object()) else {
        return String::new();
    };
    let (mut text, mut others) = (String::new(), Vec::new());
    for (name, schema) in members {
        let values = values_of(resolved(root, schema));
        match (shown.get(name).and_then(Value::as_str), values) {
            (Some(value), Some(values)) if !value.contains(FILL) => {
                text += &format!("; {name}: {values}");
            }
            (Some(_), _) => {}
            (None, _) if shown.get(name).is_some() => {}
            (None, Some(values)) => {
                let about =
                    described(resolved(root, schema)).filter(|_| schema["type"] == "boolean");
                let about = about.map_or_else(String::new, |about| format!(": {about}"));
                others.push(format!("{name} ({values}{about})"));
            }
            (None, None) => others.push(name.clone()),
        }
    }
    if !others.is_empty() {
        text += &format!("; optional: {}", others.join(", "));
    }
    // What the list must hold is not told by its entries.
    match described(list).filter(|_| list.get("contains").is_some()) {
        Some(about) => text + "; " + &about,
        None => text,
    }
}

/// A schema's description, within a sentence.
fn described(schema: &Value) -> Option<String> {
    let mut about = schema["description"].as_str()?.chars();
    let first = about.next()?;
    Some(first.to_lowercase().chain(about).collect())
}

/// The values that a schema accepts, if they are few: `blocking or suggestion`.
fn values_of(schema: &Value) -> Option<String> {
    if schema["type"] == "boolean" {
        return Some("true or false".to_owned());
    }
    let all = schema["enum"].as_array()?;
    let all: Vec<&str> = all.iter().map(Value::as_str).collect::<Option<_>>()?;
    (2..=LISTED_VALUES)
        .contains(&all.len())
        .then(|| all.join(" or "))
}

/// The type at a path in parentheses, with a leading space; empty for text.
pub(super) fn shape_of(schema: &Value, path: &[String]) -> String {
    let kind = schema_at(schema, path).map(|own| &own["type"]);
    match kind {
        Some(Value::String(kind)) if kind != "string" => format!(" ({kind})"),
        _ => String::new(),
    }
}

/// Parts of a contract that the repository should provide but does not: where, why, and the fix.
pub struct NotTold {
    /// The pointers of these parts.
    pub pointers: Vec<String>,
    /// The value that they depend on, if the contract has it: what is wrong is said there.
    pub depends_on: Option<String>,
    /// What is wrong; empty if the value that they depend on is only to be filled in.
    pub why: String,
    /// What to do about it.
    pub fix: String,
}

impl NotTold {
    /// Whether it concerns something that is left to fill in.
    pub(super) fn is_about(&self, left: &[(String, String)]) -> bool {
        let about = |place: &String| left.iter().any(|(pointer, _)| is_in(place, pointer));
        !self.why.is_empty() && self.pointers.iter().any(about)
    }

    /// The failure that nothing can be sent before it is fixed.
    pub(super) fn failure(&self) -> Failure {
        Failure::new(ErrorCode::ContractRefused, self.why.clone()).hint(self.fix.clone())
    }
}

/// Whether a pointer equals a place or is below it.
pub fn is_in(place: &str, pointer: &str) -> bool {
    let rest = pointer.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Refuses a contract with unfilled places.
///
/// # Errors
/// A [`Failure`] with a finding for each place.
pub fn ensure_complete(contract: &Value, not_told: Option<&NotTold>) -> Result<(), Failure> {
    let mut left = left_to_fill(contract);
    if left.is_empty() {
        return Ok(());
    }
    let is_asked = |at: &String| left.iter().any(|(pointer, _)| pointer == at);
    let not_told = not_told
        .filter(|part| !part.why.is_empty() || part.depends_on.as_ref().is_some_and(is_asked));
    let mut untold: Vec<&String> = not_told.iter().flat_map(|part| &part.pointers).collect();
    untold.retain(|place| left.iter().any(|(pointer, _)| is_in(place, pointer)));
    left.retain(|(pointer, _)| !untold.iter().any(|place| is_in(place, pointer)));
    let not_told = not_told.filter(|part| !untold.is_empty() && !part.why.is_empty());
    if let Some(one) = not_told.and_then(|part| part.depends_on.as_ref()) {
        untold = vec![one];
    }
    let untold = untold.into_iter().zip(not_told.into_iter().cycle());
    // What to do is the hint, once for all these places.
    let untold = untold.map(|(place, part)| {
        Finding::error(FindingCode::FieldUnfilled, place.as_str(), &*part.why)
    });
    let findings = left
        .iter()
        .map(|(pointer, about)| Finding::error(FindingCode::FieldUnfilled, &**pointer, &**about));
    let text = "the contract is not complete; nothing was written".to_owned();
    let failure = Failure::new(ErrorCode::ContractRefused, text);
    let failure = failure.findings(findings.chain(untold).collect());
    let mut parts = Vec::new();
    if !left.is_empty() {
        parts.push(format!("give {}", expected(&left)));
    }
    parts.extend(not_told.map(|part| part.fix.clone()));
    Err(failure.hint(parts.join("; ")))
}

/// The options for these fields, without values.
pub fn expected(left: &[(String, String)]) -> String {
    let option = |(pointer, _): &(String, String)| {
        let mut path: Vec<String> = parts(pointer).collect();
        let is_entry = |name: &String| name.parse::<usize>().is_ok();
        let each = match path.pop_if(|name| is_entry(name)) {
            Some(_) => " (once for each entry)",
            None => "",
        };
        format!("--set {}{each}", dotted(&pointer_of(&path)))
    };
    let mut options: Vec<String> = left.iter().map(option).collect();
    options.dedup();
    options.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::{Optional, Options, Setting, expected, set, without_optional};

    fn schema() -> Value {
        json!({
            "required": ["summary", "tests", "steps", "validation"],
            "properties": {
                "summary": { "type": "string" },
                "tests": { "type": "integer" },
                "port": { "type": ["integer", "string"] },
                "groups": { "type": "array", "items": { "type": "array", "items": { "type": "string" } } },
                "steps": { "type": "array", "items": { "type": "string" } },
                "findings": { "type": "array", "items": { "$ref": "#/$defs/finding" } },
                "validation": { "required": ["build"], "properties": { "build": { "type": "string" } } },
            },
            "$defs": { "finding": { "properties": { "text": { "type": "string" }, "line": { "type": "integer" } } } },
        })
    }

    fn skeleton() -> Value {
        json!({
            "summary": "{{fill: in one line}}", "tests": "{{fill: how many}}", "port": "{{fill: its port}}",
            "steps": ["{{fill: one step}}"],
            "findings": [{ "text": "{{fill: what}}", "line": "{{fill: where}}" }],
            "validation": { "build": "{{fill: its outcome}}" },
        })
    }

    fn with(all: &[&str]) -> Result<Value, String> {
        let settings: Vec<Setting> = all.iter().map(|text| text.parse().unwrap()).collect();
        let mut contract = skeleton();
        set(&mut contract, &schema(), &settings).map_err(|failure| failure.message)?;
        without_optional(&mut contract, &schema(), Optional::Sometimes);
        Ok(contract)
    }

    #[test]
    fn an_object_keeps_what_is_known_of_it() {
        let text = json!({ "type": "string" });
        let at = json!({ "properties": { "line": { "type": "integer" }, "file": text } });
        let output = json!({ "properties": { "kind": text, "id": text, "note": text, "at": at } });
        let schema = json!({ "properties": { "output": output, "waits": { "type": "object" } } });
        let mut contract = json!({
            "output": {
                "kind": "code", "id": "{{fill: its id}}", "note": "{{fill: a remark}}",
                "at": { "line": 3, "file": "{{fill: the file}}" },
            },
            "waits": { "b": ["a"] },
        });
        let given = [
            r#"output={"id": "x", "at": {"file": "a.rs"}}"#,
            r#"waits={"c": []}"#,
        ];
        let given = given.map(|text| text.parse().unwrap());
        assert!(set(&mut contract, &schema, &given).is_ok());
        let all = json!({ "kind": "code", "id": "x", "at": { "line": 3, "file": "a.rs" } });
        assert_eq!(contract, json!({ "output": all, "waits": { "c": [] } }));
    }

    #[test]
    fn fields_take_values_of_their_types() {
        let all = [
            "summary=3",
            "tests=3",
            "port=n/a",
            "steps=one",
            "steps=two, with a comma",
            "findings={\"text\":\"a\",\"line\":4}",
            "findings.1.text=b",
            "/findings/1/line=5",
            "build=it = works",
        ];
        let filled = json!({
            "summary": "3", "tests": 3, "port": "n/a", "steps": ["one", "two, with a comma"],
            "findings": [{ "text": "a", "line": 4 }, { "text": "b", "line": 5 }],
            "validation": { "build": "it = works" },
        });
        assert_eq!(with(&all), Ok(filled));
        for (given, groups) in [
            (
                &["groups=[\"a\",\"b\"]", "groups=[\"c\"]"][..],
                json!([["a", "b"], ["c"]]),
            ),
            (&["groups=[[\"a\"],[\"b\"]]"], json!([["a"], ["b"]])),
            (&["groups=[]"], json!([])),
        ] {
            assert_eq!(with(given).unwrap()["groups"], groups, "{given:?}");
        }
        let (by_index, whole) = (
            ["findings.0.text=a", "findings.0.line=1"],
            "findings={\"text\":\"b\"}",
        );
        for (given, findings) in [
            (
                vec![by_index[0], by_index[1], whole, whole],
                json!([{"text": "a", "line": 1}, {"text": "b"}, {"text": "b"}]),
            ),
            (
                vec!["findings.3.text=a", whole, "steps.0=x", "steps=y"],
                json!([{"text": "b"}, {"text": "a"}]),
            ),
            (vec![whole, by_index[1]], json!([{"text": "b", "line": 1}])),
        ] {
            assert_eq!(with(&given).unwrap()["findings"], findings, "{given:?}");
        }
        assert_eq!(
            with(&[whole, by_index[0]]).unwrap_err(),
            "findings.0.text is given twice: as \"a\" and in the entry findings={\"text\":\"b\"}"
        );
        let steps = with(&["steps.0=x", "steps=y"]).unwrap();
        assert_eq!(steps["steps"], json!(["x", "y"]));
        let mut contract = skeleton();
        contract["steps"] = json!(["filled in"]);
        let given = ["steps=one", "steps=two"].map(|text| text.parse().unwrap());
        set(&mut contract, &schema(), &given).unwrap();
        assert_eq!(contract["steps"], json!(["one", "two"]));
        let replaced = with(&["steps=[\"x\"]", "port=80", "validation.build=y"]).unwrap();
        assert_eq!(replaced["steps"], json!(["x"]));
        assert_eq!(replaced["port"], 80);
        assert_eq!(
            with(&["tests=two"]).unwrap_err(),
            "tests is a whole number, not \"two\""
        );
        assert_eq!(
            with(&["tests=2.5"]).unwrap_err(),
            "tests is a whole number, not \"2.5\""
        );
        assert_eq!(
            with(&["colour=red"]).unwrap_err(),
            "the contract has no field \"colour\""
        );
        let refused = |text: &str| {
            let mut contract = skeleton();
            let refused = set(&mut contract, &schema(), &[text.parse().unwrap()]);
            refused.unwrap_err().next().to_string()
        };
        let hint = refused("tests=two");
        assert!(hint.contains("--set tests=12"), "{hint}");
        assert!("summary".parse::<Setting>().is_err());
    }

    #[test]
    fn what_a_closed_object_does_not_have_is_not_dropped() {
        let fix = json!({"type": "object", "additionalProperties": false, "properties": {"at": {"type": "string"}}});
        let schema = json!({"properties": {
            "fixes": {"type": "array", "items": {"$ref": "#/$defs/fix"}},
            "open": {"type": "object", "properties": {"at": {"type": "string"}}},
        }, "$defs": {"fix": fix}});
        let set_to = |text: &str| {
            let mut contract = json!({});
            let done = set(&mut contract, &schema, &[text.parse().unwrap()]);
            done.map_err(|failure| failure.message).map(|()| contract)
        };
        for given in [
            r#"fixes={"at":"x","outcome":"skipped"}"#,
            r#"fixes=[{"at":"x"},{"outcome":1}]"#,
        ] {
            assert_eq!(
                set_to(given).unwrap_err(),
                "fixes has no member \"outcome\"",
                "{given}"
            );
        }
        let open = set_to(r#"open={"at":"x","outcome":1}"#).unwrap();
        assert_eq!(open["open"]["outcome"], 1);
    }

    #[test]
    fn marks_in_quotes_are_filled_in_as_they_stand_and_a_list_may_be_empty() {
        let risk = json!({"type": "object", "properties": {
            "said": {"type": "string"}, "validated": {"type": "boolean"}, "count": {"type": "integer"},
        }});
        let schema = json!({"properties": {"risks": {"type": "array", "items": risk}}});
        let set_to = |text: &str| {
            let mut contract = json!({"risks": [{"said": "{{fill: what}}"}]});
            set(&mut contract, &schema, &[text.parse().unwrap()])
                .map_err(|failure| failure.message)
                .unwrap();
            contract["risks"].clone()
        };
        let filled = set_to(r#"risks={"said":"true","validated":"true","count":"3"}"#);
        assert_eq!(
            filled,
            json!([{"said": "true", "validated": true, "count": 3}])
        );
        let wrong = set_to(r#"risks={"validated":"perhaps"}"#);
        assert_eq!(
            wrong,
            json!([{"validated": "perhaps"}]),
            "the schema says what is wrong"
        );
        for none in ["risks=", "risks=[]"] {
            assert_eq!(set_to(none), json!([]), "{none}");
        }
    }

    #[test]
    fn what_is_left_is_what_is_required() {
        let left = with(&["summary=x"]).unwrap();
        assert!(left.get("findings").is_none() && left.get("port").is_none());
        let options = Options::of(&left);
        assert_eq!(
            options.words(),
            [
                "--set tests='{{fill: how many}}'",
                "--set steps='{{fill: one step}}'",
                "--set validation.build='{{fill: its outcome}}'",
            ]
        );
        assert_eq!(options.lists, ["steps"]);
        assert_eq!(
            options.lines(&schema()),
            [
                "tests (integer): how many",
                "steps (once for each entry): one step",
                "validation.build: its outcome",
            ]
        );
        let mut schema = schema();
        schema["anyOf"] = json!([{ "required": ["port"] }]);
        let mut sometimes = skeleton();
        without_optional(&mut sometimes, &schema, Optional::Always);
        assert!(sometimes.get("port").is_some() && sometimes.get("findings").is_none());
        // A condition applies, also to a part, until it is known not to hold.
        let tests = json!({ "tests": { "pattern": "^[0-9]+$" } });
        let port = json!({ "required": ["port"] });
        schema["anyOf"] = json!([{ "if": { "properties": tests }, "then": port }]);
        for (tests, asked) in [
            (json!("{{fill: how many}}"), true),
            (json!("12"), true),
            (json!("none"), false),
        ] {
            let mut contract = skeleton();
            contract["tests"] = tests;
            without_optional(&mut contract, &schema, Optional::Always);
            assert_eq!(contract.get("port").is_some(), asked, "{contract}");
        }
    }

    #[test]
    fn an_entry_of_a_list_is_one_option() {
        let mut contract = skeleton();
        let of = |contract: &Value| {
            let options = Options::of(contract);
            let found = |word: &String| word.starts_with("--set findings=");
            let words: Vec<String> = options.words().into_iter().filter(found).collect();
            (words, options.lists)
        };
        let entry = "--set findings='{\"text\":\"{{fill: what}}\",\"line\":\"{{fill: where}}\"}'";
        let each = ["steps", "findings"].map(str::to_owned).to_vec();
        assert_eq!(of(&contract), (vec![entry.to_owned()], each.clone()));
        contract["findings"] = json!([{ "text": "a", "line": "{{fill: where}}" }, { "text": "b", "line": "{{fill: where}}" }]);
        let entries = ["a", "b"].map(|text| {
            format!("--set findings='{{\"text\":\"{text}\",\"line\":\"{{{{fill: where}}}}\"}}'")
        });
        assert_eq!(of(&contract), (entries.to_vec(), each));
        let left =
            ["/summary", "/steps/0", "/findings/1/text"].map(|at| (at.to_owned(), String::new()));
        let options = "--set summary, --set steps (once for each entry), --set findings.1.text";
        assert_eq!(expected(&left), options);
    }
}
