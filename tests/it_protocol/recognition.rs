//! Files that mean to be contracts, among all others.

use std::fs;
use std::path::{Path, PathBuf};

use handoff::contract::Outline;
use handoff::model::is_contract_of;
use insta::assert_snapshot;

use crate::rules::Rules;

#[test]
fn samples_are_recognized_whole_or_faulty() {
    let mut missed = String::new();
    let (mut faulty, mut whole) = (0, 0);
    for rules in Rules::all() {
        for sample in rules.samples("valid") {
            let outline = Outline::of(&sample.bytes).unwrap();
            if !is_contract_of(&rules.protocol, &outline) {
                missed += &format!("{} {}: whole\n", rules.name, sample.name);
            }
            whole += 1;
        }
        for sample in rules.samples("invalid") {
            faulty += 1;
            let outline = Outline::of(&sample.bytes);
            if !outline.is_some_and(|outline| is_contract_of(&rules.protocol, &outline)) {
                missed += &format!("{} {}\n", rules.name, sample.name);
            }
        }
    }
    assert!(whole > 50 && faulty > 300, "{whole} {faulty}");
    assert_snapshot!(missed, @"
    issue-to-pr array-as-root.json
    issue-to-pr declaration-only.xml
    issue-to-pr depth-100-arrays.json
    issue-to-pr depth-100-unknown.xml
    issue-to-pr empty-file.json
    issue-to-pr empty-file.xml
    issue-to-pr empty-object.json
    issue-to-pr neither-xml-nor-json.json
    issue-to-pr number-as-root.json
    issue-to-pr only-comment.xml
    issue-to-pr single-quotes.json
    issue-to-pr string-as-root.json
    issue-to-pr text-before-root.xml
    issue-to-pr unknown-root.xml
    issue-to-pr utf-16.json
    issue-to-pr utf-16.xml
    issue-to-pr white-space-file.xml
    issue-to-pr wrapped-unknown.json
    issue-to-pr wrapped-with-sibling.json
    orchestrator-specialist array-as-root.json
    orchestrator-specialist wrapped-by-other-root.json
    orchestrator-specialist wrapped-with-sibling.json
    task-breakdown wrapped-by-other-key.json
    delegation decision-with-reason.json: whole
    delegation decision-without-target.json: whole
    delegation decision.json: whole
    delegation bad-confidence-over-one.json
    delegation bad-confidence-percent.json
    delegation bad-deciding-agent-number.json
    delegation bad-decision-can-handle.json
    delegation decision-lacks-inputs-for-what-it-can-handle.json
    delegation missing-decision-confidence.json
    delegation missing-responding-agent.json
    delegation unknown-agent-decides.json
    delegation unknown-agent-in-decision.json
    delegation unknown-decision-field.json
    delegation wrapped-by-other-root.json
    directive list-as-root.json
    ");
}

/// Every JSON and XML file below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is = |extension: &str| path.extension().is_some_and(|own| own == extension);
        if path.is_dir() {
            files(&path, found);
        } else if is("json") || is("xml") || is("md") {
            found.push(path);
        }
    }
}

#[test]
fn other_files_are_not() {
    let project = test_support::project();
    let mut found = Vec::new();
    for folder in ["schemas", "docs", "tests/agent-tools", "tests/mcp-tools"] {
        files(&project.join(folder), &mut found);
    }
    found.extend(["README.md", "CHANGELOG.md"].map(|name| project.join(name)));
    let protocols = fs::read_dir(project.join("templates")).unwrap();
    let protocols = protocols.map(|entry| entry.unwrap().path().join("protocol.json"));
    found.extend(protocols.filter(|path| path.exists()));
    assert!(found.len() > 50, "{found:?}");
    let others = [
        r#"{"name": "app", "version": "1.0.0", "status": "active"}"#,
        r#"{"from": "a@example.com", "to": "b@example.com", "status": "sent", "timestamp": 1}"#,
        r#"{"status": "completed", "timestamp": "2026-03-02T09:00:00Z"}"#,
        r#"{"to": "orchestrator"}"#,
        "<project><from>prep-agent</from></project>",
        "# HANDOFF: how to\n",
    ];
    for rules in Rules::all() {
        let is_taken = |bytes: &[u8]| {
            Outline::of(bytes).is_some_and(|outline| is_contract_of(&rules.protocol, &outline))
        };
        for path in &found {
            assert!(!is_taken(&fs::read(path).unwrap()), "{}", path.display());
        }
        for text in others {
            assert!(!is_taken(text.as_bytes()), "{text}");
        }
    }
}
