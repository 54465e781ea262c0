//! Checks that every keyword of a schema has what it takes.

use handoff_base::pointer::push_part;
use serde_json::{Map, Value};

use super::keyword::Form;
use super::number::{are_unique, is_integer};
use super::pattern::{Patterns, Unusable};
use super::schema_error::SchemaError;
use super::{MAX_FINDINGS, format};

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// The places at which a schema is not valid, up to [`MAX_FINDINGS`]; with `patterns`, those of
/// patterns and formats that can't be used, too.
pub(super) fn faults(schema: &Value, patterns: Option<&Patterns>) -> Vec<SchemaError> {
    Check::of(schema, patterns).faults
}

/// The places of lists of values without a value: a valid schema, by which nothing is.
pub(super) fn without_value(schema: &Value) -> Vec<String> {
    Check::of(schema, None).without_value
}

struct Check<'c> {
    patterns: Option<&'c Patterns>,
    path: String,
    faults: Vec<SchemaError>,
    without_value: Vec<String>,
}

/// Recursion is bounded by the depth of JSON.
impl<'c> Check<'c> {
    fn of(schema: &Value, patterns: Option<&'c Patterns>) -> Self {
        let mut check = Self {
            patterns,
            path: String::new(),
            faults: Vec::new(),
            without_value: Vec::new(),
        };
        check.schema(schema);
        check
    }

    fn add(&mut self, message: impl Into<String>) {
        self.push(SchemaError::Invalid {
            path: self.path.clone(),
            message: message.into(),
        });
    }

    fn push(&mut self, fault: SchemaError) {
        if self.faults.len() < MAX_FINDINGS {
            self.faults.push(fault);
        }
    }

    fn expect(&mut self, holds: bool, kind: &str) -> bool {
        if !holds {
            self.add(format!("value is not of type \"{kind}\""));
        }
        holds
    }

    fn inside(&mut self, part: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        push_part(&mut self.path, part);
        check(self);
        self.path.truncate(length);
    }

    fn schema(&mut self, schema: &Value) {
        match schema {
            Value::Bool(_) => {}
            Value::Object(members) => {
                for (keyword, given) in members {
                    self.inside(keyword, |check| check.keyword(keyword, given));
                }
            }
            _ => self.add("value is not of types \"boolean\", \"object\""),
        }
    }

    fn keyword(&mut self, keyword: &str, given: &Value) {
        let form = Form::of(keyword);
        match form {
            Form::Any => {}
            Form::Map => {
                self.expect(given.is_object(), "object");
            }
            Form::Schema => self.schema(given),
            Form::Schemas => {
                for (index, schema) in self.list(given).iter().enumerate() {
                    self.inside(&index.to_string(), |check| check.schema(schema));
                }
                if given.as_array().is_some_and(Vec::is_empty) {
                    self.add("value has less than 1 item");
                }
            }
            Form::SchemaMap => {
                for (name, schema) in self.map(given) {
                    self.inside(name, |check| check.schema(schema));
                    if keyword == "patternProperties" {
                        self.pattern(name);
                    }
                }
            }
            Form::Count => {
                let integer = given.as_number().is_some_and(is_integer);
                if self.expect(integer, "integer") && given.as_f64() < Some(0.0) {
                    self.add("value is less than the minimum of 0");
                }
            }
            Form::Number => {
                self.expect(given.is_number(), "number");
            }
            Form::Positive => {
                if self.expect(given.is_number(), "number") && given.as_f64() <= Some(0.0) {
                    self.add("value is less than or equal to the minimum of 0");
                }
            }
            Form::Boolean => {
                self.expect(given.is_boolean(), "boolean");
            }
            Form::List => {
                self.list(given);
                if keyword == "enum" && given == &Value::Array(Vec::new()) {
                    self.without_value.push(self.path.clone());
                }
            }
            Form::Text | Form::Format | Form::Pattern => {
                self.expect(given.is_string(), "string");
                let text = given.as_str().unwrap_or_default();
                let is_unknown = form == Form::Format && !format::is_known(text);
                if is_unknown && given.is_string() && self.patterns.is_some() {
                    self.add("value is not a known format");
                } else if form == Form::Pattern {
                    self.pattern(text);
                }
            }
            Form::Texts => self.texts(given),
            Form::TextsMap => {
                for (name, texts) in self.map(given) {
                    self.inside(name, |check| check.texts(texts));
                }
            }
            Form::Type => {
                let is_type =
                    |given: &Value| given.as_str().is_some_and(|name| TYPES.contains(&name));
                let types = given.as_array().filter(|types| !types.is_empty());
                let are_types =
                    types.is_some_and(|types| types.iter().all(is_type) && are_unique(types));
                if !is_type(given) && !are_types {
                    self.add("value is neither a type nor a list of types");
                }
            }
        }
    }

    fn list<'g>(&mut self, given: &'g Value) -> &'g [Value] {
        self.expect(given.is_array(), "array");
        given.as_array().map_or(&[], Vec::as_slice)
    }

    fn map<'g>(
        &mut self,
        given: &'g Value,
    ) -> impl Iterator<Item = (&'g String, &'g Value)> + use<'g> {
        self.expect(given.is_object(), "object");
        given.as_object().into_iter().flat_map(Map::iter)
    }

    fn texts(&mut self, given: &Value) {
        let texts = self.list(given);
        for (index, text) in texts.iter().enumerate() {
            self.inside(&index.to_string(), |check| {
                check.expect(text.is_string(), "string");
            });
        }
        if !are_unique(texts) {
            self.add("value has non-unique elements");
        }
    }

    fn pattern(&mut self, pattern: &str) {
        match self.patterns.and_then(|all| all.unusable(pattern)) {
            None => {}
            Some(Unusable::Malformed) => self.add("value is not a \"regex\""),
            Some(Unusable::Unbounded) => self.push(SchemaError::Pattern {
                path: self.path.clone(),
            }),
        }
    }
}
