//! Measures the contract pipeline: the first compile in a process, warm compiles, and checks per second.
//!
//! `cargo run --release --example contract_speed [trusted]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;

use handoff::contract::{Schema, Source, write_json, write_xml};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "to", "issue", "link", "summary", "files", "commits"],
        "properties": {
            "from": {"const": "implementer"},
            "to": {"const": "reviewer"},
            "issue": {"type": "integer", "minimum": 1},
            "link": {"type": "string", "format": "uri", "pattern": "^https://"},
            "at": {"type": "string", "format": "date-time"},
            "status": {"enum": ["ready", "blocked", "failed"]},
            "branch": {"$ref": "#/$defs/text"},
            "summary": {"$ref": "#/$defs/text"},
            "files": {"type": "integer", "minimum": 0},
            "tests": {"type": "integer", "minimum": 0},
            "coverage": {"type": "string", "pattern": "^[0-9]{1,3}%$"},
            "commits": {
                "type": "array", "minItems": 1, "xml": {"nodeType": "element"},
                "items": {
                    "type": "object", "xml": {"name": "commit"}, "additionalProperties": false,
                    "required": ["id", "subject"],
                    "properties": {
                        "id": {"type": "string", "pattern": "^[0-9a-f]{7,40}$", "xml": {"nodeType": "attribute"}},
                        "subject": {"type": "string", "xml": {"nodeType": "text"}}
                    }
                }
            },
            "notes": {"$ref": "#/$defs/open"}
        },
        "$defs": {
            "text": {"type": "string", "minLength": 1, "maxLength": 4000},
            "open": {"type": "object"}
        }
    })
}

fn value() -> Value {
    let commits: Vec<Value> = (0..6)
        .map(|i| json!({"id": format!("{:07x}", 0x00ab_c123 + i), "subject": format!("parser: step {i} of the rewrite")}))
        .collect();
    json!({
        "from": "implementer", "to": "reviewer", "issue": 17,
        "link": "https://forge.invalid/team/tool/issues/17", "at": "2026-03-04T05:06:07Z",
        "status": "ready", "branch": "feature/17-parser",
        "summary": "The parser keeps positions, so that every fault can name its line and column. ".repeat(4),
        "files": 12, "tests": 31, "coverage": "93%", "commits": commits,
        "notes": {"risk": "low", "reader": ["first", "second"]}
    })
}

fn main() {
    let schema = schema();
    let trusted = std::env::args().any(|argument| argument == "trusted");
    let compile = |schema: &Value| {
        if trusted {
            Schema::compile_trusted(schema)
        } else {
            Schema::compile(schema)
        }
    };
    let start = Instant::now();
    let compiled = compile(&schema).unwrap();
    println!("first compile (trusted: {trusted}): {:?}", start.elapsed());
    let start = Instant::now();
    for _ in 0..200 {
        compile(&schema).unwrap();
    }
    println!("warm compile: {:?}", start.elapsed() / 200);
    let start = Instant::now();
    for _ in 0..200 {
        handoff::contract::Shape::from_schema(&schema).unwrap();
    }
    println!("of which shape: {:?}", start.elapsed() / 200);
    let value = value();
    let texts = [
        write_xml(&value, compiled.shape(), "handoff"),
        write_json(&json!({ "handoff": value })),
    ];
    for text in &texts {
        let source = Source::parse(text.as_bytes()).unwrap();
        let root = source.root(&["handoff"]);
        let found = compiled.check(&source, root.as_deref()).findings;
        assert!(found.is_empty(), "{found:?}");
        const ROUNDS: u32 = 20_000;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let source = Source::parse(text.as_bytes()).unwrap();
            let root = source.root(&["handoff"]);
            let wrapper = root.as_deref();
            for pointer in ["/from", "/to", "/status"] {
                assert!(source.probe(wrapper, pointer).is_some());
            }
            assert!(compiled.check(&source, wrapper).findings.is_empty());
        }
        let each = start.elapsed() / ROUNDS;
        let parse = Instant::now();
        for _ in 0..ROUNDS {
            assert!(Source::parse(text.as_bytes()).is_ok());
        }
        println!(
            "{}: {} bytes, {each:?} each, {:.0} per second (of which parse {:?})",
            source.format(),
            text.len(),
            1.0 / each.as_secs_f64(),
            parse.elapsed() / ROUNDS
        );
    }
}
