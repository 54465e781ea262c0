//! Pauses of more than an issue: of all work, of an agent's, of a protocol's.

use insta::assert_snapshot;
use test_support::TestEnvironment;
use test_support::contracts::opening;

const WHY: [&str; 4] = ["--as", "orchestrator", "--reason", "the provider is down"];

fn with_opening() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env
}

#[test]
fn nobody_is_handed_any_work_until_all_is_resumed() {
    let env = with_opening();
    let mut text = env
        .handoff(&["pause", "--all", "--as", "prep-agent", "--reason", "tired"])
        .exits(4)
        .shown;
    let pause = [&["pause", "--all"], &WHY[..]].concat();
    let resume = [
        "resume",
        "--all",
        "--as",
        "maintainer",
        "--reason",
        "it is back",
    ];
    for args in [
        &pause[..],
        &pause,
        &["claim", "7.1", "--as", "prep-agent"],
        &["claim", "--next", "--as", "prep-agent"],
        &["claim", "--next", "--as", "orchestrator"],
        &["inbox", "--as", "prep-agent"],
        &["status"],
        &["list"],
        &["verify"],
        &[
            "resume",
            "--agent",
            "prep-agent",
            "--as",
            "maintainer",
            "--reason",
            "x",
        ],
        &resume,
        &resume,
        &["claim", "--next", "--as", "prep-agent", "--json"],
        &["verify"],
    ] {
        let run = env.handoff(args);
        text += if args.contains(&"--json") {
            ""
        } else {
            &run.shown
        };
    }
    for (event, subject) in [
        ("pause", "Pause all work: the provider is down"),
        ("reopen", "Resume all work: "),
    ] {
        let log = ["log", "--event", event, "--oneline"];
        env.handoff(&log).success().says(subject);
    }
    assert_snapshot!(text, @"
    $ git handoff pause --all --as prep-agent --reason tired
    --- stderr
    error: prep-agent cannot pause or resume work of more than one issue
    hint: who can: orchestrator, maintainer; see `git handoff explain not_yours`
    --- exit 4
    $ git handoff pause --all --as orchestrator --reason 'the provider is down'
    all work is paused: no work can be claimed; what is held can be finished
      commit [commit]
    --- stderr
    to resume it: git handoff resume --all --as orchestrator --reason WHY
    $ git handoff pause --all --as orchestrator --reason 'the provider is down'
    all work was paused already, for this reason; nothing was written
    --- stderr
    to resume it: git handoff resume --all --as orchestrator --reason WHY
    $ git handoff claim 7.1 --as prep-agent
    --- stderr
    error: all work is paused since 2026-03-02 09:07:00Z by orchestrator: the provider is down
    hint: wait: `git handoff wait --inbox --as prep-agent` ends once it goes on; orchestrator or a person resumes it
    --- exit 4
    $ git handoff claim --next --as prep-agent
    --- stderr
    error: nothing waits for prep-agent: all work is paused since 2026-03-02 09:07:00Z by orchestrator: the provider is down
    hint: `git handoff wait --inbox --as prep-agent` waits until it goes on; who paused it can run `git handoff resume --all --as orchestrator --reason WHY`
    --- exit 6
    $ git handoff claim --next --as orchestrator
    --- stderr
    error: nothing waits for orchestrator: all work is paused since 2026-03-02 09:07:00Z by orchestrator: the provider is down
    hint: `git handoff wait --inbox --as orchestrator` waits until it goes on; who paused it can run `git handoff resume --all --as orchestrator --reason WHY`
    --- exit 6
    $ git handoff inbox --as prep-agent
    all work is paused since 2026-03-02 09:07:00Z by orchestrator: the provider is down
      to resume it: git handoff resume --all --as orchestrator --reason WHY
    nothing waits for prep-agent
    $ git handoff status
    all work is paused since 2026-03-02 09:07:00Z by orchestrator: the provider is down
      to resume it: git handoff resume --all --as orchestrator --reason WHY
    ledger handoffs at [commit]: 1 pending
    7.1  pending  issue-manager → prep-agent  medium  8 minutes ago  Export delivery history as CSV
    $ git handoff list
    all work is paused since 2026-03-02 09:07:00Z by orchestrator: the provider is down
      to resume it: git handoff resume --all --as orchestrator --reason WHY
    7.1  pending  issue-manager → prep-agent  medium  9 minutes ago  Export delivery history as CSV
    $ git handoff verify
    the ledger is sound: 3 commits, 1 handoff, up to [commit]
      audited: branch handoffs, from the first commit to the last, recorded 2026-03-02 09:07:00Z
      every step was legal under the rules of its time, and nothing was changed since
    $ git handoff resume --agent prep-agent --as maintainer --reason x
    --- stderr
    error: work of prep-agent is not paused
    hint: paused are: --all; see `git handoff explain not_completed`
    --- exit 4
    $ git handoff resume --all --as maintainer --reason 'it is back'
    all work is handed out again
      commit [commit]
    $ git handoff resume --all --as maintainer --reason 'it is back'
    all work was resumed already; nothing was written
    $ git handoff verify
    the ledger is sound: 5 commits, 1 handoff, up to [commit]
      audited: branch handoffs, from the first commit to the last, recorded 2026-03-02 09:19:00Z
      every step was legal under the rules of its time, and nothing was changed since
    ");
    let held = env.data(&["show", "7.1"]);
    assert_eq!(held["handoff"]["state"], "in_progress");
}

#[test]
fn what_is_held_is_finished_and_only_what_was_named_is_paused() {
    let env = with_opening();
    env.handoff(&["claim", "7.1", "--as", "prep-agent"])
        .success();
    let pause = [&["pause", "--agent", "prep-agent"], &WHY[..]].concat();
    env.handoff(&pause).success();
    env.send(opening(8)).success();
    env.handoff(&["extend", "7.1", "--as", "prep-agent", "--progress", "half"])
        .success();
    env.handoff(&["release", "7.1", "--as", "prep-agent", "--reason", "later"])
        .success();
    env.handoff(&["claim", "8.1", "--as", "prep-agent"])
        .exits(4);
    env.handoff(&[&["pause", "--agent", "nobody"], &WHY[..]].concat())
        .exits(4);
    let document = env.handoff(&["status", "--json"]).json();
    assert_eq!(document["work_paused"][0]["agent"], "prep-agent");
    assert_eq!(document["work_paused"][0]["reason"], "the provider is down");
    let resume = [&["resume", "--agent", "prep-agent"], &WHY[..]].concat();
    env.handoff(&resume).success();
    let document = env.handoff(&["status", "--json"]).json();
    assert!(document["work_paused"].is_null());
    env.handoff(&["claim", "8.1", "--as", "prep-agent"])
        .success();
    env.handoff(&["verify"]).success();
}

#[test]
fn a_protocol_that_is_not_in_force_is_not_paused() {
    let env = with_opening();
    let args = [&["pause", "--protocol", "review"], &WHY[..]].concat();
    assert_snapshot!(env.handoff(&args).exits(6).stderr, @"
    error: the ledger has no protocol review
    hint: the ledger has: issue-to-pr; `git handoff protocol add` puts another in force
    ");
}

#[test]
fn all_is_paused_and_resumed_twice_within_a_second() {
    let env = with_opening();
    env.pace(0);
    for verb in ["pause", "resume", "pause", "resume"] {
        let run = env
            .handoff(&[&[verb, "--all"], &WHY[..]].concat())
            .success();
        assert!(run.stdout.contains("  commit "), "{}", run.shown);
    }
    env.handoff(&["verify"]).success();
}
