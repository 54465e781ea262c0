//! Skeletons: contract templates with known values filled in, and placeholders for the rest.

use std::collections::BTreeMap;

use handoff_contract::FILL;
use serde_json::Value;

/// Known values by their names in templates: `{{branch}}`.
pub type Known = BTreeMap<String, Value>;

/// Fills a template.
///
/// `"{{name: description}}"` becomes the known value of that name, of any type, or a placeholder
/// with the description. A list that begins with such a text becomes the known list, or keeps its
/// other elements. Placeholders stay.
pub fn fill(template: &Value, known: &Known) -> Value {
    match template {
        Value::String(text) => {
            let Some((name, description)) = slot(text) else {
                return template.clone();
            };
            let mark = || format!("{FILL}: {description}}}}}").into();
            known.get(name).cloned().unwrap_or_else(mark)
        }
        Value::Array(items) => match items.first().and_then(Value::as_str).and_then(slot) {
            Some((name, _)) if known.contains_key(name) => known[name].clone(),
            Some(_) => items[1..].iter().map(|item| fill(item, known)).collect(),
            None => items.iter().map(|item| fill(item, known)).collect(),
        },
        Value::Object(fields) => {
            let filled = fields
                .iter()
                .map(|(name, field)| (name.clone(), fill(field, known)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

/// The name and description in a text such as `{{branch: code branch}}`.
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
    use serde_json::json;

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
        assert_eq!(fill(&template, &known), filled);
    }
}
