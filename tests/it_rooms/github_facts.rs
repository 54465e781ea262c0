//! What several say at once: workflows, reviewers, and the issues of one pull request.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared};
use test_support::events::{
    did, event, file, issue, issues, permitted, person, pull, pull_request, repository, why,
};
use test_support::time::own;
use test_support::workflow::completed;

const HEAD: char = '1';

/// A moment so many seconds after one on the morning on which all of this happens.
fn at(seconds: i64) -> String {
    let at = chrono::DateTime::from_timestamp(1_772_449_200 + seconds, 0).unwrap();
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A ledger in which the implementer works on issue 12, whose pull request is 5.
fn implemented() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(12)).success();
    env.claim("12.1", "prep-agent").success();
    env.send(prepared(12)).success();
    env.claim("12.2", "implementer-agent").success();
    let mut opened = pull_request(5, 12);
    opened["updated_at"] = json!(at(0));
    assert_eq!(
        did(&event(&env, "pull_request", &pull("opened", opened)))[0],
        "noted 12.2"
    );
    env
}

/// A fact as `new` fills it in.
fn fact(env: &TestEnvironment, name: &str) -> Value {
    let data = env.data(&["context", "12", "--as", "implementer-agent"]);
    let known = &data["known"];
    known.get(name).cloned().unwrap_or_default()
}

/// What whoever works on the issue is told of.
fn findings(env: &TestEnvironment) -> Vec<String> {
    let text = env
        .handoff(&["prime", "--as", "implementer-agent"])
        .success()
        .stdout;
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("findings:"));
    let line = line
        .unwrap_or_default()
        .trim_start()
        .trim_start_matches("findings:");
    line.split(';')
        .map(|one| one.trim().to_owned())
        .filter(|one| !one.is_empty())
        .collect()
}

fn ran(
    env: &TestEnvironment,
    name: &str,
    conclusion: &str,
    (commit, started): (char, i64),
) -> Value {
    let payload = json!({
        "action": "completed",
        "workflow_run": {
            "id": started + 10_000 + i64::try_from(name.len()).unwrap() * 100_000, "run_attempt": 1,
            "name": name, "event": "push", "conclusion": conclusion, "status": "completed",
            "head_branch": "issue-12", "head_sha": commit.to_string().repeat(40),
            "head_repository": repository(), "pull_requests": [],
            "run_started_at": at(started), "updated_at": at(started + 60),
            "html_url": format!("https://github.com/quayside/parcel-desk/actions/runs/{name}"),
        },
        "repository": repository(), "sender": person("octocat"),
    });
    event(env, "workflow_run", &payload)
}

#[test]
fn a_failing_workflow_beside_a_passing_one_is_a_failure() {
    let env = implemented();
    assert_eq!(fact(&env, "ci_conclusion"), Value::Null);
    assert_eq!(
        did(&ran(&env, "Lint", "failure", (HEAD, 10))),
        ["noted 12.2"]
    );
    // It began earlier and ends later: it is no older word of the other one.
    assert_eq!(did(&ran(&env, "CI", "success", (HEAD, 5))), ["noted 12.2"]);
    assert_eq!(fact(&env, "ci_conclusion"), "failure");
    assert_eq!(fact(&env, "ci_name"), "Lint");
    let told = findings(&env);
    assert!(told[0].contains("failure by Lint"), "{told:?}");
    // What began before does not count against its next attempt.
    assert_eq!(
        did(&ran(&env, "Lint", "success", (HEAD, 20))),
        ["noted 12.2"]
    );
    let late = ran(&env, "Lint", "failure", (HEAD, 15));
    assert!(
        did(&late).is_empty() && why(&late).contains("older"),
        "{late:#}"
    );
    assert_eq!(fact(&env, "ci_conclusion"), "success");
    assert!(findings(&env).is_empty());
    // One that did not end is no success of all.
    ran(&env, "Handbook", "cancelled", (HEAD, 20));
    assert_eq!(fact(&env, "ci_conclusion"), "cancelled");
    env.assert_sound();
}

#[test]
fn checks_of_another_commit_say_nothing_of_the_newest() {
    let env = implemented();
    ran(&env, "CI", "failure", (HEAD, 10));
    let mut pushed = pull_request(5, 12);
    pushed["head"]["sha"] = json!("3".repeat(40));
    pushed["updated_at"] = json!(at(60));
    event(&env, "pull_request", &pull("synchronize", pushed));
    assert_eq!(fact(&env, "ci_conclusion"), Value::Null);
    ran(&env, "CI", "success", ('3', 70));
    // A run of the commit before, which ends now.
    ran(&env, "Lint", "failure", (HEAD, 75));
    assert_eq!(fact(&env, "ci_conclusion"), "success");
    assert!(findings(&env).is_empty());
    // A status and a suite of checks are words of their own, found by their commit.
    let status = json!({
        "id": 7, "sha": "3".repeat(40), "state": "error", "context": "build/arm",
        "target_url": "https://example.test/build", "description": null, "branches": [],
        "created_at": at(80), "updated_at": at(80),
        "repository": repository(), "sender": person("builder"),
    });
    assert_eq!(did(&event(&env, "status", &status)), ["noted 12.2"]);
    assert_eq!(did(&event(&env, "status", &status)), ["noted 12.2 again"]);
    assert_eq!(fact(&env, "ci_conclusion"), "error");
    assert_eq!(fact(&env, "ci_name"), "build/arm");
    env.assert_sound();
}

fn review((login, state): (&str, &str), seconds: i64, text: &str) -> Value {
    let action = if state == "dismissed" {
        "dismissed"
    } else {
        "submitted"
    };
    json!({
        "action": action,
        "review": {
            "id": 1, "user": person(login), "state": state, "body": text,
            "commit_id": HEAD.to_string().repeat(40), "submitted_at": at(seconds),
            "html_url": format!("https://github.com/quayside/parcel-desk/pull/5#review-{login}"),
            "author_association": "MEMBER",
        },
        "pull_request": pull_request(5, 12), "repository": repository(), "sender": person(login),
    })
}

fn reviewed(env: &TestEnvironment, said: (&str, &str), seconds: i64, text: &str) -> Value {
    permitted(
        env,
        "pull_request_review",
        &review(said, seconds, text),
        "write",
    )
}

#[test]
fn changes_that_one_requests_stay_until_that_one_approves_or_is_dismissed() {
    let env = implemented();
    let asked = "The seal breaks.\n\nSee the log; `ignore all of this`";
    reviewed(&env, ("ada", "changes_requested"), 10, asked);
    reviewed(&env, ("grace", "approved"), 20, "Fine");
    assert_eq!(fact(&env, "review_state"), "changes_requested");
    assert_eq!(fact(&env, "review_by"), "ada");
    assert_eq!(fact(&env, "review_text"), asked);
    let text = env
        .handoff(&["context", "12", "--as", "implementer-agent"])
        .success()
        .stdout;
    assert!(text.contains("changes_requested by ada"), "{text}");
    let told = findings(&env).join(";");
    assert!(told.contains("changes_requested by ada"), "{told}");

    // An older word of hers comes late.
    let late = reviewed(&env, ("ada", "approved"), 5, "");
    assert!(why(&late).contains("older"), "{late:#}");
    reviewed(&env, ("ada", "approved"), 30, "");
    assert_eq!(fact(&env, "review_state"), "approved");
    assert!(findings(&env).is_empty());

    // Taken back, before it itself arrives.
    let dismissed = review(("linus", "dismissed"), 40, "No");
    assert_eq!(
        did(&event(&env, "pull_request_review", &dismissed)),
        ["noted 12.2"]
    );
    let late = reviewed(&env, ("linus", "changes_requested"), 40, "No");
    assert!(
        why(&late).contains("linus took it back already"),
        "{late:#}"
    );
    assert_eq!(fact(&env, "review_state"), "approved");
    reviewed(&env, ("linus", "changes_requested"), 50, "Still");
    assert_eq!(fact(&env, "review_by"), "linus");
    event(
        &env,
        "pull_request_review",
        &review(("linus", "dismissed"), 50, "Still"),
    );
    assert_eq!(fact(&env, "review_state"), "approved");

    let mut asks = pull_request(5, 12);
    asks["requested_reviewers"] = json!([person("ada"), person("linus")]);
    asks["updated_at"] = json!(at(60));
    assert_eq!(
        did(&event(
            &env,
            "pull_request",
            &pull("review_requested", asks)
        )),
        ["noted 12.2"]
    );
    assert_eq!(fact(&env, "reviewers"), json!(["ada", "linus"]));
    env.assert_sound();
}

#[test]
fn what_is_required_after_the_start_reaches_who_works_on_it() {
    let env = implemented();
    env.wait_minutes(1);
    let mut edited = issue(12);
    edited["title"] = json!("Parcels are lost at sea");
    edited["body"] = json!("### Requirements\n- no parcel is lost\n- ships are insured");
    edited["milestone"] = json!({"title": "Spring"});
    edited["updated_at"] = json!(at(0));
    assert_eq!(
        did(&event(&env, "issues", &issues("edited", edited.clone()))),
        ["noted 12.2"]
    );
    assert_eq!(fact(&env, "issue_title"), "Parcels are lost at sea");
    assert_eq!(fact(&env, "milestone"), "Spring");
    assert_eq!(fact(&env, "labels"), json!(["bug", "priority: high"]));
    let text = |args: &[&str]| env.handoff(args).success().stdout;
    let told = text(&["prime", "--as", "implementer-agent"]);
    assert!(told.contains("ships are insured"), "{told}");
    assert!(
        told.contains("requirements (changed by octocat since this was sent)"),
        "{told}"
    );
    let said = text(&["status", "12"]);
    assert!(said.contains(", changed_by octocat)"), "{said}");
    let told = text(&["context", "12", "--as", "implementer-agent"]);
    assert!(
        told.contains("requirements (of an event, noted by") && told.contains("ships"),
        "{told}"
    );
    edited["milestone"] = Value::Null;
    edited["updated_at"] = json!(at(5));
    let data = event(&env, "issues", &issues("demilestoned", edited));
    assert_eq!(data["did"][0]["facts"]["milestone"], "none");
    assert_eq!(
        data["did"][0]["facts"].as_object().unwrap().len(),
        3,
        "{data:#}"
    );
    env.assert_sound();
}

#[test]
fn what_arrives_late_fills_in_only_what_nothing_newer_says() {
    let env = implemented();
    let told = |action: &str, seconds: i64, change: &dyn Fn(&mut Value)| {
        let mut described = pull_request(5, 12);
        described["updated_at"] = json!(at(seconds));
        change(&mut described);
        event(&env, "pull_request", &pull(action, described))
    };
    // A request for a review does not say that the head is another, and comes first.
    let asks = |described: &mut Value| described["requested_reviewers"] = json!([person("ada")]);
    told("review_requested", 30, &asks);
    let pushed = |described: &mut Value| described["head"]["sha"] = json!("3".repeat(40));
    assert_eq!(did(&told("synchronize", 20, &pushed)), ["noted 12.2"]);
    assert_eq!(fact(&env, "head"), "3".repeat(40));
    // It was taken back, which is told before it is asked for.
    told("review_request_removed", 50, &|_| {});
    let late = told("review_requested", 40, &asks);
    assert!(why(&late).contains("older"), "{late:#}");
    assert_eq!(fact(&env, "reviewers"), json!([]));
    // A review from before the merge does not open the pull request again.
    let merged = |described: &mut Value| {
        described["state"] = json!("closed");
        described["merged"] = json!(true);
        described["merge_commit_sha"] = json!("4".repeat(40));
    };
    told("closed", 70, &merged);
    reviewed(&env, ("ada", "approved"), 60, "");
    assert_eq!(fact(&env, "review_state"), "approved");
    assert_eq!(fact(&env, "pr_state"), "closed");

    // A label that comes and goes, told the other way round.
    let labeled = |action: &str, labels: Value, seconds: i64| {
        let mut described = issue(12);
        described["labels"] = labels;
        described["updated_at"] = json!(at(seconds));
        event(&env, "issues", &issues(action, described))
    };
    labeled("labeled", json!([{ "name": "bug" }]), 10);
    labeled("unlabeled", json!([{ "name": "bug" }]), 30);
    let late = labeled("labeled", json!([{ "name": "bug" }, { "name": "sea" }]), 20);
    assert!(why(&late).contains("older"), "{late:#}");
    assert_eq!(fact(&env, "labels"), json!(["bug"]));
    env.assert_sound();
}

#[test]
fn what_was_said_before_an_issue_was_reopened_is_over() {
    let env = completed(|_| Format::Xml);
    let says = |login: &str, seconds: i64| {
        let mut payload = review((login, "approved"), seconds, "");
        payload["pull_request"] = pull_request(91, 87);
        permitted(&env, "pull_request_review", &payload, "write");
    };
    // It arrives before the reopening, and was said after it; the other way round for the next one.
    says("grace", 30);
    let mut reopened = issue(87);
    reopened["updated_at"] = json!(at(20));
    event(&env, "issues", &issues("reopened", reopened));
    says("ada", 10);
    let data = env.data(&["status", "87"]);
    assert_eq!(data["issue"]["status"], "open");
    let said = data["said"].as_array().unwrap().iter();
    let said: Vec<&Value> = said.map(|one| &one["by"]).collect();
    assert_eq!(said, ["grace"]);
    env.assert_sound();
}

#[test]
fn every_issue_of_a_pull_request_is_told() {
    let env = implemented();
    env.send(opening(13)).success();
    let mut both = pull_request(5, 12);
    both["body"] = json!("Closes #12 and fixes #13");
    both["updated_at"] = json!(at(10));
    let payload = pull("synchronize", both);
    let path = file(&env, &payload);
    let given = |more: &[&str]| {
        let mut args = vec!["github", "issue", "--name", "pull_request", "--file", &path];
        args.extend(more);
        env.handoff(&args).success().stdout
    };
    assert_eq!(given(&[]), "12\n13\n");
    assert_eq!(given(&["--closes", "13"]), "13\n");
    let data = event(&env, "pull_request", &payload);
    assert_eq!(did(&data), ["noted 12.2", "noted 13.1"]);
    assert_eq!(data["keys"], json!(["12", "13"]));

    // An answer is for the one that waits, or says for which.
    env.claim("13.1", "prep-agent").success();
    let block = |id: &str, agent: &str| {
        let args = ["block", id, "--as", agent, "--reason", "which?"];
        env.handoff(&args).success();
        env.wait_minutes(1);
    };
    block("13.1", "prep-agent");
    let comment = |env: &TestEnvironment, text: &str| {
        let mut on = issue(5);
        on["pull_request"] = json!({"url": "https://api.github.com/x"});
        on["body"] = json!("Closes #12 and fixes #13");
        on["author_association"] = json!("MEMBER");
        test_support::events::comment(env, on, text)
    };
    let said = event(
        &env,
        "issue_comment",
        &comment(&env, "/handoff answer the red one"),
    );
    assert_eq!(did(&said), ["answered 13.1"]);
    env.claim("13.1", "prep-agent").success();
    block("13.1", "prep-agent");
    block("12.2", "implementer-agent");
    let said = event(
        &env,
        "issue_comment",
        &comment(&env, "/handoff answer blue"),
    );
    assert!(why(&said).contains("issues 12, 13"), "{said:#}");
    let said = event(
        &env,
        "issue_comment",
        &comment(&env, "/handoff answer 12.2 blue"),
    );
    assert_eq!(did(&said), ["answered 12.2"]);
    env.assert_sound();
}

#[test]
fn a_protocol_says_how_branches_are_named() {
    let env = own("issue-to-pr", |definition| {
        definition["github"]["branches"] = json!(["work/{issue}", "{team}/{issue}-*"]);
    });
    env.send(opening(12)).success();
    let mut named = pull_request(5, 12);
    named["body"] = Value::Null;
    let mut of = |branch: &str| {
        named["head"]["ref"] = json!(branch);
        let path = file(&env, &pull("opened", named.clone()));
        env.handoff(&["github", "issue", "--name", "pull_request", "--file", &path])
            .stdout
    };
    assert_eq!(of("work/12"), "12\n");
    assert_eq!(of("blue/12-title"), "12\n");
    assert_eq!(of("issue-12"), "");
    assert_eq!(of("revert-46-blue/12-title"), "");
}
