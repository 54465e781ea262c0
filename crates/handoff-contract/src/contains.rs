//! Describes what a schema's `contains` requires of a list, which the validator's errors do not
//! say.

use std::collections::HashMap;

use handoff_base::pointer::push_part;
use serde_json::Value;

use super::text;
use super::value::scalar_text;

/// For each `contains` keyword, by its pointer in the schema: the items it requires, in words, if
/// they can be put into words.
pub(super) type Contains = HashMap<String, String>;

/// Collects the descriptions. The schema's shape was compiled before, which limits the depth of
/// this recursion.
pub(super) fn wanted(schema: &Value) -> Contains {
    let mut found = Contains::new();
    walk(schema, &mut String::new(), &mut found);
    found
}

fn walk(schema: &Value, at: &mut String, found: &mut Contains) {
    let mut into = |part: &str, value: &Value| {
        if !value.is_object() && !value.is_array() {
            return;
        }
        let length = at.len();
        push_part(at, part);
        if let Some(words) = words(value).filter(|_| part == "contains") {
            found.insert(at.clone(), words);
        }
        walk(value, at, found);
        at.truncate(length);
    };
    match schema {
        Value::Object(members) => members.iter().for_each(|(key, value)| into(key, value)),
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                into(&index.to_string(), value);
            }
        }
        _ => {}
    }
}

/// Describes the required item, if its schema is a single condition that can be put into words.
fn words(item: &Value) -> Option<String> {
    let mut asked = item.as_object()?.iter().filter(|(key, _)| {
        let key = key.as_str();
        key != "type" && key != "description"
    });
    let (keyword, value) = asked.next().filter(|_| asked.next().is_none())?;
    let shown = text::short(&scalar_text(value));
    match keyword.as_str() {
        "minimum" => Some(format!("at least {shown}")),
        "maximum" => Some(format!("at most {shown}")),
        "exclusiveMinimum" => Some(format!("more than {shown}")),
        "exclusiveMaximum" => Some(format!("less than {shown}")),
        "const" if !value.is_object() && !value.is_array() => Some(format!("`{shown}`")),
        _ => None,
    }
}
