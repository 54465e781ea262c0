//! What the protocol refuses, and the commands that change one handoff.

use test_support::TestEnvironment;
use test_support::contracts::{Format, implementer_error, opening, prepared, sample};
use test_support::team::record;
use test_support::time::{RESEARCH, TRACE, WRITER, asks, own};
use test_support::workflow;

/// Issue 87 with a handoff that waits for prep-agent.
fn opened() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env
}

#[test]
fn a_sender_must_hold_what_it_hands_on() {
    let env = opened();
    let tip = env.tip();
    let mut text = env.send(prepared(87)).exits(4).shown;
    let later = sample("implementer-agent-to-reviewer-agent", Format::Json, 87);
    text += &env.send(&later).exits(4).shown;
    text += &env.send(prepared(88)).exits(4).shown;
    insta::assert_snapshot!(text, @"
    $ git handoff send -
    --- stderr
    error: prep-agent has not claimed 87.1
    hint: claim it first: `git handoff claim 87.1 --as prep-agent`
    --- exit 4
    $ git handoff send -
    --- stderr
    error: implementer-agent holds nothing in issue 87
    hint: 87.1 is with prep-agent; see `git handoff explain not_held`
    --- exit 4
    $ git handoff send -
    --- stderr
    error: issue 88 has not been opened yet
    hint: the first contract of an issue goes from issue-manager to prep-agent: `git handoff send --issue 88 --to prep-agent --as issue-manager` says what to --set
    --- exit 4
    ");
    assert_eq!(env.tip(), tip);
}

#[test]
fn routes_and_senders_are_enforced() {
    let env = opened();
    env.claim("87", "prep-agent").success();
    let tip = env.tip();
    let backwards = prepared(87).replace("<to>implementer-agent", "<to>validator-agent");
    let mut text = env.send(backwards).exits(4).shown;
    let unknown = prepared(87).replace("<to>implementer-agent", "<to>deployer");
    text += &env.send(unknown).exits(3).shown;
    let args = ["send", "-", "--as", "implementer-agent"];
    text += &env.handoff_with(&args, prepared(87)).exits(4).shown;
    let args = ["send", "-", "--as", "stranger"];
    text += &env.handoff_with(&args, prepared(87)).exits(4).shown;
    let args = ["send", "-", "--issue", "88"];
    text += &env.handoff_with(&args, prepared(87)).exits(3).shown;
    insta::assert_snapshot!(text, @r#"
    $ git handoff send -
    --- stderr
    error: the protocol refuses the contract
      3:3 /handoff/to route.unknown protocol issue-to-pr has no route from prep-agent to validator-agent
          prep-agent may send to: implementer-agent, orchestrator
    hint: `git handoff graph --protocol` draws the allowed routes
    --- exit 4
    $ git handoff send -
    --- stderr
    error: the contract was refused
      3:3 /handoff/to agent.unknown "deployer" is not an agent of protocol issue-to-pr
          use one of: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    $ git handoff send - --as implementer-agent
    --- stderr
    error: implementer-agent cannot send a contract from prep-agent
    hint: only prep-agent can send it, with --as prep-agent; see `git handoff explain not_the_sender`
    --- exit 4
    $ git handoff send - --as stranger
    --- stderr
    error: stranger is not an agent of protocol issue-to-pr
    hint: agents are: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer; see `git handoff explain unknown_agent`
    --- exit 4
    $ git handoff send - --issue 88
    --- stderr
    error: the contract was refused
      5:3 /handoff/issue_number envelope.issue the contract is about issue 87, and is sent for issue 88
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    "#);
    assert_eq!(env.tip(), tip);
    let args = ["send", "-", "--as", "prep-agent", "--issue", "87"];
    env.handoff_with(&args, prepared(87)).success();
}

/// `<status>success|failure|blocked</status>`, and the table of status codes: the words of the general
/// structure are understood in the contracts that have words of their own.
#[test]
fn the_general_status_words_are_understood_in_every_contract() {
    for (word, state) in [
        ("success", "completed"),
        ("skipped", "completed"),
        ("failure", "failed"),
        ("blocked", "blocked"),
    ] {
        let env = opened();
        env.claim("87.1", "prep-agent").success();
        env.send(prepared(87).replace(">ready<", &format!(">{word}<")))
            .success();
        assert_eq!(record(&env, "87.1")["state"], state, "{word}");
    }
}

/// `<data><!-- Agent-specific payload --></data>`: of a field in there, the finding says so.
#[test]
fn a_field_among_the_free_content_is_told() {
    let env = opened();
    env.claim("87.1", "prep-agent").success();
    let branch = "<branch>enhancement/87-csv-export</branch>";
    let moved = prepared(87)
        .replace(branch, "")
        .replace("</handoff>", &format!("<data>{branch}</data></handoff>"));
    let told = "`branch` is in `data`, where it is not read";
    env.send(&moved).exits(3).says(told);
    // Also if the contract's type is told by it.
    let review = sample("reviewer-agent-to-validator-agent", Format::Xml, 87);
    let status = "<review_status>approved</review_status>";
    let moved = review
        .replace(status, "")
        .replace("</handoff>", &format!("<data>{status}</data></handoff>"));
    env.send(&moved)
        .exits(3)
        .says("`review_status` is in `data`");
}

#[test]
fn an_error_that_names_no_issue_is_about_the_one_its_sender_works_on() {
    let env = opened();
    let error = sample("error", Format::Json, 87).replace("  \"issue_number\": 87,\n", "");
    insta::assert_snapshot!(env.send(&error).exits(3).shown, @"
    $ git handoff send -
    --- stderr
    error: the contract was refused
      1:1 /issue_number envelope.issue the contract names no issue in `issue_number`
          say which one with --issue when it is sent
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    ");
    env.claim("87", "prep-agent").success();
    let sent = env.send(&error).success();
    assert!(
        sent.stdout
            .starts_with("87.2 prep-agent → orchestrator: pending\n  87.1 in_progress..blocked\n"),
        "{}",
        sent.shown
    );

    // Two issues: it has to be said which.
    env.send(opening(88)).success();
    env.send(opening(89)).success();
    env.claim("88", "prep-agent").success();
    env.claim("89", "prep-agent").success();
    env.send(&error).exits(3);
    env.handoff_with(&["send", "-", "--issue", "89"], &error)
        .success()
        .says("89.2 prep-agent → orchestrator");
    env.assert_sound();
}

#[test]
fn claiming() {
    let env = opened();
    let mut text = env.claim("87.1", "fixer-agent").exits(4).shown;
    text += &env
        .handoff(&["claim", "--next", "--as", "fixer-agent"])
        .exits(6)
        .shown;
    text += &env.handoff(&["claim", "87.1"]).exits(2).shown;
    text += &env.claim("87.2", "prep-agent").exits(6).shown;
    text += &env.claim("88", "prep-agent").exits(6).shown;
    text += &env.claim("87", "stranger").exits(4).shown;
    text += &env.handoff(&["claim", "--as", "prep-agent"]).exits(2).shown;
    env.claim("87", "prep-agent").success();
    let elsewhere = [
        "claim",
        "87.1",
        "--as",
        "prep-agent",
        "--worker",
        "elsewhere",
    ];
    text += &env.handoff(&elsewhere).exits(5).shown;
    insta::assert_snapshot!(text, @"
    $ git handoff claim 87.1 --as fixer-agent
    --- stderr
    error: fixer-agent cannot claim 87.1, which was handed to prep-agent
    hint: only prep-agent can; see `git handoff show 87.1`
    --- exit 4
    $ git handoff claim --next --as fixer-agent
    --- stderr
    error: nothing waits for fixer-agent
    hint: `git handoff inbox --as fixer-agent` shows what else needs you; `git handoff wait --inbox --as fixer-agent` waits for work
    --- exit 6
    $ git handoff claim 87.1
    --- stderr
    error: say which agent you are
    hint: with --as AGENT, GIT_HANDOFF_AGENT, or `git config handoff.agent AGENT`; agents are: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer
    --- exit 2
    $ git handoff claim 87.2 --as prep-agent
    --- stderr
    error: there is no handoff 87.2
    hint: `git handoff status 87` lists the issue's handoffs
    --- exit 6
    $ git handoff claim 88 --as prep-agent
    --- stderr
    error: there is no issue 88
    hint: `git handoff list` shows every issue
    --- exit 6
    $ git handoff claim 87 --as stranger
    --- stderr
    error: stranger is not an agent of protocol issue-to-pr
    hint: agents are: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer; see `git handoff explain unknown_agent`
    --- exit 4
    $ git handoff claim --as prep-agent
    --- stderr
    error: which handoff? Name it, such as 12.3; `git handoff claim --next` takes the most urgent

    For more information, see `git handoff claim -h`.
    --- exit 2
    $ git handoff claim 87.1 --as prep-agent --worker elsewhere
    --- stderr
    error: 87.1 has been claimed by prep-agent (worker repo) since 2026-03-02 09:13:00Z, until 2026-03-02 13:13:00Z
    hint: claim another: `git handoff claim --next --as prep-agent --worker elsewhere`; only if that worker is gone, take it over: `git handoff claim 87.1 --take-over --reason WHY --as prep-agent --worker elsewhere`
    --- exit 5
    ");
}

#[test]
fn the_most_urgent_is_claimed_first_then_the_oldest() {
    let env = TestEnvironment::with_ledger();
    for (issue, priority) in [(1, "low"), (2, "high"), (3, "critical"), (4, "high")] {
        let contract = opening(issue).replace("medium", priority);
        env.send(contract).success();
    }
    let inbox = env.data(&["inbox", "--as", "prep-agent"]);
    let listed: Vec<&str> = inbox["handoffs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ["3.1", "2.1", "4.1", "1.1"]);
    for expected in listed {
        let args = ["claim", "--next", "--as", "prep-agent"];
        assert_eq!(env.data(&args)["handoff"]["id"], expected);
    }
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
        .exits(6);
}

#[test]
fn the_agent_is_named_by_flag_environment_or_configuration() {
    let env = opened();
    env.git(&env.repo(), &["config", "handoff.agent", "fixer-agent"]);
    assert_eq!(env.data(&["inbox"])["agent"], "fixer-agent");
    let with = |agent: &str, args: &[&str]| {
        let mut command = env.program(args);
        command.env("GIT_HANDOFF_AGENT", agent);
        env.run(command, args, None)
    };
    let args = ["inbox", "--json"];
    assert_eq!(
        with("prep-agent", &args).json()["data"]["agent"],
        "prep-agent"
    );
    let args = ["inbox", "--json", "--as", "orchestrator"];
    assert_eq!(
        with("prep-agent", &args).json()["data"]["agent"],
        "orchestrator"
    );
    with("../x", &["inbox"]).exits(2);
}

#[test]
fn each_change_of_state_is_one_commit_with_its_reason() {
    let env = opened();
    let prep = ["--as", "prep-agent"];
    let steps: [&[&str]; 9] = [
        &["claim", "87.1"],
        &["block", "87.1", "--reason", "which login page?"],
        &["answer", "87.1", "the one for customers"],
        &["claim", "87.1"],
        &[
            "fail",
            "87.1",
            "--code",
            "BuildError",
            "--message",
            "a module is missing",
            "--details",
            "serde",
            "--recoverable",
            "--suggested-action",
            "publish it",
        ],
        &["retry", "87.1", "--reason", "published"],
        &["claim", "87"],
        &["complete", "87.1", "--reason", "done by hand"],
        &["show", "87.1"],
    ];
    let mut text = String::new();
    for step in steps {
        let mut args = step.to_vec();
        // Who asked does not answer himself.
        match step[0] {
            "answer" => args.extend(["--as", "issue-manager"]),
            _ => args.extend(prep),
        }
        let before = env.tip();
        let ran = env.handoff(&args).success();
        if step[0] == "show" {
            text += ran.shown.split("\n\n").next().unwrap();
            continue;
        }
        assert_eq!(
            env.git(&env.repo(), &["rev-parse", "handoffs~1"]).trim(),
            before
        );
        let head = env.git(
            &env.repo(),
            &["log", "-1", "--format=%an: %s%n  %b", "handoffs"],
        );
        text += &head
            .lines()
            .filter(|l| {
                !l.is_empty()
                    && (!l.contains(": ")
                        || l.contains("prep-agent: 87")
                        || l.starts_with("Transition"))
            })
            .collect::<Vec<_>>()
            .join("\n");
        text += "\n";
        if step[0] != "claim" {
            // The same again changes nothing.
            let tip = env.tip();
            env.handoff(&args).success().says("nothing was written");
            assert_eq!(env.tip(), tip);
        }
    }
    insta::assert_snapshot!(text, @"
    prep-agent: 87.1 claimed, until 13:07
      Export delivery history as CSV
    Transition: 87.1 pending..in_progress
    prep-agent: 87.1 blocked: which login page?
      Export delivery history as CSV
    Transition: 87.1 in_progress..blocked
      Export delivery history as CSV
    Transition: 87.1 blocked..pending
    prep-agent: 87.1 claimed, until 13:25
      Export delivery history as CSV
    Transition: 87.1 pending..in_progress
    prep-agent: 87.1 failed: BuildError: a module is missing
      Export delivery history as CSV
    Transition: 87.1 in_progress..failed
    prep-agent: 87.1 retried, attempt 2: published
      Export delivery history as CSV
    Transition: 87.1 failed..pending
    prep-agent: 87.1 claimed, until 13:43
      Export delivery history as CSV
    Transition: 87.1 pending..in_progress
    prep-agent: 87.1 completed: done by hand
      Export delivery history as CSV
    Transition: 87.1 in_progress..completed
    $ git handoff show 87.1 --as prep-agent
    87.1 issue-manager → prep-agent: completed
      summary   Dispatchers ask for their delivery history as a file
      type      issue-manager-to-prep-agent (xml)
      sha256    [sha256]
      priority  medium
      attempt   2
      2026-03-02 09:05:00Z send by issue-manager → pending
      2026-03-02 09:07:00Z claim by prep-agent → in_progress
      2026-03-02 09:11:00Z block by prep-agent → blocked
          | which login page?
      2026-03-02 09:18:00Z answer by issue-manager → pending
          | the one for customers
      2026-03-02 09:25:00Z claim by prep-agent → in_progress
      2026-03-02 09:29:00Z fail by prep-agent → failed
          BuildError: a module is missing (recoverable)
          | serde
          | publish it
          kept in issues/87/00/87/0001-failure/1; nothing of the work was kept
      2026-03-02 09:36:00Z retry by prep-agent → pending
          | published
      2026-03-02 09:43:00Z claim by prep-agent → in_progress
      2026-03-02 09:47:00Z complete by prep-agent → completed
          | done by hand
    ");
    // A completed handoff may still be followed by its contract.
    env.send(prepared(87)).success();
    assert_eq!(env.data(&["show", "87.2"])["record"]["follows"], "87.1");
    env.assert_sound();
}

#[test]
fn what_was_rejected_or_cancelled_may_be_sent_again() {
    let env = opened();
    env.claim("87", "prep-agent").success();
    env.send(prepared(87)).success();
    let mut text = env
        .handoff(&["reject", "87.2", "--as", "prep-agent", "--reason", "x"])
        .exits(4)
        .shown;
    text += &env
        .handoff(&[
            "reject",
            "87.2",
            "--as",
            "implementer-agent",
            "--reason",
            "no commits on the branch",
        ])
        .success()
        .shown;
    text += &env.claim("87.2", "implementer-agent").exits(4).shown;
    text += &env
        .send(prepared(87).replace("4187", "4188"))
        .success()
        .shown;
    text += &env
        .handoff(&["cancel", "87.3", "--as", "fixer-agent"])
        .exits(4)
        .shown;
    text += &env
        .handoff(&[
            "cancel",
            "87.3",
            "--as",
            "prep-agent",
            "--reason",
            "wrong port",
        ])
        .success()
        .shown;
    text += &env
        .send(prepared(87).replace("4187", "4189"))
        .success()
        .shown;
    text += &env.handoff(&["status", "87"]).success().shown;
    insta::assert_snapshot!(text, @"
    $ git handoff reject 87.2 --as prep-agent --reason x
    --- stderr
    error: prep-agent cannot reject 87.2, which was handed to implementer-agent
    hint: only implementer-agent can; see `git handoff show 87.2`
    --- exit 4
    $ git handoff reject 87.2 --as implementer-agent --reason 'no commits on the branch'
    87.2 prep-agent → implementer-agent: rejected
      commit [commit]
    --- stderr
    next, for prep-agent: git handoff new --issue 87 --from prep-agent --to implementer-agent
    $ git handoff claim 87.2 --as implementer-agent
    --- stderr
    error: 87.2 is rejected: `claim` is not possible
    hint: rejected is final; `git handoff next 87` says how the work goes on
    --- exit 4
    $ git handoff send -
    87.3 prep-agent → implementer-agent: pending
      commit [commit]
    --- stderr
    next, for implementer-agent: git handoff claim 87.3 --as implementer-agent
    $ git handoff cancel 87.3 --as fixer-agent
    --- stderr
    error: fixer-agent cannot cancel 87.3, which was handed to implementer-agent
    hint: its sender, its receiver (implementer-agent), an orchestrator or a person can; see `git handoff show 87.3`
    --- exit 4
    $ git handoff cancel 87.3 --as prep-agent --reason 'wrong port'
    87.3 prep-agent → implementer-agent: cancelled
      commit [commit]
    --- stderr
    next: git handoff new --issue 87 --from prep-agent --to implementer-agent
    $ git handoff send -
    87.4 prep-agent → implementer-agent: pending
      commit [commit]
    --- stderr
    next, for implementer-agent: git handoff claim 87.4 --as implementer-agent
    $ git handoff status 87
    issue 87: open (issue-to-pr, 4 handoffs, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      issue_url: https://github.com/quayside/parcel-desk/issues/87
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
      branch: enhancement/87-csv-export
      port: 4189
      workspace_path: /srv/desk/parcel-desk-87
      workspace_type: worktree
      87.4 is pending with implementer-agent
    87.1  completed  issue-manager → prep-agent      medium  8 minutes ago  Dispatchers ask for their delivery history as a file
    87.2  rejected   prep-agent → implementer-agent  medium  6 minutes ago  Workspace ready: no commits on the branch
    87.3  cancelled  prep-agent → implementer-agent  medium  2 minutes ago  Workspace ready: wrong port
    87.4  pending    prep-agent → implementer-agent  medium  1 minute ago   Workspace ready
    --- stderr
    next, for implementer-agent: git handoff claim 87.4 --as implementer-agent
    ");
    env.assert_sound();
}

#[test]
fn an_illegal_event_names_the_legal_ones() {
    let env = opened();
    let tip = env.tip();
    let mut text = String::new();
    for args in [
        &["complete", "87.1", "--as", "prep-agent"][..],
        &["retry", "87.1", "--as", "prep-agent"],
        &["answer", "87.1", "yes", "--as", "prep-agent"],
        &["block", "87.1", "--as", "prep-agent", "--reason", "why"],
        &["fail", "87.1", "--as", "issue-manager", "--message", "no"],
        &["cancel", "87.1", "--as", "workflow-complete"],
    ] {
        text += &env.handoff(args).exits(4).shown;
    }
    insta::assert_snapshot!(text, @"
    $ git handoff complete 87.1 --as prep-agent
    --- stderr
    error: 87.1 is pending: `complete` is not possible
    hint: possible now: claim, reject, cancel, reassign; see `git handoff explain illegal_transition`
    --- exit 4
    $ git handoff retry 87.1 --as prep-agent
    --- stderr
    error: 87.1 is pending: `retry` is not possible
    hint: possible now: claim, reject, cancel, reassign; see `git handoff explain illegal_transition`
    --- exit 4
    $ git handoff answer 87.1 yes --as prep-agent
    --- stderr
    error: prep-agent cannot answer 87.1, which was handed to prep-agent
    hint: its sender, an orchestrator or a person can; see `git handoff show 87.1`
    --- exit 4
    $ git handoff block 87.1 --as prep-agent --reason why
    --- stderr
    error: 87.1 is pending: `block` is not possible
    hint: possible now: claim, reject, cancel, reassign; see `git handoff explain illegal_transition`
    --- exit 4
    $ git handoff fail 87.1 --as issue-manager --message no
    --- stderr
    error: issue-manager cannot fail 87.1, which was handed to prep-agent
    hint: only prep-agent can; see `git handoff show 87.1`
    --- exit 4
    $ git handoff cancel 87.1 --as workflow-complete
    --- stderr
    error: workflow-complete is not an agent of protocol issue-to-pr
    hint: agents are: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer; see `git handoff explain unknown_agent`
    --- exit 4
    ");
    assert_eq!(env.tip(), tip);
}

/// The same bytes are a repetition only where their sender has no reason to send
/// them once more.
#[test]
fn the_same_contract_is_sent_again_where_the_work_came_back() {
    let env = opened();
    let error = implementer_error(Format::Xml, 87);
    env.claim("87", "prep-agent").success();
    env.send(prepared(87)).success();
    env.claim("87", "implementer-agent").success();
    env.send(&error).success();
    let repeated = |text: &str| {
        let ran = env.handoff_with(&["send", "-", "--json"], text).success();
        ran.json()["data"]["repeated"].as_bool().unwrap()
    };
    assert!(repeated(&error), "nothing came back yet");
    // Retried and failed in the same way.
    env.handoff(&["retry", "87.2", "--as", "orchestrator"])
        .success();
    env.claim("87.2", "implementer-agent").success();
    assert!(!repeated(&error), "the second attempt failed too");
    assert_eq!(env.data(&["show", "87.2"])["handoff"]["state"], "failed");
    // Turned down, and sent as it was.
    env.handoff(&["cancel", "87.2", "--as", "orchestrator"])
        .success();
    assert!(!repeated(&prepared(87)), "its successor was cancelled");
    env.handoff(&["cancel", "87.5", "--as", "prep-agent"])
        .success();
    for id in ["87.3", "87.4"] {
        env.handoff(&["cancel", id, "--as", "orchestrator"])
            .success();
    }
    assert!(
        !repeated(&prepared(87)),
        "its successor was cancelled again"
    );
    env.handoff(&["verify"]).success();
}

#[test]
fn a_reopened_issue_is_completed_again_by_the_same_contract() {
    let env = workflow::completed(|_| Format::Xml);
    let last = env.data(&["list", "--type", "workflow-complete"]);
    let id = last["handoffs"][0]["id"].as_str().unwrap();
    let last = env.handoff(&["show", id, "--contract"]).success().stdout;
    let repeated = |text: &str| {
        let ran = env.handoff_with(&["send", "-", "--json"], text).success();
        ran.json()["data"]["repeated"].as_bool().unwrap()
    };
    assert!(repeated(&last));
    let reopen = [
        "reopen",
        "87",
        "--as",
        "closer-agent",
        "--reason",
        "the merge was reverted",
    ];
    env.handoff(&reopen).success();
    assert!(!repeated(&last));
    assert_eq!(env.data(&["status", "87"])["issue"]["status"], "completed");
    // Or it is started anew, by the contract that opened it.
    env.handoff(&[
        "reopen",
        "87",
        "--as",
        "closer-agent",
        "--reason",
        "once more",
    ])
    .success();
    let first = env
        .handoff(&["show", "87.1", "--contract"])
        .success()
        .stdout;
    assert!(!repeated(&first));
    env.handoff(&["verify"]).success();
}

/// On a file system that ignores case, the two would be one folder.
#[test]
fn a_key_that_differs_in_case_only_is_another_issues() {
    let env = own("delegation", |_| ());
    let request = |trace: &str| asks(WRITER, RESEARCH, &[("/traceId", trace.into())]);
    env.send(request(TRACE)).success();
    let upper = env.send(request(&TRACE.to_uppercase())).exits(5);
    assert!(
        upper.stderr.contains("on some file systems they are one"),
        "{}",
        upper.shown
    );
    let device = env.send(request("NUL"));
    assert_ne!(device.status, 0, "{}", device.shown);
    env.assert_sound();
}
