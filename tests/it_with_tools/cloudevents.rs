//! `watch --format cloudevents`, read by the official SDK.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening};
use test_support::workflow::completed;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The lines of a watch that ends by itself.
fn lines(env: &TestEnvironment, args: &[&str]) -> String {
    let all = [&["watch", "--once", "--all"], args].concat();
    env.handoff(&all).success().stdout
}

/// Its events, as the SDK reads them.
fn events(env: &TestEnvironment, args: &[&str]) -> Vec<Value> {
    let all = [&["--format", "cloudevents"], args].concat();
    let text = lines(env, &all);
    let read = crate::decoded("read-cloudevents.py", &text);
    assert_eq!(read.len(), text.lines().count());
    read
}

/// The types that docs/observability.md describes.
fn described() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observability.md");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|l| l.strip_prefix("| `io."));
    rows.map(|row| format!("io.{}", row.split('`').next().unwrap()))
        .collect()
}

#[test]
fn every_line_is_an_event_that_the_sdk_reads() {
    let env = completed(|_| Format::Xml);
    let events = events(&env, &[]);
    let text = lines(&env, &[]);
    let told: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), told.len());
    for (event, line) in events.iter().zip(&told) {
        assert_eq!(event["data"], *line);
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["datacontenttype"], "application/json");
        let time = event["time"].as_str().unwrap().replace("+00:00", "Z");
        assert_eq!(time, line["at"]);
        let subject = [&line["handoff"]["id"], &line["issue"]["key"], &line["name"]];
        let subject = subject.into_iter().find(|s| s.is_string());
        assert_eq!(event.get("subject"), subject);
    }
    let types: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(types[0], "io.git-handoff.ledger.started");
    assert_eq!(types[1], "io.git-handoff.handoff.sent");
    assert_eq!(types[2], "io.git-handoff.handoff.claimed");
}

#[test]
fn ids_are_unique_and_the_same_however_much_is_asked_for_and_wherever() {
    let env = completed(|_| Format::Xml);
    let all = events(&env, &[]);
    let ids = |events: &[Value]| -> Vec<String> {
        let ids = events.iter().map(|e| e["id"].as_str().unwrap().to_owned());
        ids.collect()
    };
    let unique: BTreeSet<String> = ids(&all).into_iter().collect();
    assert_eq!(unique.len(), all.len());
    let by_id: BTreeMap<&str, &Value> = {
        all.iter()
            .map(|e| (e["id"].as_str().unwrap(), &e["data"]["event"]))
    }
    .collect();
    // Of a step that changed two handoffs, one concerns this agent.
    let some = events(&env, &["--agent", "prep-agent"]);
    assert!(some.len() < all.len());
    for event in &some {
        assert_eq!(
            by_id[event["id"].as_str().unwrap()],
            &event["data"]["event"]
        );
    }
    let sources: BTreeSet<&str> = all.iter().map(|e| e["source"].as_str().unwrap()).collect();
    assert_eq!(sources.len(), 1);
    let source = sources.first().unwrap();
    assert!(source.starts_with("urn:uuid:"), "{source}");
    assert_eq!(source.len(), "urn:uuid:".len() + 36);
    // In a clone that lacks the beginning, they come from the same ledger.
    let address = format!("file://{}", env.repo().display());
    let clone = ["clone", "-q", "--bare", "--depth=2", "--branch=handoffs"];
    env.git(env.root(), &[&clone[..], &[&address, "light"]].concat());
    let light = env.root().join("light");
    let before = env.git(&light, &["rev-parse", "handoffs~1"]);
    let watch = ["watch", "--once", "--from", before.trim(), "--offline"];
    let watch = [&watch[..], &["--format", "cloudevents"]].concat();
    let text = env.handoff_in(&light, &watch).success().stdout;
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let here = all.last().unwrap();
    assert_eq!(
        (&last["id"], &last["source"]),
        (&here["id"], &here["source"])
    );
}

#[test]
fn an_event_names_the_trace_that_its_step_was_made_in() {
    let env = TestEnvironment::with_ledger();
    let mut command = env.program(&["send", "-"]);
    command.env("TRACEPARENT", TRACE);
    env.run(command, &["send"], Some(opening(87).as_bytes()))
        .success();
    env.claim("87.1", "prep-agent").success();
    let events = events(&env, &["87"]);
    let traces: Vec<Option<&str>> = events.iter().map(|e| e["traceparent"].as_str()).collect();
    assert_eq!(traces, [Some(TRACE), None]);
    assert_eq!(events[0]["data"]["traceparent"], TRACE);
    assert_eq!(events[1]["data"]["traceparent"], Value::Null);
}

#[test]
fn every_type_is_described() {
    let described = described();
    // What the program can say, as its source has it.
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/handoff-cli/src/render/cloudevents.rs");
    let source = fs::read_to_string(source).unwrap();
    let said = source.split("fn type_of").nth(1).unwrap();
    let said = said
        .lines()
        .filter_map(|l| l.split_once("=> \"")?.1.split('"').next());
    let said: BTreeSet<String> = said.map(|kind| format!("io.git-handoff.{kind}")).collect();
    assert!(said.len() > 15, "{said:?}");
    assert_eq!(said, described);
    // What it says of ledgers in which much has happened.
    let mut met = BTreeSet::new();
    for protocol in test_support::team::BUILT_IN {
        for event in events(&test_support::exchange::lived(protocol), &[]) {
            met.insert(event["type"].as_str().unwrap().to_owned());
        }
    }
    assert!(met.is_subset(&described), "{met:?}");
    for kind in [
        "handoff.blocked",
        "handoff.answered",
        "handoff.cancelled",
        "issue.changed",
    ] {
        assert!(met.contains(&format!("io.git-handoff.{kind}")), "{met:?}");
    }
}
