//! A fast path that decides validity without compiling the schema.
//!
//! Compiling takes longer than all other checks of a contract, and nearly every contract is valid.
//! This evaluates only simple keywords, and only for the parts that the value has. Everything else
//! is left to the compiled schema, which also explains errors.

use std::collections::HashMap;

use regex_lite::Regex;
use serde_json::{Map, Value};

use super::pattern::is_not_blank;

/// Schemas may be recursive.
const MAX_DEPTH: usize = 200;

/// The form of nearly all timestamps.
const DATE_TIME: &str = "^[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+\\-]([01][0-9]|2[0-3]):[0-5][0-9])$";

/// The maximum length of a text matched here. This regex engine compiles fast but matches slowly.
const MAX_TEXT: usize = 4096;

/// Whether a value is certainly valid.
pub(super) fn is_plainly_valid(schema: &Value, value: &Value) -> bool {
    decides(schema, value) == Some(true)
}

/// Whether a value is valid; `None` if only the compiled schema can decide.
pub fn decides(schema: &Value, value: &Value) -> Option<bool> {
    let mut plain = Plain {
        root: schema,
        patterns: HashMap::new(),
        depth: 0,
    };
    plain.holds(schema, value)
}

/// Evaluates a schema; every answer is `None` if only the compiled schema can decide.
struct Plain<'a> {
    root: &'a Value,
    /// The compiled patterns; `None` for an unsupported one.
    patterns: HashMap<&'a str, Option<Regex>>,
    depth: usize,
}

impl<'a> Plain<'a> {
    fn holds(&mut self, schema: &'a Value, value: &Value) -> Option<bool> {
        let schema = match schema {
            Value::Bool(answer) => return Some(*answer),
            Value::Object(schema) => schema,
            _ => return None,
        };
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let mut keywords = schema.iter();
        let all = keywords.try_fold(true, |all, (key, given)| {
            Some(all & self.keyword(schema, key, given, value)?)
        });
        self.depth -= 1;
        all
    }

    fn all<'v>(
        &mut self,
        schema: &'a Value,
        values: impl IntoIterator<Item = &'v Value>,
    ) -> Option<bool> {
        let mut values = values.into_iter();
        values.try_fold(true, |all, value| Some(all & self.holds(schema, value)?))
    }

    fn keyword(
        &mut self,
        schema: &'a Map<String, Value>,
        key: &str,
        given: &'a Value,
        value: &Value,
    ) -> Option<bool> {
        let text = value.as_str();
        let items = value.as_array();
        let members = value.as_object();
        match key {
            // Annotations constrain nothing.
            "$comment" | "$defs" | "$schema" | "default" | "description" | "examples" | "title"
            | "x-json" | "xml" => Some(true),
            // These keywords apply only together with another one.
            "then" | "else" => Some(schema.contains_key("if")),
            "$ref" => self.holds(self.referred(given.as_str()?)?, value),
            "type" => match given {
                Value::Array(names) => any(names.iter().map(|name| is_of_type(name, value))),
                name => is_of_type(name, value),
            },
            "format" if given == "date-time" => match text {
                None => Some(true),
                // Other forms of a timestamp are valid too, but left to the compiled schema.
                Some(text) => self.matches(DATE_TIME, text)?.then_some(true),
            },
            "const" => is_equal(given, value),
            "enum" => any(given.as_array()?.iter().map(|one| is_equal(one, value))),
            "minimum" => in_order(value, given, value),
            "maximum" => in_order(value, value, given),
            "minLength" => at_least(text.map(|t| t.chars().count()), given),
            "maxLength" => at_most(text.map(|t| t.chars().count()), given),
            "minItems" => at_least(items.map(Vec::len), given),
            "maxItems" => at_most(items.map(Vec::len), given),
            "minProperties" => at_least(members.map(Map::len), given),
            "maxProperties" => at_most(members.map(Map::len), given),
            "pattern" => text.map_or(Some(true), |text| self.matches(given.as_str()?, text)),
            "uniqueItems" => items.map_or(Some(true), |items| are_unique(given, items)),
            "items" => self.all(given, items.into_iter().flatten()),
            "required" => {
                let mut names = given.as_array()?.iter();
                names.try_fold(true, |all, name| {
                    let name = name.as_str()?;
                    Some(all & members.is_none_or(|members| members.contains_key(name)))
                })
            }
            "properties" => self.properties(given.as_object()?, members),
            "patternProperties" => self.matching_properties(given.as_object()?, members),
            "additionalProperties" => self.other_properties(schema, given, members),
            "propertyNames" => {
                let names: Vec<Value> = members
                    .into_iter()
                    .flat_map(Map::keys)
                    .cloned()
                    .map(Value::String)
                    .collect();
                self.all(given, &names)
            }
            "if" => {
                let branch = if self.holds(given, value)? {
                    "then"
                } else {
                    "else"
                };
                let branch = schema.get(branch);
                branch.map_or(Some(true), |branch| self.holds(branch, value))
            }
            "not" => Some(!self.holds(given, value)?),
            "allOf" => {
                let mut parts = given.as_array()?.iter();
                parts.try_fold(true, |all, part| Some(all & self.holds(part, value)?))
            }
            "anyOf" => any(given.as_array()?.iter().map(|part| self.holds(part, value))),
            _ => None,
        }
    }

    /// The schema that a reference points to.
    fn referred(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root
            .pointer(pointer)
            .filter(|_| !pointer.contains('%'))
    }

    fn properties(
        &mut self,
        known: &'a Map<String, Value>,
        members: Option<&Map<String, Value>>,
    ) -> Option<bool> {
        let mut members = members.into_iter().flatten();
        members.try_fold(true, |all, (name, value)| match known.get(name) {
            Some(schema) => Some(all & self.holds(schema, value)?),
            None => Some(all),
        })
    }

    fn matching_properties(
        &mut self,
        known: &'a Map<String, Value>,
        members: Option<&Map<String, Value>>,
    ) -> Option<bool> {
        let mut all = true;
        for (name, value) in members.into_iter().flatten() {
            for (pattern, schema) in known {
                if self.matches(pattern, name)? {
                    all &= self.holds(schema, value)?;
                }
            }
        }
        Some(all)
    }

    fn other_properties(
        &mut self,
        schema: &'a Map<String, Value>,
        given: &'a Value,
        members: Option<&Map<String, Value>>,
    ) -> Option<bool> {
        let known = |keyword| schema.get(keyword).and_then(Value::as_object);
        let (named, matched) = (known("properties"), known("patternProperties"));
        let mut all = true;
        for (name, value) in members.into_iter().flatten() {
            let mut is_known = named.is_some_and(|named| named.contains_key(name));
            for pattern in matched.into_iter().flat_map(Map::keys) {
                is_known |= self.matches(pattern, name)?;
            }
            if !is_known {
                all &= self.holds(given, value)?;
            }
        }
        Some(all)
    }

    fn matches(&mut self, pattern: &'a str, text: &str) -> Option<bool> {
        if let Some(answer) = is_not_blank(pattern, text) {
            return Some(answer);
        }
        if text.len() > MAX_TEXT {
            return None;
        }
        let compiled = self.patterns.entry(pattern).or_insert_with(|| {
            let known = is_plain(pattern).then(|| Regex::new(pattern).ok());
            known.flatten()
        });
        compiled.as_ref().map(|regex| regex.is_match(text))
    }
}

/// Whether any answer is yes; unknown if none is yes and one is unknown.
fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut unknown = false;
    for answer in answers {
        match answer {
            Some(true) => return Some(true),
            Some(false) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(false)
}

/// Undecided for a number with a fraction: some accept 1.0 as an integer.
fn is_of_type(name: &Value, value: &Value) -> Option<bool> {
    Some(match name.as_str()? {
        "string" => value.is_string(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" if value.is_f64() => return None,
        "integer" => value.is_number(),
        _ => return None,
    })
}

fn is_equal(one: &Value, other: &Value) -> Option<bool> {
    let is_known = |value: &Value| !(value.is_f64() || value.is_array() || value.is_object());
    (is_known(one) && is_known(other)).then(|| one == other)
}

/// Whether all texts of a list are distinct; unknown for other items.
fn are_unique(given: &Value, items: &[Value]) -> Option<bool> {
    let mut texts: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
    texts.sort_unstable();
    Some(!given.as_bool()? || texts.windows(2).all(|pair| pair[0] != pair[1]))
}

/// Whether two numbers are in ascending order, for a `value` that is a number; otherwise true.
fn in_order(value: &Value, one: &Value, other: &Value) -> Option<bool> {
    if !value.is_number() {
        return Some(true);
    }
    Some(exact(one)? <= exact(other)?)
}

/// A number as floating point, if that is exact.
fn exact(number: &Value) -> Option<f64> {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    let is_exact = number.is_f64() || number.as_i64().is_some_and(|n| n.unsigned_abs() <= EXACT);
    number.as_f64().filter(|_| is_exact)
}

fn at_least(count: Option<usize>, given: &Value) -> Option<bool> {
    let given = given.as_u64()?;
    Some(count.is_none_or(|count| count as u64 >= given))
}

fn at_most(count: Option<usize>, given: &Value) -> Option<bool> {
    let given = given.as_u64()?;
    Some(count.is_none_or(|count| count as u64 <= given))
}

/// Whether a pattern uses only syntax that means the same in every engine: ASCII characters, sets,
/// groups, alternatives, repetitions and anchors.
fn is_plain(pattern: &str) -> bool {
    let mut characters = pattern.chars().peekable();
    let mut in_set = false;
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let is_known = match character {
            '\\' => match characters.next() {
                // A Unicode escape of four digits.
                Some('u') => {
                    (0..4).all(|_| characters.next().is_some_and(|c| c.is_ascii_hexdigit()))
                }
                Some(c) => r"\/.-[](){}*+?^$|tnr".contains(c),
                None => false,
            },
            '[' if in_set => false,
            '[' => {
                in_set = true;
                characters.next_if_eq(&'^');
                // At the start of a set, these characters have a special meaning.
                !matches!(characters.peek(), Some(']' | '-' | '^') | None)
            }
            ']' => std::mem::replace(&mut in_set, false),
            '-' | '&' | '~' if in_set => next != Some(character),
            '.' => in_set,
            '(' => next != Some('?'),
            other => other == ' ' || other.is_ascii_graphic(),
        };
        if !is_known {
            return false;
        }
    }
    !in_set
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::{is_plain, is_plainly_valid};
    use crate::Schema;

    #[test]
    fn patterns_that_engines_read_differently_are_not_plain() {
        for pattern in [
            "^[A-Za-z0-9][A-Za-z0-9_.\\-]{0,63}$",
            "^https?://[^ \\t\\n\\r<>\"]+$",
            "^([0-9]{1,9}|\\[count\\])$",
            "[^/\\u0000-\\u001f]",
        ] {
            assert!(is_plain(pattern), "{pattern}");
        }
        for pattern in [
            "\\d", "\\w+", "\\bx", "\\u{41}", "\\u41", "\\p{L}", "a.b", "(?i)a", "(?=a)", "[[a]",
            "[]a]", "[^]a]", "[a&&b]", "[a--b]", "[-a]", "é", "\t", "[a", "]", "\\",
        ] {
            assert!(!is_plain(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_is_plainly_valid_is_valid() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(-1),
            json!(1.0),
            json!(1.5),
            json!(u64::MAX),
            json!(""),
            json!("a"),
            json!("é"),
            json!("ab c"),
            json!([]),
            json!(["a", "a"]),
            json!([1, [2]]),
            json!({}),
            json!({"a": 1}),
            json!({"a": "a", "b": {"a": []}}),
            json!({"x-1": 1, "b": null}),
        ];
        let mut plain = 0;
        for schema in &schemas() {
            for value in &values {
                // A contract is an object, so the generated value is wrapped in one.
                let (outer, inner) = (
                    json!({"type": "object", "properties": {"v": schema}}),
                    json!({"v": value}),
                );
                let outer = with_definitions(outer, schema);
                let is_valid = Schema::compile(&outer).unwrap().accepts(&inner);
                if is_plainly_valid(&outer, &inner) {
                    plain += 1;
                    assert!(is_valid, "{schema} {value}");
                }
            }
        }
        assert!(plain > 300, "{plain}");
    }

    fn schemas() -> Vec<Value> {
        vec![
            json!(true),
            json!(false),
            json!({}),
            json!({"type": "integer"}),
            json!({"type": "number"}),
            json!({"type": ["string", "null"]}),
            json!({"const": 1}),
            json!({"const": 1.0}),
            json!({"enum": ["a", 1, null]}),
            json!({"enum": [[], {"a": 1}]}),
            json!({"minimum": 1}),
            json!({"maximum": 0}),
            json!({"minimum": 0.5}),
            json!({"exclusiveMinimum": 0}),
            json!({"minLength": 1, "maxLength": 1}),
            json!({"minItems": 1}),
            json!({"maxItems": 1}),
            json!({"uniqueItems": true}),
            json!({"minProperties": 1}),
            json!({"maxProperties": 1}),
            json!({"pattern": "^a"}),
            json!({"pattern": "[^ \\t\\n\\r]"}),
            json!({"pattern": "^\\w$"}),
            json!({"format": "date-time"}),
            json!({"items": {"type": "string"}}),
            json!({"prefixItems": [{"type": "string"}]}),
            json!({"contains": {"const": "a"}}),
            json!({"required": ["a"]}),
            json!({"properties": {"a": {"type": "integer"}}}),
            json!({"properties": {"a": true}, "additionalProperties": false}),
            json!({"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": {"type": "null"}}),
            json!({"propertyNames": {"pattern": "^[ab]$"}}),
            json!({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "object"}}),
            json!({"then": false}),
            json!({"not": {"type": "string"}}),
            json!({"allOf": [{"type": "object"}, {"required": ["a"]}]}),
            json!({"anyOf": [{"type": "string"}, {"minimum": 1}]}),
            json!({"oneOf": [{"type": "string"}, {"minLength": 1}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
            json!({"$ref": "#/$defs/a", "maxLength": 0, "$defs": {"a": {"type": "string"}}}),
            json!({"$defs": {"a": {"type": "object", "additionalProperties": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}),
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"unevaluatedProperties": false}),
        ]
    }

    /// Adds the schema's definitions at the root, where its references point.
    fn with_definitions(mut outer: Value, schema: &Value) -> Value {
        if let Some(definitions) = schema.get("$defs") {
            outer["$defs"] = definitions.clone();
        }
        outer
    }
}
