//! Generates values that a JSON Schema allows, the likeliest first.

use handoff::base::pointer::push_part;
use handoff::contract::matching;
use handoff::protocol::schema_nodes;
use serde_json::{Map, Number, Value, json};

/// The maximum nesting of generated values.
const DEEPEST: usize = 8;

/// Texts that match common patterns. The first is valid wherever any text is.
const TEXTS: [&str; 20] = [
    "example",
    "example-one",
    "src/example.txt",
    super::PULL_REQUEST,
    "2020-01-31T12:00:00Z",
    "2020-01-31",
    "0123456789abcdef0123456789abcdef01234567",
    "00000000-0000-4000-8000-000000000001",
    "ada@example.com",
    "1.0.0",
    "1",
    "50%",
    "5 minutes",
    "12:00",
    "Example",
    "EXAMPLE",
    "F1",
    "[example]",
    "none",
    "true",
];

/// Generates values for places of a schema.
pub(super) struct Values<'s> {
    pub(super) schema: &'s Value,
    /// A text that no other contract contains.
    pub(super) unique: &'s str,
}

impl Values<'_> {
    /// The values to try at a pointer. A condition elsewhere in the schema, or a pattern, may
    /// exclude any of them.
    pub(super) fn at(&self, pointer: &str) -> Vec<Value> {
        self.candidates(pointer, 0)
    }

    fn candidates(&self, pointer: &str, depth: usize) -> Vec<Value> {
        // Conditional subschemas come last.
        let mut nodes = schema_nodes(self.schema, pointer);
        nodes.reverse();
        let mut found: Vec<Value> = Vec::new();
        for node in &nodes {
            found.extend(node["examples"].as_array().into_iter().flatten().cloned());
            found.extend(node.get("default").cloned());
        }
        for node in &nodes {
            found.extend(node.get("const").cloned());
            found.extend(node["enum"].as_array().into_iter().flatten().cloned());
        }
        let is_listed = nodes
            .iter()
            .any(|node| node.get("const").is_some() || node.get("enum").is_some());
        if !is_listed && depth < DEEPEST {
            for kind in kinds(&nodes) {
                found.extend(self.of_kind(kind, pointer, &nodes, depth));
            }
        }
        let mut distinct: Vec<Value> = Vec::new();
        for value in found {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        distinct
    }

    fn of_kind(&self, kind: &str, pointer: &str, nodes: &[&Value], depth: usize) -> Vec<Value> {
        match kind {
            "boolean" => vec![json!(true), json!(false)],
            "integer" => numbers(nodes, true),
            "number" => numbers(nodes, false),
            "null" => vec![Value::Null],
            "array" => self.lists(pointer, nodes, depth),
            "object" => self.objects(pointer, nodes, depth),
            _ => self.texts(nodes),
        }
    }

    fn texts(&self, nodes: &[&Value]) -> Vec<Value> {
        let limit = |key: &str| nodes.iter().filter_map(|node| node[key].as_u64()).max();
        let least = usize::try_from(limit("minLength").unwrap_or(0)).unwrap_or(0);
        let patterns = nodes.iter().filter_map(|node| node["pattern"].as_str());
        let matched = patterns
            .flat_map(|pattern| matching(pattern, 0))
            .map(Value::from);
        let all = TEXTS.iter().copied().chain([self.unique]);
        let long_enough = all.map(|text| {
            let lacking = least.saturating_sub(text.chars().count());
            json!(format!("{text}{}", "x".repeat(lacking.min(1000))))
        });
        matched.chain(long_enough).collect()
    }

    fn lists(&self, pointer: &str, nodes: &[&Value], depth: usize) -> Vec<Value> {
        let least = nodes.iter().filter_map(|node| node["minItems"].as_u64());
        let least = usize::try_from(least.max().unwrap_or(0)).unwrap_or(0);
        let items: Vec<Value> = (0..least.max(1))
            .filter_map(|i| {
                let of_item = self.candidates(&format!("{pointer}/{i}"), depth + 1);
                let nth = of_item.get(i).or(of_item.first());
                nth.cloned()
            })
            .collect();
        let mut lists = vec![Value::Array(items)];
        if least == 0 {
            lists.push(json!([]));
        }
        lists
    }

    /// An object with the required members, an empty one, and one with all members.
    fn objects(&self, pointer: &str, nodes: &[&Value], depth: usize) -> Vec<Value> {
        let required = nodes.iter().flat_map(|node| node["required"].as_array());
        let required: Vec<&str> = required.flatten().filter_map(Value::as_str).collect();
        let listed = nodes
            .iter()
            .filter_map(|node| node["properties"].as_object());
        let listed: Vec<&str> = listed.flat_map(Map::keys).map(String::as_str).collect();
        let with = |names: &[&str]| {
            let mut members = Map::new();
            for name in names {
                let mut at = pointer.to_owned();
                push_part(&mut at, name);
                if let Some(value) = self.candidates(&at, depth + 1).into_iter().next() {
                    members.insert((*name).to_owned(), value);
                }
            }
            Value::Object(members)
        };
        vec![
            with(&required),
            with(&listed),
            json!({"example": "example"}),
        ]
    }
}

/// The allowed types in the schema's order; a guess if it names none.
fn kinds<'n>(nodes: &[&'n Value]) -> Vec<&'n str> {
    let mut kinds: Vec<&str> = Vec::new();
    for node in nodes {
        match &node["type"] {
            Value::String(one) => kinds.push(one),
            Value::Array(several) => kinds.extend(several.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    let has = |key: &str| nodes.iter().any(|node| node.get(key).is_some());
    if kinds.is_empty() {
        kinds = match () {
            () if has("properties") || has("required") => vec!["object"],
            () if has("items") || has("prefixItems") => vec!["array"],
            () if has("minimum") || has("maximum") => vec!["number"],
            () => vec!["string", "integer", "boolean", "object", "array"],
        };
    }
    kinds.dedup();
    kinds
}

/// The number 1 if it is allowed, the limits, and their neighbours.
fn numbers(nodes: &[&Value], is_whole: bool) -> Vec<Value> {
    let limit = |key: &str| nodes.iter().filter_map(|node| node[key].as_f64()).next();
    let least = limit("minimum").or(limit("exclusiveMinimum").map(|n| n + 1.0));
    let most = limit("maximum").or(limit("exclusiveMaximum").map(|n| n - 1.0));
    let step = limit("multipleOf");
    let one = 1.0_f64
        .max(least.unwrap_or(1.0))
        .min(most.unwrap_or(f64::MAX));
    let between = least
        .zip(most)
        .map(|(least, most)| f64::midpoint(least, most));
    let all = [Some(one), least, Some(0.0), step, Some(2.0), most, between];
    let known = nodes
        .iter()
        .flat_map(|node| node["contains"].get("minimum"));
    let all = all
        .into_iter()
        .flatten()
        .chain(known.filter_map(Value::as_f64));
    all.filter_map(|number| number_of(number, is_whole))
        .map(Value::Number)
        .collect()
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "a larger number is left out"
)]
fn number_of(number: f64, is_whole: bool) -> Option<Number> {
    let whole = number.trunc();
    if whole.abs() < 9e15 && (is_whole || (whole - number).abs() < f64::EPSILON) {
        return Some(Number::from(whole as i64));
    }
    Number::from_f64(number).filter(|_| !is_whole)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Values;

    fn first(schema: &Value, pointer: &str) -> Value {
        let values = Values {
            schema,
            unique: "one-of-a-kind",
        };
        values.at(pointer).into_iter().next().unwrap_or_default()
    }

    #[test]
    fn the_first_value_is_what_the_schema_says() {
        let schema = json!({"type": "object", "required": ["a", "n", "list"], "properties": {
            "a": {"$ref": "#/$defs/word"},
            "n": {"type": "integer", "minimum": 3},
            "m": {"type": "number", "maximum": 0.5},
            "list": {"type": "array", "minItems": 2, "items": {"enum": ["x", "y"]}},
            "text": {"type": "string", "minLength": 9},
            "shown": {"type": "string", "examples": ["ABC-1"]}},
            "$defs": {"word": {"const": "it"}}});
        assert_eq!(first(&schema, "/a"), json!("it"));
        assert_eq!(first(&schema, "/n"), json!(3));
        assert_eq!(first(&schema, "/m"), json!(0.5));
        assert_eq!(first(&schema, "/text"), json!("examplexx"));
        assert_eq!(first(&schema, "/shown"), json!("ABC-1"));
        let whole = json!({"a": "it", "n": 3, "list": ["x", "y"]});
        assert_eq!(first(&schema, ""), whole);
    }
}
