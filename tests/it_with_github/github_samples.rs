//! Every sample of what GitHub delivers, from npm: what it leads to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::events::{did, samples, why};

/// A ledger in which the reviewer works on issue 1, whose pull request is 2.
fn reviewed() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(1)).success();
    env.claim("1.1", "prep-agent").success();
    env.send(prepared(1)).success();
    env.claim("1.2", "implementer-agent").success();
    let contract = sample("implementer-agent-to-reviewer-agent", Format::Json, 1);
    let mut contract: Value = serde_json::from_str(&contract).unwrap();
    contract["pr_number"] = json!(2);
    contract["pr_url"] = json!("https://github.com/quayside/parcel-desk/pull/2");
    env.send(contract.to_string()).success();
    env.claim("1.3", "reviewer-agent").success();
    env
}

/// What an event would lead to, in brief.
fn outcome(data: &Value) -> String {
    let mut all = did(data);
    if let Some(kind) = data["draft"]["contract_type"].as_str() {
        let left = data["draft"]["missing"].as_array().unwrap().len();
        all.push(format!("draft of {kind} with {left} left"));
    }
    if all.is_empty() {
        all.push(format!("nothing: {}", why(data).replace('\n', "; ")));
    }
    all.join(", ")
}

/// What the samples lead to in a ledger, by event and action.
fn table(env: &TestEnvironment, samples: &[(String, Value)]) -> BTreeMap<String, BTreeSet<String>> {
    let work = |(i, (name, payload)): (usize, &(String, Value))| {
        let path = env.file(&format!("sample-{i}.json"), payload.to_string());
        let args = [
            "github",
            "event",
            "--dry-run",
            "--name",
            name,
            "--file",
            &path,
        ];
        let data = env.data(&args);
        let action = payload["action"]
            .as_str()
            .map(|action| format!(".{action}"));
        (
            format!("{name}{}", action.unwrap_or_default()),
            outcome(&data),
        )
    };
    let numbered: Vec<_> = samples.iter().enumerate().collect();
    let mut rows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let parts = numbered.chunks(numbered.len().div_ceil(4));
        let parts: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(|one| work(*one)).collect::<Vec<_>>()))
            .collect();
        for part in parts {
            for (event, outcome) in part.join().unwrap() {
                rows.entry(event).or_default().insert(outcome);
            }
        }
    });
    rows
}

/// The table as text; events about which no protocol can have a rule in one line.
fn shown(rows: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut text = String::new();
    let mut others = BTreeSet::new();
    for (event, outcomes) in rows {
        let name = event.split('.').next().unwrap();
        let nothing = format!("nothing: nothing follows from an event `{name}`");
        if outcomes.iter().all(|outcome| *outcome == nothing) {
            others.insert(name);
            continue;
        }
        text += &format!("{event}\n");
        for outcome in outcomes {
            text += &format!("    {outcome}\n");
        }
    }
    let others: Vec<&str> = others.into_iter().collect();
    text + &format!("nothing follows from: {}\n", others.join(", "))
}

#[test]
fn every_sample_leads_to_something_or_is_said_to_lead_to_nothing() {
    let samples = samples();
    assert!(samples.len() > 700, "{}", samples.len());
    let bare = TestEnvironment::with_ledger();
    let tip = bare.tip();
    insta::assert_snapshot!("samples_without_the_issue", shown(&table(&bare, &samples)));
    assert_eq!(bare.tip(), tip, "a rehearsal writes nothing");
    let env = reviewed();
    // The issue is of the samples' repository.
    let ours = |text: String| text.replace("Codertocat/Hello-World", "quayside/parcel-desk");
    let samples = samples.into_iter().map(|(name, sample)| {
        let sample = serde_json::from_str(&ours(sample.to_string())).unwrap();
        (name, sample)
    });
    let samples: Vec<(String, Value)> = samples.collect();
    insta::assert_snapshot!("samples_with_the_issue", shown(&table(&env, &samples)));
}
