//! What contradicts itself, or what is known of its issue, is found: refused or recorded, as the
//! protocol's rules say.

use serde_json::{Value, json};
use test_support::contracts::{Format, sample};
use test_support::team::{Refused, refused};
use test_support::{TestEnvironment, stored_issue};

/// A contract of issue 87, with something else at these places.
fn contract(name: &str, changes: &[(&str, Value)]) -> String {
    let mut value: Value = serde_json::from_str(&sample(name, Format::Json, 87)).unwrap();
    for (at, new) in changes {
        *value.pointer_mut(at).unwrap() = new.clone();
    }
    value.to_string()
}

/// Sends each contract in turn; its receiver claims the issue.
fn sent(env: &TestEnvironment, names: &[&str]) {
    for name in names {
        env.send(contract(name, &[])).success();
        let to = name.split_once("-to-").unwrap().1;
        env.claim("87", to).success();
    }
}

/// The rules that a contract breaks, with how it is refused. `check` says the same, and nothing is
/// recorded.
fn broken(env: &TestEnvironment, contract: &str) -> (i32, Vec<String>) {
    let tip = env.tip();
    let said: Refused = refused(env, &[], contract);
    assert_eq!(env.tip(), tip);
    let checked = env.handoff_with(&["check", "-"], contract);
    let checked = checked.exits(said.exit).shown;
    let found = said.findings.iter().map(|finding| {
        let (_, rest) = finding.rsplit_once("(rule `").unwrap_or(("", finding));
        let name = rest.trim_end_matches("`)").to_owned();
        assert!(checked.contains(&name), "{finding}: {checked}");
        name
    });
    (said.exit, found.collect())
}

const OPENING: &str = "issue-manager-to-prep-agent";
const PREPARED: &str = "prep-agent-to-implementer-agent";
const BUILT: &str = "implementer-agent-to-reviewer-agent";
const CHANGES: &str = "reviewer-agent-to-fixer-agent";
const APPROVED: &str = "reviewer-agent-to-validator-agent";
const MERGED: &str = "validator-agent-to-closer-agent";
const COMPLETE: &str = "workflow-complete";

#[test]
fn identities_are_those_of_the_issue() {
    let env = TestEnvironment::with_ledger();
    let other = |what: &str| json!(format!("https://github.com/quayside/parcel-desk/{what}"));
    let fork = json!("https://github.com/elsewhere/parcel-desk/pull/91");
    assert_eq!(
        broken(
            &env,
            &contract(OPENING, &[("/issue_url", other("issues/86"))])
        ),
        (3, vec!["issue-address".to_owned()])
    );
    sent(&env, &[OPENING]);
    let strange = json!("https://github.com/elsewhere/parcel-desk/issues/87");
    assert_eq!(
        broken(&env, &contract(PREPARED, &[("/issue_url", strange)])),
        (4, vec!["issue-url".to_owned()])
    );
    sent(&env, &[PREPARED]);
    for (place, value, exit, rules) in [
        ("/pr_url", other("pull/90"), 3, vec!["pull-request-address"]),
        ("/pr_number", json!(90), 3, vec!["pull-request-address"]),
        ("/pr_url", fork, 3, vec!["one-repository"]),
        ("/branch", json!("feature/other"), 4, vec!["branch"]),
    ] {
        let found = broken(&env, &contract(BUILT, &[(place, value)]));
        assert_eq!(
            found,
            (exit, rules.into_iter().map(str::to_owned).collect()),
            "{place}"
        );
    }
    sent(&env, &[BUILT]);
    let another = [("/pr_url", other("pull/90")), ("/pr_number", json!(90))];
    let both = (
        4,
        vec!["pull-request".to_owned(), "pull-request-url".to_owned()],
    );
    assert_eq!(broken(&env, &contract(APPROVED, &another)), both);

    // Another pull request for the issue is a step of its own, with its reason.
    let moved = [
        "annotate",
        "87",
        "--as",
        "orchestrator",
        "--note",
        "the first had the wrong base",
    ];
    let facts = [
        "--fact",
        "pr_number=90",
        "--fact",
        "pr_url=https://github.com/quayside/parcel-desk/pull/90",
    ];
    env.handoff(&[&moved[..], &facts].concat()).success();
    assert_eq!(broken(&env, &contract(APPROVED, &[])), both);
    env.send(contract(APPROVED, &another)).success();
    env.assert_sound();
}

#[test]
fn a_finding_names_both_values_and_where_the_known_one_came_from() {
    let env = TestEnvironment::with_ledger();
    sent(&env, &[OPENING, PREPARED]);
    let said = refused(
        &env,
        &[],
        contract(BUILT, &[("/branch", json!("feature/other"))]),
    );
    insta::assert_snapshot!(said.findings.join("\n"), @r#"contract.inconsistent /branch: `branch` is "feature/other", and fact `branch` of issue 87, by 87.2 from prep-agent, is "enhancement/87-csv-export" (rule `branch`)"#);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let env = TestEnvironment::with_ledger();
    sent(&env, &[OPENING]);
    let failed = contract(PREPARED, &[("/validation/build", json!("failed (1/3)"))]);
    assert_eq!(
        broken(&env, &failed),
        (3, vec!["prepared-build".to_owned()])
    );
    sent(&env, &[PREPARED, BUILT]);
    for (name, place, value, rule) in [
        (CHANGES, "/critical_count", json!(2), "critical-findings"),
        (CHANGES, "/important_count", json!(0), "important-findings"),
        (
            APPROVED,
            "/important_count",
            json!(3),
            "approved-without-important",
        ),
    ] {
        let found = broken(&env, &contract(name, &[(place, value)]));
        assert_eq!(found, (3, vec![rule.to_owned()]), "{name} {place}");
    }
    sent(&env, &[APPROVED]);
    for (check, words, rule) in [
        (
            "tests",
            "429 of 431 passed, 2 failed",
            "merged-with-passing-tests",
        ),
        ("lint", "failed", "merged-with-passing-lint"),
        ("type_check", "3 errors", "merged-with-passing-types"),
        ("security", "failed", "merged-with-passing-security"),
        (
            "security",
            "3 critical vulnerabilities found",
            "merged-with-passing-security",
        ),
    ] {
        let place = format!("/validation_summary/{check}");
        let found = broken(&env, &contract(MERGED, &[(&place, json!(words))]));
        assert_eq!(found, (3, vec![rule.to_owned()]), "{check}");
    }
}

#[test]
fn figures_that_are_not_the_ledgers_are_recorded_with_a_warning() {
    let env = TestEnvironment::with_ledger();
    sent(&env, &[OPENING, PREPARED, BUILT, APPROVED, MERGED]);
    let boast = contract(
        COMPLETE,
        &[
            ("/cycle_time", json!("2 years")),
            ("/metrics/review_iterations", json!(99)),
            ("/metrics/total_commits", json!(98)),
            ("/metrics/tests_added", json!(97)),
            ("/metrics/coverage", json!("100%")),
        ],
    );
    let data = env
        .handoff_with(&["send", "-", "--json"], &boast)
        .success()
        .json();
    let told = data["data"]["warnings"].as_array().unwrap();
    let told: Vec<&str> = told
        .iter()
        .map(|one| one["message"].as_str().unwrap())
        .collect();
    insta::assert_snapshot!(env.filtered(&told.join("\n")), @r#"
    `metrics/review_iterations` is 99, and fact `review_iterations` of issue 87 is 1 (rule `review-iterations`)
    `metrics/total_commits` is 98, and fact `total_commits` of issue 87 is 3 (rule `total-commits`)
    `metrics/tests_added` is 97, and fact `tests_added` of issue 87 is 15 (rule `tests-added`)
    `metrics/coverage` is "100%", and fact `coverage` of issue 87, by 87.5 from validator-agent, is "89.1%" (rule `coverage`)
    `cycle_time` is "2 years", and issue 87 has been open for 600 s (rule `cycle-time`)
    "#);
    let shown = env.handoff(&["show", "87.6"]).success().stdout;
    assert!(
        shown.contains("`metrics/review_iterations` is 99"),
        "{shown}"
    );
    // What validation measured stays what is known.
    let issue = stored_issue(&env.data(&["status", "87"]));
    assert_eq!(issue["facts"]["coverage"], "89.1%");
    env.assert_sound();
}

#[test]
fn a_rule_is_enforced_or_off_as_the_protocol_says() {
    for (policy, exit) in [("enforce", 4), ("off", 0)] {
        let env = TestEnvironment::with_repository();
        let folder = test_support::team::Folder::copy(&env, "issue-to-pr", "own");
        folder.define(|definition| {
            for rule in definition["consistency"].as_array_mut().unwrap() {
                rule["policy"] = json!(policy);
            }
        });
        env.handoff(&["init", "--protocol", &folder.path()])
            .success();
        sent(&env, &[OPENING, PREPARED]);
        env.send(contract(BUILT, &[("/branch", json!("feature/other"))]))
            .exits(exit);
        env.assert_sound();
    }
}

/// A constant on either side of a comparison: the finding begins with the contract's own field.
#[test]
fn a_finding_about_a_constant_names_the_field() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b"])
        .success();
    let folder = test_support::team::Folder::new(&env, "repo/pair");
    folder.edit("schemas/a-to-b.schema.json", |schema| {
        schema["properties"]["score"] = json!({"type": "integer"});
        schema["properties"]["findings"] = json!({"type": "array", "items": {"type": "string"}});
    });
    folder.define(|definition| {
        let compared = [
            json!({"at_most": [3, "/score"]}),
            json!({"at_most": ["/score", 1]}),
            json!({"at_most": [4, "/findings/*|count"]}),
            json!({"same": ["/score", 9]}),
            json!({"subset_of": ["/findings", "text:none"]}),
            json!({"subset_of": ["text:all", "/findings"]}),
            json!({"distinct": ["text:one", "/findings"]}),
        ];
        let rules = compared.iter().enumerate().map(|(i, compare)| {
            json!({"name": format!("rule-{i}"), "policy": "warn", "of": ["a-to-b"], "compare": compare})
        });
        definition["consistency"] = rules.collect();
    });
    env.handoff(&["init", "--protocol", "./pair"]).success();
    let contract = json!({"issue": "7", "from": "a", "to": "b", "status": "success", "summary": "x", "score": 2,
        "findings": ["one", "two"]});
    let sent = env.handoff_with(&["send", "-", "--json"], contract.to_string());
    let warnings = sent.success().json()["data"]["warnings"].take();
    let told = warnings.as_array().unwrap().iter();
    let told: Vec<&str> = told.map(|one| one["message"].as_str().unwrap()).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    `score` is 2, and must be at least 3 (rule `rule-0`)
    `score` is 2, and must be at most 1 (rule `rule-1`)
    `findings/*` (count) is 2, and must be at least 4 (rule `rule-2`)
    `score` is 2, and must be 9 here (rule `rule-3`)
    `findings` has "one", "two", and must have only "none" (rule `rule-4`)
    `findings` is ["one","two"], and must have "all" (rule `rule-5`)
    `findings` is "one" (rule `rule-6`)
    "#);
}

/// A count is compared although an item is wrong, unless the item may explain it.
#[test]
fn a_wrong_item_hides_no_wrong_count() {
    let env = TestEnvironment::with_ledger();
    sent(&env, &[OPENING, PREPARED, BUILT]);
    let severity = ("/blocking_issues/0/severity", json!("fatal"));
    for (count, is_told) in [(0, false), (1, false), (2, true)] {
        let count = ("/critical_count", json!(count));
        let said: Refused = refused(&env, &[], contract(CHANGES, &[count, severity.clone()]));
        let told = said
            .findings
            .iter()
            .any(|found| found.contains("`critical-findings`"));
        assert_eq!(told, is_told, "{:?}", said.findings);
        assert!(
            said.findings.iter().any(|found| found.contains("fatal")),
            "{:?}",
            said.findings
        );
        assert_eq!(
            said.findings.len(),
            1 + usize::from(is_told),
            "{:?}",
            said.findings
        );
    }
    // Another fault of an item does not change how many there are.
    let text = ("/blocking_issues/0/description", json!(""));
    let count = ("/critical_count", json!(0));
    let said: Refused = refused(&env, &[], contract(CHANGES, &[count, text]));
    assert_eq!(said.findings.len(), 2, "{:?}", said.findings);
}
