//! An issue in which nothing is open can be given up, and reopened.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;

fn stuck(env: &TestEnvironment) -> Value {
    env.data(&["status"])["attention"].clone()
}

fn cancel<'a>(id: &'a str, agent: &'a str, reason: &'a str) -> [&'a str; 6] {
    ["cancel", id, "--as", agent, "--reason", reason]
}

/// A ledger in which issue 7 was turned down: nothing in it is open.
fn turned_down() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    let reject = ["reject", "7.1", "--as", "prep-agent", "--reason", "no"];
    env.handoff(&reject).success();
    env
}

#[test]
fn an_issue_of_which_only_the_open_handoff_was_cancelled_is_ended_as_it_says() {
    let env = TestEnvironment::with_ledger();
    for issue in [7, 8] {
        env.send(opening(issue)).success();
    }
    let all = "git handoff cancel 7 --all --as maintainer --reason WHY";
    env.handoff(&["cancel", "7", "--as", "maintainer", "--all"])
        .exits(2)
        .says(&all.replace(" --as maintainer", ""));
    let cancelled = env.handoff(&cancel("7", "maintainer", "no")).success();
    cancelled.says(&format!("to give up issue 7 itself: {all}\n"));
    env.handoff(
        &all.replace("WHY", "no")
            .split(' ')
            .skip(2)
            .collect::<Vec<_>>(),
    )
    .success()
    .says("issue 7: cancelled  commit ");
    // Who may not is told in the name of who may.
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.claim("7.1", "prep-agent").success();
    env.send(test_support::contracts::prepared(7)).success();
    env.handoff(&cancel("7", "implementer-agent", "no"))
        .success()
        .says("itself: git handoff cancel 7 --all --as issue-manager --reason WHY\n");
    env.send(opening(8)).success();
    // A handoff that is named is what was meant.
    let one = env.handoff(&cancel("8.1", "maintainer", "no")).success();
    assert!(!one.shown.contains("itself"), "{}", one.shown);
}

#[cfg(feature = "agents")]
#[test]
fn an_issue_with_nothing_open_is_given_up_and_nobody_is_told() {
    let env = turned_down();
    let before = stuck(&env);
    assert_eq!(before[0]["need"], "rejected");
    let mut text = env
        .handoff(&cancel("7", "fixer-agent", "why not"))
        .exits(4)
        .shown;
    text += &env
        .handoff(&["cancel", "7", "--as", "issue-manager"])
        .exits(2)
        .shown;
    let give_up = cancel("7", "issue-manager", "no longer needed");
    text += &env.handoff(&give_up).success().shown;
    text += &env.handoff(&give_up).success().shown;
    text += &env
        .handoff(&cancel("7", "orchestrator", "me too"))
        .exits(4)
        .shown;
    text += &env.handoff(&["status", "7"]).success().shown;
    text += &env.handoff(&["wait", "7"]).exits(1).shown;
    let gate = ["gate", "--issue", "7", "--require", "completed"];
    text += &env.handoff(&gate).exits(1).shown;
    text += &env.handoff(&["log", "--event", "give_up"]).success().shown;
    assert_snapshot!(text, @"
    $ git handoff cancel 7 --as fixer-agent --reason 'why not'
    --- stderr
    error: fixer-agent cannot give up issue 7, which issue-manager opened
    hint: issue-manager, an agent that it awaits, an orchestrator or a person can; see `git handoff status 7`
    --- exit 4
    $ git handoff cancel 7 --as issue-manager
    --- stderr
    error: giving up issue 7 takes a reason
    hint: `git handoff cancel 7 --all --reason WHY --as issue-manager`
    --- exit 2
    $ git handoff cancel 7 --as issue-manager --reason 'no longer needed'
    issue 7 is cancelled
      commit [commit]
    $ git handoff cancel 7 --as issue-manager --reason 'no longer needed'
    issue 7 was already cancelled; nothing was written
    $ git handoff cancel 7 --as orchestrator --reason 'me too'
    --- stderr
    error: issue 7 is cancelled: nothing can be added to it
    hint: `git handoff reopen 7 --as maintainer --reason WHY` reopens it
    --- exit 4
    $ git handoff status 7
    issue 7: cancelled (issue-to-pr, 1 handoff, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      2026-03-02 09:10:00Z issue-manager gave it up: no longer needed
      issue_url: https://github.com/quayside/parcel-desk/issues/7
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
    7.1  rejected  issue-manager → prep-agent  medium  7 minutes ago  Dispatchers ask for their delivery…: no
    $ git handoff wait 7
    issue 7 is cancelled
    --- stderr
    next: git handoff status 7
    --- exit 1
    $ git handoff gate --issue 7 --require completed
    ✗ not completed: issue 7 is cancelled
    --- stderr
    error: issue 7 is not completed
    hint: the issue was cancelled; to go on with it: `git handoff reopen 7 --as maintainer --reason WHY`
    --- exit 1
    $ git handoff log --event give_up
    [commit]  2026-03-02 09:10:00Z  issue-manager    7 given up: no longer needed
    --- stderr
    the same with git: git log --grep='^Event: give_up$' handoffs
    ");

    assert_eq!(stuck(&env), json!([]));
    for agent in ["issue-manager", "orchestrator", "prep-agent"] {
        let prime = env.handoff(&["prime", "--as", agent]).success();
        assert!(
            prime
                .stdout
                .contains("You hold nothing, and nothing waits for you"),
            "{}",
            prime.shown
        );
    }
    let next = env.handoff(&["next", "7"]).success();
    assert_eq!(next.stdout, "nothing is open in issue 7\n");
    #[cfg(feature = "report")]
    {
        let metrics = env.data(&["metrics"]);
        let issues = &metrics["figures"]["issues"];
        assert_eq!(
            (&issues["open"], &issues["completed"]),
            (&json!(0), &json!(0))
        );
    }
    let message = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
    assert!(message.contains("\nEvent: give_up\n"), "{message}");
    assert!(message.contains("7 open..cancelled"), "{message}");
    env.assert_sound();
}

#[test]
fn a_cancelled_issue_is_as_before_once_it_is_reopened() {
    let env = turned_down();
    let before = stuck(&env);
    env.handoff(&cancel("7", "orchestrator", "no longer needed"))
        .success();
    let other = opening(7).replace("medium", "high");
    let refused = env.send(&other).exits(4);
    refused.says("issue 7 is cancelled: nothing can be added to it");
    let reopen = "reopen 7 --as issue-manager --reason again";
    let reopen: Vec<&str> = reopen.split(' ').collect();
    env.handoff(&reopen).success();
    assert_eq!(stuck(&env), before);
    env.assert_sound();
    env.send(&other).success();
    assert_eq!(stuck(&env), json!([]));

    // So is one in which work was completed and not sent on.
    env.claim("7.2", "prep-agent").success();
    env.handoff(&["complete", "7.2", "--as", "prep-agent"])
        .success();
    let before = stuck(&env);
    assert_eq!(before[0]["need"], "not_handed_on");
    // Who is awaited may give up.
    env.handoff(&cancel("7", "prep-agent", "it was done elsewhere"))
        .success();
    assert_eq!(stuck(&env), json!([]));
    env.handoff(&reopen).success();
    assert_eq!(stuck(&env), before);
    env.assert_sound();
}

#[test]
fn a_cancel_that_is_repeated_does_not_give_up_the_issue() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    // What is open in the issue is cancelled, and the issue stays open.
    let once = cancel("7", "issue-manager", "wrong branch");
    env.handoff(&once).success();
    let told = stuck(&env);
    assert_eq!(told[0]["need"], "cancelled");
    let commits = env.git(&env.repo(), &["rev-list", "--count", "handoffs"]);
    let again = env.handoff(&once).success();
    assert_snapshot!(again.shown, @"
    $ git handoff cancel 7 --as issue-manager --reason 'wrong branch'
    7.1 was already cancelled for this reason; nothing was written
    --- stderr
    next: git handoff new --issue 7 --from issue-manager --to prep-agent
    to give up issue 7 itself: git handoff cancel 7 --all --as issue-manager --reason WHY
    ");
    assert_eq!(
        env.git(&env.repo(), &["rev-list", "--count", "handoffs"]),
        commits
    );
    assert_eq!(stuck(&env), told);
    let data = env.data(&cancel("7", "issue-manager", "no longer needed"));
    assert_eq!(data["issue"]["status"], "cancelled");
    assert_eq!(stuck(&env), json!([]));
    env.assert_sound();
}

#[cfg(feature = "exchange")]
#[test]
fn an_import_gives_up_only_an_issue_with_nothing_open() {
    let env = turned_down();
    env.handoff(&cancel("7", "issue-manager", "no longer needed"))
        .success();
    let out = env.root().join("out");
    let folder = out.to_str().unwrap();
    env.handoff(&["export", "--format", "files", folder])
        .success();
    env.handoff(&["init", "--branch", "other"]).success();
    let import = ["import", folder, "--branch", "other"];
    env.handoff(&import).success();
    env.handoff(&["verify", "--branch", "other"]).success();
    let status = env.handoff(&["status", "7", "--branch", "other"]).success();
    assert!(
        status.stdout.starts_with("issue 7: cancelled"),
        "{}",
        status.shown
    );

    // Without the rejection, the handoff is still open when its issue is given up.
    let steps = out.join("steps.jsonl");
    let lines = fs::read_to_string(&steps).unwrap();
    let kept = lines.lines().filter(|line| !line.contains("\"reject\""));
    let kept: Vec<String> = kept
        .map(|line| line.replace("\"number\":3", "\"number\":2"))
        .collect();
    assert_eq!(kept.len() + 1, lines.lines().count());
    fs::write(&steps, kept.join("\n") + "\n").unwrap();
    env.handoff(&["init", "--branch", "third"]).success();
    env.handoff(&["import", folder, "--branch", "third"])
        .exits(4)
        .says("issue 7 cannot be given up: 7.1 is still open in it (still_open)")
        .says("`git handoff cancel 7.1 --reason WHY`");
}

#[test]
fn an_issue_given_up_in_the_name_of_an_agent_that_may_not_is_found() {
    let env = turned_down();
    env.handoff(&cancel("7", "issue-manager", "no longer needed"))
        .success();
    env.assert_sound();
    let worktree = env.root().join("forgery");
    let path = worktree.to_str().unwrap();
    let add = ["worktree", "add", "-q", "--detach", path, "handoffs"];
    env.git(&env.repo(), &add);
    let git = |args: &[&str]| env.git(&worktree, args).trim().to_owned();
    let listed = git(&["ls-files", "issues/*/issue.json"]);
    let file = worktree.join(listed);
    let stored = fs::read_to_string(&file).unwrap();
    let mut issue: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(issue["given_up"][0]["by"], "issue-manager");
    let by = "\"by\": \"issue-manager\"";
    assert_eq!(stored.matches(by).count(), 1);
    fs::write(&file, stored.replace(by, "\"by\": \"fixer-agent\"")).unwrap();
    let date = issue["given_up"][0]["at"].take();
    let author = "fixer-agent <fixer-agent@handoff.invalid>";
    let date = date.as_str().unwrap();
    git(&["add", "-A"]);
    let message = git(&["log", "-1", "--format=%B"]);
    let message = message.replace("By: issue-manager", "By: fixer-agent");
    let amend = ["commit", "-q", "--amend", "--no-verify", "-m", &message];
    git(&[&amend[..], &["--author", author, "--date", date]].concat());
    let forged = git(&["rev-parse", "HEAD"]);
    env.git(&env.repo(), &["update-ref", "refs/heads/handoffs", &forged]);
    env.handoff(&["verify", "--accept-rewritten"])
        .exits(10)
        .says("fixer-agent cannot give up issue 7");
}
