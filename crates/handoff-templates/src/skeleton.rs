//! Skeletons: contract templates with known values filled in, and placeholders for the rest.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::ids::IssueKey;
use handoff_base::pointer::{escaped_part, parts};
use handoff_contract::{BY_SEND, FILL, decides};
use handoff_model::Filled;
use serde_json::Value;

/// The known values for templates.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Values by placeholder name: `{{branch}}`.
    named: BTreeMap<String, Value>,
    /// Answers by question key, for fields of that name that only the sender can fill in.
    answered: BTreeMap<String, Value>,
    /// The names that `send` fills in, even if a value is known.
    by_send: BTreeSet<String>,
    /// The base branch; without it, the repository reveals nothing about the work.
    pub base: Option<String>,
    /// The other issues that the current branch belongs to, so that it was not filled in.
    pub others: Vec<IssueKey>,
    /// The commit under review, for a review by this sender.
    pub reviewed: Option<String>,
}

impl Known {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.named.get(name)
    }

    /// Sets the value of a name; returns the previous one.
    pub fn insert(&mut self, name: String, value: Value) -> Option<Value> {
        self.named.insert(name, value)
    }

    /// Sets a value that is not known yet.
    pub fn insert_new(&mut self, name: Filled, value: Value) {
        self.insert_fact(name.as_str(), value);
    }

    /// Sets the value of a fact that is not known yet.
    pub fn insert_fact(&mut self, name: &str, value: Value) {
        self.named.entry(name.to_owned()).or_insert(value);
    }

    /// Sets the answer to a question that has none.
    pub fn insert_answer(&mut self, key: &str, value: Value) {
        self.answered.entry(key.to_owned()).or_insert(value);
    }

    /// Removes the value of a name.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.named.remove(name)
    }

    /// Leaves a name to `send`.
    pub fn leave_to_send(&mut self, name: &str) {
        self.by_send.insert(name.to_owned());
    }

    /// Maps every value.
    #[must_use]
    pub fn map(self, mut change: impl FnMut(Value) -> Value) -> Self {
        let mut all = |values: BTreeMap<String, Value>| -> BTreeMap<String, Value> {
            let changed = values.into_iter();
            changed.map(|(name, v)| (name, change(v))).collect()
        };
        Self {
            named: all(self.named),
            answered: all(self.answered),
            by_send: self.by_send,
            base: self.base,
            others: self.others,
            reviewed: self.reviewed,
        }
    }
}

impl<const N: usize> From<[(String, Value); N]> for Known {
    fn from(values: [(String, Value); N]) -> Self {
        Self {
            named: BTreeMap::from(values),
            ..Self::default()
        }
    }
}

impl Extend<(String, Value)> for Known {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, values: I) {
        self.named.extend(values);
    }
}

/// Fills a template of contracts that have to fit a schema.
///
/// `"{{name: description}}"` is replaced by the known value, of any type; without one that the schema
/// takes or an option gave, the sender's placeholder with the description stays. A list whose first element is such a
/// placeholder is replaced by the known list; without one, its other elements stay. A field that is
/// left to the sender takes the answer to the question of its name, but not within list elements,
/// where names may repeat. Names left to `send` get a placeholder for it.
pub fn fill(template: &Value, known: &Known, schema: &Value) -> Value {
    fill_part(template, known, &Part::whole(schema), true)
}

/// Fills a part of a template; its fields take answers if they are `outside` list elements.
fn fill_part(template: &Value, known: &Known, part: &Part<'_>, outside: bool) -> Value {
    match template {
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, field)| {
                let part = part.member(name);
                let answer = known.answered.get(name);
                let answer = answer.filter(|answer| outside && is_open(field, answer));
                let value = answer.and_then(|answer| part.taken(answer));
                let value = value.unwrap_or_else(|| fill_part(field, known, &part, outside));
                (name.clone(), value)
            });
            Value::Object(filled.collect())
        }
        Value::String(text) => {
            let Some((name, description)) = slot(text) else {
                return template.clone();
            };
            if known.by_send.contains(name) {
                return by_send(description);
            }
            let value = known.get(name);
            let taken = value.and_then(|value| part.taken(value));
            let value = taken.or_else(|| value.filter(|_| OF_OPTIONS.contains(&name)).cloned());
            value.unwrap_or_else(|| format!("{FILL}: {description}}}}}").into())
        }
        Value::Array(items) => {
            let list = items.first().and_then(Value::as_str).and_then(slot);
            let own = match list {
                Some((name, description)) if known.by_send.contains(name) => {
                    return by_send(description);
                }
                Some((name, _)) => match known.get(name).and_then(|value| part.taken(value)) {
                    Some(value) => return value,
                    None => &items[1..],
                },
                None => items,
            };
            let entry = part.entry();
            let entries = own.iter();
            entries
                .map(|item| fill_part(item, known, &entry, false))
                .collect()
        }
        other => other.clone(),
    }
}

/// The values that options give: what a schema refuses of them, the sender gives there.
const OF_OPTIONS: [&str; 4] = ["issue", "key", "from", "to"];

/// The most subschemas that are looked at for one value.
const MOST_PARTS: usize = 64;

/// A place of a contract, with the subschemas that hold there in every case.
pub(super) struct Part<'s> {
    root: &'s Value,
    schemas: Vec<&'s Value>,
    /// Whether no contract has this place.
    is_closed: bool,
}

impl<'s> Part<'s> {
    fn whole(root: &'s Value) -> Self {
        Self::of(root, vec![root], false)
    }

    /// The place at a pointer through objects.
    pub(super) fn at(root: &'s Value, pointer: &str) -> Self {
        parts(pointer).fold(Self::whole(root), |part, name| part.member(&name))
    }

    /// Adds the schemas that these refer to, and those in `allOf`.
    fn of(root: &'s Value, mut left: Vec<&'s Value>, is_closed: bool) -> Self {
        let mut schemas: Vec<&Value> = Vec::new();
        while let Some(schema) = left.pop().filter(|_| schemas.len() < MOST_PARTS) {
            if schema.is_object() && !schemas.iter().any(|known| std::ptr::eq(*known, schema)) {
                schemas.push(schema);
                let reference = schema["$ref"].as_str().and_then(|at| at.strip_prefix('#'));
                left.extend(reference.and_then(|at| root.pointer(at)));
                left.extend(schema["allOf"].as_array().into_iter().flatten());
            }
        }
        Self {
            root,
            schemas,
            is_closed,
        }
    }

    fn member(&self, name: &str) -> Self {
        let closed = |schema: &&Value| {
            schema["additionalProperties"] == false
                && schema["patternProperties"].is_null()
                && schema["properties"].get(name).is_none()
        };
        let is_closed = self.is_closed || self.schemas.iter().any(closed);
        let own = self.schemas.iter().copied();
        let own = own.filter_map(|schema| schema["properties"].get(name));
        Self::of(self.root, own.collect(), is_closed)
    }

    fn entry(&self) -> Self {
        let items = self
            .schemas
            .iter()
            .filter(|schema| schema["prefixItems"].is_null());
        let items = items.filter_map(|schema| schema.get("items"));
        Self::of(self.root, items.collect(), self.is_closed)
    }

    /// A value, or the same as text or as what a text says, if the schemas take it. One with
    /// placeholders is not known yet.
    pub(super) fn taken(&self, value: &Value) -> Option<Value> {
        let takes = |value: &Value| {
            let mut schemas = self.schemas.iter();
            !self.is_closed && schemas.all(|schema| self.accepts(schema, value))
        };
        let otherwise = match value {
            Value::String(text) => serde_json::from_str(text).ok(),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string().into()),
            _ => None,
        };
        let is_taken = takes(value) || !left_to_fill(value).is_empty();
        let value = is_taken.then(|| value.clone());
        value.or_else(|| otherwise.filter(|value| takes(value)))
    }

    /// Whether a value is valid by a subschema; if that can't be decided, it is.
    fn accepts(&self, schema: &Value, value: &Value) -> bool {
        let definitions = self.root.get("$defs").filter(|_| refers(schema));
        let decided = match definitions {
            Some(definitions) => {
                let mut alone = schema.clone();
                alone["$defs"] = definitions.clone();
                decides(&alone, value)
            }
            None => decides(schema, value),
        };
        decided.unwrap_or(true)
    }
}

/// Whether a schema refers to another one.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(parts) => parts.contains_key("$ref") || parts.values().any(refers),
        Value::Array(parts) => parts.iter().any(refers),
        _ => false,
    }
}

/// Whether the schema of a contract takes a value at a pointer, or the same as text.
pub fn takes(schema: &Value, at: &str, value: &Value) -> bool {
    Part::at(schema, at).taken(value).is_some()
}

/// The sender's placeholders in a skeleton: each one's JSON Pointer and description.
pub fn left_to_fill(value: &Value) -> Vec<(String, String)> {
    fn walk(at: String, value: &Value, found: &mut Vec<(String, String)>) {
        match value {
            Value::String(text) => {
                if let Some((_, description)) = text.split_once(FILL)
                    && !text.starts_with(BY_SEND)
                {
                    let description = description.split("}}").next().unwrap_or_default();
                    found.push((at, description.trim_start_matches([':', ' ']).to_owned()));
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    walk(format!("{at}/{i}"), item, found);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    walk(format!("{at}/{}", escaped_part(name)), member, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(String::new(), value, &mut found);
    found
}

/// The placeholder for a value that `send` fills in.
fn by_send(description: &str) -> Value {
    format!("{BY_SEND}: {description}}}}}").into()
}

/// Whether a field is left to its sender, and could hold this answer.
fn is_open(field: &Value, answer: &Value) -> bool {
    let is_mark = |value: &Value| value.as_str().is_some_and(|text| text.starts_with(FILL));
    match field {
        Value::Array(items) => answer.is_array() && items.iter().all(is_mark),
        field => is_mark(field),
    }
}

/// The name and description of a placeholder such as `{{branch: code branch}}`.
fn slot(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("{{")?.strip_suffix("}}")?;
    if text.starts_with(FILL) {
        return None;
    }
    inside.split_once(": ")
}

#[cfg(test)]
mod tests {
    use super::{Known, fill};
    use serde_json::{Value, json};

    #[test]
    fn known_values_keep_their_type_and_the_rest_is_marked() {
        let known = Known::from([
            ("issue".to_owned(), json!(7)),
            ("commits".to_owned(), json!([])),
        ]);
        let template = json!({"n": "{{issue: its number}}", "p": "{{pr_url: its address}}", "s": ["{{fill: why}}", "x"],
            "c": ["{{commits: all}}", 1], "d": ["{{others: all}}", "{{fill: one}}"]});
        let filled = json!({"n": 7, "p": "{{fill: its address}}", "s": ["{{fill: why}}", "x"],
            "c": [], "d": ["{{fill: one}}"]});
        assert_eq!(fill(&template, &known, &Value::Null), filled);
    }

    #[test]
    fn what_the_schema_refuses_is_left_to_the_sender() {
        let known = Known::from([
            ("branch".to_owned(), json!("issue-7")),
            ("issue".to_owned(), json!(7)),
            ("commits".to_owned(), json!(["a"])),
        ]);
        let template = json!({"branch": "{{branch: its branch}}", "topic": "{{branch: its branch}}",
            "gone": "{{branch: its branch}}", "n": "{{issue: its number}}", "text": "{{issue: its number}}",
            "list": ["{{commits: all}}", "{{fill: one}}"], "ids": ["{{commits: all}}"]});
        let schema = json!({"additionalProperties": false, "allOf": [{"properties": {"text": {"type": "string"}}}],
            "properties": {"branch": {"$ref": "#/$defs/topic"}, "topic": {"type": "string"}, "n": {"type": "integer"}, "text": {},
                "list": {"items": {"maxLength": 0}}, "ids": {"items": {"type": "string"}}},
            "$defs": {"topic": {"pattern": "^topic/"}}});
        let filled = json!({"branch": "{{fill: its branch}}", "topic": "issue-7", "gone": "{{fill: its branch}}",
            "n": 7, "text": "7", "list": ["{{fill: one}}"], "ids": ["a"]});
        assert_eq!(fill(&template, &known, &schema), filled);
    }

    #[test]
    fn what_send_fills_in_is_one_open_place() {
        let mut known = Known::from([("issue".to_owned(), json!(7)), ("n".to_owned(), json!(0))]);
        known.leave_to_send("n");
        known.leave_to_send("commits");
        let template = json!({"i": "{{issue: its number}}", "n": "{{n: how many}}",
            "commits": ["{{commits: all}}", { "sha": "{{fill: id}}" }]});
        let filled =
            json!({"i": 7, "n": "{{fill by send: how many}}", "commits": "{{fill by send: all}}"});
        assert_eq!(fill(&template, &known, &Value::Null), filled);
    }

    #[test]
    fn answers_fill_the_placeholders_of_their_names() {
        let mut known = Known::default();
        for (key, value) in [
            ("port", json!(8080)),
            ("hosts", json!(["a", "b"])),
            ("where", json!("here")),
            ("kind", json!("web")),
        ] {
            known.insert_answer(key, value);
        }
        known.insert_answer("port", json!(1));
        let template = json!({"port": "{{fill: its port}}", "in": {"hosts": ["{{fill: a host}}"]},
            "found": [{"where": "{{fill: path}}"}], "kind": "{{kind: its kind}}", "hosts": "as it is"});
        let filled = json!({"port": 8080, "in": {"hosts": ["a", "b"]},
            "found": [{"where": "{{fill: path}}"}], "kind": "{{fill: its kind}}", "hosts": "as it is"});
        assert_eq!(fill(&template, &known, &Value::Null), filled);
    }
}
