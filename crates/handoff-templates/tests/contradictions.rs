//! Contradictory rules of a protocol, and rules that can never hold, are found with their places;
//! rules that can be obeyed are not.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use handoff_base::finding::Finding;
use handoff_model::check_protocol;
use handoff_templates::{BUILT_IN, Folder, built_in, relay};
use serde_json::{Value, json};

const CODE: &str = "protocol.contradiction";

fn found(files: &[(String, Vec<u8>)]) -> Vec<Finding> {
    let found = check_protocol(files).into_iter();
    found
        .filter(|finding| finding.code.to_string() == CODE)
        .collect()
}

/// The findings for a built-in protocol with these rules prepended to its lists or set as members;
/// and the definition's text.
fn with(name: &str, changes: &Value) -> (Vec<Finding>, String) {
    let agents = ["writer", "editor", "printer"].map(|agent| agent.parse().unwrap());
    let own = || relay(&name.parse().unwrap(), &agents);
    let mut files = built_in(name).unwrap_or_else(own).into_files();
    let (_, file) = files
        .iter_mut()
        .find(|(path, _)| path == "protocol.json")
        .unwrap();
    let mut definition: Value = serde_json::from_slice(file).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        let part = definition
            .as_object_mut()
            .unwrap()
            .entry(key)
            .or_insert(if value.is_array() {
                json!([])
            } else {
                json!({})
            });
        match part {
            Value::Array(list) => drop(list.splice(0..0, value.as_array().unwrap().clone())),
            members => members
                .as_object_mut()
                .unwrap()
                .extend(value.as_object().unwrap().clone()),
        }
    }
    let text = serde_json::to_string_pretty(&definition).unwrap();
    *file = text.clone().into_bytes();
    let all = check_protocol(&files);
    let others = all
        .iter()
        // A rule of another type may name a field that this type lacks: it contradicts nothing.
        .filter(|f| f.is_error() && ![CODE, "protocol.unknown_field"].contains(&f.code.as_str()));
    assert_eq!(others.count(), 0, "{name} {changes}: {all:#?}");
    (found(&files), text)
}

#[test]
fn what_is_built_in_and_shown_contradicts_nothing() {
    for name in BUILT_IN {
        assert_eq!(found(&built_in(name).unwrap().into_files()), [], "{name}");
    }
    for example in ["bakery", "works"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/protocols")
            .join(example);
        assert_eq!(
            found(&Folder::read(&path).unwrap().into_files()),
            [],
            "{example}"
        );
    }
}

#[test]
fn each_contradiction_is_found_and_what_can_be_obeyed_is_not() {
    let rule = |compare: Value, when: Value| json!({"consistency": [{"name": "other", "when": when, "compare": compare}]});
    let of = |kind: &str, compare: Value| json!({"consistency": [{"name": "other", "of": [kind], "compare": compare}]});
    let decided = |when: Value, action: &str| json!({"decisions": [{"when": when, "action": action, "why": "so"}]});
    let required = |of: Value| json!({"requirements": {"other": of}});
    let review = "reviewer-agent-to-validator-agent";
    // Columns: a protocol, a contradictory change, the expected message, a consistent change.
    let table: Vec<(&str, Value, &str, Value)> = vec![
        (
            "issue-to-pr",
            rule(
                json!({"at_most": [1, "/important_count"]}),
                json!({"/review_status": "approved"}),
            ),
            "rule `approved-without-important` contradicts another, so that no `/important_count` in a contract of type `reviewer-agent-to-validator-agent` obeys both: `other`, in line",
            rule(
                json!({"at_most": [1, "/important_count"]}),
                json!({"/review_status": "changes_requested"}),
            ),
        ),
        (
            "orchestrator-specialist",
            of(
                "response",
                json!({"same": ["/validation/tests_passing", false]}),
            ),
            "rule `delivered-tests` contradicts another, so that no `/validation/tests_passing`",
            of(
                "failure",
                json!({"same": ["/validation/tests_passing", false]}),
            ),
        ),
        (
            "orchestrator-specialist",
            of(
                "response",
                json!({"at_most": [1, "/validation/typescript_errors"]}),
            ),
            "rule `delivered-types` contradicts another, so that no `/validation/typescript_errors`",
            of(
                "response",
                json!({"distinct": ["/validation/status", "text:skipped"]}),
            ),
        ),
        (
            "delegation",
            rule(
                json!({"at_most": [1, "/unresolved/*|count"]}),
                json!({"/status": ["resolved", "partial"]}),
            ),
            "rule `resolved-leaves-nothing` contradicts another, so that no `/unresolved/*|count`",
            rule(
                json!({"at_most": [1, "/unresolved/*|count"]}),
                json!({"/status": ["partial", "failed"]}),
            ),
        ),
        (
            "directive",
            rule(
                json!({"same": ["/missing_inputs/*/blocking|is true|count", 2]}),
                json!({"/status": "success"}),
            ),
            "rule `success-lacks-nothing` contradicts another",
            rule(
                json!({"same": ["/missing_inputs/*/blocking|is true|count", 2]}),
                json!({"/status": "blocked"}),
            ),
        ),
        (
            "task-breakdown",
            rule(
                json!({"distinct": ["/handoff_data/template", "/created/template"]}),
                json!({}),
            ),
            "rule `template` contradicts another, so that no `/created/template`",
            rule(
                json!({"distinct": ["/created/template", "text:none"]}),
                json!({}),
            ),
        ),
        // A rule alone: an unlisted word, a number out of the schema's range, another type, its own
        // `when`.
        (
            "issue-to-pr",
            rule(
                json!({"same": ["/review_status", "text:blessed"]}),
                json!({}),
            ),
            "rule `other` can never hold: no `/review_status` that a contract of type",
            rule(
                json!({"same": ["/review_status", "text:approved"]}),
                json!({"/review_status": "approved"}),
            ),
        ),
        (
            "issue-to-pr",
            rule(json!({"at_most": ["/important_count", -1]}), json!({})),
            "rule `other` can never hold: no `/important_count`",
            rule(json!({"at_most": ["/important_count", 0]}), json!({})),
        ),
        (
            "issue-to-pr",
            rule(
                json!({"same": ["/important_count", "text:none"]}),
                json!({}),
            ),
            "rule `other` can never hold: no `/important_count`",
            rule(json!({"same": ["/important_count", "text:0"]}), json!({})),
        ),
        (
            "delegation",
            rule(
                json!({"same": ["/status", "text:partial"]}),
                json!({"/status": "resolved"}),
            ),
            "rule `other` can never hold: no `/status`",
            rule(json!({"distinct": ["/status", "text:resolved"]}), json!({})),
        ),
        (
            "issue-to-pr",
            rule(
                json!({"same": ["/important_count", 0]}),
                json!({"/review_status": "blessed"}),
            ),
            "rule `other` applies to no contract: none can have what its `when` asks",
            rule(
                json!({"same": ["/important_count", 0]}),
                json!({"/review_status": "*"}),
            ),
        ),
        // A text that the schema refuses; a pair of lists, a filtered pair, and one with itself.
        (
            "press",
            of(
                "writer-to-editor",
                json!({"same": ["/issue", "text:two words"]}),
            ),
            "rule `other` can never hold: no `/issue` that a contract of type `writer-to-editor` can have obeys it: its schema has {\"pattern\":",
            of("writer-to-editor", json!({"same": ["/issue", "text:word"]})),
        ),
        (
            "task-breakdown",
            rule(
                json!({"distinct": ["/created/template|names", "/created/template|names"]}),
                json!({}),
            ),
            "rule `other` can never hold: no `/created/template|names`",
            rule(
                json!({"distinct": ["/created/template|names", "fact:template"]}),
                json!({}),
            ),
        ),
        (
            "press",
            json!({"consistency": [
                {"name": "same", "of": ["writer-to-editor"], "compare": {"same": ["/details|key", "/summary|key"]}},
                {"name": "other", "of": ["writer-to-editor"], "compare": {"distinct": ["/summary|key", "/details|key"]}},
            ]}),
            "rule `other` contradicts another, so that no `/details|key` in a contract of type `writer-to-editor` obeys both: `same`, in line",
            json!({"consistency": [
                {"name": "same", "of": ["writer-to-editor"], "compare": {"same": ["/details|key", "/summary|key"]}},
                {"name": "other", "of": ["writer-to-editor"], "compare": {"distinct": ["/summary|key", "/details"]}},
            ]}),
        ),
        // Numbers: a text, and listed values that are all greater.
        (
            "issue-to-pr",
            rule(json!({"at_most": ["/review_status", 3]}), json!({})),
            "rule `other` compares nothing: `at_most` takes a number, and `/review_status` is never one",
            rule(
                json!({"at_most": ["/review_status|names|count", 3]}),
                json!({}),
            ),
        ),
        // Decisions.
        (
            "review",
            decided(json!({"state": "failed"}), "escalate"),
            "decision `retry 3` is never reached: what it asks for meets an earlier one, `escalate 1`, in line",
            decided(json!({"state": "failed"}), "reassign"),
        ),
        (
            "task-breakdown",
            decided(json!({"state": "failed"}), "escalate"),
            "decision `retry 2` is never reached",
            decided(json!({"state": "failed", "after_seconds": 60}), "escalate"),
        ),
        (
            "issue-to-pr",
            decided(json!({"state": "blocked", "retries_left": true}), "ask"),
            "decision `ask 1` never applies: only what failed has retries left",
            decided(
                json!({"state": "failed", "retries_left": true, "priority": ["low"]}),
                "retry",
            ),
        ),
        (
            "issue-to-pr",
            decided(json!({"state": "dead", "redriven_below": 0}), "retry"),
            "decision `retry 1` never applies: `redriven_below` is 0, and no count is below 0",
            decided(json!({"state": "dead", "redriven_below": 1}), "retry"),
        ),
        (
            "review",
            decided(json!({"to_decide": true}), "escalate"),
            "decision `escalate 1` never applies: there is no agent of kind `orchestrator`",
            decided(json!({"state": "dead", "codes": ["TIMEOUT"]}), "escalate"),
        ),
        (
            "issue-to-pr",
            json!({"limits": {"retry": {"max_retries": 3, "never": ["TIMEOUT"]}}}),
            "decision `retry 2` never applies: what fails with these codes has no retries left, by `never`, in line",
            json!({"limits": {"retry": {"max_retries": 3, "never": ["OTHER"]}}}),
        ),
        (
            "task-breakdown",
            json!({"limits": {"retry": {"max_retries": 0}}}),
            "decision `retry 1` never applies: nothing has retries left, by `max_retries`, in line",
            json!({"limits": {"retry": {"max_retries": 1}}}),
        ),
        // Requirements and limits.
        (
            "orchestrator-specialist",
            required(json!({"title": "x", "shown_by": ["failure"], "status": ["completed"]})),
            "requirement `other` can never be met: no `failure` has a status that counts",
            required(json!({"title": "x", "shown_by": ["failure"], "status": ["failed"]})),
        ),
        (
            "issue-to-pr",
            required(json!({"title": "x", "shown_by": ["error"]})),
            "requirement `other` can never be met: no `error`",
            required(json!({"title": "x", "shown_by": ["error", review]})),
        ),
        (
            "issue-to-pr",
            required(
                json!({"title": "x", "merge": true, "shown_by": ["reviewer-agent-to-fixer-agent"], "undone_by": [review]}),
            ),
            "requirement `other` and another undo each other, so that nothing can be merged: `approved`, in line",
            required(
                json!({"title": "x", "shown_by": ["reviewer-agent-to-fixer-agent"], "undone_by": [review]}),
            ),
        ),
        (
            "press",
            json!({"limits": {"handoffs": 1}}),
            "the end of an issue takes 2 handoffs, more than the limit `handoffs`, in line",
            json!({"limits": {"handoffs": 2}}),
        ),
    ];
    for (name, contradicts, told, obeyed) in table {
        let (found, text) = with(name, &contradicts);
        let [finding, ..] = &found[..] else {
            panic!("nothing is found in {name} with {contradicts}");
        };
        assert!(finding.message.starts_with(told), "{finding:#?}");
        assert!(finding.fix.is_some(), "{finding:#?}");
        // Rules that never refuse only cause warnings.
        let warns = told.starts_with("decision")
            || ["applies to no contract", "compares nothing"]
                .iter()
                .any(|weak| told.contains(weak));
        assert_eq!(finding.is_error(), !warns, "{finding:#?}");
        let line = finding
            .line
            .and_then(|line| text.lines().nth(line as usize - 1));
        assert!(
            line.is_some_and(|line| line.trim_end().ends_with('{') || line.contains('[')),
            "{finding:#?}"
        );
        let (found, _) = with(name, &obeyed);
        assert_eq!(found, [], "{name} {obeyed}");
    }
}

/// A rule that says nothing is told as a warning; one that some contract breaks is not.
#[test]
fn a_rule_that_always_holds_is_told() {
    let response = |compare: &Value| json!({"consistency": [{"name": "other", "of": ["response"], "compare": compare}]});
    let errors = "/validation/typescript_errors";
    // Columns: a comparison that always holds, the expected reason, one that may fail.
    let table = [
        (
            json!({"same": [errors, errors]}),
            "it compares `/validation/typescript_errors` with itself",
            json!({"same": [errors, 0]}),
        ),
        (
            json!({"at_most": [0, "/validation/status|failing"]}),
            "every `/validation/status|failing` obeys it",
            json!({"at_most": [1, "/validation/status|failing"]}),
        ),
        (
            json!({"at_most": [0, errors]}),
            "every `/validation/typescript_errors` obeys it: its schema allows 0..",
            json!({"at_most": [errors, 5]}),
        ),
    ];
    for (idle, why, sound) in table {
        let (found, _) = with("orchestrator-specialist", &response(&idle));
        let told: Vec<&str> = found.iter().map(|finding| &*finding.message).collect();
        assert_eq!(found.len(), 1, "{idle}: {told:#?}");
        assert!(!found[0].is_error() && found[0].path == "/consistency/0");
        assert!(
            told[0].starts_with(&format!("rule `other` always holds: {why}")),
            "{told:#?}"
        );
        let (found, _) = with("orchestrator-specialist", &response(&sound));
        let told: Vec<&str> = found.iter().map(|finding| &*finding.message).collect();
        assert!(
            !told.iter().any(|text| text.contains("always holds")),
            "{told:#?}"
        );
    }
}

/// The findings for the protocol `press` whose contracts to the editor also have these fields, with
/// these rules.
fn of_press(fields: &Value, rules: &Value, limits: &Value) -> Vec<Finding> {
    let agents = ["writer", "editor", "printer"].map(|agent| agent.parse().unwrap());
    let mut files = relay(&"press".parse().unwrap(), &agents).into_files();
    for (path, bytes) in &mut files {
        let mut value: Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(_) => continue,
        };
        if path == "protocol.json" {
            value["consistency"] = rules.clone();
            let own = value["limits"].as_object().cloned().unwrap_or_default();
            let all = own.into_iter().chain(limits.as_object().unwrap().clone());
            value["limits"] = Value::Object(all.collect());
        } else if path.starts_with("schemas/") && path.contains("writer-to-editor") {
            let known = value["properties"].as_object_mut().unwrap();
            known.extend(fields.as_object().unwrap().clone());
        } else {
            continue;
        }
        *bytes = serde_json::to_vec_pretty(&value).unwrap();
    }
    let mut found = check_protocol(&files);
    found.retain(|finding| finding.severity != handoff_base::finding::Severity::Note);
    found
}

/// A rule about contracts to the editor.
fn rule(name: &str, when: Value, compare: Value) -> Value {
    json!({"name": name, "of": ["writer-to-editor"], "when": when, "compare": compare})
}

fn any() -> Value {
    json!({})
}

/// Asserts that three rules contradict each other, if they do, for these fields `a`, `b` and `c`.
fn assert_together(table: Vec<([&Value; 3], Value, bool)>) {
    for ([a, b, c], rules, is_contradictory) in table {
        let found = of_press(&json!({"a": a, "b": b, "c": c}), &rules, &any());
        if !is_contradictory {
            assert_eq!(found, [], "{rules}");
            continue;
        }
        let [finding] = &found[..] else {
            panic!("{rules}: {found:#?}");
        };
        let told = "rule `three` contradicts others, so that no contract of type `writer-to-editor` obeys all of them: `one`, in line ";
        assert!(finding.message.starts_with(told), "{finding:#?}");
        assert!(
            finding.message.contains(", and `two`, in line "),
            "{finding:#?}"
        );
        assert!(
            finding.is_error() && finding.line.is_some() && finding.fix.is_some(),
            "{finding:#?}"
        );
    }
}

#[test]
fn rules_that_no_contract_obeys_together_are_found() {
    let word = json!({"type": "string"});
    let two = json!({"enum": ["x", "y"]});
    // Columns: what the fields a, b and c are, the rules, whether they contradict each other.
    assert_together(vec![
        // Equal over a third term.
        (
            [&word, &word, &word],
            json!([
                rule("one", any(), json!({"same": ["/a", "/b"]})),
                rule("two", any(), json!({"same": ["/b", "/c"]})),
                rule("three", any(), json!({"distinct": ["/a", "/c"]})),
            ]),
            true,
        ),
        // Three that all differ, of two values; and of more.
        (
            [&two, &two, &two],
            json!([
                rule("one", any(), json!({"distinct": ["/a", "/b"]})),
                rule("two", any(), json!({"distinct": ["/b", "/c"]})),
                rule("three", any(), json!({"distinct": ["/a", "/c"]})),
            ]),
            true,
        ),
        (
            [&two, &two, &word],
            json!([
                rule("one", any(), json!({"distinct": ["/a", "/b"]})),
                rule("two", any(), json!({"distinct": ["/b", "/c"]})),
                rule("three", any(), json!({"distinct": ["/a", "/c"]})),
            ]),
            false,
        ),
        // One leads to another.
        (
            [&two, &two, &two],
            json!([
                rule("one", json!({"/a": "x"}), json!({"same": ["/b", "text:x"]})),
                rule("two", json!({"/b": "x"}), json!({"same": ["/c", "text:x"]})),
                rule(
                    "three",
                    json!({"/a": "x"}),
                    json!({"same": ["/c", "text:y"]})
                ),
            ]),
            true,
        ),
        (
            [&two, &two, &two],
            json!([
                rule("one", json!({"/a": "x"}), json!({"same": ["/b", "text:x"]})),
                rule("two", json!({"/b": "x"}), json!({"same": ["/c", "text:x"]})),
                rule(
                    "three",
                    json!({"/a": "y"}),
                    json!({"same": ["/c", "text:y"]})
                ),
            ]),
            false,
        ),
    ]);
}

#[test]
fn bounds_of_numbers_are_followed_over_several_rules() {
    let from_five = json!({"type": "integer", "minimum": 5});
    let (number, to_seven) = (
        json!({"type": "integer"}),
        json!({"type": "integer", "maximum": 7}),
    );
    assert_together(vec![
        // A chain of numbers.
        (
            [&from_five, &number, &to_seven],
            json!([
                rule("one", any(), json!({"at_most": ["/a", "/b"]})),
                rule("two", any(), json!({"at_most": ["/b", "/c"]})),
                rule("three", any(), json!({"at_most": ["/c", 4]})),
            ]),
            true,
        ),
        (
            [&from_five, &number, &to_seven],
            json!([
                rule("one", any(), json!({"at_most": ["/a", "/b"]})),
                rule("two", any(), json!({"at_most": ["/b", "/c"]})),
                rule("three", any(), json!({"at_most": ["/c", 5]})),
            ]),
            false,
        ),
    ]);
}

/// Asserts the warning about fields `a` and `b`, rules and limits; an empty one stands for none.
fn assert_told(table: Vec<([&Value; 2], Value, Value, &str)>) {
    for ([a, b], rules, limits, told) in table {
        let found = of_press(&json!({"a": a, "b": b}), &rules, &limits);
        match &found[..] {
            [] => assert_eq!(told, "", "{a} {rules} {limits}"),
            [finding] => {
                assert!(
                    !told.is_empty() && finding.message.starts_with(told),
                    "{finding:#?}"
                );
                assert!(
                    finding.line.is_some() && finding.fix.is_some(),
                    "{finding:#?}"
                );
            }
            _ => panic!("{found:#?}"),
        }
    }
}

#[test]
fn limits_and_conditions_that_are_never_reached_are_found() {
    let same = |when: Value| json!([rule("one", when, json!({"at_most": [1, "/b"]}))]);
    let number = json!({"type": "integer"});
    let rounds = |most: u32, when: Value| json!({"handoffs": 20, "rounds": {"again": {"contracts": ["writer-to-editor"], "when": when, "most": most}}});
    let alternatives = json!({"oneOf": [{"const": "x"}, {"const": "y"}]});
    let listed = json!({"enum": [4, 5]});
    let at_most = json!([rule("one", any(), json!({"at_most": ["/b", 3]}))]);
    // Columns: the fields a and b, the rules, the limits, the expected message.
    assert_told(vec![
        (
            [&json!({"const": "x"}), &number],
            same(json!({"/a": "y"})),
            json!({}),
            "rule `one` applies to no contract",
        ),
        (
            [&alternatives, &number],
            same(json!({"/a": "z"})),
            json!({}),
            "rule `one` applies to no contract",
        ),
        (
            [&alternatives, &number],
            same(json!({"/a": "y"})),
            json!({}),
            "",
        ),
        (
            [&alternatives, &listed],
            at_most,
            json!({}),
            "rule `one` can never hold: no `/b`",
        ),
        (
            [&alternatives, &number],
            json!([]),
            rounds(3, json!({"/a": "z"})),
            "round `again` is never counted",
        ),
        (
            [&alternatives, &number],
            json!([]),
            rounds(3, json!({"/a": "x"})),
            "",
        ),
        (
            [&alternatives, &number],
            json!([]),
            rounds(21, json!({})),
            "the limit of 21 is never reached: an issue has 20 handoffs at most",
        ),
        (
            [&alternatives, &number],
            json!([]),
            rounds(20, json!({})),
            "",
        ),
    ]);
}

#[test]
fn limits_on_values_of_another_type_are_found() {
    let number = json!({"type": "integer"});
    assert_told(vec![
        (
            [&json!({"type": "string", "maximum": 3}), &number],
            json!([]),
            json!({}),
            "`maximum` says nothing here: it limits a number, and the type is string",
        ),
        (
            [&json!({"type": "integer", "maxLength": 3}), &number],
            json!([]),
            json!({}),
            "`maxLength` says nothing here",
        ),
        (
            [
                &json!({"type": ["string", "null"], "maxLength": 3}),
                &number,
            ],
            json!([]),
            json!({}),
            "",
        ),
    ]);
}
