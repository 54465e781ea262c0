//! The target of a JSON Pointer in a JSON Schema.

use std::collections::BTreeSet;

use handoff_base::pointer::parts;
use serde_json::Value;

/// The maximum number of references to follow on the way to one field.
const MAX_STEPS: usize = 64;

/// Whether a valid value can have something at this pointer. An object that lists its fields is
/// assumed to have no others, even if the schema allows them: a pointer to one is a mistake.
pub fn schema_has(schema: &Value, pointer: &str) -> bool {
    !schema_nodes(schema, pointer).is_empty()
}

/// The texts that a schema allows at a pointer, if it lists them.
pub fn schema_values(schema: &Value, pointer: &str) -> Option<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    let mut any = false;
    for node in schema_nodes(schema, pointer) {
        let list = node["enum"].as_array().into_iter().flatten();
        let listed = list.chain(node.get("const")).filter_map(Value::as_str);
        let before = texts.len();
        texts.extend(listed.map(str::to_owned));
        any |= texts.len() > before;
    }
    any.then_some(texts)
}

/// The types that a schema allows at a pointer, if it restricts them.
pub fn schema_types(schema: &Value, pointer: &str) -> Option<BTreeSet<String>> {
    let mut types = BTreeSet::new();
    for node in schema_nodes(schema, pointer) {
        match &node["type"] {
            Value::String(one) => types.extend([one.clone()]),
            Value::Array(several) => {
                types.extend(several.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
    }
    (!types.is_empty()).then_some(types)
}

/// The subschemas for the value at a pointer, with those of alternatives and conditions.
pub fn schema_nodes<'s>(schema: &'s Value, pointer: &str) -> Vec<&'s Value> {
    let mut here = spread(schema, vec![schema]);
    for part in parts(pointer) {
        let mut next: Vec<&Value> = here.iter().flat_map(|node| child(node, &part)).collect();
        if !here.iter().any(|node| describes(node)) && here.iter().any(|node| is_open(node)) {
            next.push(&Value::Null);
        }
        here = spread(schema, next);
    }
    here
}

/// The subschemas for one member of an object or item of a list.
fn child<'s>(node: &'s Value, part: &str) -> Vec<&'s Value> {
    let mut found = Vec::new();
    let fields = node["properties"].as_object();
    found.extend(fields.and_then(|f| f.get(part)));
    let patterns = node["patternProperties"].as_object();
    found.extend(patterns.into_iter().flat_map(|p| p.values()));
    let others = &node["additionalProperties"];
    if fields.is_none_or(|f| !f.contains_key(part))
        && (others.is_object() || others == &Value::Bool(true))
    {
        found.push(others);
    }
    if part.parse::<usize>().is_ok() {
        found.extend(node.get("items"));
        found.extend(node["prefixItems"].as_array().into_iter().flatten());
    }
    found
}

/// Whether a schema says what an object or a list contains.
fn describes(node: &Value) -> bool {
    let keys = [
        "properties",
        "patternProperties",
        "additionalProperties",
        "items",
        "prefixItems",
    ];
    keys.iter().any(|key| node.get(*key).is_some())
}

/// Whether a schema allows any content, unless another schema for the same value describes it.
fn is_open(node: &Value) -> bool {
    let scalar = matches!(
        node["type"].as_str(),
        Some("string" | "number" | "integer" | "boolean" | "null")
    );
    let elsewhere = [
        "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "if", "then", "else",
    ];
    !scalar && !node.is_boolean() && !elsewhere.iter().any(|key| node.get(*key).is_some())
}

/// Adds every schema that applies to the same value: referenced ones and alternatives.
fn spread<'s>(root: &'s Value, start: Vec<&'s Value>) -> Vec<&'s Value> {
    let mut found: Vec<&Value> = Vec::new();
    let mut next = start;
    while let Some(node) = next.pop() {
        if found.len() >= MAX_STEPS || found.iter().any(|known| std::ptr::eq(*known, node)) {
            continue;
        }
        found.push(node);
        let reference = node["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
        next.extend(reference.and_then(|pointer| root.pointer(pointer)));
        for key in ["allOf", "anyOf", "oneOf"] {
            next.extend(node[key].as_array().into_iter().flatten());
        }
        next.extend(
            ["if", "then", "else"]
                .iter()
                .filter_map(|key| node.get(*key)),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{schema_has, schema_values};
    use serde_json::json;

    #[test]
    fn pointers_are_followed_through_references_alternatives_and_lists() {
        let schema = json!({"type": "object", "additionalProperties": false,
            "properties": {"a": {"$ref": "#/$defs/a"}, "l": {"items": {"properties": {"x": {}}}}, "m": {"additionalProperties": {"type": "string"}},
                "open": {"type": "object"}, "told": {"properties": {"p": {}}, "allOf": [{"required": ["p"]}, {"then": {"required": ["p"]}}]}, "text": {"type": "string"}, "either": {"anyOf": [{"properties": {"p": {}}}, {"properties": {"q": {}}}]}},
            "$defs": {"a": {"properties": {"b": {"enum": ["x", "y"]}}}}});
        for known in [
            "/a",
            "/a/b",
            "/l/0/x",
            "/m/any",
            "/open/what/ever",
            "/either/p",
            "/either/q",
            "/told/p",
        ] {
            assert!(schema_has(&schema, known), "{known}");
        }
        for unknown in [
            "/z",
            "/a/c",
            "/l/0/y",
            "/text/more",
            "/a/b/c",
            "/either/r",
            "/told/q",
        ] {
            assert!(!schema_has(&schema, unknown), "{unknown}");
        }
        let values = schema_values(&schema, "/a/b");
        assert_eq!(values, Some(["x".to_owned(), "y".to_owned()].into()));
        assert_eq!(schema_values(&schema, "/text"), None);
    }
}
