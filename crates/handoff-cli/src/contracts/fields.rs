//! The fields of a contract, from its schema.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The maximum depth to which fields are listed.
const DEEP: usize = 8;

/// A field of a contract.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ContractField")]
pub struct Field {
    /// Its JSON Pointer, with `*` for any entry of a list.
    pub path: String,
    /// Whether it is required wherever its parent is present.
    pub required: bool,
    /// Its content: a JSON type, or the allowed words.
    pub holds: String,
    /// Its description.
    pub about: String,
}

impl Field {
    /// Whether it holds a list.
    pub fn is_list(&self) -> bool {
        self.holds.split(" | ").any(|kind| kind == "array")
    }
}

/// Every field that a schema names, in its order.
pub fn fields(schema: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    walk(schema, schema, "", DEEP, &mut found);
    found
}

fn walk(root: &Value, schema: &Value, path: &str, deep: usize, found: &mut Vec<Field>) {
    let schema = resolved(root, schema);
    if deep == 0 {
        return;
    }
    if let Some(items) = schema.get("items") {
        walk(root, items, &format!("{path}/*"), deep - 1, found);
    }
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    for (name, field) in properties {
        let required = schema["required"].as_array();
        let path = format!("{path}/{name}");
        let own = resolved(root, field);
        let text = |schema: &Value| schema["description"].as_str().map(str::to_owned);
        found.push(Field {
            path: path.clone(),
            required: required.is_some_and(|names| names.iter().any(|n| n == name)),
            holds: holds(own),
            about: text(field).or_else(|| text(own)).unwrap_or_default(),
        });
        walk(root, own, &path, deep - 1, found);
    }
}

/// Resolves a reference within the same document.
pub(super) fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
    target
        .and_then(|pointer| root.pointer(pointer))
        .unwrap_or(schema)
}

fn holds(schema: &Value) -> String {
    let word = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    if let Some(allowed) = schema["enum"].as_array() {
        let words = allowed.iter().map(word);
        // A word that lists all choices is not one of them.
        let words = words.filter(|word| !word.contains('|'));
        return words.collect::<Vec<_>>().join(" | ");
    }
    if let Some(only) = schema.get("const") {
        return word(only);
    }
    match &schema["type"] {
        Value::Array(types) => types.iter().map(word).collect::<Vec<_>>().join(" | "),
        Value::String(one) => one.clone(),
        _ => "anything".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fields;

    #[test]
    fn fields_are_followed_into_lists_and_references() {
        let schema = json!({
            "required": ["steps"],
            "properties": {
                "steps": { "type": "array", "description": "What to do", "items": { "$ref": "#/$defs/step" } },
                "urgent": { "enum": ["yes", "no"] },
            },
            "$defs": { "step": {
                "type": "object", "required": ["name"],
                "properties": { "name": { "type": "string" }, "next": { "$ref": "#/$defs/step" } },
            } },
        });
        let lines: Vec<String> = fields(&schema)
            .iter()
            .filter(|f| f.path.matches("next").count() < 2)
            .map(|f| format!("{} {} {} {}", f.path, f.required, f.holds, f.about))
            .collect();
        assert_eq!(
            lines,
            [
                "/steps true array What to do",
                "/steps/*/name true string ",
                "/steps/*/next false object ",
                "/steps/*/next/name true string ",
                "/urgent false yes | no ",
            ]
        );
    }
}
