//! The order of merges: what is to be merged into one base is claimed in turn.

use serde_json::Value;
use test_support::{Ran, TestEnvironment};

const PASSED: [&str; 8] = [
    "merge_status=merged",
    "merge_sha=0123456789abcdef0123456789abcdef01234567",
    "merge_strategy=merge",
    "validation_summary.tests=passed",
    "validation_summary.lint=passed",
    "validation_summary.type_check=passed",
    "validation_summary.coverage=90%",
    "validation_summary.security=not run: a test",
];

const COMMITS: &str =
    r#"commits={"sha": "0123456789abcdef0123456789abcdef01234567", "message": "A part"}"#;

const FIXES: &str = r#"fixes_applied={"description": "merged main", "location": "hot.txt:1", "finding": "F1", "commit": "0123456789abcdef0123456789abcdef01234567"}"#;

const APPROVED: [&str; 2] = [
    "summary=good",
    "reviewed_commit=0123456789abcdef0123456789abcdef01234567",
];

/// A ledger in which nothing is compared with the repository.
fn unchecked() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--evidence", "off"]).success();
    env.pace(1);
    env
}

fn send(env: &TestEnvironment, (issue, from, to): (u32, &str, &str), fields: &[&str]) -> Ran {
    let issue = issue.to_string();
    let mut args = vec!["send", "--issue", &issue, "--as", from, "--to", to];
    args.extend(fields.iter().flat_map(|field| ["--set", field]));
    env.handoff(&args).success()
}

/// Hands an issue on to its validation.
fn approved(env: &TestEnvironment, issue: u32, priority: &str) {
    let number = issue.to_string();
    let (priority, branch) = (
        format!("priority={priority}"),
        format!("branch=fix/{issue}"),
    );
    let port = format!("port={}", 3000 + issue);
    let place = format!("workspace_path=/srv/{issue}");
    let pr = format!("pr_number={issue}");
    let url = |what: &str| format!("https://github.com/octo/parcels/{what}/{issue}");
    let (issue_url, pr_url) = (
        format!("issue_url={}", url("issues")),
        format!("pr_url={}", url("pull")),
    );
    let opening = [
        issue_url.as_str(),
        "issue_title=A part",
        "type=feature",
        &priority,
        "requirements=It works",
        "summary=A part",
    ];
    send(env, (issue, "issue-manager", "prep-agent"), &opening);
    let ready = [
        branch.as_str(),
        "workspace_type=worktree",
        &place,
        &port,
        "validation.dependencies=installed",
        "validation.build=passed",
        "validation.dev_server=started",
    ];
    let done = [
        "summary=done",
        "tests_added=1",
        "coverage=90%",
        "files_changed=1",
        COMMITS,
        &pr,
        &pr_url,
    ];
    for (from, to, fields) in [
        ("prep-agent", "implementer-agent", &ready[..]),
        ("implementer-agent", "reviewer-agent", &done),
        ("reviewer-agent", "validator-agent", &APPROVED),
    ] {
        env.claim(&number, from).success();
        send(env, (issue, from, to), fields);
    }
}

fn next(env: &TestEnvironment, worker: &str) -> Ran {
    let who = ["--as", "validator-agent", "--worker", worker];
    env.handoff(&[&["claim", "--next", "--json"], &who[..]].concat())
}

fn id(ran: &Ran) -> String {
    ran.json()["data"]["handoff"]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn codes(ran: &Ran) -> Vec<Value> {
    let warnings = ran.json()["data"]["warnings"].as_array().cloned();
    let warnings = warnings.unwrap_or_default().into_iter();
    warnings.map(|one| one["code"].clone()).collect()
}

#[test]
fn one_validation_at_a_time_is_claimed_for_a_base_the_most_urgent_first() {
    let env = unchecked();
    for (issue, priority) in [(1, "medium"), (2, "medium"), (3, "high"), (4, "medium")] {
        approved(&env, issue, priority);
    }
    // Issue 4 is merged elsewhere.
    env.handoff(&[
        "annotate",
        "4",
        "--fact",
        "base=release",
        "--note",
        "It is for the release",
        "--as",
        "orchestrator",
    ])
    .success();
    assert_eq!(id(&next(&env, "w1").success()), "3.4");
    assert_eq!(id(&next(&env, "w2").success()), "4.4");
    let refused = next(&env, "w3").exits(6);
    let error = &refused.json()["error"];
    let hint = error["hint"].as_str().unwrap();
    assert_eq!(error["code"], "nothing_to_claim");
    assert!(hint.contains("1.4") && hint.contains("3.4"), "{hint}");
    let inbox = env
        .handoff(&["inbox", "--as", "validator-agent", "--worker", "w3"])
        .success();
    let order = ["3.4 ", "4.4 ", "1.4 ", "2.4 "].map(|id| inbox.shown.find(id).unwrap());
    assert!(order.is_sorted(), "{}", inbox.shown);
    // Whoever names one gets it, and is told.
    let claim = |id: &str, worker: &str| {
        let args = ["claim", id, "--as", "validator-agent", "--json"];
        env.handoff(&[&args[..], &["--worker", worker]].concat())
            .success()
    };
    assert_eq!(codes(&claim("2.4", "w3")), ["claim.turn"]);
    env.handoff(&[
        "release",
        "2.4",
        "--as",
        "validator-agent",
        "--reason",
        "in turn",
        "--worker",
        "w3",
    ])
    .success();
    // Given back, run out and handed on: the next one's turn comes.
    env.handoff(&[
        "release",
        "3.4",
        "--as",
        "validator-agent",
        "--reason",
        "no time",
        "--worker",
        "w1",
    ])
    .success();
    assert_eq!(
        codes(&claim("1.4", "w1")),
        ["claim.turn"],
        "3.4 is before it"
    );
    env.handoff(&[
        "release",
        "1.4",
        "--as",
        "validator-agent",
        "--reason",
        "in turn",
        "--worker",
        "w1",
    ])
    .success();
    assert_eq!(id(&next(&env, "w1").success()), "3.4");
    next(&env, "w3").exits(6);
    env.wait_minutes(5 * 60);
    assert_eq!(id(&next(&env, "w3").success()), "1.4");
    env.assert_sound();
}

#[test]
fn an_issue_in_conflict_keeps_its_turn_until_it_is_merged() {
    let env = unchecked();
    approved(&env, 1, "medium");
    approved(&env, 2, "high");
    approved(&env, 3, "critical");
    assert_eq!(id(&next(&env, "w1").success()), "3.4");
    let conflict = [
        "validation_status=failed",
        "failures.0.type=merge_conflict",
        "failures.0.description=hot.txt conflicts with main",
    ];
    let args = [
        "send",
        "--issue",
        "3",
        "--as",
        "validator-agent",
        "--worker",
        "w1",
    ];
    let fields = conflict.iter().flat_map(|field| ["--set", field]);
    let args: Vec<&str> = args
        .into_iter()
        .chain(["--to", "fixer-agent"])
        .chain(fields)
        .collect();
    env.handoff(&args).success();
    let status = env.handoff(&["show", "3.5"]).success();
    assert!(
        status.shown.contains("hot.txt conflicts with main"),
        "{}",
        status.shown
    );
    next(&env, "w2").exits(6);
    env.claim("3", "fixer-agent").success();
    next(&env, "w2").exits(6);
    let fixed = ["summary=resolved", FIXES, "commits_added=1"];
    send(&env, (3, "fixer-agent", "reviewer-agent"), &fixed);
    env.claim("3", "reviewer-agent").success();
    send(&env, (3, "reviewer-agent", "validator-agent"), &APPROVED);
    assert_eq!(id(&next(&env, "w2").success()), "3.7");
    let args = [
        "send",
        "--issue",
        "3",
        "--as",
        "validator-agent",
        "--worker",
        "w2",
    ];
    let fields = PASSED.iter().flat_map(|field| ["--set", field]);
    let args: Vec<&str> = args
        .into_iter()
        .chain(["--to", "closer-agent"])
        .chain(fields)
        .collect();
    env.handoff(&args).success();
    assert_eq!(id(&next(&env, "w2").success()), "2.4");
    // Nobody fixes it: its turn ends with the time of a lease.
    let args = [
        "send",
        "--issue",
        "2",
        "--as",
        "validator-agent",
        "--worker",
        "w2",
    ];
    let fields = conflict.iter().flat_map(|field| ["--set", field]);
    let args: Vec<&str> = args
        .into_iter()
        .chain(["--to", "fixer-agent"])
        .chain(fields)
        .collect();
    env.handoff(&args).success();
    next(&env, "w1").exits(6);
    env.wait_minutes(4 * 60 + 1);
    assert_eq!(id(&next(&env, "w1").success()), "1.4");
    env.assert_sound();
}
