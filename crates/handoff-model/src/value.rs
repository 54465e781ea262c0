//! Values of contracts.

use handoff_base::digest;
use serde_json::Value;

/// A scalar as text; `None` for other values.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether a flag is true; in XML, it is a text.
pub(crate) fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true) || value.as_str() == Some("true")
}

/// The SHA-256 of a value as canonical JSON (sorted keys, no blanks), in hexadecimal: the same for
/// every document with this content, whatever its format.
pub fn content_digest(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    digest(sorted.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::content_digest;

    #[test]
    fn a_digest_does_not_depend_on_the_order_of_keys() {
        let one = json!({"b": [{"d": 1, "c": "é"}], "a": 2.5});
        let other = json!({"a": 2.5, "b": [{"c": "é", "d": 1}]});
        assert_eq!(content_digest(&one), content_digest(&other));
        // The same as `jq -cSj . FILE | sha256sum`.
        assert_eq!(
            content_digest(&json!({"b": 1, "a": "x"})),
            handoff_base::digest(br#"{"a":"x","b":1}"#)
        );
        assert_ne!(content_digest(&one), content_digest(&json!({"a": 2.5})));
    }
}
