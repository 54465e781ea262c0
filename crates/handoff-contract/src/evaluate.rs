//! Evaluates JSON Schema 2020-12 on the schema's own JSON: only the patterns that a value meets are
//! compiled.
//!
//! A first pass decides, and stops at the first fault. Only if there is one, a second pass collects
//! all. Both spend steps, so that no schema takes any time: one applies one schema to one value, or
//! compares two values.

use std::collections::HashSet;

use handoff_base::pointer::push_part;
use serde_json::{Map, Number, Value};

use super::cost::MAX_DEPTH;
use super::number::{are_unique, compare, equal, is_integer, is_multiple, whole};
use super::pattern::Patterns;
use super::shape::resolve;
use super::{form, format};

/// The maximum number of steps of a pass, which is more than the largest document has values. It
/// bounds the number of faults, too.
const MAX_STEPS: usize = if cfg!(test) { 1 << 17 } else { 1 << 20 };
/// The bytes of text that a pass may match against patterns: all texts of the largest document, for
/// about sixty patterns.
const MAX_MATCHED: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// Why an evaluation ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// It takes too many steps, or nests too deeply.
    Steps,
    /// Its patterns have too much to read.
    Matched,
    /// A pattern or a reference can't be used.
    Unusable,
}

/// Where a value breaks its schema.
#[derive(Debug)]
pub(super) struct Fault<'s> {
    /// JSON Pointer to the value.
    pub(super) pointer: String,
    pub(super) rule: Rule<'s>,
}

/// The rule that a value breaks.
#[derive(Debug)]
pub(super) enum Rule<'s> {
    /// The type or the types.
    Type(&'s Value),
    OneOf(&'s [Value]),
    Const(&'s Value),
    Pattern(&'s str),
    Format(&'s str),
    /// A keyword that limits a number, and its limit.
    Range(&'s str, &'s Value),
    /// A keyword that limits a length or a number of parts, and its limit.
    Length(&'s str, u64),
    Unique,
    /// The schema of the missing item, if one is enough.
    Contains(Option<&'s Value>),
    Missing(&'s str),
    Unknown(String),
    /// The name of a member.
    Name(String),
    /// The faults by each alternative.
    NoAlternative(Vec<Vec<Fault<'s>>>),
    SeveralAlternatives,
    Not,
    Never,
}

/// Whether a value is valid.
///
/// # Errors
/// [`Limit`], if that takes too long.
pub(super) fn accepts(schema: &Value, patterns: &Patterns, value: &Value) -> Result<bool, Limit> {
    let mut evaluator = Evaluator::new(schema, patterns, None);
    let holds = evaluator.apply(schema, value);
    evaluator.limit.map_or(Ok(holds), Err)
}

/// Whether a value is valid by a schema that is used once; `None` if that can't be decided.
pub fn decides(schema: &Value, value: &Value) -> Option<bool> {
    let is_sound = form::faults(schema, None).is_empty();
    let decided = is_sound.then(|| accepts(schema, &Patterns::default(), value));
    decided?.ok()
}

/// Every fault of a value.
///
/// # Errors
/// [`Limit`], if that takes too long.
pub(super) fn faults<'s>(
    schema: &'s Value,
    patterns: &'s Patterns,
    value: &Value,
) -> Result<Vec<Fault<'s>>, Limit> {
    if accepts(schema, patterns, value)? {
        return Ok(Vec::new());
    }
    let mut evaluator = Evaluator::new(schema, patterns, Some(Vec::new()));
    evaluator.apply(schema, value);
    let faults = evaluator.faults.unwrap_or_default();
    evaluator.limit.map_or(Ok(faults), Err)
}

struct Evaluator<'s> {
    root: &'s Value,
    patterns: &'s Patterns,
    steps: usize,
    matched: usize,
    depth: usize,
    limit: Option<Limit>,
    /// Without it, the first fault ends the evaluation.
    faults: Option<Vec<Fault<'s>>>,
    /// JSON Pointer to the current value, if faults are collected.
    path: String,
    /// The parts of the current value that schemas evaluated, by index.
    evaluated: Vec<usize>,
    /// Whether a schema of the current value has `unevaluatedItems` or `unevaluatedProperties`.
    tracks: bool,
}

/// The keywords of a schema.
type Keywords = Map<String, Value>;

impl<'s> Evaluator<'s> {
    fn new(root: &'s Value, patterns: &'s Patterns, faults: Option<Vec<Fault<'s>>>) -> Self {
        Self {
            root,
            patterns,
            steps: MAX_STEPS,
            matched: MAX_MATCHED,
            depth: 0,
            limit: None,
            faults,
            path: String::new(),
            evaluated: Vec::new(),
            tracks: false,
        }
    }

    /// Ends the evaluation.
    fn end(&mut self, limit: Limit) -> bool {
        self.limit.get_or_insert(limit);
        false
    }

    /// Spends steps; false once there are too few.
    fn spend(&mut self, steps: usize) -> bool {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => return self.end(Limit::Steps),
        }
        self.limit.is_none()
    }

    /// Returns whether a rule holds, and adds the fault if not.
    fn holds(&mut self, holds: bool, rule: impl FnOnce() -> Rule<'s>) -> bool {
        if !holds && let Some(faults) = &mut self.faults {
            faults.push(Fault {
                pointer: self.path.clone(),
                rule: rule(),
            });
        }
        holds
    }

    /// Whether all parts hold; what comes after the first fault is evaluated only for its faults.
    fn every<T>(
        &mut self,
        parts: impl IntoIterator<Item = T>,
        mut holds: impl FnMut(&mut Self, T) -> bool,
    ) -> bool {
        let mut all = true;
        for part in parts {
            all &= holds(self, part);
            if !all && self.faults.is_none() {
                break;
            }
        }
        all
    }

    fn apply(&mut self, schema: &'s Value, value: &Value) -> bool {
        if !self.spend(1) {
            return false;
        }
        let Value::Object(keywords) = schema else {
            return self.holds(*schema == Value::Bool(true), || Rule::Never);
        };
        if self.depth == MAX_DEPTH {
            return self.end(Limit::Steps);
        }
        self.depth += 1;
        let (start, outer) = (self.evaluated.len(), self.tracks);
        let has_rest = keywords.keys().any(|key| key.starts_with("unevaluated"));
        self.tracks |= has_rest;
        let mut all = self.every(keywords, |this, (key, given)| {
            this.keyword(keywords, (key, given), value)
        });
        if has_rest && (all || self.faults.is_some()) {
            all &= self.unevaluated(keywords, value, start);
        }
        self.tracks = outer;
        if !outer {
            self.evaluated.truncate(start);
        }
        self.depth -= 1;
        all
    }

    /// Applies a schema to a part of the value, which is a member if it has a name.
    fn part(&mut self, schema: &'s Value, part: &Value, index: usize, name: Option<&str>) -> bool {
        self.evaluates(index);
        let length = self.path.len();
        if self.faults.is_some() {
            match name {
                Some(name) => push_part(&mut self.path, name),
                None => push_part(&mut self.path, &index.to_string()),
            }
        }
        let outer = std::mem::replace(&mut self.tracks, false);
        let holds = self.apply(schema, part);
        self.tracks = outer;
        self.path.truncate(length);
        holds
    }

    fn evaluates(&mut self, index: usize) {
        if self.tracks {
            self.evaluated.push(index);
        }
    }

    /// Whether a part of the value, or a name in it, is valid; records no faults.
    fn accepts(&mut self, schema: &'s Value, part: &Value) -> bool {
        let outer = std::mem::replace(&mut self.tracks, false);
        let holds = self.tries(schema, part);
        self.tracks = outer;
        holds
    }

    /// Whether a schema holds that may fail: what it evaluated counts only if it holds.
    fn tries(&mut self, schema: &'s Value, value: &Value) -> bool {
        let (start, faults) = (self.evaluated.len(), self.faults.take());
        let holds = self.apply(schema, value);
        self.faults = faults;
        if !holds {
            self.evaluated.truncate(start);
        }
        holds
    }

    fn keyword(
        &mut self,
        keywords: &'s Keywords,
        (key, given): (&'s str, &'s Value),
        value: &Value,
    ) -> bool {
        match key {
            "$ref" | "$dynamicRef" => {
                let target = given.as_str().map(|given| resolve(self.root, given));
                match target {
                    Some(Ok(target)) => self.apply(target, value),
                    _ => self.end(Limit::Unusable),
                }
            }
            "allOf" => self.every(list(given), |this, schema| this.apply(schema, value)),
            "anyOf" | "oneOf" => self.alternatives(key == "oneOf", list(given), value),
            "not" => {
                let start = self.evaluated.len();
                let holds = !self.tries(given, value);
                self.evaluated.truncate(start);
                self.holds(holds, || Rule::Not)
            }
            "if" => {
                let is_met = self.tries(given, value);
                let branch = keywords.get(if is_met { "then" } else { "else" });
                branch.is_none_or(|branch| self.apply(branch, value))
            }
            "type" => self.holds(is_of_types(given, value), || Rule::Type(given)),
            "const" => self.holds(equal(given, value), || Rule::Const(given)),
            "enum" => {
                let allowed = list(given);
                let is_one =
                    self.spend(allowed.len()) && allowed.iter().any(|one| equal(one, value));
                self.holds(is_one, || Rule::OneOf(allowed))
            }
            _ => match value {
                Value::Object(members) => self.members(keywords, (key, given), members, value),
                Value::Array(items) => self.items(keywords, (key, given), items),
                Value::String(text) => self.text((key, given), text),
                Value::Number(number) => {
                    self.holds(is_in_range(key, given, number), || Rule::Range(key, given))
                }
                Value::Null | Value::Bool(_) => true,
            },
        }
    }

    fn alternatives(&mut self, is_one: bool, schemas: &'s [Value], value: &Value) -> bool {
        let mut fitting = 0;
        for schema in schemas {
            fitting += usize::from(self.tries(schema, value));
            // Every alternative that fits marks what it evaluated.
            if fitting > usize::from(is_one) && (is_one || !self.tracks) {
                break;
            }
        }
        if fitting > 0 {
            let is_valid = fitting == 1 || !is_one;
            return self.holds(is_valid, || Rule::SeveralAlternatives);
        }
        let mut branches = Vec::new();
        if let Some(faults) = self.faults.take() {
            let start = self.evaluated.len();
            for schema in schemas {
                self.faults = Some(Vec::new());
                self.apply(schema, value);
                branches.extend(self.faults.take());
            }
            self.evaluated.truncate(start);
            self.faults = Some(faults);
        }
        self.holds(false, || Rule::NoAlternative(branches))
    }

    fn members(
        &mut self,
        keywords: &'s Keywords,
        (key, given): (&'s str, &'s Value),
        members: &Map<String, Value>,
        value: &Value,
    ) -> bool {
        let parts = members.iter().enumerate();
        match key {
            "properties" => self.every(parts, |this, (index, (name, part))| {
                let schema = given.get(name);
                schema.is_none_or(|schema| this.part(schema, part, index, Some(name)))
            }),
            "patternProperties" => self.every(parts, |this, (index, (name, part))| {
                this.every(map(given), |this, (pattern, schema)| {
                    !this.matches(pattern, name) || this.part(schema, part, index, Some(name))
                })
            }),
            "additionalProperties" => self.every(parts, |this, (index, (name, part))| {
                this.is_known(keywords, name)
                    || if *given == Value::Bool(false) {
                        this.evaluates(index);
                        this.holds(false, || Rule::Unknown(name.clone()))
                    } else {
                        this.part(given, part, index, Some(name))
                    }
            }),
            "propertyNames" => self.every(members.keys(), |this, name| {
                let holds = this.accepts(given, &Value::String(name.clone()));
                this.holds(holds, || Rule::Name(name.clone()))
            }),
            "required" => self.required(given, members),
            // The former name of the other two comes last.
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                self.every(map(given), |this, (name, needed)| match needed {
                    _ if !members.contains_key(name) => true,
                    Value::Array(_) => this.required(needed, members),
                    _ => this.apply(needed, value),
                })
            }
            "minProperties" | "maxProperties" => self.length((key, given), members.len()),
            _ => true,
        }
    }

    fn required(&mut self, names: &'s Value, members: &Map<String, Value>) -> bool {
        let names = list(names).iter().filter_map(Value::as_str);
        self.every(names, |this, name| {
            this.spend(1) && this.holds(members.contains_key(name), || Rule::Missing(name))
        })
    }

    /// Whether `properties` or `patternProperties` know a member.
    fn is_known(&mut self, keywords: &'s Keywords, name: &str) -> bool {
        let named = keywords.get("properties");
        named.is_some_and(|named| named.get(name).is_some())
            || keywords
                .get("patternProperties")
                .is_some_and(|matched| map(matched).any(|(pattern, _)| self.matches(pattern, name)))
    }

    fn items(
        &mut self,
        keywords: &'s Keywords,
        (key, given): (&'s str, &'s Value),
        items: &[Value],
    ) -> bool {
        let parts = items.iter().enumerate();
        match key {
            "prefixItems" => self.every(parts.zip(list(given)), |this, ((index, item), schema)| {
                this.part(schema, item, index, None)
            }),
            "items" => {
                let prefix = keywords.get("prefixItems").map_or(&[][..], list);
                self.every(parts.skip(prefix.len()), |this, (index, item)| {
                    this.part(given, item, index, None)
                })
            }
            "contains" => {
                let limit = |key: &str| keywords.get(key).and_then(count);
                let (least, most) = (limit("minContains"), limit("maxContains"));
                let mut found = 0;
                for (index, item) in parts {
                    if self.accepts(given, item) {
                        found += 1;
                        self.evaluates(index);
                    }
                    if !self.tracks && most.is_none() && found >= least.unwrap_or(1) {
                        break;
                    }
                }
                let is_held = found >= least.unwrap_or(1) && most.is_none_or(|most| found <= most);
                let is_one = least.is_none() && most.is_none();
                self.holds(is_held, || Rule::Contains(is_one.then_some(given)))
            }
            "uniqueItems" if *given == Value::Bool(true) => {
                let holds = self.spend(items.len()) && are_unique(items);
                self.holds(holds, || Rule::Unique)
            }
            "minItems" | "maxItems" => self.length((key, given), items.len()),
            _ => true,
        }
    }

    fn text(&mut self, (key, given): (&'s str, &'s Value), text: &str) -> bool {
        match (key, given) {
            ("minLength" | "maxLength", _) => self.length((key, given), text.chars().count()),
            ("pattern", Value::String(pattern)) => {
                let holds = self.matches(pattern, text);
                self.holds(holds, || Rule::Pattern(pattern))
            }
            ("format", Value::String(name)) => {
                let holds =
                    format::holds(name, text, &mut |pattern, text| self.matches(pattern, text));
                self.holds(holds, || Rule::Format(name))
            }
            _ => true,
        }
    }

    fn length(&mut self, (key, given): (&'s str, &'s Value), length: usize) -> bool {
        let (length, limit) = (length as u64, count(given).unwrap_or(u64::MAX));
        let is_least = key.starts_with("min");
        let holds = if is_least {
            length >= limit
        } else {
            length <= limit
        };
        self.holds(holds, || Rule::Length(key, limit))
    }

    fn matches(&mut self, pattern: &str, text: &str) -> bool {
        match self.matched.checked_sub(text.len() + 1) {
            Some(left) => self.matched = left,
            None => return self.end(Limit::Matched),
        }
        let matches = self.patterns.matches(pattern, text);
        matches.unwrap_or_else(|| self.end(Limit::Unusable))
    }

    /// Applies `unevaluatedProperties` and `unevaluatedItems` to what no other keyword evaluated.
    fn unevaluated(&mut self, keywords: &'s Keywords, value: &Value, start: usize) -> bool {
        self.spend(self.evaluated.len() - start);
        let known: HashSet<usize> = self.evaluated[start..].iter().copied().collect();
        match (
            value,
            keywords.get("unevaluatedProperties"),
            keywords.get("unevaluatedItems"),
        ) {
            (Value::Object(members), Some(given), _) => {
                let rest = members.iter().enumerate();
                let rest = rest.filter(|(index, _)| !known.contains(index));
                self.every(rest, |this, (index, (name, part))| {
                    this.evaluates(index);
                    let holds = this.accepts(given, part);
                    this.holds(holds, || Rule::Unknown(name.clone()))
                })
            }
            (Value::Array(items), _, Some(given)) => {
                let rest = items.iter().enumerate();
                let rest = rest.filter(|(index, _)| !known.contains(index));
                self.every(rest, |this, (index, item)| {
                    this.part(given, item, index, None)
                })
            }
            _ => true,
        }
    }
}

/// A limit that counts; one that is larger than any count is none.
pub(super) fn count(given: &Value) -> Option<u64> {
    u64::try_from(given.as_number().and_then(whole)?).ok()
}

fn list(given: &Value) -> &[Value] {
    given.as_array().map_or(&[], Vec::as_slice)
}

fn map(given: &Value) -> impl Iterator<Item = (&String, &Value)> {
    given.as_object().into_iter().flatten()
}

fn is_of_types(given: &Value, value: &Value) -> bool {
    match given {
        Value::String(name) => is_of_type(name, value),
        names => list(names)
            .iter()
            .any(|name| name.as_str().is_some_and(|name| is_of_type(name, value))),
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && is_integer(number),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Whether a number keeps to a keyword's limit.
fn is_in_range(key: &str, given: &Value, number: &Number) -> bool {
    let Value::Number(limit) = given else {
        return true;
    };
    match key {
        "minimum" => compare(number, limit).is_ge(),
        "maximum" => compare(number, limit).is_le(),
        "exclusiveMinimum" => compare(number, limit).is_gt(),
        "exclusiveMaximum" => compare(number, limit).is_lt(),
        "multipleOf" => is_multiple(number, limit),
        _ => true,
    }
}
