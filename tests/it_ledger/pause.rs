//! A paused issue: nobody is handed its work, what is held goes on, and a reopening ends it.

use std::thread;

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::opening;
use test_support::team::with_protocol;
use test_support::time::sample;
use test_support::{TestEnvironment, stored_issue};

const PAUSE: [&str; 6] = [
    "pause",
    "7",
    "--as",
    "orchestrator",
    "--reason",
    "closed on GitHub",
];
const REOPEN: [&str; 6] = [
    "reopen",
    "7",
    "--as",
    "orchestrator",
    "--reason",
    "it is wanted",
];

fn with_opening() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env
}

fn issue(env: &TestEnvironment) -> Value {
    stored_issue(&env.data(&["status", "7"]))
}

#[test]
fn nobody_is_handed_the_work_of_a_paused_issue() {
    let env = with_opening();
    let mut text = env
        .handoff(&["pause", "7", "--as", "fixer-agent", "--reason", "why not"])
        .exits(4)
        .shown;
    for args in [
        &PAUSE[..],
        &PAUSE,
        &["claim", "7.1", "--as", "prep-agent"],
        &["claim", "--next", "--as", "prep-agent"],
        &["inbox", "--as", "prep-agent"],
        &["next", "7"],
        &["next", "7", "--apply", "--as", "orchestrator"],
        &["status", "7"],
        &["status"],
        &["show", "7.1"],
        &["list"],
        &["log", "--event", "pause"],
    ] {
        text += &env.handoff(args).shown;
    }
    text += &env
        .handoff(&["reopen", "7", "--as", "prep-agent", "--reason", "mine"])
        .exits(4)
        .shown;
    text += &env.handoff(&REOPEN).success().shown;
    text += &env.handoff(&REOPEN).success().shown;
    text += &env
        .handoff(&["claim", "--next", "--as", "prep-agent"])
        .success()
        .shown;
    assert_snapshot!(text, @"
    $ git handoff pause 7 --as fixer-agent --reason 'why not'
    --- stderr
    error: fixer-agent cannot pause or resume issue 7, which issue-manager opened
    hint: issue-manager, an orchestrator or a person can; see `git handoff status 7`
    --- exit 4
    $ git handoff pause 7 --as orchestrator --reason 'closed on GitHub'
    issue 7 is paused: its work can't be claimed
      commit [commit]
    --- stderr
    to resume it: git handoff resume 7 --as orchestrator --reason 'the work goes on'
    $ git handoff pause 7 --as orchestrator --reason 'closed on GitHub'
    issue 7 is paused for this reason already; nothing was written
    --- stderr
    to resume it: git handoff resume 7 --as orchestrator --reason 'the work goes on'
    $ git handoff claim 7.1 --as prep-agent
    --- stderr
    error: issue 7 is paused since 2026-03-02 09:07:00Z by orchestrator: closed on GitHub
    hint: `git handoff next 7` says who can resume it
    --- exit 4
    $ git handoff claim --next --as prep-agent
    --- stderr
    error: nothing waits for prep-agent
    hint: `git handoff inbox --as prep-agent` shows what else needs you; `git handoff wait --inbox --as prep-agent` waits for work
    --- exit 6
    $ git handoff inbox --as prep-agent
    nothing waits for prep-agent
    $ git handoff next 7
    orchestrator: issue 7 is paused since 2026-03-02 09:07:00Z by orchestrator: closed on GitHub
    --- stderr
    next: git handoff resume 7 --as orchestrator --reason 'the work goes on'
    $ git handoff next 7 --apply --as orchestrator
    --- stderr
    error: issue 7 is paused since 2026-03-02 09:07:00Z by orchestrator: closed on GitHub
    hint: run `git handoff resume 7 --as orchestrator --reason 'the work goes on'`
    --- exit 4
    $ git handoff status 7
    issue 7: open, paused (issue-to-pr, 1 handoff, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      paused since 2026-03-02 09:07:00Z by orchestrator: closed on GitHub
      issue_url: https://github.com/quayside/parcel-desk/issues/7
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
      7.1 is pending with prep-agent
    7.1  pending  issue-manager → prep-agent  medium  9 minutes ago  Dispatchers ask for their delivery history as a file
    --- stderr
    next, for orchestrator: git handoff resume 7 --as orchestrator --reason 'the work goes on'
    $ git handoff status
    ledger handoffs at [commit]: 1 pending
    7.1  pending  issue-manager → prep-agent  medium  10 minutes ago  Export delivery history as CSV
    issue 7 is paused since 2026-03-02 09:07:00Z by orchestrator: closed on GitHub: `git handoff resume 7 --as orchestrator --reason WHY`
    $ git handoff show 7.1
    7.1 issue-manager → prep-agent: pending
      summary   Dispatchers ask for their delivery history as a file
      type      issue-manager-to-prep-agent (xml)
      sha256    [sha256]
      priority  medium
      2026-03-02 09:05:00Z send by issue-manager → pending
      the issue is paused since 2026-03-02 09:07:00Z by orchestrator: closed on GitHub

    ```xml
    <handoff>
      <from>issue-manager</from>
      <to>prep-agent</to>
      <issue_url>https://github.com/quayside/parcel-desk/issues/7</issue_url>
      <issue_number>7</issue_number>
      <issue_title>Export delivery history as CSV</issue_title>
      <type>enhancement</type>
      <priority>medium</priority>
      <summary>Dispatchers ask for their delivery history as a file</summary>
      <requirements>
        <requirement>The history page offers a download as CSV</requirement>
        <requirement>Columns follow the order on screen</requirement>
        <requirement>An export of 50,000 rows takes less than ten seconds</requirement>
      </requirements>
    </handoff>
    ```
    --- stderr
    next, for orchestrator: git handoff resume 7 --as orchestrator --reason 'the work goes on'
    $ git handoff list
    7.1  pending  issue-manager → prep-agent  medium  12 minutes ago  Export delivery history as CSV
    issue 7 is paused since 2026-03-02 09:07:00Z by orchestrator: closed on GitHub
    $ git handoff log --event pause
    [commit]  2026-03-02 09:07:00Z  orchestrator    7 paused: closed on GitHub
    --- stderr
    the same with git: git log --grep='^Event: pause$' handoffs
    $ git handoff reopen 7 --as prep-agent --reason mine
    --- stderr
    error: prep-agent cannot pause or resume issue 7, which issue-manager opened
    hint: issue-manager, an orchestrator or a person can; see `git handoff status 7`
    --- exit 4
    $ git handoff reopen 7 --as orchestrator --reason 'it is wanted'
    issue 7 is open again
      commit [commit]
    --- stderr
    next, for prep-agent: git handoff claim 7.1 --as prep-agent
    $ git handoff reopen 7 --as orchestrator --reason 'it is wanted'
    issue 7 was already reopened; nothing was written
    --- stderr
    next, for prep-agent: git handoff claim 7.1 --as prep-agent
    $ git handoff claim --next --as prep-agent
    7.1 issue-manager → prep-agent: in_progress
      held until 2026-03-02 13:22:00Z, token 1, worker repo
      commit [commit]
      your part: Prepares branch and workspace
      if you are stuck: git handoff block 7.1 --as prep-agent --reason WHAT, or: git handoff fail 7.1 --as prep-agent --message WHY --recoverable --snapshot

    ```xml
    <handoff>
      <from>issue-manager</from>
      <to>prep-agent</to>
      <issue_url>https://github.com/quayside/parcel-desk/issues/7</issue_url>
      <issue_number>7</issue_number>
      <issue_title>Export delivery history as CSV</issue_title>
      <type>enhancement</type>
      <priority>medium</priority>
      <summary>Dispatchers ask for their delivery history as a file</summary>
      <requirements>
        <requirement>The history page offers a download as CSV</requirement>
        <requirement>Columns follow the order on screen</requirement>
        <requirement>An export of 50,000 rows takes less than ten seconds</requirement>
      </requirements>
    </handoff>
    ```
    --- stderr
    next: git handoff send --issue 7 --to implementer-agent --as prep-agent --set FIELD=VALUE…   # Workspace ready
        branch: code branch of the work
        workspace_path: path of the workspace
        workspace_type: worktree, in-place or cloud
        port: port of the development server; leave it out if dev_server says `n/a: ` and why
        validation.dependencies: outcome of installing the dependencies, or why there are none
        validation.build: outcome of the first build and test run
        validation.dev_server: outcome of starting the development server, or `n/a: ` and why there is none
    ");
    env.assert_sound();
}

#[test]
fn nothing_of_a_paused_issue_needs_anybody() {
    let env = with_opening();
    env.claim("7.1", "prep-agent").success();
    let block = [
        "block",
        "7.1",
        "--as",
        "prep-agent",
        "--reason",
        "which port?",
    ];
    env.handoff(&block).success();
    env.send(opening(8)).success();
    let needs = || env.data(&["status"])["attention"].as_array().map(Vec::len);
    assert_eq!(needs(), Some(1));
    env.handoff(&PAUSE).success();
    assert_eq!(needs(), Some(0));
    for agent in ["prep-agent", "orchestrator", "issue-manager", "maintainer"] {
        let verbs = [
            #[cfg(feature = "agents")]
            "prime",
            "inbox",
        ];
        for verb in verbs {
            let told = env.handoff(&[verb, "--as", agent]).success().stdout;
            assert!(!told.contains("7.1"), "{verb} {agent}: {told}");
        }
    }
    let wait = ["wait", "--inbox", "--as", "orchestrator", "--timeout", "0s"];
    env.handoff(&wait).exits(7);
    #[cfg(feature = "report")]
    {
        let report = env.handoff(&["report", "--output", "-"]).success().stdout;
        assert!(report.contains(">paused</b>"), "{report}");
        assert!(report.contains("closed on GitHub"), "{report}");
    }
    // Its other issue is handed out.
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
        .success()
        .says("8.1");
    env.handoff(&REOPEN).success();
    assert_eq!(needs(), Some(1));
    env.assert_sound();
}

#[cfg(feature = "agents")]
#[test]
fn what_is_held_goes_on_and_what_is_sent_waits() {
    let env = with_opening();
    env.claim("7.1", "prep-agent").success();
    env.handoff(&PAUSE).success();
    let extend = [
        "extend",
        "7.1",
        "--as",
        "prep-agent",
        "--progress",
        "half of it",
    ];
    env.handoff(&extend)
        .success()
        .says("issue 7 is paused since");
    let prime = env.handoff(&["prime", "--as", "prep-agent"]).success();
    assert!(
        prime.stdout.contains("its issue is paused by orchestrator"),
        "{}",
        prime.stdout
    );
    let branch = ["branch", "-q", "feature/7-export-history"];
    env.git_any(&env.repo(), &branch);
    let sent = env.send(test_support::contracts::prepared(7)).success();
    assert!(
        sent.stderr.contains("git handoff resume 7"),
        "{}",
        sent.shown
    );
    env.claim("7.2", "implementer-agent")
        .exits(4)
        .says("issue 7 is paused since");
    env.handoff(&["annotate", "7", "--as", "prep-agent", "--note", "done"])
        .success();
    env.handoff(&REOPEN).success();
    env.claim("7.2", "implementer-agent").success();
    env.assert_sound();
}

#[test]
fn agents_that_are_left_out_go_on() {
    let env = with_opening();
    let mut pause = PAUSE.to_vec();
    pause.extend(["--except", "prep-agent"]);
    env.handoff(&pause).success();
    assert_eq!(issue(&env)["paused"]["except"], json!(["prep-agent"]));
    env.handoff(&["next", "7"]).success().says("prep-agent");
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
        .success()
        .says("7.1");
    // Another pause takes its place.
    env.handoff(&PAUSE).success();
    assert_eq!(issue(&env)["paused"].get("except"), None);
    let unknown = [
        "pause",
        "7",
        "--as",
        "orchestrator",
        "--reason",
        "x",
        "--except",
        "nobody",
    ];
    env.handoff(&unknown).exits(4);
    env.assert_sound();
}

#[test]
fn no_time_runs_out_while_an_issue_is_paused() {
    let env = with_protocol("task-breakdown");
    env.pace(0);
    let contract = sample("task-breakdown", "environment-to-planning", &[]).to_string();
    env.send(contract).success();
    let id = env.data(&["list"])["handoffs"][0]["id"].clone();
    let id = id.as_str().unwrap().to_owned();
    let key = id.rsplit_once('.').unwrap().0;
    let reaped = || env.data(&["reap"])["handoffs"].as_array().map(Vec::len);
    env.handoff(&["pause", key, "--as", "operator", "--reason", "freeze"])
        .success();
    env.wait_minutes(60 * 24);
    assert_eq!(reaped(), Some(0));
    env.handoff(&["reopen", key, "--as", "operator", "--reason", "thaw"])
        .success();
    // All of the time to claim it begins again.
    assert_eq!(reaped(), Some(0));
    env.wait(29);
    assert_eq!(reaped(), Some(0));
    env.wait(1);
    assert_eq!(reaped(), Some(2));
    env.assert_sound();

    // A lease stays as it was.
    let env = with_opening();
    env.claim("7.1", "prep-agent").success();
    env.handoff(&PAUSE).success();
    env.wait_minutes(60 * 24);
    assert_eq!(env.data(&["reap"])["handoffs"], json!([]));
    env.handoff(&["extend", "7.1", "--as", "prep-agent"])
        .success();
    env.wait_minutes(60 * 24);
    env.handoff(&REOPEN).success();
    assert_eq!(env.data(&["reap"])["handoffs"][0]["id"], "7.1");
    env.assert_sound();
}

#[test]
fn a_pause_ends_with_its_issue_and_only_with_it() {
    let env = with_opening();
    env.handoff(&PAUSE).success();
    env.handoff(&["cancel", "7.1", "--as", "orchestrator", "--reason", "no"])
        .success();
    assert_eq!(issue(&env)["paused"]["reason"], "closed on GitHub");
    env.handoff(&["cancel", "7", "--as", "orchestrator", "--reason", "over"])
        .success();
    assert_eq!(issue(&env)["paused"], json!(null));
    env.handoff(&PAUSE).exits(4).says("issue 7 is cancelled");
    let tree = env.git(&env.repo(), &["ls-tree", "--name-only", "handoffs"]);
    assert!(!tree.contains("paused"), "{tree}");
    env.assert_sound();
}

#[test]
fn a_pause_and_a_claim_are_decided_one_after_the_other() {
    for _ in 0..4 {
        let env = with_opening();
        let claim = ["claim", "7.1", "--as", "prep-agent"];
        let (claimed, paused) = thread::scope(|scope| {
            let claimed = scope.spawn(|| env.handoff(&claim));
            let paused = scope.spawn(|| env.handoff(&PAUSE));
            (claimed.join().unwrap(), paused.join().unwrap())
        });
        paused.success();
        let state = env.data(&["show", "7.1"])["handoff"]["state"].clone();
        match claimed.status {
            0 => assert_eq!(state, "in_progress"),
            _ => {
                claimed.exits(4).says("issue 7 is paused");
                assert_eq!(state, "pending");
            }
        }
        env.assert_sound();
    }
}

#[test]
fn a_pause_that_ends_with_another_issue_says_so_in_every_view() {
    let env = with_opening();
    for issue in [8, 9] {
        env.send(opening(issue)).success();
    }
    env.claim("7.1", "prep-agent").success();
    for issue in ["7", "9"] {
        let set = ["set", issue, "after=8", "--as", "orchestrator"];
        env.handoff(&[&set[..], &["--reason", "it needs 8"]].concat())
            .success();
    }
    let until = "by orchestrator until issue 8 has ended";
    for args in [
        &["status"][..],
        &["status", "7"],
        &["list"],
        &["inbox", "--as", "prep-agent"],
        #[cfg(feature = "agents")]
        &["prime", "--as", "prep-agent"],
        &["show", "7.1"],
        &["next", "9"],
        &["claim", "9", "--as", "prep-agent"],
        &[],
    ] {
        env.handoff(args).says(until);
    }
    assert_eq!(
        env.data(&["inbox", "--as", "prep-agent"])["paused"]["7"]["after"],
        json!(["8"])
    );
    #[cfg(feature = "report")]
    {
        env.handoff(&["report"]).success();
        let page = std::fs::read_to_string(env.repo().join("handoff-report.html")).unwrap();
        assert!(page.contains(until), "{page}");
    }
}
