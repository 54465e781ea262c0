//! Finds required fields that a contract type's template lacks, so that printed commands lack them.

use handoff_base::pointer::push_part;
use serde_json::Value;

/// The maximum number of subschemas examined for one value.
const MOST_PARTS: usize = 64;

/// The place of each required field that a template lacks.
pub(crate) fn lacking(schema: &Value, template: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, vec![schema], template, "", &mut found);
    found
}

fn walk(root: &Value, schemas: Vec<&Value>, value: &Value, at: &str, found: &mut Vec<String>) {
    let parts = applying(root, schemas);
    let place = |name: &str| {
        let mut place = at.to_owned();
        push_part(&mut place, name);
        place
    };
    match value {
        Value::Object(members) => {
            let required = parts.iter().filter_map(|part| part["required"].as_array());
            for name in required.flatten().filter_map(Value::as_str) {
                let place = place(name);
                if !members.contains_key(name) && !found.contains(&place) {
                    found.push(place);
                }
            }
            for (name, member) in members {
                let own = parts.iter().map(|part| &part["properties"][name]);
                walk(root, own.collect(), member, &place(name), found);
            }
        }
        Value::Array(entries) => {
            for (i, entry) in entries.iter().enumerate() {
                let own = parts.iter().map(|part| &part["items"]);
                walk(root, own.collect(), entry, &place(&i.to_string()), found);
            }
        }
        _ => {}
    }
}

/// The subschemas that apply to a value in every case: these, the ones they refer to, and those in
/// `allOf`.
fn applying<'s>(root: &'s Value, schemas: Vec<&'s Value>) -> Vec<&'s Value> {
    let mut parts: Vec<&Value> = Vec::new();
    let mut left = schemas;
    while let Some(part) = left.pop().filter(|_| parts.len() < MOST_PARTS) {
        if !part.is_object() || parts.iter().any(|known| std::ptr::eq(*known, part)) {
            continue;
        }
        parts.push(part);
        let reference = part["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
        left.extend(reference.and_then(|pointer| root.pointer(pointer)));
        left.extend(part["allOf"].as_array().into_iter().flatten());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::lacking;
    use serde_json::json;

    #[test]
    fn what_is_required_anywhere_is_missed() {
        let schema = json!({
            "required": ["a", "list", "inner"],
            "properties": {
                "list": {"items": {"$ref": "#/$defs/entry"}},
                "inner": {"allOf": [{"required": ["x/y"]}], "required": ["z"]},
                "text": {"required": ["never"]},
            },
            "anyOf": [{"required": ["one"]}, {"required": ["other"]}],
            "if": {}, "then": {"required": ["sometimes"]},
            "$defs": {"entry": {"required": ["b", "c"]}},
        });
        let template = json!({"list": [{"b": "{{fill: b}}"}, "{{fill: an entry}}"], "inner": {"z": 1}, "text": "{{fill: it}}"});
        assert_eq!(
            lacking(&schema, &template),
            ["/a", "/list/0/c", "/inner/x~1y"]
        );
        let round = json!({"$ref": "#", "required": ["a"]});
        assert_eq!(lacking(&round, &json!({})), ["/a"]);
    }
}
