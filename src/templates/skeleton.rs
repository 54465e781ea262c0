//! Skeletons: a contract type's template with everything filled in that is
//! known, and a mark where only the agent can know.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::contract::FILL;

/// What is known, by the name that templates use: `{{branch}}`.
pub type Known = BTreeMap<String, Value>;

/// Fills a template. A text that is one name in double braces becomes the known
/// value, of whatever type; an unknown one becomes a mark, and marks stay.
pub fn fill(template: &Value, known: &Known) -> Value {
    match template {
        Value::String(text) => {
            let name = text
                .strip_prefix("{{")
                .and_then(|rest| rest.strip_suffix("}}"));
            match name {
                Some(name) if !text.starts_with(FILL) => known
                    .get(name)
                    .cloned()
                    .unwrap_or_else(|| format!("{FILL}: {}}}}}", name.replace('_', " ")).into()),
                _ => template.clone(),
            }
        }
        Value::Array(items) => items.iter().map(|item| fill(item, known)).collect(),
        Value::Object(fields) => {
            let filled = fields
                .iter()
                .map(|(name, field)| (name.clone(), fill(field, known)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, fill};
    use serde_json::json;

    #[test]
    fn known_values_keep_their_type_and_the_rest_is_marked() {
        let known = Known::from([
            ("issue".to_owned(), json!(7)),
            ("commits".to_owned(), json!([])),
        ]);
        let template = json!({"n": "{{issue}}", "c": "{{commits}}", "p": "{{pr_url}}", "s": ["{{fill: why}}", "x"]});
        let filled = json!({"n": 7, "c": [], "p": "{{fill: pr url}}", "s": ["{{fill: why}}", "x"]});
        assert_eq!(fill(&template, &known), filled);
    }
}
