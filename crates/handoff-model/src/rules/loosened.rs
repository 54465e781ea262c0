//! Finds what a new version of a protocol permits that the previous one refused.
//!
//! A change counts as weaker unless it is certainly as strict, because rules are compared as
//! stored, not by meaning. Texts for people may change.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::pointer::{escaped_part, parts};
use handoff_protocol::{ContractType, SIGNERS, renewed};
use serde_json::{Map, Value, json};

use super::protocol_check::ProtocolFiles;
use crate::layout::DEFINITION;

/// The key for a new line in the list of keys: that key can sign what it could not before.
pub const ADDED_SIGNER: &str = "signers.added";

/// The keys of `protocol.json` that do not affect refusals: names, texts, views and traces.
const SAYS: [&str; 6] = ["format", "name", "priorities", "title", "traces", "version"];

/// The keys that are compared more precisely elsewhere.
const ELSEWHERE: [&str; 2] = ["evidence", "secrets"];

/// The durations that count as limits rather than times.
const LIMITS: [&str; 2] = ["cooldown_seconds", "deadline_seconds"];

/// The members of rules that are for people or do not affect refusals.
const TEXTS: [&str; 13] = [
    "aliases",
    "archive_after_seconds",
    "description",
    "examples",
    "manual",
    "on_record",
    "phase",
    "reason",
    "role",
    "summary",
    "template",
    "title",
    "why",
];

/// The annotation keywords of JSON Schema.
const ANNOTATIONS: [&str; 8] = [
    "$comment",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "title",
];

/// What a new version of a protocol checks less strictly than the one in force: keys such as
/// `requirements.approved`, each with its place in the new definition.
pub fn loosened(new: &ProtocolFiles, old: &ProtocolFiles) -> BTreeMap<String, String> {
    let definition = |files: &ProtocolFiles| -> Option<Value> {
        let (_, text) = files.iter().find(|(path, _)| path == DEFINITION)?;
        let renewed = renewed(text).map(|renewed| renewed.definition);
        serde_json::from_slice(renewed.as_deref().unwrap_or(text)).ok()
    };
    let definition = |files| definition(files).unwrap_or_default();
    let (written, before) = (definition(new), definition(old));
    let read = read_names(&before);
    let (is, was) = (parted(written.clone()), parted(before));
    let mut found = BTreeSet::new();
    for key in members(&is).chain(members(&was)).collect::<BTreeSet<_>>() {
        if !SAYS.contains(&key) && !ELSEWHERE.contains(&key) {
            part(key, is.get(key), was.get(key), &mut found);
        }
    }
    let placed = found.into_iter().map(|key| {
        let at = place(&key, &written);
        (key, at)
    });
    let mut found: BTreeMap<String, String> = placed.collect();
    // The schemas of the contract types, even if their files moved, and all other schemas.
    let schema = |name: &str, of: &Value| {
        let own = of.get("schema").and_then(Value::as_str);
        own.map_or_else(|| ContractType::usual_files(name)[0].clone(), str::to_owned)
    };
    for (name, was) in named(was.get("contracts")) {
        let is = named(is.get("contracts")).find(|(own, _)| *own == name);
        let paths = is.map(|(_, is)| (schema(name, is), schema(name, was)));
        let compared = |(is, was): (String, String)| compared(name, (new, &is), (old, &was), &read);
        found.extend(paths.and_then(compared));
    }
    for (path, _) in old.iter().filter(|(path, _)| path.starts_with("schemas/")) {
        let name = path
            .trim_start_matches("schemas/")
            .trim_end_matches(".schema.json");
        found.extend(compared(name, (new, path), (old, path), &read));
    }
    let (is, was) = (signers(new), signers(old));
    if !was.is_empty() && !is.is_subset(&was) {
        found.insert(ADDED_SIGNER.to_owned(), SIGNERS.to_owned());
    }
    found
}

/// The place in the definition that a key is about.
fn place(key: &str, definition: &Value) -> String {
    let (part, name) = key.split_once('.').unwrap_or((key, ""));
    let above = match part {
        "forbidden" => "/routes".to_owned(),
        "merge" => "/requirements".to_owned(),
        "opinions" => "/facts".to_owned(),
        "retry" => "/limits/retry".to_owned(),
        "style" => "/contracts".to_owned(),
        "time" => "/limits".to_owned(),
        word if definition["words"].get(word).is_some() => format!("/words/{word}"),
        part => format!("/{part}"),
    };
    let part = definition.pointer(&above);
    let at = named(part).position(|(own, _)| own == name);
    match (at, part) {
        (Some(at), Some(Value::Array(_))) => format!("{above}/{at}"),
        (Some(_), _) => format!("{above}/{}", escaped_part(name)),
        (None, _) => above,
    }
}

/// Splits a definition into the parts that are compared, under the keys that recorded steps
/// contain.
fn parted(mut definition: Value) -> Value {
    let calls = named(definition.get("contracts")).any(|(_, kind)| kind.get("answers").is_some());
    let Some(parts) = definition.as_object_mut() else {
        return definition;
    };
    parts.insert(
        "style".to_owned(),
        if calls { "call" } else { "relay" }.into(),
    );
    if let Some(Value::Object(words)) = parts.shift_remove("words") {
        parts.extend(words);
    }
    if let Some(limits) = parts.get_mut("limits").and_then(Value::as_object_mut) {
        let retry = limits.shift_remove("retry");
        let is_time = |name: &str| name.contains("_seconds") && !LIMITS.contains(&name);
        let all = std::mem::take(limits).into_iter();
        let (time, others): (Map<_, _>, Map<_, _>) = all.partition(|(name, _)| is_time(name));
        if others.is_empty() {
            parts.shift_remove("limits");
        } else {
            parts.insert("limits".to_owned(), others.into());
        }
        let time = (!time.is_empty()).then(|| Value::from(time));
        parts.extend(time.map(|time| ("time".to_owned(), time)));
        parts.extend(retry.map(|retry| ("retry".to_owned(), retry)));
    }
    if let Some(routes) = parts.get_mut("routes").and_then(Value::as_array_mut) {
        let (forbidden, allowed) = std::mem::take(routes)
            .into_iter()
            .partition(|route| route.get("forbidden").is_some());
        *routes = allowed;
        let forbidden: Vec<Value> = forbidden;
        let forbidden = forbidden.iter().map(|route| without(route, "forbidden"));
        parts.insert("forbidden".to_owned(), forbidden.collect());
    }
    if let Some(facts) = parts.get_mut("facts").and_then(Value::as_object_mut) {
        let mut opinions = Vec::new();
        facts.retain(|name, fact| {
            let Some(fact) = fact.as_object_mut() else {
                return true;
            };
            let briefing = fact.shift_remove("briefing");
            let opinion = fact.shift_remove("opinions");
            let is_noted = briefing.is_some() || opinion.is_some();
            opinions.extend(opinion.map(|opinion| json!([name, opinion])));
            !fact.is_empty() || !is_noted
        });
        parts.insert("opinions".to_owned(), opinions.into());
    }
    definition
}

/// The lines of the list of keys.
fn signers(files: &ProtocolFiles) -> BTreeSet<&[u8]> {
    let list = files.iter().find(|(path, _)| path == SIGNERS);
    let lines = list
        .map_or(&[][..], |(_, bytes)| bytes)
        .split(|&byte| byte == b'\n');
    let lines = lines.map(<[u8]>::trim_ascii);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
        .collect()
}

/// The key and the path of a schema that accepts more than before. A removed schema accepts
/// nothing.
fn compared(
    name: &str,
    (new, new_at): (&ProtocolFiles, &str),
    (old, old_at): (&ProtocolFiles, &str),
    names: &BTreeSet<String>,
) -> Option<(String, String)> {
    let (is, was) = (read(new, new_at)?, read(old, old_at)?);
    (!is_as_strict(&is, &was, names)).then(|| (format!("schema.{name}"), new_at.to_owned()))
}

fn read(files: &ProtocolFiles, path: &str) -> Option<Value> {
    let (_, bytes) = files.iter().find(|(known, _)| known == path)?;
    serde_json::from_slice(bytes).ok()
}

fn members(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
}

/// Compares one part of two definitions.
fn part(key: &str, is: Option<&Value>, was: Option<&Value>, found: &mut BTreeSet<String>) {
    let mut add = |name: Option<&str>| {
        found.insert(name.map_or(key.to_owned(), |name| format!("{key}.{name}")));
    };
    match key {
        // Additional entries make a protocol stricter.
        "requirements" => {
            for (name, was) in named(was) {
                let is = named(is).find(|(own, _)| *own == name).map(|(_, is)| is);
                let own = |of: &Value| without(of, "merge");
                if !is.is_some_and(|is| is_kept(&own(is), &own(was))) {
                    add(Some(name));
                }
            }
            let asked = |of| -> BTreeSet<String> {
                let asked = named(of).filter(|(_, one)| one["merge"] == Value::Bool(true));
                asked.map(|(name, _)| name.to_owned()).collect()
            };
            let (is, was) = (asked(is), asked(was));
            // Without any such requirement, a merge requires `completed`.
            if !was.is_subset(&is) || was.is_empty() && !is.is_empty() {
                found.insert("merge".to_owned());
            }
        }
        "consistency" | "documents" => {
            for (name, was) in named(was) {
                let is = named(is).find(|(own, _)| *own == name).map(|(_, is)| is);
                // `strictness::weaker` compares the policies.
                let own = |of: &Value| without(of, "policy");
                if !is.is_some_and(|is| is_kept(&own(is), &own(was))) {
                    add(Some(name));
                }
            }
        }
        // A new type can't be used without a route. A new agent is harmless unless its kind
        // decides.
        "contracts" | "agents" => {
            for (name, is) in named(is) {
                let was = named(was).find(|(known, _)| *known == name);
                let decides = ["human", "orchestrator"].contains(&text(is, "kind"));
                match was {
                    Some((_, was)) if !is_kept(is, was) => add(Some(name)),
                    None if decides => add(Some(name)),
                    _ => {}
                }
            }
        }
        "facts" => {
            for (name, was) in named(was) {
                let is = is.and_then(|is| is.get(name));
                let is = is.map(|is| match was.get("exclusive") {
                    None => without(is, "exclusive"),
                    Some(_) => is.clone(),
                });
                if is.as_ref() != Some(was) {
                    add(Some(name));
                }
            }
        }
        // An additional limit makes a protocol stricter, and so does a longer wait.
        "limits" => {
            for (name, was) in named(was).filter(|(name, _)| *name != "on_record") {
                if !is
                    .and_then(|is| is.get(name))
                    .is_some_and(|is| keeps_limit(name, is, was))
                {
                    add(Some(name));
                }
            }
        }
        "alerts" if !is_subset(was, is) => add(None),
        "decisions" if !calls_as_much(is, was) => add(None),
        "routes" if !is_subset(each_route(is).as_ref(), each_route(was).as_ref()) => add(None),
        "forbidden" if !is_subset(each_route(was).as_ref(), each_route(is).as_ref()) => add(None),
        "alerts" | "decisions" | "routes" | "forbidden" => {}
        _ => {
            let same = match (is, was) {
                (Some(is), Some(was)) => is_kept(is, was),
                (is, was) => is == was,
            };
            if !same {
                add(None);
            }
        }
    }
}

/// Whether decisions are the same, apart from more that call a person: the first rule that applies
/// counts.
fn calls_as_much(is: Option<&Value>, was: Option<&Value>) -> bool {
    let (is, was) = (entries(is), entries(was));
    let mut left = was.iter().peekable();
    let calls = |rule: &Value| ["escalate", "fall_back"].contains(&text(rule, "action"));
    let mut kept = is
        .iter()
        .map(|rule| left.next_if_eq(&rule).is_some() || calls(rule));
    kept.all(|is_kept| is_kept) && left.next().is_none()
}

/// Whether a limit is as strict.
fn keeps_limit(name: &str, is: &Value, was: &Value) -> bool {
    match name {
        "loops" => true,
        "handoffs" | "deadline_seconds" => is_at_most(is, was),
        "cooldown_seconds" => is_at_most(was, is),
        _ => is_kept(is, was),
    }
}

/// A value without one member.
fn without(value: &Value, name: &str) -> Value {
    let mut value = value.clone();
    if let Some(members) = value.as_object_mut() {
        members.shift_remove(name);
    }
    value
}

/// Expands routes to one sender and one receiver each.
fn each_route(routes: Option<&Value>) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let mut found = Vec::new();
    for route in routes?.as_array()? {
        let (senders, receivers) = (list(route.get("from")?), list(route.get("to")?));
        let several = senders.len() > 1 && receivers.len() > 1;
        for from in &senders {
            for to in receivers.iter().filter(|to| !several || *to != from) {
                let mut one = route.clone();
                (one["from"], one["to"]) = (from.clone(), to.clone());
                found.push(one);
            }
        }
    }
    Some(Value::Array(found))
}

/// The entries of a part with their names: an object's members, or a list's entries by their `id`,
/// `type` or `name`.
fn named(part: Option<&Value>) -> Box<dyn Iterator<Item = (&str, &Value)> + '_> {
    match part {
        Some(Value::Object(members)) => {
            Box::new(members.iter().map(|(name, value)| (name.as_str(), value)))
        }
        Some(Value::Array(entries)) => Box::new(entries.iter().filter_map(|entry| {
            let mut keys = ["id", "type", "name"].into_iter();
            let name = keys.find_map(|key| entry.get(key)?.as_str());
            Some((name?, entry))
        })),
        _ => Box::new(std::iter::empty()),
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether each entry of a list is also in another list, ignoring texts.
fn is_subset(part: Option<&Value>, of: Option<&Value>) -> bool {
    let all = entries(of);
    entries(part).iter().all(|entry| all.contains(entry))
}

/// The entries of a list, without texts.
fn entries(list: Option<&Value>) -> Vec<Value> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries.map(without_texts).collect()
}

fn without_texts(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members
                .iter()
                .filter(|(name, _)| !TEXTS.contains(&name.as_str()));
            let kept = kept.map(|(name, value)| (name.clone(), without_texts(value)));
            Value::Object(kept.collect())
        }
        Value::Array(entries) => Value::Array(entries.iter().map(without_texts).collect()),
        other => other.clone(),
    }
}

/// Whether a rule is unchanged, except for texts, lowered limits, and additional claims, which mean
/// additional checks.
fn is_kept(is: &Value, was: &Value) -> bool {
    fn kept(is: &Value, was: &Value) -> bool {
        match (is, was) {
            (Value::Object(is), Value::Object(was)) => {
                let is_added = |name: &String| !was.contains_key(name);
                let more = is.keys().filter(|name| is_added(name));
                let mut more = more
                    .filter(|name| !["claims", "raises", "schema", "xsd"].contains(&name.as_str()));
                let limits = [
                    "most",
                    "cost",
                    "tokens",
                    "attempts",
                    "seconds",
                    "lease_seconds",
                    "max_retries",
                    "handoffs",
                ];
                more.next().is_none()
                    && was.iter().all(|(name, was)| match is.get(name) {
                        None => ["xsd", "schema"].contains(&name.as_str()),
                        Some(is) if limits.contains(&name.as_str()) => is_at_most(is, was),
                        Some(_) if ["xsd", "schema"].contains(&name.as_str()) => true,
                        Some(is) => kept(is, was),
                    })
            }
            _ => is == was,
        }
    }
    kept(&without_texts(is), &without_texts(was))
}

fn is_at_most(is: &Value, was: &Value) -> bool {
    match (is.as_f64(), was.as_f64()) {
        (Some(is), Some(was)) => is <= was,
        _ => is == was,
    }
}

/// The names of members that a definition reads at any place.
fn read_names(definition: &Value) -> BTreeSet<String> {
    fn walk(value: &Value, found: &mut BTreeSet<String>) {
        let mut add = |text: &str| {
            let pointer = text.split('|').next().unwrap_or_default();
            if pointer.starts_with('/') {
                found.extend(parts(pointer));
            }
        };
        match value {
            Value::String(text) => add(text),
            Value::Object(members) => {
                members.keys().for_each(|key| add(key));
                members.values().for_each(|value| walk(value, found));
            }
            Value::Array(entries) => entries.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(definition, &mut found);
    found
}

/// Whether a schema certainly accepts nothing more than another one did, apart from members that it
/// requires now: without those, what it accepts was accepted. `read` are the names that rules read.
fn is_as_strict(is: &Value, was: &Value, read: &BTreeSet<String>) -> bool {
    let (Value::Object(is), Value::Object(was)) = (is, was) else {
        return is == was || *is == Value::Bool(false) || *was == Value::Bool(true);
    };
    let mut keywords = was
        .iter()
        .filter(|(key, _)| !ANNOTATIONS.contains(&key.as_str()));
    keywords.all(|(key, was_it)| keyword(key, is.get(key), was_it, read))
        && adds_nothing(is, was, read)
}

/// Whether one keyword of a schema is as strict as before.
fn keyword(key: &str, is: Option<&Value>, was: &Value, read: &BTreeSet<String>) -> bool {
    let Some(is) = is else {
        // Definitions that nothing refers to have no effect.
        return ["$defs", "definitions"].contains(&key);
    };
    match key {
        "required" => is_subset(Some(was), Some(is)),
        "enum" => is_subset(Some(is), Some(was)) && keeps_choices(is, was),
        "type" if is.is_array() || was.is_array() => {
            let list = |value: &Value| match value {
                Value::Array(list) => Value::Array(list.clone()),
                one => Value::Array(vec![one.clone()]),
            };
            is_subset(Some(&list(is)), Some(&list(was)))
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            is_at_most(is, was)
        }
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            is_at_most(was, is)
        }
        "properties" | "$defs" | "definitions" | "patternProperties" => members(was).all(|name| {
            let (is, was) = (is.get(name), was.get(name));
            is.zip(was)
                .is_some_and(|(is, was)| is_as_strict(is, was, read))
                || is.is_none() && key == "$defs"
        }),
        "items" | "additionalProperties" | "contains" | "propertyNames" => {
            is_as_strict(is, was, read)
        }
        "allOf" => {
            let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
            let own = list(is);
            list(was)
                .iter()
                .all(|was| own.iter().any(|is| is_as_strict(is, was, read)))
        }
        _ => plain(is) == plain(was),
    }
}

/// Whether each word that joins others by `|` is still listed together with all of them: only then
/// is it refused as a copied list of choices.
fn keeps_choices(is: &Value, was: &Value) -> bool {
    let words = |list: &Value| -> BTreeSet<String> {
        let entries = list.as_array().into_iter().flatten();
        entries
            .filter_map(|entry| entry.as_str().map(str::to_owned))
            .collect()
    };
    let (is, was) = (words(is), words(was));
    let parts =
        |joined: &str| -> BTreeSet<String> { joined.split('|').map(str::to_owned).collect() };
    let joined = is.iter().filter(|word| word.contains('|'));
    let mut joined = joined.filter(|word| parts(word).is_subset(&was));
    joined.all(|word| parts(word).is_subset(&is))
}

/// Whether a schema allows no property that was refused before, except those that it requires and
/// no rule read.
fn adds_nothing(
    is: &Map<String, Value>,
    was: &Map<String, Value>,
    read: &BTreeSet<String>,
) -> bool {
    let closed = ["additionalProperties", "unevaluatedProperties"];
    let is_closed = closed
        .iter()
        .any(|key| was.get(*key) == Some(&Value::Bool(false)));
    let names = |of: &Map<String, Value>| -> BTreeSet<String> {
        let keys = ["properties", "patternProperties"].into_iter();
        keys.filter_map(|key| of.get(key))
            .flat_map(members)
            .map(str::to_owned)
            .collect()
    };
    let required = is.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|one| one == name));
    let is_described = |name: &str| {
        is.get("properties")
            .is_some_and(|own| own.get(name).is_some())
    };
    let is_harmless =
        |name: &String| is_required(name) && is_described(name) && !read.contains(name);
    let was = names(was);
    !is_closed || names(is).difference(&was).all(is_harmless)
}

/// A schema without annotations.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                !ANNOTATIONS.contains(&name.as_str()) || value.is_object() || value.is_array()
            });
            Value::Object(
                kept.map(|(name, value)| (name.clone(), plain(value)))
                    .collect(),
            )
        }
        Value::Array(entries) => Value::Array(entries.iter().map(plain).collect()),
        other => other.clone(),
    }
}
