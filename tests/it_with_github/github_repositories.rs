//! Other repositories than the issue's: namesakes, the same one under a new name, several that one ledger serves, forks, and
//! pull requests beside the one that is known.

use std::path::Path;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::events::{
    at, comment, did, event, fact, issue, issues, permitted, person, pull, pull_request,
    repository, why,
};
use test_support::time::own;

/// An event as it comes from a repository of another name, number and address.
fn of(mut payload: Value, name: &str, id: Option<u64>) -> Value {
    payload["repository"] = json!({ "full_name": name, "html_url": format!("https://github.com/{name}"), "default_branch": "main" });
    if let Some(id) = id {
        payload["repository"]["id"] = json!(id);
    }
    payload
}

fn closed(env: &TestEnvironment, number: u32, seconds: i64) -> Value {
    let mut closed = issue(number);
    closed["state"] = json!("closed");
    closed["state_reason"] = json!("not_planned");
    closed["closed_at"] = json!(at(env, seconds));
    closed["updated_at"] = json!(at(env, seconds));
    issues("closed", closed)
}

fn opened(env: &TestEnvironment, number: u32, seconds: i64) -> Value {
    let mut own = pull_request(number, 12);
    own["updated_at"] = json!(at(env, seconds));
    own
}

#[test]
fn another_repositorys_event_changes_nothing_and_a_renamed_ones_counts() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    let tip = env.tip();
    // Nothing has a number yet: the name decides.
    for payload in [
        of(closed(&env, 12, 0), "octo/frontend", None),
        of(closed(&env, 12, 0), "octo/frontend", Some(7)),
        of(issues("opened", issue(40)), "octo/frontend", Some(7)),
    ] {
        let data = event(&env, "issues", &payload);
        assert!(
            did(&data).is_empty() && why(&data).contains("of another one, quayside/parcel-desk"),
            "{data:#}"
        );
    }
    assert_eq!(env.tip(), tip);
    let ours = pull("opened", opened(&env, 5, 0));
    let data = event(&env, "pull_request", &ours);
    assert_eq!(data["did"][0]["facts"]["repository_id"], 1, "{data:#}");
    // A namesake that came after it is another one.
    let namesake = of(closed(&env, 12, 5), "quayside/parcel-desk", Some(7));
    let data = event(&env, "issues", &namesake);
    assert!(did(&data).is_empty(), "{data:#}");
    // The same one has a new name, and all that is known of it a new address.
    let now = env.now();
    let edited = |seconds: i64, title: &str| {
        let mut own = issue(12);
        own["updated_at"] = json!(at(&env, now - env.now() + seconds));
        own["title"] = json!(title);
        issues("edited", own)
    };
    let data = event(
        &env,
        "issues",
        &of(edited(20, "Ships"), "crew/desk", Some(1)),
    );
    assert_eq!(did(&data)[0], "noted 12.1", "{data:#}");
    assert_eq!(
        fact(&env, "issue_url"),
        "https://github.com/crew/desk/issues/12"
    );
    assert_eq!(fact(&env, "pr_url"), "https://github.com/crew/desk/pull/5");
    // What comes late has the earlier name.
    let late = event(
        &env,
        "issues",
        &of(edited(10, "Boats"), "quayside/parcel-desk", Some(1)),
    );
    assert_eq!(
        fact(&env, "issue_url"),
        "https://github.com/crew/desk/issues/12",
        "{late:#}"
    );
    // What is printed then is accepted.
    env.claim("12.1", "prep-agent").success();
    let set = [
        "branch=issue-12",
        "workspace_path=.",
        "workspace_type=in-place",
        "validation.dependencies=none",
        "validation.build=clean",
        "validation.dev_server=n/a: a library",
    ];
    let mut args = vec![
        "send",
        "--issue",
        "12",
        "--to",
        "implementer-agent",
        "--as",
        "prep-agent",
    ];
    args.extend(set.iter().flat_map(|one| ["--set", one]));
    env.handoff(&args).success();
    let sent = env
        .handoff(&["show", "12.2", "--contract"])
        .success()
        .stdout;
    assert!(!sent.contains("quayside"), "{sent}");
    // A person says that it is another one now: a server was replaced.
    let data = event(&env, "issues", &namesake);
    let line = why(&data);
    let line = line
        .split("says so: `git handoff ")
        .nth(1)
        .unwrap()
        .split('`')
        .next()
        .unwrap();
    assert!(line.ends_with("--fact repository_id=7"), "{line}");
    env.handoff(&line.split(' ').collect::<Vec<_>>()).success();
    assert_eq!(did(&event(&env, "issues", &namesake)), ["paused 12.2"]);
    env.assert_sound();
}

#[test]
fn where_the_ledger_is_tells_a_rename_before_any_event() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    let moved = of(closed(&env, 12, 0), "crew/desk", Some(1));
    assert!(did(&event(&env, "issues", &moved)).is_empty());
    env.git(
        &env.repo(),
        &["remote", "add", "origin", "git@github.com:crew/desk.git"],
    );
    assert_eq!(did(&event(&env, "issues", &moved)), ["paused 12.1"]);
    env.assert_sound();
}

#[test]
fn without_a_remote_a_commit_that_is_here_tells_a_rename() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    let here = env.git(&env.repo(), &["rev-parse", "HEAD"]);
    let told = |head: &str, of: &str| {
        let mut own = opened(&env, 13, 0);
        own["head"]["sha"] = json!(head);
        own["head"]["repo"]["full_name"] = json!(of);
        let payload = pull("opened", own);
        did(&event(
            &env,
            "pull_request",
            &self::of(payload, "crew/desk", None),
        ))
    };
    let absent = "1".repeat(40);
    for (head, of) in [
        (absent.as_str(), "crew/desk"),
        ("HEAD", "crew/desk"),
        (here.trim(), "mallory/desk"),
    ] {
        assert_eq!(told(head, of), Vec::<String>::new(), "{head} of {of}");
    }
    assert_eq!(told(here.trim(), "crew/desk"), ["noted 12.1"]);
    env.assert_sound();
}

#[test]
fn several_repositories_have_keys_of_their_own() {
    // Its keys are text.
    let env = own("task-breakdown", |definition| {
        definition["github"]["repositories"] = json!({ "octo/api": "", "octo/web": "web-" });
    });
    let sample = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples/task-breakdown/valid/environment-to-planning.json");
    for key in ["12", "web-12"] {
        env.handoff(&["send", sample.to_str().unwrap(), "--issue", key])
            .success();
    }
    let told = |name: &str, payload: Value, repo: &str, id: u64| {
        event(&env, name, &of(payload, repo, Some(id)))
    };
    let data = told("issues", closed(&env, 12, 60), "octo/else", 3);
    assert!(
        did(&data).is_empty()
            && why(&data).contains("octo/else, which is not in `github.repositories`"),
        "{data:#}"
    );
    // A pull request closes what its own repository has, or the one that its text names.
    let closing = |body: &str| {
        let mut own = pull_request(5, 1);
        own["body"] = json!(body);
        pull("opened", own)
    };
    assert_eq!(
        told("pull_request", closing("Closes #12"), "octo/web", 2)["keys"],
        json!(["web-12"])
    );
    assert_eq!(
        told("pull_request", closing("Closes octo/api#12"), "octo/web", 2)["keys"],
        json!(["12"])
    );
    let data = told("issues", closed(&env, 12, 60), "octo/Web", 2);
    assert_eq!(data["keys"], json!(["web-12"]), "{data:#}");
    assert_eq!(data["did"][0]["what"], "paused", "{data:#}");
    let paused = |key: &str| {
        env.handoff(&["status", key])
            .success()
            .stdout
            .contains("paused")
    };
    assert!(paused("web-12") && !paused("12"));
    env.assert_sound();
}

/// A pull request of a stranger, from a fork.
fn of_stranger(env: &TestEnvironment, head: &str, seconds: i64) -> Value {
    let mut own = opened(env, 99, seconds);
    own["head"] = json!({ "ref": "issue-13", "sha": head.repeat(40), "repo": { "id": 2, "full_name": "mallory/desk" } });
    own["user"] = person("mallory");
    own["author_association"] = json!("NONE");
    own
}

fn reviewed(env: &TestEnvironment, own: &Value, state: &str, body: &str) -> Value {
    let commit = own["head"]["sha"].clone();
    json!({ "action": "submitted", "pull_request": own, "repository": repository(), "sender": person("ada"),
        "review": { "id": 4, "state": state, "author_association": "MEMBER", "body": body, "user": person("ada"),
            "commit_id": commit, "submitted_at": at(env, 0), "html_url": "https://github.com/quayside/parcel-desk/pull/99#r4" } })
}

#[test]
fn a_strangers_pull_request_is_recorded_beside_and_approved_by_a_person() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    let stranger = of_stranger(&env, "4", 0);
    let data = event(&env, "pull_request", &pull("opened", stranger.clone()));
    assert_eq!(did(&data), ["noted 12.1"], "{data:#}");
    let told = &data["did"][0]["facts"];
    assert_eq!(
        (&told["other_pr_number"], &told["other_pr_author"]),
        (&json!(99), &json!("mallory"))
    );
    // It is not the issue's own: that one comes later, and counts.
    assert_eq!(
        did(&event(
            &env,
            "pull_request",
            &pull("opened", opened(&env, 5, 1))
        )),
        ["noted 12.1"]
    );
    assert_eq!(
        (fact(&env, "pr_number"), fact(&env, "head")),
        (json!(5), json!("1".repeat(40)))
    );
    // Its CI is found by its commit, whatever its branch is called.
    let ran = json!({ "action": "completed", "repository": repository(), "sender": person("mallory"), "workflow_run": {
        "id": 8, "name": "CI", "event": "pull_request", "conclusion": "failure", "head_branch": "issue-13", "head_sha": "4".repeat(40),
        "head_repository": { "id": 2, "full_name": "mallory/desk" }, "pull_requests": [],
        "run_started_at": at(&env, 2), "updated_at": at(&env, 3), "html_url": "https://github.com/quayside/parcel-desk/actions/runs/8" } });
    let data = event(&env, "workflow_run", &ran);
    assert_eq!(
        (data["keys"].clone(), did(&data)),
        (json!(["12"]), vec!["noted 12.1".to_owned()]),
        "{data:#}"
    );
    assert_eq!(data["did"][0]["facts"]["other_ci_conclusion"], "failure");
    assert_eq!(fact(&env, "ci_conclusion"), Value::Null);
    // So are reviews, of whom GitHub says may write.
    env.wait_minutes(1);
    let asks = reviewed(&env, &stranger, "changes_requested", "Please test it.");
    let data = permitted(&env, "pull_request_review", &asks, "read");
    assert!(
        did(&data).is_empty() && why(&data).contains("ada may not write"),
        "{data:#}"
    );
    let data = permitted(&env, "pull_request_review", &asks, "write");
    assert_eq!(
        data["did"][0]["facts"]["other_review_state"], "changes_requested",
        "{data:#}"
    );
    assert_eq!(fact(&env, "review_state"), Value::Null);
    // A person approves what they have seen, in a comment or in a review.
    let on_it = |body: &str| {
        let on = json!({ "number": 99, "title": "x", "body": "Closes #12", "user": person("mallory"),
            "author_association": "NONE", "pull_request": {} });
        let mut said = comment(&env, on, body);
        said["comment"]["id"] = json!(env.now());
        said
    };
    let early = on_it("/handoff approve");
    env.wait_minutes(1);
    let pushed = of_stranger(&env, "5", 0);
    assert_eq!(
        did(&event(
            &env,
            "pull_request",
            &pull("synchronize", pushed.clone())
        )),
        ["noted 12.1"]
    );
    let data = event(&env, "issue_comment", &early);
    let reply = data["reply"].as_str().unwrap();
    assert!(
        reply.contains("may have come after this was said")
            && reply.contains("/handoff approve 5555555555"),
        "{reply}"
    );
    let approving = reviewed(&env, &pushed, "approved", "/handoff approve");
    let data = permitted(&env, "pull_request_review", &approving, "write");
    assert!(did(&data).contains(&"approved 12.1".to_owned()), "{data:#}");
    let gate = |head: &str| {
        env.handoff(&[
            "gate",
            "--issue",
            "12",
            "--require",
            "approved-by-person",
            "--head",
            &head.repeat(40),
        ])
    };
    gate("1").exits(1);
    let notes = env.data(&["status", "12"])["record"]["annotations"].clone();
    let approvals = notes
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|note| note["approval"]["code"]["commit"].as_str());
    assert_eq!(approvals.collect::<Vec<_>>(), ["5".repeat(40)]);
    env.assert_sound();
}

#[test]
fn a_rival_pull_request_is_recorded_beside_and_takes_over_as_a_whole() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    assert_eq!(
        did(&event(
            &env,
            "pull_request",
            &pull("opened", opened(&env, 5, 0))
        )),
        ["noted 12.1"]
    );
    let mut rival = opened(&env, 6, 1);
    rival["html_url"] = json!("https://github.com/quayside/parcel-desk/pull/6");
    rival["head"]["ref"] = json!("issue-12-again");
    rival["head"]["sha"] = json!("6".repeat(40));
    let data = event(&env, "pull_request", &pull("opened", rival.clone()));
    assert_eq!(data["did"][0]["facts"]["other_pr_number"], 6, "{data:#}");
    assert!(why(&data).contains("noted beside it"), "{data:#}");
    assert_eq!(fact(&env, "pr_number"), 5);
    let mut shut = opened(&env, 5, 2);
    shut["state"] = json!("closed");
    assert_eq!(
        did(&event(&env, "pull_request", &pull("closed", shut))),
        ["noted 12.1"]
    );
    // The next that is told of the rival is a review: all of it comes with that.
    env.wait_minutes(1);
    let review = reviewed(&env, &rival, "changes_requested", "Tests?");
    let data = permitted(&env, "pull_request_review", &review, "write");
    assert_eq!(did(&data)[0], "noted 12.1", "{data:#}");
    let known = ["pr_number", "pr_url", "branch", "head"].map(|name| fact(&env, name));
    assert_eq!(
        known,
        [
            json!(6),
            rival["html_url"].clone(),
            json!("issue-12-again"),
            json!("6".repeat(40))
        ]
    );
    env.assert_sound();
}

#[test]
fn an_issue_that_was_transferred_and_comes_back_goes_on() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    let now = env.now();
    let told = |action: &str, seconds: i64, changes: Value| {
        let mut own = issue(12);
        own["updated_at"] = json!(at(&env, now - env.now() + seconds));
        let mut payload = issues(action, own);
        payload["changes"] = changes;
        payload
    };
    let there = json!({ "number": 3, "html_url": "https://github.com/octo/parts/issues/3" });
    let gone = |seconds| told("transferred", seconds, json!({ "new_issue": there }));
    let back = |seconds| {
        told(
            "opened",
            seconds,
            json!({ "old_issue": there, "old_repository": { "id": 2 } }),
        )
    };
    assert_eq!(did(&event(&env, "issues", &gone(60))), ["paused 12.1"]);
    // Of an earlier time away.
    assert!(did(&event(&env, "issues", &back(30))).is_empty());
    let data = event(&env, "issues", &back(90));
    assert_eq!(did(&data)[0], "reopened 12.1", "{data:#}");
    let paused = || env.data(&["status", "12"])["issue"]["paused"].clone();
    assert_eq!(paused(), Value::Null);
    // Whatever comes first.
    assert_eq!(did(&event(&env, "issues", &back(150)))[0], "reopened 12.1");
    assert!(did(&event(&env, "issues", &gone(120))).is_empty());
    assert_eq!(paused(), Value::Null);
    // One that only comes from elsewhere is new.
    let mut new = back(200);
    new["issue"] = issue(40);
    let data = event(&env, "issues", &new);
    assert_eq!(did(&data), ["sent 40.1"], "{data:#}");
    env.assert_sound();
}
