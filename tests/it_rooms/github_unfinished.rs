//! Issues that lack something when they are opened: they wait in the ledger to be written up.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use test_support::contracts::opening;
use test_support::{TestEnvironment, repository_kind, stored};

use test_support::events::{at, did, event, file, issue, issues, why};

/// An issue with these labels, and this text.
fn with(labels: &[&str], body: &str) -> Value {
    let mut issue = issue(12);
    let labels = labels.iter().map(|label| json!({"name": label}));
    issue["labels"] = labels.collect::<Vec<_>>().into();
    issue["body"] = json!(body);
    issue
}

#[test]
fn an_issue_that_lacks_something_waits_to_be_written_up() {
    let env = TestEnvironment::with_ledger();
    let path = file(&env, &issues("opened", with(&["question"], "")));
    let draft = env.root().join("draft.xml");
    let args = [
        "github",
        "event",
        "--name",
        "issues",
        "--file",
        &path,
        "--draft",
        draft.to_str().unwrap(),
    ];
    insta::assert_snapshot!(env.handoff(&args).success().shown, @r#"
    $ git handoff github event --name issues --file [root]/event.json --draft [root]/draft.xml
    issues opened, issue 12, delivery sha256-[commit]
      sent 12.1 by issue-manager, commit [commit]
      for issue-manager to finish: issue-manager-to-prep-agent to prep-agent, 3 places left to fill
        written to "[root]/draft.xml"
      nothing: written-up: the event does not provide all of the contract: /type, /priority, /requirements/0
    "#);
    let text = fs::read_to_string(&draft).unwrap();
    assert_eq!(env.handoff(&["check", draft.to_str().unwrap()]).status, 3);
    insta::assert_snapshot!(env.handoff(&["status", "12"]).success().shown, @"
    $ git handoff status 12
    issue 12: open (issue-to-pr, 1 handoff, since 2026-03-02 09:05:00Z)
      title: Parcels are lost
      issue_url: https://github.com/quayside/parcel-desk/issues/12
      12.1 is pending with issue-manager
    12.1  pending  issue-manager → issue-manager  2 minutes ago  Missing: type, priority, requirements
    --- stderr
    next, for issue-manager: git handoff claim 12.1 --as issue-manager
    ");

    // Whoever writes it up claims it, and goes on from what is known.
    env.send(opening(12))
        .exits(4)
        .says("git handoff claim 12.1 --as issue-manager");
    env.handoff(&["claim", "--next", "--as", "issue-manager"])
        .success();
    let new = env
        .handoff(&[
            "new",
            "--issue",
            "12",
            "--as",
            "issue-manager",
            "--to",
            "prep-agent",
        ])
        .success();
    let skeleton = text.replace(
        "<summary>Parcels are lost</summary>",
        "<summary>{{fill: what this issue asks for, in one line}}</summary>",
    );
    assert!(new.shown.contains(skeleton.trim()), "{}", new.shown);
    let filled = text
        .replace(
            "{{fill: feature, bug, enhancement, refactor or chore}}",
            "bug",
        )
        .replace("{{fill: critical, high, medium or low}}", "low")
        .replace(
            "{{fill: one thing that must hold when the work is done}}",
            "none is lost",
        );
    env.send(filled).success();
    env.claim("12.2", "prep-agent").success();
    env.assert_sound();
}

#[test]
fn what_is_missing_changes_with_the_issue_until_nothing_is() {
    let env = TestEnvironment::with_ledger();
    let opened = issues("opened", with(&[], "Please"));
    assert_eq!(did(&event(&env, "issues", &opened)), ["sent 12.1"]);
    assert_eq!(did(&event(&env, "issues", &opened)), ["sent 12.1 again"]);
    let record = stored(&env.data(&["show", "12.1"]));
    assert_eq!(record["summary"], "Missing: type, priority, requirements");
    assert_eq!(record["to"], "issue-manager");

    let labeled = issues("labeled", with(&["kind/bug"], "Please"));
    let data = event(&env, "issues", &labeled);
    assert_eq!(did(&data), ["noted 12.1", "noted 12.1"]);
    let known = env.data(&["status", "12"]);
    assert_eq!(known["known"]["type"], "bug");
    let shown = env.data(&["show", "12.1"]);
    assert_eq!(
        shown["annotations"][1]["note"],
        "Missing: priority, requirements"
    );
    // The comment on the issue tells whoever can add it.
    env.handoff(&["github", "comment", "12"]).success().says(
        "- 12.1 for `issue-manager`: `Missing: type, priority, requirements`; `of an event, noted by issue-manager`: `Missing: priority, requirements`",
    );
    // A second time, nothing of it is news.
    let again = issues("edited", with(&["kind/bug"], "Please"));
    let data = event(&env, "issues", &again);
    assert!(did(&data).is_empty(), "{data:#}");
    assert!(
        why(&data).contains("the missing fields are noted already"),
        "{data:#}"
    );

    // What was taken away is missing again, and is not sent as if it still held.
    let body = "## Requirements\n- none is lost";
    let data = event(&env, "issues", &issues("unlabeled", with(&[], "Please")));
    assert_eq!(did(&data), ["noted 12.1", "noted 12.1"]);
    let data = event(&env, "issues", &issues("edited", with(&["p1"], body)));
    assert_eq!(did(&data), ["noted 12.1", "noted 12.1"], "{data:#}");
    let shown = env.data(&["show", "12.1"]);
    let notes = shown["annotations"].as_array().unwrap();
    assert_eq!(notes.last().unwrap()["note"], "Missing: type");

    // Nothing is missing: it is sent in the name of the agent that it waited for.
    let whole = issues("labeled", with(&["p1", "bug"], body));
    let data = event(&env, "issues", &whole);
    assert_eq!(did(&data), ["noted 12.1", "sent 12.2"], "{data:#}");
    assert_eq!(
        did(&event(&env, "issues", &whole)),
        ["noted 12.1 again", "sent 12.2 again"]
    );
    let first = stored(&env.data(&["show", "12.1"]));
    assert_eq!(first["state"], "completed");
    let second = stored(&env.data(&["show", "12.2"]));
    assert_eq!(second["follows"], "12.1");
    assert_eq!(second["to"], "prep-agent");
    env.assert_sound();
}

#[test]
fn what_somebody_says_counts_for_what_the_issue_lacks() {
    let env = TestEnvironment::with_ledger();
    let body = "## Requirements\n- none is lost";
    let opened = issues("opened", with(&["bug"], body));
    assert_eq!(did(&event(&env, "issues", &opened)), ["sent 12.1"]);
    let set = [
        "set",
        "12",
        "--as",
        "maintainer",
        "priority=high",
        "--reason",
        "agreed on the phone",
    ];
    env.handoff(&set).success();
    let edited = issues("edited", with(&["bug"], &format!("{body}\n")));
    let data = event(&env, "issues", &edited);
    assert_eq!(did(&data), ["noted 12.1", "sent 12.2"], "{data:#}");
    env.assert_sound();
}

#[test]
fn who_writes_it_up_is_not_overtaken() {
    let env = TestEnvironment::with_ledger();
    let opened = issues("opened", with(&[], ""));
    assert_eq!(did(&event(&env, "issues", &opened)), ["sent 12.1"]);
    env.claim("12.1", "issue-manager").success();
    let data = event(&env, "issues", &issues("edited", issue(12)));
    assert_eq!(did(&data), ["noted 12.1"], "{data:#}");
    assert!(
        why(&data).contains("issue-manager works on it: 12.1"),
        "{data:#}"
    );
    // Who has it ends it by what it says.
    env.send(opening(12)).success();
    env.assert_sound();
}

#[test]
fn an_issue_that_is_closed_before_it_is_written_up_rests() {
    let env = TestEnvironment::with_ledger();
    let opened = issues("opened", with(&[], ""));
    assert_eq!(did(&event(&env, "issues", &opened)), ["sent 12.1"]);
    let mut closed = with(&[], "");
    closed["state"] = json!("closed");
    closed["state_reason"] = json!("not_planned");
    closed["closed_at"] = json!(at(&env, 0));
    let data = event(&env, "issues", &issues("closed", closed));
    assert_eq!(did(&data), ["paused 12.1"]);
    let data = event(&env, "issues", &issues("edited", issue(12)));
    assert!(why(&data).contains("the issue is paused"), "{data:#}");
    env.handoff(&["claim", "--next", "--as", "issue-manager"])
        .exits(6);
    env.assert_sound();
}

#[test]
fn an_old_issue_is_not_left_to_anybody_unless_it_is_complete() {
    let env = TestEnvironment::with_ledger();
    let labeled = issues("labeled", with(&["stale"], ""));
    let data = event(&env, "issues", &labeled);
    assert!(did(&data).is_empty(), "{data:#}");
    assert!(why(&data).contains("such an event opens no issue that lacks something"));
    let data = event(&env, "issues", &issues("labeled", issue(12)));
    assert_eq!(did(&data), ["sent 12.1"]);
}

#[test]
fn what_broke_off_after_the_claim_is_sent_by_the_next_delivery() {
    let env = TestEnvironment::with_ledger();
    let git_dir = env.repo().join(".git");
    let tip = || repository_kind::now_at(&git_dir, "refs/heads/handoffs");
    let (mut cut, mut number) = (0, 11);
    // A busy machine may hit the moment only later.
    while number < 24 || cut == 0 && number < 250 {
        number += 1;
        let mut unfinished = issue(number);
        unfinished["labels"] = json!([]);
        event(&env, "issues", &issues("opened", unfinished));
        let path = file(&env, &issues("labeled", issue(number)));
        let args = ["github", "event", "--name", "issues", "--file", &path];
        let mut seen = env.tip();
        let mut command = env.program(&[&args[..], &["--worker", "run-1"]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Killed after the note and the claim, before or while it sends.
        for _ in 0..2 {
            while tip() == seen && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            seen = tip();
        }
        let _ = child.kill();
        child.wait().unwrap();
        let state = |id: &str| env.data(&["show", id])["handoff"]["state"].take();
        let first = format!("{number}.1");
        cut += usize::from(state(&first) == "in_progress");
        let again = env.data(&[&args[..], &["--worker", "run-2"]].concat());
        assert!(
            did(&again)
                .iter()
                .any(|one| one.starts_with(&format!("sent {number}.2"))),
            "{again:#}"
        );
        assert_eq!(state(&first), "completed");
        assert_eq!(state(&format!("{number}.2")), "pending");
    }
    assert!(cut > 0, "one of them was cut short");
    env.assert_sound();
}
