//! The evaluator agrees with another implementation of JSON Schema 2020-12.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::{Schema, Source};

/// What the other implementation says; `None` if it refuses the schema.
fn oracle(schema: &Value) -> Option<jsonschema::Validator> {
    let options = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false);
    options
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(schema)
        .ok()
}

/// The values about which they disagree.
fn differences(schema: &Value, values: &[Value]) -> Vec<Value> {
    let own = Schema::compile(schema).unwrap();
    let other = oracle(schema).unwrap();
    let differs = |value: &&Value| own.accepts(value) != other.is_valid(value);
    values.iter().filter(differs).cloned().collect()
}

/// Schemas of one subject each.
fn schemas() -> Vec<Value> {
    vec![
        json!({}),
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": ["string", "null"]}),
        json!({"const": 1}),
        json!({"const": {"a": [1.0], "b": null}}),
        json!({"enum": ["a", 1.0, null, [1]]}),
        json!({"minimum": 1, "maximum": 9_007_199_254_740_993_u64}),
        json!({"exclusiveMinimum": 0.5, "exclusiveMaximum": 1.5}),
        json!({"multipleOf": 0.1}),
        json!({"multipleOf": 3}),
        json!({"minLength": 1, "maxLength": 2.0}),
        json!({"minItems": 1, "maxItems": 2}),
        json!({"uniqueItems": true}),
        json!({"minProperties": 1, "maxProperties": 1}),
        json!({"pattern": "^a"}),
        json!({"pattern": "[^ \\t\\n\\r]"}),
        json!({"pattern": "^[\\w-]+$"}),
        json!({"pattern": "^\\S\\s?\\D*$"}),
        json!({"pattern": "^[a-z&&[b]+$"}),
        json!({"items": {"type": "string"}}),
        json!({"prefixItems": [{"type": "string"}], "items": {"minimum": 1}}),
        json!({"prefixItems": [true, false]}),
        json!({"contains": {"const": "a"}}),
        json!({"contains": {"type": "integer"}, "minContains": 2, "maxContains": 2}),
        json!({"contains": false, "minContains": 0}),
        json!({"required": ["a"]}),
        json!({"properties": {"a": {"type": "integer"}, "b": false}}),
        json!({"properties": {"a": true}, "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false}),
        json!({"additionalProperties": {"type": "null"}}),
        json!({"propertyNames": {"pattern": "^[ab]$"}}),
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"dependentSchemas": {"a": {"maxProperties": 1}}}),
        json!({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "object"}}),
        json!({"then": false}),
        json!({"unevaluatedProperties": false, "properties": {"a": true}}),
        json!({"unevaluatedItems": {"type": "string"}, "contains": {"type": "integer"}}),
        json!({"format": "date-time"}),
        json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"additionalProperties": {"$ref": "#/$defs/tree"}, "maxItems": 1}}}),
    ]
}

fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(0.3),
        json!(1e15),
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_994_u64),
        json!(u64::MAX),
        json!(""),
        json!("a"),
        json!("é1"),
        json!("b &["),
        json!("\u{feff}-"),
        json!([]),
        json!([1, 1.0]),
        json!(["a", "a"]),
        json!([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]),
        json!([1, [2], "a"]),
        json!({}),
        json!({"a": 1}),
        json!({"a": "a", "b": {"a": []}}),
        json!({"a": [1], "b": null}),
        json!({"x-1": 1, "b": null}),
    ]
}

#[test]
fn each_keyword_means_the_same() {
    for schema in schemas() {
        assert_eq!(
            differences(&schema, &values()),
            [Value::Null; 0],
            "{schema}"
        );
    }
}

#[test]
fn formats_are_the_same() {
    let texts = [
        (
            "date",
            "2024-02-29 2023-02-29 1900-02-29 2000-02-29 2024-13-01 2024-1-01 2024-04-31 ２024-04-01",
        ),
        (
            "time",
            "12:00:00Z 23:59:60Z 22:59:60-01:00 00:29:60+00:30 22:59:60Z 24:00:00Z 12:00:00 12:00:00.Z 12:00:00.5z 12:00:00+24:00 1:00:00Z",
        ),
        (
            "date-time",
            "2026-01-31T12:00:00Z 2026-01-31t12:00:00.25+01:00 2026-01-31 12:00:00Z 2026-01-31TT12:00:00Z",
        ),
        (
            "duration",
            "P1D PT1H P1Y2M3DT4H5M6S P1W P P1 PT P1YT P1W1D P1Y1D PT1H1S P1D1Y 1D",
        ),
        (
            "email",
            "a@b a.b@c.de .a@b a..b@c a b@c \"a@b\"@c @c a@ a@-b a@[127.0.0.1] a@[IPv6:::1] a@[1]",
        ),
        (
            "hostname",
            "a a.b-c.de -a a- a..b a_b ab--c xn--4gbwdl.xn--wgbh1c .",
        ),
        ("ipv4", "1.2.3.4 01.2.3.4 1.2.3 256.1.1.1"),
        ("ipv6", "::1 1::2::3 ::ffff:1.2.3.4 12345:: %eth"),
        ("json-pointer", "/a~1b /~2 a /"),
        ("relative-json-pointer", "0 1/a 0# 01 -1 /a 1#a"),
        ("regex", "^a$ ( (?=a) [a \\d+ \\a"),
        (
            "uri",
            "http://a/b?c#d urn:a:b //a a:// a:b#c#d http://[::1]:80/ http://[a]/ a%zz: http://a/%41 1a:b http://a/é",
        ),
        ("uri-reference", "/a//b #f ?q a:b:c :a \\a ./a:b a#b#c"),
        ("iri", "http://é.de/ü?ß é:a http://a/<>"),
        ("iri-reference", "/ü é:a #ä"),
        (
            "uri-template",
            "/{a}{?b*,c:3} {a {} a} {a.b} {a:0} {!a} %4 {a..b} ü",
        ),
        (
            "uuid",
            "2eb8aa08-aa98-11ea-b4aa-73b441d16380 2eb8aa08aa9811eab4aa73b441d16380 2EB8AA08-AA98-11EA-B4AA-73B441D1638G",
        ),
    ];
    let mut wrong = Vec::new();
    for (format, texts) in texts {
        let mut values: Vec<Value> = texts.split(' ').map(|text| json!(text)).collect();
        values.extend([json!(""), json!(1), json!(texts)]);
        let found = differences(&json!({"format": format}), &values);
        wrong.extend(found.into_iter().map(|value| (format, value)));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn the_same_schemas_are_refused() {
    for schema in [
        json!({"type": "strin"}),
        json!({"type": ["string", "string"]}),
        json!({"type": []}),
        json!({"properties": {"a": 1}}),
        json!({"properties": []}),
        json!({"items": [{}]}),
        json!({"allOf": []}),
        json!({"anyOf": {"a": true}}),
        json!({"required": ["a", "a"]}),
        json!({"required": "a"}),
        json!({"dependentRequired": {"a": [1]}}),
        json!({"minLength": -1}),
        json!({"minLength": 1.5}),
        json!({"maxContains": "1"}),
        json!({"maximum": "1"}),
        json!({"multipleOf": 0}),
        json!({"uniqueItems": 1}),
        json!({"enum": 1}),
        json!({"title": 1}),
        json!({"pattern": "("}),
        json!({"patternProperties": {"[": true}}),
        json!({"format": "idn-hostname"}),
        json!({"$ref": 1}),
        json!({"not": null}),
    ] {
        assert!(oracle(&schema).is_none(), "{schema}");
        assert!(Schema::compile(&schema).is_err(), "{schema}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    select(values()).prop_recursive(2, 8, 3, |inner| {
        let members = btree_map(select(vec!["a", "b", "x-1", "c"]), inner.clone(), 0..3);
        prop_oneof![
            vec(inner, 0..3).prop_map(Value::Array),
            members.prop_map(|members| json!(members)),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaves: Vec<Value> = schemas()
        .into_iter()
        .filter(|one| one.get("$ref").is_none())
        .collect();
    select(leaves).prop_recursive(3, 24, 3, |inner| {
        let lists = (
            select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]),
            vec(inner.clone(), 1..3),
        );
        let ones = select(vec![
            "not",
            "items",
            "contains",
            "additionalProperties",
            "unevaluatedItems",
            "unevaluatedProperties",
        ]);
        let maps = select(vec!["properties", "dependentSchemas", "patternProperties"]);
        prop_oneof![
            (inner.clone(), lists).prop_map(|(base, (key, list))| with(base, key, json!(list))),
            (inner.clone(), ones, inner.clone()).prop_map(|(base, key, one)| with(base, key, one)),
            (inner.clone(), maps, inner.clone()).prop_map(|(base, key, one)| with(
                base,
                key,
                json!({"a": one})
            )),
            (inner.clone(), inner.clone(), inner).prop_map(|(base, when, then)| with(
                with(base, "if", when),
                "then",
                then
            )),
        ]
    })
}

fn with(mut schema: Value, key: &str, given: Value) -> Value {
    schema[key] = given;
    schema
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// They agree on combined keywords, and whoever refuses a value says why.
    #[test]
    fn combined_keywords_mean_the_same(schema in any_schema(), values in vec(any_value(), 1..8)) {
        prop_assert_eq!(differences(&schema, &values), [Value::Null; 0], "{}", schema);
        let outer = Schema::compile(&json!({"properties": {"v": schema}})).unwrap();
        for value in &values {
            let text = json!({"v": value}).to_string();
            if let Ok(source) = Source::parse(text.as_bytes()) {
                let checked = outer.check(&source, None);
                prop_assert_eq!(checked.is_valid(), outer.accepts(&checked.value), "{} {:?}", text, checked.findings);
            }
        }
    }
}
