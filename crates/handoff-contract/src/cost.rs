//! The cost of checking a value against a schema, counted before anything is compiled or checked.
//!
//! One step applies one schema to one value, or compares two values. Definitions that refer to each
//! other can double the number of steps with each line.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::shape::resolve;

/// The maximum number of steps of a schema, with every reference expanded.
pub(super) const MAX_SCHEMA: u64 = 1 << 17;
/// The maximum number of steps of a document, which is more than the largest one has values. It
/// bounds the time of a check and the number of errors that the validator collects.
pub(super) const MAX_DOCUMENT: u64 = if cfg!(test) { 1 << 17 } else { 1 << 20 };
/// The maximum depth of schemas within schemas, because the validator recurses.
const MAX_DEPTH: usize = 1_000;

/// The cost of a schema, independent of the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of schemas it applies, including those of references.
    pub steps: u64,
    /// The number of distinct patterns; each is compiled.
    pub patterns: usize,
}

/// The cost of a schema; `None` if it exceeds the limits.
pub(super) fn of_schema(schema: &Value) -> Option<Cost> {
    let steps = Counter::count(schema, None, MAX_SCHEMA)?;
    let mut patterns = HashSet::new();
    collect_patterns(schema, &mut patterns);
    Some(Cost {
        steps,
        patterns: patterns.len(),
    })
}

/// Whether checking a value stays within a document's steps.
pub(super) fn is_affordable(schema: &Value, value: &Value) -> bool {
    Counter::count(schema, Some(value), MAX_DOCUMENT).is_some()
}

/// The steps to validate a value (`verdict`), and to validate it and collect the errors (`faults`):
/// an alternative is first tried, then asked for its errors.
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

/// A schema and the value that it is applied to, by address.
type Applied = (*const Value, Option<*const Value>);

struct Counter<'s> {
    root: &'s Value,
    /// The steps of reference targets: no other schema is reached twice.
    known: HashMap<Applied, Steps>,
    depth: usize,
    limit: u64,
    /// The remaining number of schemas that may be visited.
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

    /// The steps of a schema for a value; without a value, those of all its parts. `None` if they
    /// exceed the limits.
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
        // The validator finds unevaluated members by evaluating every alternative again.
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

    /// The steps of schemas that are tried first and then asked for their errors.
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
        // Breaks cycles: a schema within itself costs nothing more.
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
                // A property name has no parts, so `null` can stand for it.
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

/// The number of a value's parts.
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
