//! JSON values as plain text, and a visitor of their strings.

use handoff_base::pointer::push_part;
use serde_json::Value;

/// A scalar as XML would contain it; other values as JSON.
pub(super) fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Visits every text and every key of a value, with its JSON Pointer and the nearest key.
pub(super) fn each_text(
    value: &Value,
    pointer: &mut String,
    key: &str,
    visit: &mut impl FnMut(&str, &str, &str),
) {
    let length = pointer.len();
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                push_part(pointer, key);
                if !value.is_string() {
                    visit(pointer, "", key);
                }
                each_text(value, pointer, key, visit);
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                push_part(pointer, &index.to_string());
                each_text(item, pointer, key, visit);
                pointer.truncate(length);
            }
        }
        Value::String(text) => visit(pointer, key, text),
        Value::Number(_) | Value::Null | Value::Bool(_) => {}
    }
}
