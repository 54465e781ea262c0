//! What an answer has of a handoff, and of an issue, is the same whichever command gives it. That each
//! answer has the one shape, and no value twice, every test that reads JSON checks.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use test_support::contracts::{Format, opening, sample};
use test_support::time::{RESEARCH, WRITER, asks, traced};
use test_support::{TestEnvironment, project, shape};

/// The command of a line.
fn command(words: &[&str]) -> String {
    let length = if words[0] == "github" { 2 } else { 1 };
    words[..length].join(" ")
}

/// The answer to a command line, whose words have no blanks.
fn answer(env: &TestEnvironment, line: &str, asked: &mut BTreeSet<String>) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    asked.insert(command(&words));
    env.data(&words)
}

/// An issue whose first handoff was sent.
fn sent(protocol: &str, contract: String) -> (TestEnvironment, Value) {
    let env = match protocol {
        "issue-to-pr" => TestEnvironment::with_ledger(),
        other => test_support::team::with_protocol(other),
    };
    let data = env.handoff_with(&["send", "-", "--json"], contract);
    let data = data.success().json()["data"].take();
    (env, data)
}

/// Whether a schema describes a handoff or an issue, or something that has one.
fn has_shape(schema: &Value, definitions: &Value, met: &mut BTreeSet<String>) -> bool {
    let has = |names: &[&str]| {
        names
            .iter()
            .all(|name| schema["properties"].get(name).is_some())
    };
    if has(&["id", "state", "contract_type"]) || has(&["key", "protocol", "status"]) {
        return true;
    }
    let name = schema["$ref"]
        .as_str()
        .and_then(|name| name.rsplit('/').next());
    if let Some(name) = name {
        return met.insert(name.to_owned()) && has_shape(&definitions[name], definitions, met);
    }
    match schema {
        Value::Object(members) => members.values().any(|one| has_shape(one, definitions, met)),
        Value::Array(items) => items.iter().any(|one| has_shape(one, definitions, met)),
        _ => false,
    }
}

/// The commands whose answers have handoffs or issues, by the schemas of these.
fn by_schema() -> BTreeSet<String> {
    let read = |path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let folder = project().join("schemas/output");
    let definitions = &read(folder.join("definitions.json"))["$defs"];
    let files = fs::read_dir(&folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let names = files.filter_map(|file| {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let has = has_shape(&read(file), definitions, &mut BTreeSet::new());
        (name != "definitions" && has).then(|| name.replace('-', " "))
    });
    names.collect()
}

#[test]
fn every_answer_about_a_handoff_or_an_issue_has_the_same_of_it() {
    let mut asked = BTreeSet::from(["send".to_owned()]);
    let (env, data) = sent("issue-to-pr", opening(87));
    assert_eq!(data["handoff"]["state"], "pending");
    for id in ["88.1", "89.1", "90.1"] {
        let issue = id.split('.').next().unwrap().parse().unwrap();
        env.send(opening(issue)).success();
    }
    for (line, state) in [
        ("claim 87.1 --as prep-agent", "in_progress"),
        ("extend 87.1 --as prep-agent", "in_progress"),
        ("release 87.1 --as prep-agent --reason so", "pending"),
        ("claim 87.1 --as prep-agent", "in_progress"),
        ("block 87.1 --as prep-agent --reason why", "blocked"),
        ("answer 87.1 so --as orchestrator", "pending"),
        ("claim 87.1 --as prep-agent", "in_progress"),
        ("annotate 87.1 --as orchestrator --note so", "in_progress"),
        (
            "fail 87.1 --as prep-agent --message so --attach LICENSE",
            "failed",
        ),
        ("restore 87.1", "failed"),
        ("retry 87.1 --as orchestrator", "pending"),
        ("approve 87.1 --as maintainer", "pending"),
        ("pause 87 --as orchestrator --reason so", "pending"),
        ("resume 87 --as orchestrator --reason so", "pending"),
        ("pause 87 --as orchestrator --reason so", "pending"),
        ("reopen 87 --as orchestrator --reason so", "pending"),
        ("cancel 88.1 --as issue-manager --reason so", "cancelled"),
        ("reject 89.1 --as prep-agent --reason so", "rejected"),
        ("claim 90.1 --as prep-agent --lease 1m", "in_progress"),
    ] {
        env.file("repo/LICENSE", "text");
        let data = answer(&env, line, &mut asked);
        assert_eq!(data["handoff"]["state"], state, "{line}");
    }
    // An answer at the time at which nobody has recorded yet that the lease ran out.
    env.wait_minutes(2);
    env.pace(0);
    let handoff = answer(&env, "show 90.1", &mut asked)["handoff"].take();
    assert_eq!(
        (&handoff["expired"], &handoff["token"]),
        (&json!(true), &json!(1))
    );
    for (line, place) in [
        ("wait 90.1 --timeout 1s", "/targets/0/handoff"),
        (
            "wait --inbox --as prep-agent --timeout 1s",
            "/targets/0/handoff",
        ),
        ("list --issue 90", "/handoffs/0"),
        ("status 90", "/handoffs/0"),
        ("status", "/handoffs"),
        ("context 90", "/handoffs/0"),
        ("inbox --as prep-agent", "/handoffs"),
        #[cfg(feature = "agents")]
        ("prime --as prep-agent", "/holds/first/0"),
    ] {
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        asked.insert(command(&words));
        let document = env.handoff(&words).json();
        let found = document["data"].pointer(place);
        let found = found.unwrap_or_else(|| panic!("{line}: {document:#}"));
        let rows = found.as_array().cloned().unwrap_or(vec![found.clone()]);
        assert!(rows.iter().all(|row| row["id"].is_string()), "{line}");
        if !line.contains("--inbox") {
            let row = rows.iter().find(|row| row["id"] == "90.1").unwrap();
            assert_eq!(shape(row), handoff, "{line}");
        }
    }
    let issue = answer(&env, "status 90", &mut asked)["issue"].take();
    assert_eq!(
        (&issue["key"], &issue["paused"]),
        (&json!("90"), &json!(null))
    );
    for line in [
        "context 90",
        "next 90",
        "gate 90 --require completed",
        #[cfg(feature = "github")]
        "github comment 90",
        "show 90.1",
    ] {
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        asked.insert(command(&words));
        assert_eq!(env.handoff(&words).json()["data"]["issue"], issue, "{line}");
    }
    asked.insert("watch".to_owned());
    let lines = env
        .handoff(&["watch", "--all", "--once", "--json"])
        .success()
        .lines();
    let told = |name: &str| lines.iter().any(|line| line[name].is_object());
    assert!(told("handoff") && told("issue"), "{lines:#?}");
    env.send(opening(91)).success();
    env.claim("91.1", "prep-agent").success();
    env.send(sample("error", Format::Xml, 91)).success();
    env.claim("91.2", "orchestrator").success();
    let line = "complete 91.2 --as orchestrator --reason so";
    let data = answer(&env, line, &mut asked);
    assert_eq!(data["handoff"]["state"], "completed");
    answer(&env, "cancel 89 --as orchestrator --reason so", &mut asked);
    let archived = answer(&env, "archive 89", &mut asked)["steps"][0]["issues"][0].take();
    assert_eq!(
        (&archived["key"], &archived["status"]),
        (&json!("89"), &json!("cancelled"))
    );
    let reaped = answer(&env, "reap", &mut asked)["handoffs"][0].take();
    assert_eq!(reaped["expired"], false);
    let (env, _) = sent("delegation", asks(WRITER, RESEARCH, &[]).to_string());
    let line = format!("reassign {} --to orchestrator --as {WRITER}", traced(1));
    let data = answer(&env, &line, &mut asked);
    assert_eq!(data["handoff"]["to"], "orchestrator");
    let mut known = by_schema();
    known.retain(|name| cfg!(feature = "github") || name != "github comment");
    known.retain(|name| cfg!(feature = "agents") || name != "prime");
    assert_eq!(asked, known);
}
