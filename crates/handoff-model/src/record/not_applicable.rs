//! Places of a contract that do not apply, with the reason: `n/a: a library has no server`.

use handoff_base::pointer::push_part;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The prefix of a text that gives the reason.
const MARK: &str = "n/a: ";

/// A place that does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotApplicable {
    /// The place in the contract, as a JSON Pointer.
    pub path: String,
    /// Why it does not apply.
    pub reason: String,
}

/// The reason in a value such as `n/a: no code was changed`.
pub fn reason(value: &Value) -> Option<&str> {
    let reason = value.as_str()?.strip_prefix(MARK)?.trim();
    (!reason.is_empty()).then_some(reason)
}

/// Every place of a contract that does not apply.
pub fn not_applicable(contract: &Value) -> Vec<NotApplicable> {
    let mut found = Vec::new();
    collect(contract, &mut String::new(), &mut found);
    found
}

fn collect(value: &Value, path: &mut String, found: &mut Vec<NotApplicable>) {
    let mut inside = |key: &str, value: &Value| {
        let before = path.len();
        push_part(path, key);
        collect(value, path, found);
        path.truncate(before);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| inside(key, value)),
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                inside(&at.to_string(), value);
            }
        }
        value => found.extend(reason(value).map(|reason| NotApplicable {
            path: path.clone(),
            reason: reason.to_owned(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::{NotApplicable, not_applicable};
    use serde_json::json;

    #[test]
    fn only_a_reason_makes_a_place_one_that_does_not_apply() {
        let contract = json!({"port": "n/a: a library", "a/b": [1, {"c~": "n/a:  two words "}],
            "no": ["n/a", "n/a:", "n/a: ", "N/A: x", "it is n/a: x", "n/a:x", null, true]});
        let place = |path: &str, reason: &str| NotApplicable {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let found = [
            place("/port", "a library"),
            place("/a~1b/1/c~0", "two words"),
        ];
        assert_eq!(not_applicable(&contract), found);
    }
}
