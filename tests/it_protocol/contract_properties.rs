//! Properties of the contract pipeline: no input makes it panic, and no value is lost on the way.

use std::sync::LazyLock;

use handoff::contract::{Format, Schema, Source, unwrapped, write_json, write_markdown, write_xml};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::rules::Rules;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    Schema::compile(&json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["title", "count", "bare", "wrapped"],
        "properties": {
            "title": text,
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "open": {"type": "boolean"},
            "rank": {"type": "integer", "xml": {"nodeType": "attribute"}},
            "mark": {"type": "string", "xml": {"nodeType": "attribute", "name": "the-mark"}},
            "bare": {"type": "array", "items": text},
            "wrapped": {
                "type": "array",
                "xml": {"nodeType": "element"},
                "items": {
                    "type": "object",
                    "xml": {"name": "entry"},
                    "required": ["body"],
                    "additionalProperties": false,
                    "properties": {
                        "key": {"type": "string", "xml": {"nodeType": "attribute"}},
                        "on": {"type": "boolean", "xml": {"nodeType": "attribute"}},
                        "body": {"type": "string", "xml": {"nodeType": "text"}}
                    }
                }
            },
            "grid": {
                "type": "array",
                "xml": {"nodeType": "element"},
                "items": {
                    "type": "array",
                    "xml": {"name": "row", "nodeType": "element"},
                    "items": {"type": "integer", "xml": {"name": "cell"}}
                }
            },
            "part": {"$ref": "#/$defs/part"},
            "data": {"$ref": "#/$defs/open"}
        },
        "$defs": {
            "open": {"type": "object"},
            "part": {
                "type": "object",
                "required": ["part"],
                "additionalProperties": false,
                "properties": {
                    "name": text,
                    "part": {"type": "array", "items": {"$ref": "#/$defs/part"}}
                }
            }
        }
    }))
    .unwrap()
});

/// A protocol's name and its valid samples.
type Samples = (&'static str, Vec<Vec<u8>>);

/// Every built-in protocol.
static ALL: LazyLock<Vec<Samples>> = LazyLock::new(|| {
    let bytes = |rules: &Rules| {
        rules
            .samples("valid")
            .into_iter()
            .map(|s| s.bytes)
            .collect()
    };
    Rules::all()
        .map(|rules| (rules.name, bytes(&rules)))
        .collect()
});

/// Text of any characters that XML allows, and often of those that are hard to keep.
fn text() -> impl Strategy<Value = String> {
    let hard = prop::sample::select(vec![
        "<",
        ">",
        "&",
        "'",
        "\"",
        "]]>",
        "\r",
        "\n",
        "\r\n",
        "\t",
        " ",
        "  ",
        "&amp;",
        "<!--",
        "-->",
        "<![CDATA[",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "🦀",
        "é",
        "\u{fffd}",
        "\u{10ffff}",
        "{{",
        "x",
    ]);
    let any = any::<char>()
        .prop_filter(
            "XML allows it",
            |&c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..),
        )
        .prop_map(String::from);
    vec(
        prop_oneof![3 => hard.prop_map(String::from), 1 => any],
        0..8,
    )
    .prop_map(|parts| parts.concat())
}

fn visible() -> impl Strategy<Value = String> {
    (text(), text()).prop_map(|(a, b)| format!("{a}v{b}"))
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z_é][a-zA-Z0-9_.é-]{0,6}"
}

/// Content without a schema, as far as it has one XML form.
fn open() -> impl Strategy<Value = Value> {
    text()
        .prop_map(Value::String)
        .prop_recursive(3, 24, 4, |inner| {
            let one_or_many = prop_oneof![
                2 => inner.clone(),
                1 => vec(inner, 2..4).prop_map(Value::Array),
            ];
            let attributes = btree_map(name().prop_map(|name| format!("@{name}")), text(), 0..3);
            (
                attributes,
                btree_map(name(), one_or_many, 1..4),
                option::of(visible()),
            )
                .prop_map(|(attributes, children, own)| {
                    let mut members: Map<String, Value> = Map::new();
                    members.extend(attributes.into_iter().map(|(key, text)| (key, text.into())));
                    members.extend(own.map(|text| ("#text".to_owned(), text.into())));
                    members.extend(children);
                    Value::Object(members)
                })
        })
}

fn open_object() -> impl Strategy<Value = Value> {
    open().prop_map(|value| match value {
        Value::Object(members) => Value::Object(members),
        other => json!({ "only": other }),
    })
}

fn part() -> impl Strategy<Value = Value> {
    let leaf = option::of(text()).prop_map(|name| part_of(name, Vec::new()));
    leaf.prop_recursive(3, 12, 3, |inner| {
        (option::of(text()), vec(inner, 0..3)).prop_map(|(name, parts)| part_of(name, parts))
    })
}

fn part_of(name: Option<String>, parts: Vec<Value>) -> Value {
    let mut value = json!({ "part": parts });
    if let Some(name) = name {
        value["name"] = name.into();
    }
    value
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(Value::from),
    ]
}

fn entry() -> impl Strategy<Value = Value> {
    (option::of(text()), option::of(any::<bool>()), text()).prop_map(|(key, on, body)| {
        let mut value = json!({ "body": body });
        if let Some(key) = key {
            value["key"] = key.into();
        }
        if let Some(on) = on {
            value["on"] = on.into();
        }
        value
    })
}

fn value() -> impl Strategy<Value = Value> {
    let required = (text(), any::<i64>(), vec(text(), 0..4), vec(entry(), 0..4));
    let optional = (
        option::of(number()),
        option::of(any::<bool>().prop_map(Value::from)),
        option::of(any::<i64>().prop_map(Value::from)),
        option::of(text().prop_map(Value::from)),
        option::of(vec(vec(any::<i32>(), 0..3), 0..3).prop_map(Value::from)),
        option::of(part()),
        option::of(open_object()),
    );
    (required, optional).prop_map(|((title, count, bare, wrapped), optional)| {
        let mut value = json!({"title": title, "count": count, "bare": bare, "wrapped": wrapped});
        let (share, open, rank, mark, grid, part, data) = optional;
        let optional = [
            ("share", share),
            ("open", open),
            ("rank", rank),
            ("mark", mark),
            ("grid", grid),
            ("part", part),
            ("data", data),
        ];
        for (key, given) in optional {
            if let Some(given) = given {
                value[key] = given;
            }
        }
        value
    })
}

/// Parses and, if that succeeds, checks; only a panic is a fault.
fn survive(bytes: &[u8]) {
    if let Ok(source) = Source::parse(bytes) {
        let root = source.root(&["note"]);
        let checked = SCHEMA.check(&source, root.as_deref());
        for finding in &checked.findings {
            assert!(finding.message.len() < 2_000);
            assert!(source.format() != Format::Markdown || finding.line.is_some());
        }
        write_xml(&checked.value, SCHEMA.shape(), "note");
    }
}

/// Parses what is taken for a message; every finding has its place in it.
fn placed(text: &str) {
    let lines = text.split('\n').count();
    for finding in Source::parse(text.as_bytes()).err().unwrap_or_default() {
        let (line, column) = (finding.line.unwrap(), finding.column.unwrap());
        assert!((1..=lines).contains(&(line as usize)), "{finding:?}");
        let shown = text.split('\n').nth(line as usize - 1).unwrap();
        assert!(column as usize <= shown.chars().count() + 1, "{finding:?}");
    }
}

/// Overwrites, removes and inserts bytes.
fn mutate(text: impl AsRef<[u8]>, edits: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.as_ref().to_vec();
    for &(at, kind, byte) in edits {
        if bytes.is_empty() {
            break;
        }
        let at = at % bytes.len();
        match kind % 3 {
            0 => bytes[at] = byte,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
        survive(&bytes);
    }

    #[test]
    fn any_markup_is_survived(
        parts in vec(prop::sample::select(vec![
            "<", ">", "/", "a", "<a>", "</a>", "<a", "='", "\"", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>",
            "xml", "&", ";", "#x", "{", "}", "[", "]", ":", ",", "\\", "\\u", "1", "-", "e", "true", " ", "é",
            "{\"a\":", "<note>", "</note>", "xmlns:", "<!DOCTYPE",
        ]), 0..24),
        lead in prop::sample::select(vec!["", "<", "{", "<note>", "{\"note\":{"]),
    ) {
        survive(format!("{lead}{}", parts.concat()).as_bytes());
    }

    #[test]
    fn damaged_contracts_are_survived(
        value in value(),
        edits in vec((any::<usize>(), any::<u8>(), prop_oneof![Just(b'<'), Just(b'"'), Just(b'>'), any::<u8>()]), 1..4),
    ) {
        survive(&mutate(write_xml(&value, SCHEMA.shape(), "note"), &edits));
        survive(&mutate(write_json(&json!({ "note": value })), &edits));
        survive(&mutate(write_markdown(&value, "a", "b", "done"), &edits));
    }

    #[test]
    fn damaged_samples_of_every_protocol_are_survived(
        protocol in 0..ALL.len(),
        sample in any::<usize>(),
        edits in vec((any::<usize>(), any::<u8>(), prop_oneof![Just(b'<'), Just(b'"'), Just(b'}'), Just(b'\n'), any::<u8>()]), 0..3),
    ) {
        let samples = &ALL[protocol].1;
        let bytes = mutate(&samples[sample % samples.len()], &edits);
        for name in [ALL[protocol].0, ALL[(protocol + 1) % ALL.len()].0] {
            let review = Rules::of(name).review(&bytes);
            prop_assert!(review.contract.is_none() || review.is_complete());
            prop_assert!(review.contract.is_none_or(|contract| contract.bytes == unwrapped(&bytes)));
            for finding in &review.findings {
                prop_assert!(finding.message.len() < 2_000, "{:?}", finding);
            }
        }
    }

    #[test]
    fn any_message_is_survived(
        parts in vec(prop::sample::select(vec![
            "HANDOFF: a → b", "HANDOFF:", "->", "STATUS:", "STATUS: x", "DATA:", "MADE:\n", "- Key: text", "- item", "- ", "  - in",
            "  more", "text", "===", "\n", "\n", "\n", "\n\n", "\r\n", "```", "```json\n", "````", "~~~", "{", "}", "[", "]",
            "\"a\":", "\"a\"", "1", ",", ":", " ", "\t", "é", "\u{1}", "\u{feff}", "\\", "{\"a\": 1, \"a\": 2}", "{\"b\": [",
        ]), 0..32),
        lead in prop::sample::select(vec!["HANDOFF: a → b\n", "```markdown\nHANDOFF: a -> b\n===\n", "HANDOFF: a → b\nDATA:\n{", "HANDOFF:", "\u{feff}HANDOFF:"]),
    ) {
        let text = format!("{lead}{}", parts.concat());
        survive(text.as_bytes());
        placed(&text);
    }

    #[test]
    fn values_survive_markdown(value in value(), from in text(), to in text(), status in text()) {
        let text = write_markdown(&value, &from, &to, &status);
        let source = Source::parse(text.as_bytes()).map_err(|found| TestCaseError::fail(format!("{found:?}\n{text}")))?;
        prop_assert_eq!(source.format(), Format::Markdown);
        let names: Vec<&str> = source.members(None).into_iter().map(|(name, _)| name).collect();
        let expected = ["from", "to", "status", "handoff_data"];
        prop_assert!(names == expected || names == ["from", "to", "handoff_data"], "{:?}\n{}", names, text);
        let root = source.root(&["handoff_data"]);
        prop_assert_eq!(root.as_deref(), Some("handoff_data"));
        let checked = SCHEMA.check(&source, root.as_deref());
        prop_assert_eq!(&checked.findings, &vec![], "{}", text);
        prop_assert_eq!(&checked.value, &value, "{}", text);
    }

    #[test]
    fn values_survive_xml(value in value()) {
        let text = write_xml(&value, SCHEMA.shape(), "note");
        let source = Source::parse(text.as_bytes()).map_err(|found| TestCaseError::fail(format!("{found:?}\n{text}")))?;
        let checked = SCHEMA.check(&source, None);
        prop_assert_eq!(&checked.findings, &vec![], "{}", text);
        prop_assert_eq!(&checked.value, &value, "{}", text);
        prop_assert_eq!(write_xml(&checked.value, SCHEMA.shape(), "note").len(), text.len());
    }

    #[test]
    fn values_survive_json(value in value()) {
        for (text, wrapper) in [
            (write_json(&value), None),
            (write_json(&json!({ "note": value })), Some("note")),
        ] {
            let source = Source::parse(text.as_bytes()).map_err(|found| TestCaseError::fail(format!("{found:?}\n{text}")))?;
            let checked = SCHEMA.check(&source, wrapper);
            prop_assert_eq!(&checked.findings, &vec![], "{}", text);
            prop_assert_eq!(&checked.value, &value, "{}", text);
        }
    }
}
