//! Events of GitHub: a line with the name, then the payload.

use handoff::protocol::Protocol;
use handoff::templates::{BUILT_IN, built_in};
use handoff_github::event::{Event, Naming, Subject, facts};
use serde_json::Value;

use super::{Target, corpus};

const WORDS: &[&str] = &[
    "issues\n",
    "issue_comment\n",
    "pull_request\n",
    "pull_request_review\n",
    "workflow_run\n",
    "check_suite\n",
    "\"action\": \"closed\"",
    "\"body\": \"Fixes #87\"",
    "Closes https://github.com/a/b/issues/12",
    "fixes a/b#0",
    "<!-- Fixes #1 -->",
    "```",
    "> ",
    "- [ ] ",
    "# Requirements\\n",
    "\\r\\n",
    "\\u202e",
    "issue-12",
    "feature/12-x",
    "null",
    "{}",
    "[]",
];

pub(super) fn target() -> Target {
    let protocols: Vec<Protocol> = BUILT_IN
        .iter()
        .map(|name| {
            let folder = built_in(name).unwrap();
            Protocol::load(folder.file("protocol.json").unwrap()).unwrap()
        })
        .collect();
    Target {
        samples: corpus("events"),
        words: WORDS,
        check: Box::new(move |bytes| check(&protocols, bytes)),
    }
}

fn check(protocols: &[Protocol], bytes: &[u8]) {
    let end = bytes
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(bytes.len());
    let (name, payload) = bytes.split_at(end);
    let Ok(name) = std::str::from_utf8(name) else {
        return;
    };
    let Ok(event) = Event::read(name, payload) else {
        return;
    };
    let marked = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
    let second: Value = serde_json::from_slice(marked).unwrap();
    assert_eq!(event.name(), name);
    if let Some(action) = event.action() {
        assert_eq!(second["action"], action);
    }
    event.digest_delivery().unwrap();
    event.own_delivery();
    let subject = Subject::of(&event, &Naming::default());
    if let Some(number) = subject.pull_request {
        assert!(payload_has(&second, number), "{number}");
    }
    for rule in protocols.iter().flat_map(|p| p.definition().event_rules()) {
        for (name, value) in facts(rule, &event) {
            assert!(rule.facts.contains_key(&name), "{name}");
            assert!(!value.is_null(), "{name}");
        }
    }
}

fn payload_has(value: &Value, number: u64) -> bool {
    match value {
        Value::Number(found) => found.as_u64() == Some(number),
        Value::Array(items) => items.iter().any(|item| payload_has(item, number)),
        Value::Object(members) => members.values().any(|item| payload_has(item, number)),
        _ => false,
    }
}

#[test]
fn prove_event() {
    super::prove("fuzz-event", &target());
}
