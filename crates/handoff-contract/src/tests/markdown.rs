//! Markdown messages: their content, refusals, and the reported places.

use serde_json::{Value, json};

use crate::{Format, Schema, Shape, Source, write_markdown};

const MESSAGE: &str = "\u{feff}
HANDOFF: Release Planner → Build Runner
=======================================
STATUS: plan is ready

RELEASE:
- Version: 4.2.0
- Target branch: release/4.2
- Steps done: 3
  of 5

STEPS TO RUN:
- 4_1: \"Package the installer\" (effort: 2)
- 4_2: \"Sign → upload\"

WATCH OUT FOR:
- slow mirrors
- Time zone: the server's is UTC
- https://example.org/notes

NOTES:
The first line.
  The second: indented.

The third.

NEXT ACTION: run 4_1

ORDER (4):
```json
[\"4_1\", {\"after\": [\"4_1\"]}]
```

HANDOFF DATA:
{
  \"é\": {\"count\": 2, \"share\": 0.5},
  \"list\": [true, null]
}
=======================================
";

fn parsed(text: &str) -> Source {
    Source::parse(text.as_bytes()).unwrap_or_else(|found| panic!("{found:#?}\n{text}"))
}

fn value(text: &str) -> Value {
    let schema = Schema::compile(&json!({})).unwrap();
    let checked = schema.check(&parsed(text), None);
    assert_eq!(checked.findings, []);
    checked.value
}

/// The findings of a text as `line:column code path`.
fn faults(text: &str) -> Vec<String> {
    let found = Source::parse(text.as_bytes()).err().unwrap_or_default();
    let shown = found.into_iter().map(|finding| {
        assert!(!finding.message.ends_with('.'), "{finding:?}");
        assert!(
            finding.fix.is_some() || !finding.code.as_str().starts_with("markdown."),
            "{finding:?}"
        );
        let (line, column) = (finding.line.unwrap(), finding.column.unwrap());
        format!("{line}:{column} {} {}", finding.code, finding.path)
    });
    shown.collect()
}

#[test]
fn a_message_maps_to_the_value() {
    assert_eq!(parsed(MESSAGE).format(), Format::Markdown);
    let expected = json!({
        "from": "Release Planner",
        "to": "Build Runner",
        "status": "plan is ready",
        "release": {"version": "4.2.0", "target_branch": "release/4.2", "steps_done": "3\nof 5"},
        "steps_to_run": {"4_1": "\"Package the installer\" (effort: 2)", "4_2": "\"Sign → upload\""},
        "watch_out_for": ["slow mirrors", "Time zone: the server's is UTC", "https://example.org/notes"],
        "notes": "The first line.\n  The second: indented.\n\nThe third.",
        "next_action": "run 4_1",
        "order_4": ["4_1", {"after": ["4_1"]}],
        "handoff_data": {"é": {"count": 2, "share": 0.5}, "list": [true, null]}
    });
    assert_eq!(value(MESSAGE), expected);
    assert_eq!(value(&MESSAGE.replace('\n', "\r\n")), expected);
    assert_eq!(value(MESSAGE.trim_end_matches(['=', '\n'])), expected);
    let fenced = format!(
        "\n```markdown\n{}```\n",
        MESSAGE.trim_start_matches(['\u{feff}', '\n'])
    );
    assert_eq!(value(&fenced), expected);
}

#[test]
fn forms_that_are_taken() {
    let title = "HANDOFF: a -> b\n";
    let taken = [
        ("", json!({})),
        ("===\n===", json!({})),
        ("A:\n\n- x", json!({"a": ["x"]})),
        ("A:\n* x\n\n* y", json!({"a": ["x", "y"]})),
        ("A:\n- x\n  - y: z\n- v", json!({"a": ["x\n- y: z", "v"]})),
        ("A:\n- x:\n  y\n", json!({"a": {"x": "y"}})),
        ("A:\n- `x`: y", json!({"a": ["`x`: y"]})),
        ("A: [x] {y}", json!({"a": "[x] {y}"})),
        ("A-1/B: x:y", json!({"a_1_b": "x:y"})),
        ("A:\n```\n{}\n```\nB: x", json!({"a": {}, "b": "x"})),
        ("A:\n[]\nB: x", json!({"a": [], "b": "x"})),
        ("A:\nNot one: x\n 1: y", json!({"a": "Not one: x\n 1: y"})),
        ("ÉTAT DU 3: ça", json!({"état_du_3": "ça"})),
        ("HANDOFF FAILED: x", json!({"handoff_failed": "x"})),
    ];
    for (text, expected) in taken {
        let mut found = value(&format!("{title}{text}"));
        let members = found.as_object_mut().unwrap();
        assert_eq!(members.remove("from"), Some("a".into()));
        assert_eq!(members.remove("to"), Some("b".into()));
        assert_eq!(found, expected, "{text:?}");
    }
    let long = format!("{title}A:\n- {}: y", "x".repeat(65));
    assert!(value(&long)["a"].is_array());
    let fenced = "````\nHANDOFF: a → b\nA:\n```\n{}\n```\n````";
    assert_eq!(value(fenced), json!({"from": "a", "to": "b", "a": {}}));
    let same = "```\nHANDOFF: a → b\nA:\n```\n{}\n```\n```\n";
    assert_eq!(value(same), json!({"from": "a", "to": "b", "a": {}}));
}

#[test]
fn every_fault_has_its_place() {
    let title = "HANDOFF: a → b";
    let refused: &[(&str, &[&str])] = &[
        ("HANDOFF: a b", &["1:1 markdown.title "]),
        ("HANDOFF:", &["1:1 markdown.title "]),
        ("HANDOFF: → b", &["1:1 markdown.title "]),
        ("HANDOFF: a ->", &["1:1 markdown.title "]),
        ("\n HANDOFF: a → b → c", &["2:2 markdown.title "]),
        ("T\nHANDOFF: b → c", &["2:1 markdown.second_title "]),
        ("T\nA: x\nHANDOFF:\nB: y", &["3:1 markdown.second_title "]),
        (
            "T\n\nhello\nyou\nA: x",
            &["3:1 markdown.text_before_section "],
        ),
        ("T\n A: x", &["2:1 markdown.text_before_section "]),
        ("T\n- a\n===\nA: x", &["2:1 markdown.text_before_section "]),
        (
            "T\nA B: x\nC: y\nA-B:\n- z",
            &["4:1 markdown.duplicate_key /a_b"],
        ),
        ("T\nFROM: x", &["2:1 markdown.duplicate_key /from"]),
        (
            "T\nA:\n- x y: 1\n- X_Y: 2\n- z: 3\n- x-y: 4",
            &[
                "4:3 markdown.duplicate_key /a/x_y",
                "6:3 markdown.duplicate_key /a/x_y",
            ],
        ),
        ("T\nA:", &["2:1 markdown.empty /a"]),
        (
            "T\nA:\n\nB: x\nC:\n===",
            &["2:1 markdown.empty /a", "5:1 markdown.empty /c"],
        ),
        ("```\nT\nA:\n```", &["3:1 markdown.empty /a"]),
        ("T\nA:\n- x\n-\n- y", &["4:2 markdown.empty /a/1"]),
        ("T\nA:\n- x:\n- y: 1", &["3:3 markdown.empty /a/x"]),
        ("T\nA:\n- x\ny\nz", &["4:1 markdown.mixed /a"]),
        ("T\nA:\nx\n- y\n- z", &["4:1 markdown.mixed /a"]),
        ("T\nA: x\n- y", &["3:1 markdown.mixed /a"]),
        ("T\nA: x\n{\"a\": 1}", &["3:1 markdown.mixed /a"]),
        ("T\nA: {\n\"a\": 1\n}", &["3:1 markdown.mixed /a"]),
        ("T\nA:\nx\n```\ny\n```", &["4:1 markdown.mixed /a"]),
        ("T\nA:\n```json\n{}\n```\nx", &["6:1 markdown.mixed /a"]),
        ("T\nA:\n{}\n```", &["4:1 markdown.mixed /a"]),
        ("T\nA:\n```text\nx\n```", &["3:1 markdown.code_block /a"]),
        ("T\nA:\n```json\n7\n```", &["3:1 markdown.code_block /a"]),
        ("T\nA:\n```\n```", &["3:1 markdown.code_block /a"]),
        ("T\nA:\n```json\n{}", &["3:1 markdown.unclosed /a"]),
        (
            "T\nA:\n```json\n{}\nB: x\n===",
            &["3:1 markdown.unclosed /a"],
        ),
        ("T\nA:\n {\"a\": [1,\nB: x", &["3:2 markdown.unclosed /a"]),
        ("T\nA:\n{\"a\": \"x\n===", &["3:1 markdown.unclosed /a"]),
        ("```\nT\nA: x\n===\n", &["5:1 markdown.unclosed "]),
        (
            "T\nA: x\n===\n\nbye\nbye",
            &["5:1 markdown.text_after_end "],
        ),
        ("T\nA: x\n===\nB: y", &["4:1 markdown.text_after_end "]),
        ("```\nT\nA: x\n```\nbye", &["5:1 markdown.text_after_end "]),
        ("HANDOFF: a\u{1} → b", &["1:11 text.control_character "]),
        (
            "T\nA: x\u{0}\nB:\n- y\u{ffff}: z\n",
            &[
                "2:5 text.control_character /a",
                "4:4 text.control_character /b",
            ],
        ),
        (
            "T\nA:\n  {\"é\": 1, \"é\": 2,\n \"b\": {\"c\": 1, \"c\": 1}}",
            &[
                "3:12 json.duplicate_key /a/é",
                "4:16 json.duplicate_key /a/b/c",
            ],
        ),
        (
            "T\nA:\n{\"a\": \"\\u0001\"}",
            &["3:7 text.control_character /a/a"],
        ),
        ("T\nA:\n  [1,]\nB: x", &["3:6 json.syntax /a"]),
        ("T\nA:\n{}\nmore", &["4:1 json.syntax /a"]),
        ("T\nA:\n{\"a\": \"x\n\"}", &["4:1 json.syntax /a"]),
        (
            "T\nA:\n[99999999999999999999]",
            &["3:2 json.number_range /a/0"],
        ),
        (
            "T\nA: x\nA: y\nB:\n===\nend",
            &[
                "3:1 markdown.duplicate_key /a",
                "4:1 markdown.empty /b",
                "6:1 markdown.text_after_end ",
            ],
        ),
    ];
    for (text, expected) in refused {
        let titled = text.contains("HANDOFF: a") || text.starts_with("HANDOFF:");
        let text = text.replacen('T', title, usize::from(!titled));
        assert_eq!(faults(&text), *expected, "{text:?}");
    }
}

#[test]
fn what_is_no_message_is_said() {
    for text in [
        "HANDOFF FAILED: x",
        "handoff: a → b",
        "# HANDOFF: a → b",
        "Here it is:\n```json\n{}\n```",
        "```\n```\nHANDOFF: a → b",
    ] {
        let found = faults(text);
        assert_eq!(found, ["1:1 input.unknown_format "], "{text:?}");
    }
}

#[test]
fn faults_and_costs_are_bounded() {
    let nested = |levels: usize| {
        format!(
            "HANDOFF: a → b\nA:\n{}{}",
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert_eq!(faults(&nested(64)), [""; 0]);
    assert_eq!(faults(&nested(65)), ["3:65 json.too_deep /a"]);
    let open = format!("HANDOFF: a → b\nA:\n{}", "[".repeat(100_000));
    assert_eq!(faults(&open), ["3:65 json.too_deep /a"]);
    let many = format!("HANDOFF: a → b\n{}", "A: x\n".repeat(100_000));
    assert_eq!(faults(&many).len(), crate::MAX_FINDINGS);
    let long = format!(
        "HANDOFF: a → b\n{}:\n{}",
        "A".repeat(400_000),
        "- x\n".repeat(100_000)
    );
    assert_eq!(faults(&long), [""; 0]);
}

#[test]
fn places_are_those_of_the_message() {
    let source = parsed(MESSAGE);
    let at = |wrapper: Option<&str>, pointer: &str| {
        let place = source.place(&Shape::open(), wrapper, pointer);
        (place.path, place.line.unwrap(), place.column.unwrap())
    };
    let expected = [
        ("", 2, 1),
        ("/to", 2, 28),
        ("/absent/more", 2, 1),
        ("/status", 4, 9),
        ("/release", 6, 1),
        ("/release/absent", 6, 1),
        ("/release/target_branch", 8, 18),
        ("/steps_to_run/4_2", 14, 8),
        ("/watch_out_for/1", 18, 3),
        ("/watch_out_for/9", 16, 1),
        ("/notes", 22, 1),
        ("/next_action", 27, 14),
        ("/order_4/1/after/0", 31, 20),
        ("/handoff_data", 35, 1),
        ("/handoff_data/é/share", 36, 30),
    ];
    for (pointer, line, column) in expected {
        assert_eq!(at(None, pointer), (pointer.to_owned(), line, column));
    }
    let data = Some("handoff_data");
    assert_eq!(
        at(data, "/list/1"),
        ("/handoff_data/list/1".to_owned(), 37, 18)
    );
    assert_eq!(at(data, "/x"), ("/handoff_data/x".to_owned(), 35, 1));
}

#[test]
fn root_members_and_probe_need_no_schema() {
    let source = parsed(MESSAGE);
    assert_eq!(source.root(&["handoff"]), None);
    let root = source.root(&["handoff", "handoff_data"]);
    assert_eq!(root.as_deref(), Some("handoff_data"));
    assert_eq!(source.probe(None, "/to").as_deref(), Some("Build Runner"));
    assert_eq!(
        source.probe(None, "/release/version").as_deref(),
        Some("4.2.0")
    );
    assert_eq!(source.probe(None, "/release"), None);
    let probed = source.probe(root.as_deref(), "/é/count");
    assert_eq!(probed.as_deref(), Some("2"));
    assert_eq!(source.members(None)[3], ("release", true));
    let inside = source.members(root.as_deref());
    assert_eq!(inside, [("é", true), ("list", false)]);
}

#[test]
fn findings_say_how_to_write_it_in_markdown() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "required": ["from", "step_list", "made", "next_step", "release", "handoff_data"],
        "properties": {
            "step_list": {"type": "array", "items": {"type": "string"}},
            "made": {"type": "object", "additionalProperties": {"type": "string"}},
            "next_step": {"enum": ["run", "wait"]},
            "status": {"type": "object", "properties": {"a": {"type": "string"}}},
            "notes": {"type": "array", "items": {"type": "string"}},
            "next_action": {"type": "string", "maxLength": 3},
            "release": {
                "type": "object",
                "additionalProperties": false,
                "required": ["built_on", "version"],
                "properties": {
                    "version": {"type": "string", "pattern": "^v"},
                    "built_on": {"type": "string"},
                    "target_branch": {"type": "string"},
                    "steps_done": {"type": "integer"}
                }
            },
            "handoff_data": {
                "type": "object",
                "required": ["who"],
                "properties": {"list": {"type": "array", "items": {"type": "boolean"}}, "who": {"type": "string"}}
            }
        }
    }))
    .unwrap();
    let text = MESSAGE.replace("true, null", "\"true\"");
    let found = schema.check(&parsed(&text), None).findings;
    let shown: Vec<String> = found
        .iter()
        .map(|f| {
            let fix = f.fix.as_deref().unwrap_or("-");
            let (line, column) = (f.line.unwrap(), f.column.unwrap());
            format!(
                "{line}:{column} {} {}: {} ({fix})",
                f.code, f.path, f.message
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    2:1 field.missing /made: `made` is missing (add the section `MADE:` with bullets such as `- Key: …`, or with JSON)
    2:1 field.missing /next_step: `next_step` is missing (add the section `NEXT STEP: run|wait`)
    2:1 field.missing /step_list: `step_list` is missing (add the section `STEP LIST:` with a list)
    4:9 field.type /status: expected an object, not the text `plan is ready` (write bullets such as `- Key: …`, or JSON, on the lines below the heading)
    6:1 field.missing /release/built_on: `built_on` is missing (add `- Built on: …`)
    7:12 field.pattern /release/version: `4.2.0` must match ^v (-)
    9:15 field.type /release/steps_done: expected a whole number, not the text `3\u{a}of 5` (write the section as JSON: a section's text and its bullets are always text)
    22:1 field.type /notes: expected a list, not the text `The first line.\u{a}  The second: indented.\u{a}\u{a}The third.` (write bullets such as `- …`, or JSON, on the lines below the heading)
    27:14 field.length /next_action: the text has more than 3 characters (-)
    35:1 field.missing /handoff_data/who: `who` is missing (add `"who": "…"`)
    37:12 field.type /handoff_data/list/0: expected true or false, not the text `true` (write it without the quotes)
    "#);
}

#[test]
fn foreign_text_stays_on_its_line() {
    let data = json!({"a": "HANDOFF: x → y\n===\nB: c", "b": []});
    let text = write_markdown(
        &data,
        "a\n→ b->c",
        "",
        "done\r\nHANDOFF: x → y\u{2028}\u{85}===\n- k: v\u{ffff}",
    );
    assert_eq!(
        text.lines().take(3).collect::<Vec<_>>(),
        [
            "HANDOFF: a - b--c → ?",
            "=".repeat(48).as_str(),
            "STATUS: done  HANDOFF: x → y  === - k: v\u{fffd}",
        ]
    );
    let expected = json!({
        "from": "a - b--c",
        "to": "?",
        "status": "done  HANDOFF: x → y  === - k: v\u{fffd}",
        "handoff_data": data
    });
    assert_eq!(value(&text), expected);
    let plain = write_markdown(&json!(["x"]), "a", "b", " \n");
    let expected = json!({"from": "a", "to": "b", "handoff_data": ["x"]});
    assert_eq!(value(&plain), expected);
}

#[test]
fn the_documents_sample_is_read_as_it_says() {
    let document = include_str!("../../../../docs/markdown.md");
    let blocks: Vec<&str> = document.split("```").collect();
    let expected: Value = serde_json::from_str(blocks[3].trim_start_matches("json")).unwrap();
    assert_eq!(value(blocks[1]), expected);
}
