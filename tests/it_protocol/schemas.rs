//! What ships as data: schemas, templates, and the protocols that name them.

use std::collections::BTreeSet;
use std::fs;

use handoff::base::finding::{FindingCode, Severity};
use handoff::base::ids::AgentName;
use handoff::contract::{Schema, write_json, write_markdown, write_message, write_xml};
use handoff::model::check_protocol;
use handoff::protocol::{ContractType, Protocol};
use handoff::templates::{BUILT_IN, Known, built_in, fill};
use serde_json::{Value, json};

use crate::rules::{NAME, Rules, line, root};

#[test]
fn every_schema_passes_the_meta_schema() {
    for name in BUILT_IN {
        let files = built_in(name).unwrap().into_files();
        let schemas: Vec<_> = files
            .iter()
            .filter(|(p, _)| p.ends_with(".schema.json"))
            .collect();
        assert!(!schemas.is_empty());
        for (path, bytes) in schemas {
            let schema: Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!(
                schema["$schema"], "https://json-schema.org/draft/2020-12/schema",
                "{path}"
            );
            if let Err(error) = Schema::compile(&schema) {
                panic!("{path}: {error}");
            }
        }
    }
}

#[test]
fn schemas_find_the_same_however_they_are_compiled() {
    use handoff::contract::{Format, Source};
    let mut valid_ones = 0;
    for rules in Rules::all() {
        let roots = rules.protocol.roots();
        let (valid, invalid) = (rules.samples("valid"), rules.samples("invalid"));
        for contract in &rules.protocol.definition().contracts {
            let schema = rules.schema(&contract.name);
            let (full, trusted) = (
                Schema::compile(&schema).unwrap(),
                Schema::compile_trusted(&schema).unwrap(),
            );
            for sample in valid.iter().chain(&invalid) {
                let Ok(source) = Source::parse(&sample.bytes) else {
                    continue;
                };
                let wrapper = source
                    .root(&roots)
                    .filter(|_| source.format() == Format::Json);
                let sound = Schema::sound(schema.clone()).unwrap();
                let [a, b, c] =
                    [&full, &trusted, &sound].map(|s| s.check(&source, wrapper.as_deref()));
                let name = format!("{} {}", contract.name, sample.name);
                assert_eq!(a.value, b.value, "{name}");
                assert_eq!(a.findings, b.findings, "{name}");
                assert_eq!(a.value, c.value, "{name}");
                assert_eq!(a.findings, c.findings, "{name}");
                valid_ones += u32::from(a.is_valid());
            }
        }
    }
    assert!(valid_ones > 100, "{valid_ones}");
}

#[test]
fn every_field_is_described() {
    fn walk(schema: &Value, at: &str) {
        for (key, own) in schema["properties"].as_object().into_iter().flatten() {
            let description = own["description"].as_str().unwrap_or_default();
            assert!(
                !description.is_empty(),
                "{at}/{key} has a description, which findings show"
            );
            walk(own, &format!("{at}/{key}"));
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                walk(&schema[key], &format!("{at}/*"));
            }
        }
        for (key, own) in schema["$defs"].as_object().into_iter().flatten() {
            walk(own, &format!("{at}#{key}"));
        }
    }
    for rules in Rules::all() {
        for (path, bytes) in built_in(rules.name).unwrap().into_files() {
            if path.ends_with(".schema.json") {
                let schema: Value = serde_json::from_slice(&bytes).unwrap();
                walk(&schema, &format!("{} {path}", rules.name));
            }
        }
    }
}

/// Who sends a contract type to whom, on one of its ways.
fn parties(rules: &Rules, kind: &ContractType) -> (String, String) {
    let routes = &rules.protocol.definition().routes;
    let on = |kinds: &[String]| {
        let found = routes
            .iter()
            .find(|r| r.contracts.iter().any(|c| kinds.contains(c)));
        let route = found.unwrap();
        let agents = rules.protocol.agent_names();
        let other = agents.into_iter().find(|a| *a != route.to.as_str());
        let from = match &*route.from {
            "*" => other.unwrap().to_owned(),
            from => from.to_owned(),
        };
        (from, route.to.to_string())
    };
    if kind.note {
        let (from, _) = on(&routes[0].contracts);
        return (from.clone(), from);
    }
    let (from, to) = match &kind.answers[..] {
        [] => on(std::slice::from_ref(&kind.name)),
        requests => {
            let (from, to) = on(requests);
            (to, from)
        }
    };
    let implied = |name: &Option<AgentName>, given| name.as_ref().map_or(given, |n| n.to_string());
    (
        implied(&kind.implied_from, from),
        implied(&kind.implied_to, to),
    )
}

#[test]
fn a_template_is_complete_but_for_the_marks() {
    for rules in Rules::all() {
        let folder = built_in(rules.name).unwrap();
        for contract in &rules.protocol.definition().contracts {
            let template: Value =
                serde_json::from_slice(folder.file(&contract.template).unwrap()).unwrap();
            // Sender and receiver are what the skeleton is made for, and always known.
            let (from, to) = parties(&rules, contract);
            let known = Known::from([
                ("from".to_owned(), json!(from)),
                ("to".to_owned(), json!(to)),
            ]);
            let schema = rules.schema(&contract.name);
            let value = fill(&template, &known, &schema);
            let schema = Schema::compile(&schema).unwrap();
            for format in rules.formats(contract) {
                let text = match &*format {
                    "xml" => write_xml(&value, schema.shape(), &contract.root),
                    "json" => write_json(&value),
                    _ if contract.has_format("json") => write_markdown(&value, &from, &to, "done"),
                    _ => write_message(&value, schema.shape()),
                };
                assert_left_to_fill(&rules, &contract.name, &text);
            }
        }
    }
}

/// Asserts that nothing is wrong with a skeleton but its marks.
fn assert_left_to_fill(rules: &Rules, kind: &str, text: &str) {
    let review = rules.review(text.as_bytes());
    let lines: Vec<String> = review.findings.iter().map(line).collect();
    assert!(!review.is_complete(), "{kind}");
    assert_eq!(review.kind.as_deref(), Some(kind), "{lines:#?}\n{text}");
    let expected = |f: &handoff::base::finding::Finding| {
        !f.is_error()
            || f.code == FindingCode::FieldUnfilled
            || f.code == FindingCode::GateRequiredFields
    };
    assert!(
        review.findings.iter().all(expected),
        "{kind}: {lines:#?}\n{text}"
    );
    // One finding for each mark: none hides another.
    let marks = text.matches("{{fill").count();
    let unfilled = review.findings.iter();
    let unfilled = unfilled
        .filter(|f| f.code == FindingCode::FieldUnfilled)
        .count();
    assert_eq!(unfilled, marks, "{kind}: {lines:#?}\n{text}");
}

#[test]
fn the_protocol_names_every_file_and_every_file_it_names_is_there() {
    for name in BUILT_IN {
        let folder = built_in(name).unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        assert_eq!(protocol.name(), name);
        let mut named = BTreeSet::from(["protocol.json".to_owned()]);
        for contract in &protocol.definition().contracts {
            named.extend([contract.schema.clone(), contract.template.clone()]);
            named.extend(contract.xsd.clone());
        }
        let documents = protocol.definition().documents.values();
        named.extend(documents.map(|document| document.schema.clone()));
        // Contracts may name the others, and samples do.
        let mut contracts = protocol.definition().contracts.iter();
        if contracts.any(|c| !c.named_schemas.is_empty()) {
            let samples = Rules::of(name).samples("valid");
            let files = fs::read_dir(root().join("schemas").join(name)).unwrap();
            for file in files {
                let file = file.unwrap().file_name().into_string().unwrap();
                let quoted = format!("\"{file}\"");
                if samples.iter().any(|s| s.text().contains(&quoted)) {
                    named.insert(format!("schemas/{file}"));
                }
            }
        }
        let present: BTreeSet<String> = folder
            .into_files()
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(named, present);

        let mut on_disk = BTreeSet::new();
        for (from, to) in [("templates", "templates"), ("schemas", "schemas")] {
            for entry in fs::read_dir(root().join(from).join(name)).unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                on_disk.insert(match &*file {
                    "protocol.json" => file,
                    _ => format!("{to}/{file}"),
                });
            }
        }
        assert_eq!(present, on_disk, "what ships is what is in the folders");
    }
}

#[test]
fn no_built_in_protocol_has_a_fault() {
    for name in BUILT_IN {
        let files = built_in(name).unwrap().into_files();
        let found = check_protocol(&files).into_iter();
        // Not every protocol is about code.
        let found = found.filter(|finding| finding.severity != Severity::Note);
        let found: Vec<String> = found.map(|finding| line(&finding)).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// A built-in protocol with one value set, or removed.
fn broken(changes: &[(&str, Option<Value>)]) -> Vec<String> {
    let folder = built_in(NAME).unwrap();
    let mut protocol: Value =
        serde_json::from_slice(folder.file("protocol.json").unwrap()).unwrap();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = protocol.pointer_mut(parent).unwrap();
        match (parent, value) {
            (Value::Object(members), Some(value)) => {
                members.insert(key.to_owned(), value.clone());
            }
            (Value::Object(members), None) => {
                members.shift_remove(key).unwrap();
            }
            (Value::Array(items), Some(value)) => match key.parse::<usize>() {
                Ok(at) => items[at] = value.clone(),
                Err(_) => items.push(value.clone()),
            },
            other => panic!("{other:?}"),
        }
    }
    let bytes = serde_json::to_vec(&protocol).unwrap();
    let findings = Protocol::load(&bytes).map(|_| ()).unwrap_err();
    findings
        .iter()
        .map(|f| format!("{} {}: {}", f.code, f.path, f.message))
        .collect()
}

#[test]
fn each_fault_of_a_protocol_is_told_with_its_place() {
    let contract = |pointer: &str, value: Value| broken(&[(pointer, Some(value))]);
    let error_again = json!({
        "type": "note", "title": "Note", "root": "handoff", "schema": "schemas/error.schema.json",
        "template": "templates/error.json"
    });
    let cases: Vec<Vec<String>> = vec![
        contract("/format", json!(2)),
        contract("/formats", json!([])),
        contract("/formats/0", json!("yaml")),
        contract("/fields/issue", json!("issue_number")),
        contract("/fields/status", json!("")),
        contract("/fields/at", json!("/a~2b")),
        contract("/words/priorities/1", json!("critical")),
        contract("/agents/1/id", json!("issue-manager")),
        contract("/contracts/1/type", json!("error")),
        contract("/contracts/0/root", json!("hand off")),
        contract("/contracts/0/schema", json!("../schemas/x.json")),
        contract("/contracts/0/template", json!("/etc/passwd")),
        contract("/contracts/0/xsd", json!("schemas/.git/x")),
        contract("/contracts/0/when", json!({"type": "x"})),
        contract("/contracts/9/implied_from", json!("nobody")),
        contract("/contracts/9/implied_to", json!("nobody")),
        contract("/contracts/8/outcome", json!({"gone": "fail"})),
        contract("/routes/0/from", json!("nobody")),
        contract("/routes/1/to", json!("nobody")),
        contract("/routes/1/from", json!("workflow-complete")),
        contract("/routes/1/contracts", json!([])),
        contract("/routes/1/contracts/-", json!("letter")),
        broken(&[
            ("/routes/0/opens", Some(json!(false))),
            ("/routes/10/opens", Some(json!(false))),
        ]),
        broken(&[
            ("/contracts/-", Some(error_again)),
            ("/routes/8/contracts/-", Some(json!("note"))),
        ]),
        contract(
            "/forbidden",
            json!([{"from": "nobody", "to": "noone", "reason": "x"}]),
        ),
        contract(
            "/forbidden",
            json!([{"from": "fixer-agent", "to": "reviewer-agent", "reason": "x"}]),
        ),
        contract("/facts/branch", json!({"last": ["branch"]})),
        contract("/facts/branch", json!({"sum": []})),
        contract("/facts/review_iterations", json!({"count": ["letter"]})),
    ];
    insta::assert_snapshot!(cases.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n"), @"
    protocol.format /format: form 2 of protocol.json is not known; this program reads 1
    protocol.format /formats: there is no format that a contract may have; use xml, json, md
    protocol.format /formats/0: `yaml` is not a contract format; use xml, json, md
    protocol.pointer /fields/issue: `issue_number` is not a JSON Pointer to a field, such as /from
    protocol.pointer /fields/status: `` is not a JSON Pointer to a field, such as /from
    protocol.pointer /fields/at: `/a~2b` is not a JSON Pointer to a field, such as /from
    protocol.duplicate /words/priorities/1: priority `critical` is listed twice
    protocol.duplicate /agents/1/id: `issue-manager` is another agent's name or alias already
    protocol.unknown_agent /routes/0/to: no agent is called `prep-agent`
    protocol.unknown_agent /routes/1/from: no agent is called `prep-agent`
    protocol.unknown_agent /github/rules/2/do/send/to: no agent is called `prep-agent`
    protocol.duplicate /contracts/8/type: contract type `error` is defined twice
    protocol.unknown_type /routes/1/contracts/0: no contract type is called `prep-agent-to-implementer-agent`
    protocol.root /contracts/0/root: `hand off` cannot be a root element
    protocol.path /contracts/0/schema: `../schemas/x.json` is not a plain relative path
    protocol.path /contracts/0/template: `/etc/passwd` is not a plain relative path
    protocol.path /contracts/0/xsd: `schemas/.git/x` is not a plain relative path
    protocol.pointer /contracts/0/when: `type` is not a JSON Pointer to a field, such as /from
    protocol.unknown_agent /contracts/9/implied_from: no agent is called `nobody`
    protocol.unknown_agent /contracts/9/implied_to: no agent is called `nobody`
    protocol.unknown_status /contracts/8/outcome: `gone` is not a word in `words.status`
    protocol.unknown_agent /routes/0/from: no agent is called `nobody`
    protocol.github /github/rules/2/do/send/contract: no such contract goes from issue-manager to prep-agent
    protocol.github /github/rules/2/do/send/unfinished: the rule's own contract opens no issue
    protocol.unknown_agent /routes/1/to: no agent is called `nobody`
    protocol.route /routes/1/from: `workflow-complete` is the end, and sends nothing
    protocol.route /routes/1/contracts: no contract type travels this route
    protocol.unused_type /contracts/1: no route has contracts of type `prep-agent-to-implementer-agent`
    protocol.unknown_type /routes/1/contracts/1: no contract type is called `letter`
    protocol.route /routes: no route opens an issue, so that none can begin
    protocol.github /github/rules/2/do/send/unfinished: the rule's own contract opens no issue
    protocol.ambiguous /contracts/11/when: `error` and `note` can both go from `closer-agent` to `orchestrator` (route `* → orchestrator`), and no field in `when` tells them apart
    protocol.unknown_agent /forbidden/0/from: no agent is called `nobody`
    protocol.unknown_agent /forbidden/0/to: no agent is called `noone`
    protocol.route /forbidden/0: a route goes from fixer-agent to reviewer-agent
    protocol.pointer /facts/branch/last/0: `branch` is not a JSON Pointer to a field, such as /from
    protocol.fact /facts/branch/sum: nothing is gathered from an empty list
    protocol.unknown_type /facts/review_iterations/count/0: no contract type is called `letter`
    ");
}

#[test]
fn all_faults_of_a_protocol_are_told_at_once() {
    let lines = broken(&[
        ("/format", Some(json!(3))),
        ("/contracts/0/schema", Some(json!("a//b"))),
        ("/routes/2/to", Some(json!("nobody"))),
        ("/facts/branch", Some(json!({"last": [""]}))),
    ]);
    insta::assert_snapshot!(lines.join("\n"), @"
    protocol.format /format: form 3 of protocol.json is not known; this program reads 1
    protocol.path /contracts/0/schema: `a//b` is not a plain relative path
    protocol.unknown_agent /routes/2/to: no agent is called `nobody`
    protocol.pointer /facts/branch/last/0: `` is not a JSON Pointer to a field, such as /from
    protocol.github /github/rules/8/do/draft/contract: no such contract goes from implementer-agent to reviewer-agent
    ");
}

#[test]
fn a_protocol_that_is_not_of_the_form_is_told_where() {
    let cases = [
        broken(&[("/colour", Some(json!("red")))]),
        broken(&[("/agents", None)]),
        broken(&[("/agents/0/id", Some(json!("a b")))]),
        broken(&[("/agents/0/kind", Some(json!("king")))]),
        broken(&[("/words/status/ready", Some(json!("done")))]),
        broken(&[("/facts/branch", Some(json!({"first": []})))]),
    ];
    for lines in &cases {
        assert_eq!(lines.len(), 1);
    }
    insta::assert_snapshot!(cases.concat().join("\n"), @r#"
    protocol.syntax /colour: unknown field `colour`, expected one of `format`, `name`, `version`, `title`, `formats`, `fields`, `words`, `agents`, `contracts`, `routes`, `facts`, `traces`, `documents`, `imports`, `limits`, `decisions`, `consistency`, `evidence`, `requirements`, `secrets`, `alerts`, `github`
    protocol.syntax : missing field `agents`
    protocol.syntax /agents/0/id: agent name "a b" may contain only letters, digits, `.`, `_`, `-` and `@`, the first a letter, a digit or `@`, and no `..`
    protocol.syntax /agents/0/kind: unknown variant `king`, expected one of `orchestrator`, `specialist`, `human`, `end`
    protocol.syntax /words/status/ready: unknown variant `done`, expected one of `pending`, `in_progress`, `blocked`, `failed`, `dead`, `completed`, `rejected`, `cancelled`
    protocol.syntax /facts/branch/first: unknown field `first`, expected one of `last`, `newest`, `sum`, `count`, `collect`, `merge`, `exclusive`, `briefing`, `opinions`
    "#);
    for bytes in [&b""[..], b"{", b"[]", b"{} {}", b"\xff"] {
        let findings = Protocol::load(bytes).map(|_| ()).unwrap_err();
        assert_eq!(findings[0].code, FindingCode::ProtocolSyntax);
        assert!(findings[0].line.is_some());
    }
}
