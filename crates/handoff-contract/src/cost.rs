//! The cost of a schema, counted before it is used.
//!
//! Definitions that refer to each other can double the number of schemas with each line.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::keyword::Form;
use super::shape::resolve;

/// The maximum number of schemas that a schema applies, with every reference expanded.
pub(super) const MAX_SCHEMA: u64 = 1 << 17;
/// The maximum depth of schemas within schemas, because the evaluator recurses.
pub(super) const MAX_DEPTH: usize = 1_000;

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
    let mut counter = Counter {
        root: schema,
        known: HashMap::new(),
        depth: 0,
    };
    let steps = counter.schema(schema)?;
    let mut patterns = HashSet::new();
    collect_patterns(schema, &mut patterns);
    Some(Cost {
        steps,
        patterns: patterns.len(),
    })
}

struct Counter<'s> {
    root: &'s Value,
    /// The steps of reference targets, by address: each is counted once.
    known: HashMap<*const Value, u64>,
    depth: usize,
}

impl<'s> Counter<'s> {
    fn schema(&mut self, schema: &'s Value) -> Option<u64> {
        let Value::Object(members) = schema else {
            return Some(1);
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut steps: u64 = 1;
        for (key, member) in members {
            let parts: Vec<&Value> = match (Form::of(key), member) {
                _ if key == "$ref" => {
                    steps += self.reference(member)?;
                    continue;
                }
                _ if key == "$defs" || key == "definitions" => continue,
                (Form::Schema, schema) => vec![schema],
                (Form::Schemas, Value::Array(schemas)) => schemas.iter().collect(),
                (Form::SchemaMap, Value::Object(schemas)) => schemas.values().collect(),
                (Form::List | Form::Texts, Value::Array(values)) => {
                    steps += values.len() as u64;
                    continue;
                }
                _ => continue,
            };
            for part in parts {
                steps += self.schema(part)?;
            }
        }
        self.depth -= 1;
        (steps <= MAX_SCHEMA).then_some(steps)
    }

    fn reference(&mut self, reference: &Value) -> Option<u64> {
        let Some(target) = reference.as_str().and_then(|r| resolve(self.root, r).ok()) else {
            return Some(0);
        };
        let address = std::ptr::from_ref(target);
        if let Some(&known) = self.known.get(&address) {
            return Some(known);
        }
        // Breaks cycles: a schema within itself costs nothing more.
        self.known.insert(address, 0);
        let steps = self.schema(target)?;
        self.known.insert(address, steps);
        Some(steps)
    }
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
