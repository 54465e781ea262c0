//! What it takes to check a value by a schema, counted before anything is compiled or checked.
//!
//! One step is one schema that is applied to one value, or one alternative that a value is compared
//! with. Definitions that refer to each other can double the steps with each line.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::shape::resolve;

/// How many steps a schema may have, with each reference replaced by its definition.
pub(super) const MAX_SCHEMA: u64 = 1 << 17;
/// How many steps a document may take: more than the largest one has values. They bound the time of
/// a check, and the faults that the validator collects.
pub(super) const MAX_DOCUMENT: u64 = if cfg!(test) { 1 << 17 } else { 1 << 20 };
/// How deeply schemas may be applied within each other: the validator recurses.
const MAX_DEPTH: usize = 1_000;

/// What a schema needs, whatever it checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The schemas that it applies, those of references included.
    pub steps: u64,
    /// Its different patterns, each of which is compiled.
    pub patterns: usize,
}

/// Counts what a schema needs; none if it is more than is allowed.
pub(super) fn of_schema(schema: &Value) -> Option<Cost> {
    let steps = Counter::count(schema, None, MAX_SCHEMA)?;
    let mut patterns = HashSet::new();
    collect_patterns(schema, &mut patterns);
    Some(Cost {
        steps,
        patterns: patterns.len(),
    })
}

/// Whether a value can be checked within the steps that a document has.
pub(super) fn is_affordable(schema: &Value, value: &Value) -> bool {
    Counter::count(schema, Some(value), MAX_DOCUMENT).is_some()
}

/// The steps to find out whether a value is valid, and to list its faults: an alternative is tried,
/// and then asked for its faults.
#[derive(Clone, Copy, Default)]
struct Steps {
    verdict: u64,
    faults: u64,
}

impl Steps {
    const fn of(steps: u64) -> Self {
        Self {
            verdict: steps,
            faults: steps,
        }
    }

    fn add(&mut self, other: Self) {
        self.verdict = self.verdict.saturating_add(other.verdict);
        self.faults = self.faults.saturating_add(other.faults);
    }
}

/// A schema and the value it is applied to, by their places in memory.
type Applied = (*const Value, Option<*const Value>);

struct Counter<'s> {
    root: &'s Value,
    /// What the targets of references take: the only schemas that are reached in several ways.
    known: HashMap<Applied, Steps>,
    depth: usize,
    limit: u64,
    /// How many schemas may still be visited.
    left: u64,
}

impl<'s> Counter<'s> {
    fn count(root: &'s Value, value: Option<&'s Value>, limit: u64) -> Option<u64> {
        let mut counter = Self {
            root,
            known: HashMap::new(),
            depth: 0,
            limit,
            left: limit,
        };
        counter.schema(root, value).map(|steps| steps.faults)
    }

    /// The steps of a schema; without a value, those of every part of it. None if they are too many.
    fn schema(&mut self, schema: &'s Value, value: Option<&'s Value>) -> Option<Steps> {
        let Value::Object(members) = schema else {
            return Some(Steps::of(1));
        };
        self.left = self.left.checked_sub(1)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut steps = Steps::of(1);
        let mut times = 1;
        for (key, member) in members {
            match &**key {
                "$ref" => steps.add(self.reference(member, value)?),
                "allOf" => steps.add(self.each(items(member), value)?),
                "anyOf" | "oneOf" => steps.add(self.tried(items(member), value)?),
                "not" | "if" => steps.add(self.tried(std::slice::from_ref(member), value)?),
                "then" | "else" => steps.add(self.schema(member, value)?),
                "dependentSchemas" => {
                    for inner in member.as_object().into_iter().flat_map(Map::values) {
                        steps.add(self.tried(std::slice::from_ref(inner), value)?);
                    }
                }
                "unevaluatedProperties" | "unevaluatedItems" => {
                    steps.add(self.children(key, member, members, value)?);
                    times = 2 + value.map_or(1, length);
                }
                "enum" | "required" => steps.add(Steps::of(length(member))),
                "uniqueItems" => steps.add(Steps::of(value.map_or(1, length))),
                "$defs" | "definitions" if value.is_none() => {}
                _ => steps.add(self.children(key, member, members, value)?),
            }
        }
        // What was not evaluated is found by asking each alternative again.
        steps.faults = steps.faults.saturating_mul(times);
        steps.verdict = steps.verdict.saturating_mul(times);
        self.depth -= 1;
        (steps.faults <= self.limit).then_some(steps)
    }

    fn each(&mut self, schemas: &'s [Value], value: Option<&'s Value>) -> Option<Steps> {
        let mut steps = Steps::default();
        for schema in schemas {
            steps.add(self.schema(schema, value)?);
        }
        Some(steps)
    }

    /// The steps of alternatives.
    fn tried(&mut self, schemas: &'s [Value], value: Option<&'s Value>) -> Option<Steps> {
        let mut steps = self.each(schemas, value)?;
        steps.faults = steps.faults.saturating_add(steps.verdict);
        Some(steps)
    }

    fn reference(&mut self, reference: &Value, value: Option<&'s Value>) -> Option<Steps> {
        let Some(target) = reference.as_str().and_then(|r| resolve(self.root, r).ok()) else {
            return Some(Steps::default());
        };
        let applied = (
            std::ptr::from_ref(target),
            value.map(std::ptr::from_ref::<Value>),
        );
        if let Some(&known) = self.known.get(&applied) {
            return Some(known);
        }
        // A schema that is part of itself is counted once.
        self.known.insert(applied, Steps::default());
        let steps = self.schema(target, value)?;
        self.known.insert(applied, steps);
        Some(steps)
    }

    /// The steps of a keyword that applies schemas to the parts of a value.
    fn children(
        &mut self,
        key: &str,
        member: &'s Value,
        siblings: &'s Map<String, Value>,
        value: Option<&'s Value>,
    ) -> Option<Steps> {
        let mut steps = Steps::default();
        match (key, value) {
            ("properties" | "patternProperties", None) => {
                for inner in member.as_object().into_iter().flat_map(Map::values) {
                    steps.add(self.schema(inner, None)?);
                }
            }
            ("properties", Some(Value::Object(given))) => {
                for (name, inner) in member.as_object().into_iter().flatten() {
                    if let Some(part) = given.get(name) {
                        steps.add(self.schema(inner, Some(part))?);
                    }
                }
            }
            ("patternProperties", Some(Value::Object(given))) => {
                for inner in member.as_object().into_iter().flat_map(Map::values) {
                    for (name, part) in given {
                        steps.add(Steps::of(name.len() as u64 / 16));
                        steps.add(self.schema(inner, Some(part))?);
                    }
                }
            }
            ("propertyNames" | "additionalProperties" | "unevaluatedProperties", None)
            | ("items" | "contains" | "unevaluatedItems", None) => {
                steps.add(self.schema(member, None)?);
            }
            ("propertyNames", Some(Value::Object(given))) => {
                // A name has no parts.
                for _ in given {
                    steps.add(self.schema(member, Some(&Value::Null))?);
                }
            }
            ("additionalProperties" | "unevaluatedProperties", Some(Value::Object(given))) => {
                let named = siblings.get("properties").and_then(Value::as_object);
                for (name, part) in given {
                    if named.is_none_or(|named| !named.contains_key(name)) {
                        steps.add(self.schema(member, Some(part))?);
                    }
                }
            }
            ("prefixItems", None) => steps.add(self.each(items(member), None)?),
            ("prefixItems", Some(Value::Array(given))) => {
                for (inner, part) in items(member).iter().zip(given) {
                    steps.add(self.schema(inner, Some(part))?);
                }
            }
            ("items" | "contains" | "unevaluatedItems", Some(Value::Array(given))) => {
                for part in given {
                    steps.add(self.tried_part(key, member, part)?);
                }
            }
            _ => {}
        }
        Some(steps)
    }

    fn tried_part(&mut self, key: &str, schema: &'s Value, part: &'s Value) -> Option<Steps> {
        if key == "contains" {
            return self.tried(std::slice::from_ref(schema), Some(part));
        }
        self.schema(schema, Some(part))
    }
}

fn items(member: &Value) -> &[Value] {
    member.as_array().map_or(&[], Vec::as_slice)
}

/// How many parts a value has.
fn length(value: &Value) -> u64 {
    let length = match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    length as u64
}

/// Recursion is bounded by the depth of JSON.
fn collect_patterns<'s>(schema: &'s Value, found: &mut HashSet<&'s str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect_patterns(item, found)),
        Value::Object(members) => {
            for (key, value) in members {
                match (&**key, value) {
                    ("pattern", Value::String(pattern)) => {
                        found.insert(pattern);
                    }
                    ("patternProperties", Value::Object(own)) => {
                        found.extend(own.keys().map(String::as_str));
                        collect_patterns(value, found);
                    }
                    _ => collect_patterns(value, found),
                }
            }
        }
        _ => {}
    }
}
