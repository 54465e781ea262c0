//! The main job: one issue from its opening to its completion.

use serde_json::Value;
use test_support::TestEnvironment;
#[cfg(feature = "agents")]
use test_support::contracts::implementer_error;
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::workflow::{completed, run, workflow};

#[test]
fn a_step_prints_its_receipt_and_the_next_command() {
    let env = TestEnvironment::with_ledger();
    let mut text = String::new();
    for ran in [
        env.handoff(&["status"]),
        env.send(opening(87)),
        env.handoff(&["inbox", "--as", "prep-agent"]),
        env.claim("87.1", "prep-agent"),
        env.send(prepared(87)),
        env.handoff(&["inbox", "--as", "prep-agent"]),
        env.handoff(&["status"]),
        env.handoff(&["status", "87"]),
        env.handoff(&["show", "87.1"]),
    ] {
        text += &ran.success().shown;
        text += "\n";
    }
    insta::assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: no handoff is open

    $ git handoff send -
    87.1 issue-manager → prep-agent: pending
      commit [commit]
    --- stderr
    next, for prep-agent: git handoff claim 87.1 --as prep-agent

    $ git handoff inbox --as prep-agent
    87.1  pending  issue-manager → prep-agent  medium  1 minute ago  Issue written up: Dispatchers ask for t… (Export delivery history as CSV)

    $ git handoff claim 87.1 --as prep-agent
    87.1 issue-manager → prep-agent: in_progress
      held until 2026-03-02 13:08:00Z, token 1, worker repo
      commit [commit]
      your part: Prepares branch and workspace
      if you are stuck: git handoff block 87.1 --as prep-agent --reason WHAT, or: git handoff fail 87.1 --as prep-agent --message WHY --recoverable --snapshot

    ```xml
    <handoff>
      <from>issue-manager</from>
      <to>prep-agent</to>
      <issue_url>https://github.com/quayside/parcel-desk/issues/87</issue_url>
      <issue_number>87</issue_number>
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
    next: git handoff send --issue 87 --to implementer-agent --as prep-agent --set FIELD=VALUE…   # Workspace ready
        branch: code branch of the work
        workspace_path: path of the workspace
        workspace_type: worktree, in-place or cloud
        port: port of the development server; leave it out if dev_server says `n/a: ` and why
        validation.dependencies: outcome of installing the dependencies, or why there are none
        validation.build: outcome of the first build and test run
        validation.dev_server: outcome of starting the development server, or `n/a: ` and why there is none

    $ git handoff send -
    87.2 prep-agent → implementer-agent: pending
      87.1 in_progress..completed
      commit [commit]
    --- stderr
    next, for implementer-agent: git handoff claim 87.2 --as implementer-agent

    $ git handoff inbox --as prep-agent
    nothing waits for prep-agent

    $ git handoff status
    ledger handoffs at [commit]: 1 pending
    87.2  pending  prep-agent → implementer-agent  medium  2 minutes ago  Export delivery history as CSV
    --- stderr
    next, for implementer-agent: git handoff claim 87.2 --as implementer-agent

    $ git handoff status 87
    issue 87: open (issue-to-pr, 2 handoffs, since 2026-03-02 09:06:00Z)
      title: Export delivery history as CSV
      issue_url: https://github.com/quayside/parcel-desk/issues/87
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
      branch: enhancement/87-csv-export
      port: 4187
      workspace_path: /srv/desk/parcel-desk-87
      workspace_type: worktree
      87.2 is pending with implementer-agent
    87.1  completed  issue-manager → prep-agent      medium  3 minutes ago  Dispatchers ask for their delivery history as a file
    87.2  pending    prep-agent → implementer-agent  medium  3 minutes ago  Workspace ready
    --- stderr
    next, for implementer-agent: git handoff claim 87.2 --as implementer-agent

    $ git handoff show 87.1
    87.1 issue-manager → prep-agent: completed
      summary   Dispatchers ask for their delivery history as a file
      type      issue-manager-to-prep-agent (xml)
      sha256    [sha256]
      priority  medium
      2026-03-02 09:06:00Z send by issue-manager → pending
      2026-03-02 09:08:00Z claim by prep-agent → in_progress
      2026-03-02 09:09:00Z complete by prep-agent → completed with 87.2

    ```xml
    <handoff>
      <from>issue-manager</from>
      <to>prep-agent</to>
      <issue_url>https://github.com/quayside/parcel-desk/issues/87</issue_url>
      <issue_number>87</issue_number>
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
    next, for implementer-agent: git handoff claim 87.2 --as implementer-agent
    ");
}

// The core alone names `inbox` in place of `prime`.
#[cfg(feature = "agents")]
#[test]
fn an_error_fails_what_its_sender_held_and_a_retry_gives_it_back() {
    let env = TestEnvironment::with_ledger();
    let steps = workflow(|_| Format::Xml);
    run(&env, &steps[..4]);
    let mut text = env.send(implementer_error(Format::Xml, 87)).success().shown;
    text += &env.handoff(&["status", "87"]).success().shown;
    // Its receiver can't go on before someone decides.
    let onward = sample("implementer-agent-to-reviewer-agent", Format::Xml, 87);
    text += &env.send(&onward).exits(4).shown;
    text += &env.claim("87.2", "implementer-agent").exits(4).shown;
    run(&env, &steps[5..9]);
    text += &env.handoff(&["status", "87"]).success().shown;
    text += &env.handoff(&["show", "87.2"]).success().shown;
    insta::assert_snapshot!(text, @"
    $ git handoff send -
    87.3 implementer-agent → orchestrator: pending
      87.2 in_progress..failed
      commit [commit]
    --- stderr
    next, for orchestrator: git handoff claim 87.3 --as orchestrator
    $ git handoff status 87
    issue 87: open (issue-to-pr, 3 handoffs, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      issue_url: https://github.com/quayside/parcel-desk/issues/87
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
      branch: enhancement/87-csv-export
      port: 4187
      workspace_path: /srv/desk/parcel-desk-87
      workspace_type: worktree
      87.2 is failed with implementer-agent
      87.3 is pending with orchestrator
    needs attention
    ! 87.2 failed, orchestrator's turn, 1 minute ago
        | Export delivery history as CSV
        | The package registry does not answer
        next: git handoff retry 87.2 --as orchestrator --reason WHY

    87.1  completed  issue-manager → prep-agent        medium  3 minutes ago  Dispatchers ask for their delivery history as a file
    87.2  failed     prep-agent → implementer-agent    medium  1 minute ago   Workspace ready: The package registry does not answer
    87.3  pending    implementer-agent → orchestrator  medium  1 minute ago   The package registry does not answer
    $ git handoff send -
    --- stderr
    error: implementer-agent is not working on 87.2, which is failed
    hint: `git handoff next 87` says who can give it another attempt; then implementer-agent can claim it
    --- exit 4
    $ git handoff claim 87.2 --as implementer-agent
    --- stderr
    error: 87.2 is failed: `claim` is not possible
    hint: `git handoff next 87` says who decides about another attempt, and with which command
    --- exit 4
    $ git handoff status 87
    issue 87: open (issue-to-pr, 3 handoffs, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      issue_url: https://github.com/quayside/parcel-desk/issues/87
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
      branch: enhancement/87-csv-export
      port: 4187
      workspace_path: /srv/desk/parcel-desk-87
      workspace_type: worktree
      87.2 is in_progress with implementer-agent
    87.1  completed    issue-manager → prep-agent        medium  10 minutes ago  Dispatchers ask for their delivery history as a file
    87.2  in_progress  prep-agent → implementer-agent    medium  1 minute ago    worker repo: Workspace ready, attempt 2
    87.3  completed    implementer-agent → orchestrator  medium  2 minutes ago   The package registry does not answer
    --- stderr
    next, for implementer-agent: git handoff prime --as implementer-agent
    $ git handoff show 87.2
    87.2 prep-agent → implementer-agent: in_progress
      summary   Workspace ready
      type      prep-agent-to-implementer-agent (xml)
      sha256    [sha256]
      priority  medium
      follows   87.1
      held by   implementer-agent (worker repo) since 2026-03-02 09:16:00Z, until 2026-03-02 13:16:00Z, token 2
      attempt   2
      2026-03-02 09:07:00Z send by prep-agent → pending
      2026-03-02 09:08:00Z claim by implementer-agent → in_progress
      2026-03-02 09:09:00Z fail by implementer-agent → failed with 87.3
          RegistryUnreachable: The package registry does not answer (recoverable)
          | GET /simple/ timed out after 30 s, three times
          | Try again when the registry is back
      2026-03-02 09:14:00Z retry by orchestrator → pending
          | the registry is back
      2026-03-02 09:16:00Z claim by implementer-agent → in_progress

    ```xml
    <handoff>
      <from>prep-agent</from>
      <to>implementer-agent</to>
      <issue_url>https://github.com/quayside/parcel-desk/issues/87</issue_url>
      <issue_number>87</issue_number>
      <branch>enhancement/87-csv-export</branch>
      <workspace_path>/srv/desk/parcel-desk-87</workspace_path>
      <workspace_type>worktree</workspace_type>
      <port>4187</port>
      <status>ready</status>
      <validation>
        <dependencies>212 packages from the lock file</dependencies>
        <build>clean in 41 s</build>
        <dev_server>answers on port 4187</dev_server>
      </validation>
    </handoff>
    ```
    --- stderr
    next, for implementer-agent: git handoff prime --as implementer-agent
    ");
    env.send(&onward).success();
    env.assert_sound();
}

#[test]
fn the_whole_workflow_ends_completed() {
    let env = completed(|_| Format::Xml);
    let mut text = String::new();
    for args in [
        &["status"][..],
        &["status", "87"],
        &["list", "--issue", "87", "--agent", "fixer-agent"],
        &["list", "--state", "failed", "--state", "pending"],
        &["list", "--type", "error", "--since", "2026-03-02"],
        &["list", "--until", "2026-03-02"],
        &["log", "87"],
        &["log", "-n", "2"],
        &["verify"],
        &["verify", "87"],
    ] {
        text += &env.handoff(args).success().shown;
        text += "\n";
    }
    insta::assert_snapshot!(text, @r#"
    $ git handoff status
    ledger handoffs at [commit]: no handoff is open, 1 issue is completed

    $ git handoff status 87
    issue 87: completed (issue-to-pr, 12 handoffs, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      completed 2026-03-02 09:30:00Z
      issue_url: https://github.com/quayside/parcel-desk/issues/87
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
      branch: enhancement/87-csv-export
      port: 4187
      workspace_path: /srv/desk/parcel-desk-87
      workspace_type: worktree
      coverage: 89.1%
      pr_number: 91
      pr_url: https://github.com/quayside/parcel-desk/pull/91
      tests_added: 15
      total_commits: 7
      review_iterations: 3
      merge_sha: e60b8d1f7a2c
      findings:
        - F1 (critical, src/export/csv.py:58): A cell that begins with = is run as a formula by spreadsheets; answered by 87.6: Cells that could be formulas are prefixed with a quote; resolved by 87.7
        - F2 (important, src/history/views.py:133): The whole result is held in memory; answered by 87.6: Rows are read and sent in batches of 500; resolved by 87.7
        - F3 (test): tests/test_export.py::test_empty_range returned 500; answered by 87.9; resolved by 87.10
        - F4 (lint): src/export/csv.py:12 imports io without using it; answered by 87.9; resolved by 87.10
      87.12 contradicted: `metrics/review_iterations` is 2, and fact `review_iterations` of issue 87 is 3 (rule `review-iterations`)
      87.12 contradicted: `metrics/total_commits` is 5, and fact `total_commits` of issue 87 is 7 (rule `total-commits`)
      87.12 contradicted: `metrics/tests_added` is 17, and fact `tests_added` of issue 87 is 15 (rule `tests-added`)
      87.12 contradicted: `cycle_time` is "1 day 6 hours", and issue 87 has been open for 1500 s (rule `cycle-time`)
    87.1   completed  issue-manager → prep-agent          medium  25 minutes ago  Dispatchers ask for their delivery history as a file
    87.2   completed  prep-agent → implementer-agent      medium  18 minutes ago  Workspace ready, attempt 2
    87.3   completed  implementer-agent → orchestrator    medium  20 minutes ago  The package registry does not answer
    87.4   completed  implementer-agent → reviewer-agent  medium  16 minutes ago  The history page streams its rows as CSV
    87.5   completed  reviewer-agent → fixer-agent        medium  14 minutes ago  Review asks for changes
    87.6   completed  fixer-agent → reviewer-agent        medium  12 minutes ago  Fixes ready for review
    87.7   completed  reviewer-agent → validator-agent    medium  10 minutes ago  Both findings are answered; nothing else blocks
    87.8   completed  validator-agent → fixer-agent       medium  8 minutes ago   Validation failed
    87.9   completed  fixer-agent → reviewer-agent        medium  6 minutes ago   Fixes ready for review
    87.10  completed  reviewer-agent → validator-agent    medium  4 minutes ago   Both findings are answered; nothing else blocks
    87.11  completed  validator-agent → closer-agent      medium  2 minutes ago   Merged
    87.12  completed  closer-agent → workflow-complete    medium  2 minutes ago   Delivery history can be downloaded as CSV

    $ git handoff list --issue 87 --agent fixer-agent
    87.5  completed  reviewer-agent → fixer-agent   medium  15 minutes ago  Review asks for changes
    87.6  completed  fixer-agent → reviewer-agent   medium  13 minutes ago  Fixes ready for review
    87.8  completed  validator-agent → fixer-agent  medium  9 minutes ago   Validation failed
    87.9  completed  fixer-agent → reviewer-agent   medium  7 minutes ago   Fixes ready for review

    $ git handoff list --state failed --state pending
    no handoff matches

    $ git handoff list --type error --since 2026-03-02
    87.3  completed  implementer-agent → orchestrator  medium  23 minutes ago  Export delivery history as CSV

    $ git handoff list --until 2026-03-02
    no handoff matches

    $ git handoff log 87
    [commit]  2026-03-02 09:30:00Z  closer-agent       held 1m    87.12 sent to workflow-complete: Delivery history can be downloaded as CSV
    [commit]  2026-03-02 09:29:00Z  closer-agent       waited 1m  87.11 claimed, until 13:29
    [commit]  2026-03-02 09:28:00Z  validator-agent    held 1m    87.11 sent to closer-agent: Export delivery history as CSV
    [commit]  2026-03-02 09:27:00Z  validator-agent    waited 1m  87.10 claimed, until 13:27
    [commit]  2026-03-02 09:26:00Z  reviewer-agent     held 1m    87.10 sent to validator-agent: Both findings are answered; nothing else blocks
    [commit]  2026-03-02 09:25:00Z  reviewer-agent     waited 1m  87.9 claimed, until 13:25
    [commit]  2026-03-02 09:24:00Z  fixer-agent        held 1m    87.9 sent to reviewer-agent: Export delivery history as CSV
    [commit]  2026-03-02 09:23:00Z  fixer-agent        waited 1m  87.8 claimed, until 13:23
    [commit]  2026-03-02 09:22:00Z  validator-agent    held 1m    87.8 sent to fixer-agent: failures=2
    [commit]  2026-03-02 09:21:00Z  validator-agent    waited 1m  87.7 claimed, until 13:21
    [commit]  2026-03-02 09:20:00Z  reviewer-agent     held 1m    87.7 sent to validator-agent: Both findings are answered; nothing else blocks
    [commit]  2026-03-02 09:19:00Z  reviewer-agent     waited 1m  87.6 claimed, until 13:19
    [commit]  2026-03-02 09:18:00Z  fixer-agent        held 1m    87.6 sent to reviewer-agent: Export delivery history as CSV
    [commit]  2026-03-02 09:17:00Z  fixer-agent        waited 1m  87.5 claimed, until 13:17
    [commit]  2026-03-02 09:16:00Z  reviewer-agent     held 1m    87.5 sent to fixer-agent: critical=1, important=1, suggestion=5
    [commit]  2026-03-02 09:15:00Z  reviewer-agent     waited 1m  87.4 claimed, until 13:15
    [commit]  2026-03-02 09:14:00Z  implementer-agent  held 1m    87.4 sent to reviewer-agent: The history page streams its rows as CSV
    [commit]  2026-03-02 09:13:00Z  implementer-agent  waited 2m  87.2 claimed, until 13:13
    [commit]  2026-03-02 09:12:00Z  orchestrator       held 2m    87.3 completed: retried
    [commit]  2026-03-02 09:11:00Z  orchestrator                  87.2 retried, attempt 2: the registry is back
    [commit]  2026-03-02 09:10:00Z  orchestrator       waited 1m  87.3 claimed, until 13:10
    [commit]  2026-03-02 09:09:00Z  implementer-agent  held 1m    87.2 failed: RegistryUnreachable: The package registry does not answer
    [commit]  2026-03-02 09:08:00Z  implementer-agent  waited 1m  87.2 claimed, until 13:08
    [commit]  2026-03-02 09:07:00Z  prep-agent         held 1m    87.2 sent to implementer-agent: Export delivery history as CSV
    [commit]  2026-03-02 09:06:00Z  prep-agent         waited 1m  87.1 claimed, until 13:06
    [commit]  2026-03-02 09:05:00Z  issue-manager                 87.1 sent to prep-agent: Dispatchers ask for their delivery history as a file
    --- stderr
    the same with git: git log handoffs -- issues/87/00/87

    $ git handoff log -n 2
    [commit]  2026-03-02 09:30:00Z  closer-agent  held 1m    87.12 sent to workflow-complete: Delivery history can be downloaded as CSV
    [commit]  2026-03-02 09:29:00Z  closer-agent  waited 1m  87.11 claimed, until 13:29
    2 shown; the rest: git handoff log -n 2 --after [commit]
    --- stderr
    the same with git: git log -n 2 handoffs

    $ git handoff verify
    the ledger is sound: 27 commits, 12 handoffs, up to [commit]
      audited: branch handoffs, from the first commit to the last, recorded 2026-03-02 09:30:00Z
      every step was legal under the rules of its time, and nothing was changed since

    $ git handoff verify 87
    the ledger is sound: 27 commits, 12 handoffs, up to [commit]
      audited: only issue 87, and the rules; branch handoffs, from the first commit to the last, recorded 2026-03-02 09:30:00Z
      every step was legal under the rules of its time, and nothing was changed since
    "#);
    env.assert_sound();
}

#[test]
fn xml_json_and_both_mixed_lead_to_the_same_state() {
    let xml = completed(|_| Format::Xml);
    let json = completed(|_| Format::Json);
    let mixed = completed(|round| match round % 2 {
        0 => Format::Xml,
        _ => Format::Json,
    });
    for args in [
        &["status", "87"][..],
        &["list"],
        &["log"],
        &["inbox", "--as", "fixer-agent"],
    ] {
        let expected = xml.handoff(args).success().shown;
        assert!(expected.len() > 60, "{expected}");
        assert_eq!(json.handoff(args).success().shown, expected);
        assert_eq!(mixed.handoff(args).success().shown, expected);
    }
    let context = |env: &TestEnvironment| {
        let mut data = env.data(&["context", "87"]);
        // All but the documents themselves agrees.
        for handoff in data["handoffs"].as_array_mut().unwrap() {
            handoff["record"]["contract"] = Value::Null;
        }
        data
    };
    let expected = context(&xml);
    assert_eq!(context(&json), expected);
    assert_eq!(context(&mixed), expected);
    json.assert_sound();
    mixed.assert_sound();
}

#[test]
fn the_same_steps_at_the_same_time_give_the_same_commits() {
    assert_eq!(
        completed(|_| Format::Xml).tip(),
        completed(|_| Format::Xml).tip()
    );
}

#[test]
fn the_same_contract_again_is_the_first_receipt() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let tip = env.tip();
    insta::assert_snapshot!(env.send(opening(87)).success().shown, @"
    $ git handoff send -
    87.1 issue-manager → prep-agent: pending
      already in the ledger, in the state above; nothing was written
    --- stderr
    next, for prep-agent: git handoff claim 87.1 --as prep-agent
    ");
    env.claim("87", "prep-agent").success();
    env.send(prepared(87)).success();
    let later = env.tip();
    assert_ne!(tip, later);
    // Also after the next step, and by the sender of an older one.
    let again = env
        .handoff_with(&["send", "-", "--json"], opening(87))
        .success();
    assert_eq!(again.json()["data"]["handoff"]["id"], "87.1");
    assert_eq!(again.json()["data"]["repeated"], true);
    assert_eq!(again.json()["data"]["commit"], Value::Null);
    assert_eq!(
        env.send(prepared(87)).success().stdout.lines().next(),
        Some("87.2 prep-agent → implementer-agent: pending")
    );
    assert_eq!(env.tip(), later);
}

#[test]
fn nothing_is_added_after_completion_unless_reopened_with_a_reason() {
    let env = completed(|_| Format::Xml);
    let tip = env.tip();
    let mut text = String::new();
    let reopened = opening(87).replace("medium", "high");
    let once_more = sample("workflow-complete", Format::Xml, 87).replace("1 day 6 hours", "2 days");
    text += &env.send(&reopened).exits(4).shown;
    text += &env.send(&once_more).exits(4).shown;
    text += &env
        .handoff(&["cancel", "87.12", "--as", "closer-agent"])
        .exits(4)
        .shown;
    text += &env
        .handoff(&["reopen", "87", "--as", "closer-agent"])
        .exits(2)
        .shown;
    text += &env
        .handoff(&["reopen", "87", "--as", "closer-agent", "--reason", " "])
        .exits(2)
        .shown;
    text += &env
        .handoff(&["reopen", "88", "--as", "closer-agent", "--reason", "x"])
        .exits(6)
        .shown;
    assert_eq!(env.tip(), tip);
    let args = [
        "reopen",
        "87",
        "--as",
        "closer-agent",
        "--reason",
        "the fix was reverted",
    ];
    text += &env.handoff(&args).success().shown;
    text += &env.handoff(&args).success().shown;
    text += &env.handoff(&["log", "87", "-n", "1"]).success().shown;
    insta::assert_snapshot!(text, @"
    $ git handoff send -
    --- stderr
    error: issue 87 is completed: nothing can be added to it
    hint: `git handoff reopen 87 --as maintainer --reason WHY` reopens it
    --- exit 4
    $ git handoff send -
    --- stderr
    error: issue 87 is completed: nothing can be added to it
    hint: `git handoff reopen 87 --as maintainer --reason WHY` reopens it
    --- exit 4
    $ git handoff cancel 87.12 --as closer-agent
    --- stderr
    error: 87.12 is completed: `cancel` is not possible
    hint: completed is final; `git handoff next 87` says how the work goes on
    --- exit 4
    $ git handoff reopen 87 --as closer-agent
    --- stderr
    error: the following required arguments were not provided:
      --reason <TEXT>

    Usage: git handoff reopen --reason <TEXT> --as <AGENT> <ISSUE>

    For more information, see `git handoff reopen -h`.
    --- exit 2
    $ git handoff reopen 87 --as closer-agent --reason ' '
    --- stderr
    error: the text is empty: say what or why
    hint: see `git handoff reopen -h`
    --- exit 2
    $ git handoff reopen 88 --as closer-agent --reason x
    --- stderr
    error: there is no issue 88
    hint: `git handoff list` shows every issue
    --- exit 6
    $ git handoff reopen 87 --as closer-agent --reason 'the fix was reverted'
    issue 87 is open again
      commit [commit]
    --- stderr
    next: git handoff new --issue 87 --from closer-agent --to workflow-complete
    $ git handoff reopen 87 --as closer-agent --reason 'the fix was reverted'
    issue 87 was already reopened; nothing was written
    --- stderr
    next: git handoff new --issue 87 --from closer-agent --to workflow-complete
    $ git handoff log 87 -n 1
    [commit]  2026-03-02 09:39:00Z  closer-agent    87 reopened: the fix was reverted
    1 shown; the rest: git handoff log 87 -n 1 --after [commit]
    --- stderr
    the same with git: git log -n 1 handoffs -- issues/87/00/87
    ");
    env.send(&once_more).success();
    assert_eq!(env.data(&["status", "87"])["issue"]["status"], "completed");
    env.handoff(&["reopen", "87", "--as", "orchestrator", "--reason", "again"])
        .success();
    env.send(&reopened).success();
    env.assert_sound();
}

#[test]
fn with_nothing_open_status_counts_what_is_completed() {
    let env = TestEnvironment::with_ledger();
    assert_eq!(env.data(&["status"])["completed"], 0);
    let text = || env.handoff(&["status"]).success().stdout;
    assert!(text().contains(": no handoff is open\n"));
    run(&env, &workflow(|_| Format::Json));
    assert!(
        text().contains(": no handoff is open, 1 issue is completed\n"),
        "{}",
        text()
    );
    env.send(opening(88)).success();
    assert!(!text().contains("completed"), "{}", text());
    assert!(env.data(&["status"])["completed"].is_null());
}

#[test]
fn who_holds_something_is_told_so_when_nothing_else_waits() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let next = ["claim", "--next", "--as", "prep-agent"];
    env.handoff(&next).success();
    env.handoff(&next)
        .exits(6)
        .says("nothing waits for prep-agent, but you hold 87.1")
        .says("`git handoff claim 87.1 --as prep-agent` prints what it needs again");
    let mut other = next.to_vec();
    other.extend(["--worker", "other"]);
    let ran = env.handoff(&other).exits(6);
    assert!(!ran.stderr.contains("you hold"), "{}", ran.shown);
}
