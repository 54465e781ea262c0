//! How long a claim holds: leases, their extension, their tokens, and what becomes of one that ran out.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{implementer_error, opening, prepared};
use test_support::tamper::{Ledger, folder, set};
use test_support::team::{at_once, commits, exits, record, said, states, trailers, with_protocol};
use test_support::time::{
    RESEARCH, TRACE, WRITER, added, answers, asks, assert_goes_there_and_back, attempt, code,
    denied, done, not_sent, own, sample, seconds_between, subjects, traced,
};

/// Issue 87, whose first handoff prep-agent claims for some time.
fn claimed(lease: &str) -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    done(&env, &format!("claim 87.1 --as prep-agent --lease {lease}"));
    env
}

/// The same, and the time is over; nobody has recorded it.
fn overdue() -> TestEnvironment {
    let env = claimed("10m");
    env.wait_minutes(10);
    env
}

/// How long the lease of a handoff is.
#[track_caller]
fn length(env: &TestEnvironment, id: &str) -> i64 {
    let lease = record(env, id)["lease"].take();
    seconds_between(&lease["since"], &lease["expires_at"])
}

#[test]
fn a_claim_holds_as_long_as_protocol_contract_or_command_says() {
    for (protocol, id, agent, seconds) in [
        ("issue-to-pr", "87.1", "prep-agent", 14_400),
        ("directive", "3f0c9a52.1", "MetaGPT", 14_400),
        (
            "task-breakdown",
            "environment.1",
            "task-orchestrator",
            14_400,
        ),
    ] {
        let env = with_protocol(protocol);
        match protocol {
            "issue-to-pr" => env.send(opening(87)),
            "directive" => {
                let session = ("/session_id", json!("3f0c9a52"));
                env.send(sample(protocol, "handoff", &[session]).to_string())
            }
            _ => env.send(sample(protocol, "environment-to-planning", &[]).to_string()),
        }
        .success();
        let told = env.data(&["claim", id, "--as", agent]);
        assert_eq!(length(&env, id), seconds, "{protocol}");
        assert_eq!(told["handoff"]["token"], 1);
        assert_eq!(
            told["handoff"]["expires_at"],
            record(&env, id)["lease"]["expires_at"]
        );
        env.assert_sound();
    }
    // What a request says of its own time comes before the protocol's.
    for (milliseconds, seconds) in [
        (None, 30),
        (Some(json!(120_000)), 120),
        (Some(json!(1)), 1),
        (Some(json!(1500.5)), 2),
        (Some(json!(90_001)), 91),
        (Some(json!(9_007_199_254_740_991_u64)), 316_224_000),
    ] {
        let env = with_protocol("delegation");
        // The same time is what a claim has to come in.
        env.pace(0);
        let more: Vec<_> = milliseconds
            .iter()
            .map(|m| ("/timeoutMs", m.clone()))
            .collect();
        env.send(asks(WRITER, RESEARCH, &more)).success();
        env.claim(TRACE, RESEARCH).success();
        assert_eq!(length(&env, &traced(1)), seconds, "{milliseconds:?}");
        env.assert_sound();
    }
    let env = with_protocol("orchestrator-specialist");
    let request = sample("orchestrator-specialist", "request", &[]);
    env.send(request.to_string()).success();
    env.claim("loan-list-21", "@react-specialist").success();
    assert_eq!(length(&env, "loan-list-21.1"), 900);
    // A command's own time comes before both, a part of a second as a whole one.
    for (lease, seconds) in [("90s", 90), ("1h 30m", 5400), ("1500ms", 2), ("1ms", 1)] {
        let env = claimed_quickly(lease);
        assert_eq!(length(&env, "87.1"), seconds, "{lease}");
        env.assert_sound();
    }
    // Where nothing says how long, a claim has no end.
    let env = own("issue-to-pr", |p| {
        p["limits"].as_object_mut().unwrap().remove("lease_seconds");
    });
    env.send(opening(87)).success();
    let told = env.data(&["claim", "87.1", "--as", "prep-agent"]);
    assert_eq!(
        (&told["handoff"]["token"], &told["handoff"]["expires_at"]),
        (&json!(1), &Value::Null)
    );
    env.wait_minutes(60 * 24 * 30);
    env.send(prepared(87)).success();
    env.assert_sound();
}

/// Like [`claimed`], but no time passes.
fn claimed_quickly(lease: &str) -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    env.send(opening(87)).success();
    env.handoff(&["claim", "87.1", "--as", "prep-agent", "--lease", lease])
        .success();
    env
}

#[test]
fn a_lease_is_a_time_within_bounds() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let before = env.tip();
    for lease in [
        "0",
        "0s",
        "0ms",
        "-5m",
        "5",
        "soon",
        "",
        "1e3s",
        "3661days",
        "99999999999999999999s",
        "18446744073709551615s",
        "584942417356years",
    ] {
        for command in ["claim", "extend"] {
            let lease = format!("--lease={lease}");
            let args = [command, "87.1", "--as", "prep-agent", &lease, "--json"];
            let ran = env.handoff(&args).exits(2);
            assert_eq!(code(&ran), "usage", "{}", ran.shown);
        }
    }
    assert_eq!(env.tip(), before);
    // A protocol's own bound.
    let env = own("delegation", |p| {
        p["limits"]["lease_seconds"] = json!(60);
        p["limits"]["longest_lease_seconds"] = json!(600);
    });
    env.pace(1);
    env.send(asks(WRITER, RESEARCH, &[])).success();
    let before = env.tip();
    let claim = format!("claim {TRACE} --as {RESEARCH} --lease");
    let ran = attempt(&env, &format!("{claim} 11m")).exits(2);
    assert_eq!(env.tip(), before);
    let extends = "`git handoff extend` extends it while the work goes on";
    ran.says("must be from 1 to 600 seconds").says(extends);
    done(&env, &format!("{claim} 10m"));
    let extend = format!("extend {TRACE} --as {RESEARCH} --lease");
    attempt(&env, &format!("{extend} 601s")).exits(2);
    done(&env, &format!("{extend} 600s"));
    // A contract that allows more allows it to the command as well.
    let long = ("/timeoutMs", json!(3_600_000));
    env.send(asks(WRITER, "validator", &[long])).success();
    let id = traced(2);
    attempt(&env, &format!("claim {id} --as validator --lease 3601s")).exits(2);
    done(&env, &format!("claim {id} --as validator --lease 3600s"));
    env.assert_sound();
}

#[test]
fn whoever_is_at_work_extends_the_lease() {
    let env = claimed("10m");
    let end = || record(&env, "87.1")["lease"]["expires_at"].take();
    let first = end();
    env.wait_minutes(5);
    // As long again as it was, from now on.
    let told = done(&env, "extend 87.1 --as prep-agent --json").json()["data"].take();
    assert_eq!(told["handoff"]["token"], 1);
    let second = end();
    assert_eq!(told["handoff"]["expires_at"], second);
    assert_eq!(seconds_between(&first, &second), 7 * 60);
    assert_eq!(
        trailers(&env, "Transition"),
        ["87.1 in_progress..in_progress"]
    );
    let subject = "prep-agent: 87.1 working, until 09:23";
    assert_eq!(subjects(&env, 1), [subject]);
    done(&env, "extend 87.1 --as prep-agent --lease 1day");
    let third = end();
    assert!(seconds_between(&second, &third) > 23 * 3600, "{third}");
    // Nobody gets less than they had; what was said is kept all the same.
    let (_, new) = added(&env, || {
        done(&env, "extend 87.1 --as prep-agent --lease 1m")
    });
    assert_eq!((end(), new.len()), (third.clone(), 0));
    let said = "extend 87.1 --as prep-agent --lease 1m --progress 'the branch stands'";
    let (_, new) = added(&env, || done(&env, said));
    assert_eq!((end(), new.len()), (third, 1));
    let stored = ["show", "handoffs:issues/87/00/87/0001.json"];
    let stored: Value = serde_json::from_str(&env.git(&env.repo(), &stored)).unwrap();
    let lease = &stored["lease"];
    assert_eq!(lease["progress"]["text"], "the branch stands");
    assert_eq!(lease["seconds"], 24 * 3600);
    done(&env, "show 87.1").says("progress  the branch stands (");
    env.assert_sound();
    // And it is in the failure of one that says no more.
    env.wait_minutes(60 * 25);
    done(&env, "reap");
    let record = record(&env, "87.1");
    let failure = &record["transitions"].as_array().unwrap().last().unwrap()["failure"];
    assert_eq!(failure["details"], "the last it said: the branch stands");
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

#[test]
fn an_extension_twice_at_the_same_time_is_one() {
    let env = claimed_quickly("10m");
    for (line, new) in [
        ("extend 87.1 --as prep-agent --lease 10m", 0),
        ("extend 87.1 --as prep-agent --lease 20m", 1),
        ("extend 87.1 --as prep-agent --lease 20m", 0),
        ("extend 87.1 --as prep-agent --lease 20m --progress half", 1),
        ("extend 87.1 --as prep-agent --lease 20m --progress half", 0),
        ("extend 87.1 --as prep-agent --lease 20m --progress more", 1),
    ] {
        let (_, subjects) = added(&env, || done(&env, line));
        assert_eq!(subjects.len(), new, "{line}");
    }
    env.assert_sound();
}

#[test]
fn only_whoever_holds_a_handoff_extends_it() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    denied(&env, "extend 87.1 --as prep-agent", 4, "illegal_transition");
    done(&env, "claim 87.1 --as prep-agent");
    let before = env.tip();
    for agent in ["issue-manager", "orchestrator", "implementer-agent"] {
        denied(&env, &format!("extend 87.1 --as {agent}"), 4, "not_yours");
    }
    denied(&env, "extend 87.2 --as prep-agent", 6, "no_handoff");
    let empty = ["extend", "87.1", "--as", "prep-agent", "--progress", " "];
    env.handoff(&empty).exits(2);
    assert_eq!(env.tip(), before);
    done(&env, "block 87.1 --as prep-agent --reason which?");
    denied(&env, "extend 87.1 --as prep-agent", 4, "illegal_transition");
    done(&env, "answer 87.1 both --as orchestrator");
    done(&env, "claim 87.1 --as prep-agent");
    env.send(prepared(87)).success();
    denied(&env, "extend 87.1 --as prep-agent", 4, "illegal_transition");
    env.assert_sound();
}

#[test]
fn a_claim_returns_a_token_that_fences() {
    let writes = [
        "extend 87.1 --as prep-agent --token",
        "complete 87.1 --as prep-agent --token",
        "fail 87.1 --as prep-agent --message no --token",
        "block 87.1 --as prep-agent --reason which? --token",
    ];
    let send = |env: &TestEnvironment, token: &str| {
        env.handoff_with(&["send", "-", "--token", token, "--json"], prepared(87))
    };
    let twice = || {
        let env = claimed("10m");
        done(
            &env,
            "fail 87.1 --as prep-agent --message no --recoverable --token 1",
        );
        done(&env, "retry 87.1 --as orchestrator");
        done(&env, "claim 87.1 --as prep-agent").says("token 2");
        env
    };
    for line in writes {
        let env = twice();
        let before = env.tip();
        for token in ["1", "3", "0"] {
            let ran = denied(&env, &format!("{line} {token}"), 5, "lease_lost");
            assert!(
                ran.stdout
                    .contains("it is now held by prep-agent (claim 2)"),
                "{}",
                ran.shown
            );
        }
        assert_eq!(env.tip(), before);
        done(&env, &format!("{line} 2"));
        env.assert_sound();
    }
    let env = twice();
    let before = env.tip();
    for token in ["1", "3"] {
        assert_eq!(code(&send(&env, token).exits(5)), "lease_lost");
    }
    assert_eq!(env.tip(), before);
    send(&env, "2").success();
    // Once the work was sent on, an older claim still changes nothing; the same contract is a repeat.
    let before = env.tip();
    denied(
        &env,
        "complete 87.1 --as prep-agent --token 1",
        5,
        "lease_lost",
    );
    assert_eq!(send(&env, "1").success().json()["data"]["repeated"], true);
    assert_eq!(env.tip(), before);
    env.assert_sound();
    // The same words are another's where the claim is.
    let env = twice();
    done(&env, "complete 87.1 --as prep-agent --token 2");
    let before = env.tip();
    done(&env, "complete 87.1 --as prep-agent --token 2");
    denied(
        &env,
        "complete 87.1 --as prep-agent --token 1",
        5,
        "lease_lost",
    );
    assert_eq!(code(&send(&env, "1").exits(5)), "lease_lost");
    assert_eq!(env.tip(), before);
    send(&env, "2").success();
    env.assert_sound();
}

#[test]
fn an_agent_whose_lease_ran_out_is_told_how_to_go_on() {
    let again = "git handoff retry 87.1 --as prep-agent";
    for is_recorded in [false, true] {
        let env = overdue();
        if is_recorded {
            done(&env, "reap");
        }
        for line in [
            #[cfg(feature = "agents")]
            "prime",
            "inbox",
            "next 87",
        ] {
            let ran = done(&env, &format!("{line} --as prep-agent")).says(again);
            assert!(!ran.shown.contains("you may stop"), "{}", ran.shown);
        }
        #[cfg(feature = "agents")]
        {
            let first = env.data(&["prime", "--as", "prep-agent"])["commands"][0].take();
            assert_eq!(first, again);
        }
        done(&env, &again["git handoff ".len()..]);
        done(&env, "claim 87.1 --as prep-agent");
        env.assert_sound();
    }
    // It is the agent's own step, if it has an attempt left.
    let ran = done(&overdue(), "next 87 --as orchestrator");
    assert!(!ran.shown.contains(again), "{}", ran.shown);
    let env = own("issue-to-pr", |p| {
        p["limits"]["retry"]["max_retries"] = json!(0)
    });
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent --lease 10m");
    env.wait_minutes(10);
    let ran = done(&env, "inbox --as prep-agent");
    assert!(!ran.shown.contains(again), "{}", ran.shown);
}

#[test]
fn readers_show_an_expired_lease_and_write_nothing() {
    let env = overdue();
    let before = env.tip();
    let mut text = String::new();
    for line in [
        "status",
        "status 87",
        "inbox --as prep-agent",
        "list --issue 87",
        "next 87",
    ] {
        text += &done(&env, line).shown;
    }
    let shown = done(&env, "show 87.1").shown;
    text += shown.split("\n\n```xml\n").next().unwrap();
    insta::assert_snapshot!(text, @"
    $ git handoff status
    ledger handoffs at [commit]: 1 in_progress
    needs attention
    ! 87.1 lease ran out, orchestrator's turn, 2 minutes ago
        | Export delivery history as CSV
        | Dispatchers ask for their delivery history as a file
        next: git handoff retry 87.1 --as orchestrator --reason WHY

    87.1  in_progress, lease ran out  issue-manager → prep-agent  medium  12 minutes ago  worker repo: Export delivery history as CSV
    1 whose time ran out: `git handoff reap` records it
    $ git handoff status 87
    issue 87: open (issue-to-pr, 1 handoff, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      issue_url: https://github.com/quayside/parcel-desk/issues/87
      priority: medium
      requirements:
        - The history page offers a download as CSV
        - Columns follow the order on screen
        - An export of 50,000 rows takes less than ten seconds
      type: enhancement
      87.1 is in_progress, lease ran out with prep-agent
    needs attention
    ! 87.1 lease ran out, orchestrator's turn, 3 minutes ago
        | Export delivery history as CSV
        | Dispatchers ask for their delivery history as a file
        next: git handoff retry 87.1 --as orchestrator --reason WHY

    87.1  in_progress, lease ran out  issue-manager → prep-agent  medium  13 minutes ago  worker repo: Dispatchers ask for their delivery history as a file
    $ git handoff inbox --as prep-agent
    87.1  in_progress, lease ran out  issue-manager → prep-agent  medium  14 minutes ago  worker repo: Issue written up: Dispatchers ask for t… (Export delivery history as CSV)
    --- stderr
    its time ran out; whoever has its work goes on with it: git handoff retry 87.1 --as prep-agent
    $ git handoff list --issue 87
    87.1  in_progress, lease ran out  issue-manager → prep-agent  medium  15 minutes ago  worker repo: Dispatchers ask for their delivery history as a file
    $ git handoff next 87
    retry: 87.1 is failed (TIMEOUT): its agent was not done in time
    --- stderr
    next: git handoff retry 87.1 --as orchestrator --reason WHY
      or: git handoff next 87 --apply --as orchestrator
    $ git handoff show 87.1
    87.1 issue-manager → prep-agent: in_progress
      summary   Dispatchers ask for their delivery history as a file
      type      issue-manager-to-prep-agent (xml)
      sha256    [sha256]
      priority  medium
      held by   prep-agent (worker repo) since 2026-03-02 09:06:00Z, ran out 2026-03-02 09:16:00Z, token 1
      2026-03-02 09:05:00Z send by issue-manager → pending
      2026-03-02 09:06:00Z claim by prep-agent → in_progress

    options
      retry     git handoff retry 87.1 --as orchestrator --reason WHY
      terminate git handoff cancel 87.1 --as orchestrator --reason WHY
    ");
    for line in ["status", "status 87", "inbox --as prep-agent", "list"] {
        let args: Vec<&str> = line.split(' ').collect();
        let handoff = env.data(&args)["handoffs"][0].take();
        assert_eq!(handoff["expired"], true, "{line}");
        assert_eq!(handoff["state"], "in_progress");
    }
    assert_eq!(env.data(&["status"])["expired"], 1);
    assert_eq!(env.data(&["show", "87.1"])["handoff"]["expired"], true);
    assert_eq!(env.data(&["next", "87"])["action"], "retry");
    assert_eq!(env.tip(), before);
    // Recorded, it is a failure like any other.
    done(&env, "reap");
    for line in ["status", "status 87", "inbox --as prep-agent", "list"] {
        let args: Vec<&str> = line.split(' ').collect();
        let handoff = env.data(&args)["handoffs"][0].take();
        assert_eq!(
            (&handoff["expired"], &handoff["state"]),
            (&json!(false), &json!("failed"))
        );
    }
    assert_eq!(env.data(&["status"])["expired"], 0);
    env.assert_sound();
}

const EXPIRED: &str = "prep-agent: 87.1 timed out: prep-agent was not done in time: its lease ran out at 2026-03-02T09:16:00Z";

/// A lease is over when the time of a step and that of its recording say so.
#[test]
fn all_commands_go_by_one_clock() {
    let env = claimed("10m");
    for (ahead, is_over) in [("GIT_AUTHOR_DATE", false), ("GIT_COMMITTER_DATE", true)] {
        for (line, word) in [
            ("status", "1 whose time ran out"),
            ("inbox --as orchestrator", "lease ran out"),
            ("reap", "prep-agent: failed"),
        ] {
            let args: Vec<&str> = line.split(' ').collect();
            let mut command = env.program(&args);
            command.env(ahead, format!("@{} +0000", env.now() + 3600));
            if is_over {
                command.env("GIT_AUTHOR_DATE", format!("@{} +0000", env.now() + 3600));
            }
            let shown = env.run(command, &args, None).success().shown;
            assert_eq!(shown.contains(word), is_over, "{ahead}: {shown}");
        }
    }
    env.assert_sound();
}

#[test]
fn the_next_write_records_what_is_overdue_first() {
    // What the new state allows is done; what it refuses is refused.
    for (line, exit, wanted, then) in [
        (
            "retry 87.1 --as issue-manager",
            0,
            "",
            &["issue-manager: 87.1 retried, attempt 2"][..],
        ),
        (
            "cancel 87.1 --as issue-manager",
            0,
            "",
            &["issue-manager: 87.1 cancelled"],
        ),
        (
            "next 87 --apply --as orchestrator",
            0,
            "",
            &[
                "orchestrator: 87.1 retried, attempt 2: 87.1 is failed (TIMEOUT): its agent was not done in time",
            ],
        ),
        ("claim 87.1 --as prep-agent", 4, "illegal_transition", &[]),
        (
            "reject 87.1 --as prep-agent --reason no",
            4,
            "illegal_transition",
            &[],
        ),
        (
            "answer 87.1 yes --as orchestrator",
            4,
            "illegal_transition",
            &[],
        ),
        (
            "reopen 87 --as orchestrator --reason again",
            4,
            "not_completed",
            &[],
        ),
        ("complete 87.1 --as prep-agent", 5, "lease_lost", &[]),
        (
            "fail 87.1 --as prep-agent --message no",
            5,
            "lease_lost",
            &[],
        ),
        (
            "block 87.1 --as prep-agent --reason which?",
            5,
            "lease_lost",
            &[],
        ),
        ("extend 87.1 --as prep-agent", 5, "lease_lost", &[]),
        (
            "extend 87.1 --as prep-agent --token 1",
            5,
            "lease_lost",
            &[],
        ),
    ] {
        let env = overdue();
        let (ran, new) = added(&env, || {
            attempt(&env, &format!("{line} --json")).exits(exit)
        });
        if exit != 0 {
            assert_eq!(code(&ran), wanted, "{line}");
        }
        let mut wanted = vec![EXPIRED];
        wanted.extend(then);
        assert_eq!(new, wanted, "{line}");
        let record = record(&env, "87.1");
        let transitions = record["transitions"].as_array().unwrap();
        let expired = transitions.iter().find(|t| t["event"] == "expire").unwrap();
        assert_eq!(expired["failure"]["code"], "TIMEOUT");
        assert_eq!(expired["failure"]["recoverable"], true);
        let message = expired["failure"]["message"].as_str().unwrap();
        assert_eq!(
            message,
            "prep-agent was not done in time: its lease ran out at 2026-03-02T09:16:00Z"
        );
        env.assert_sound();
    }
    // A contract of the holder.
    for contract in [
        prepared(87),
        implementer_error(test_support::contracts::Format::Xml, 87)
            .replace("implementer-agent", "prep-agent"),
    ] {
        let env = overdue();
        let (_, new) = added(&env, || not_sent(&env, &contract, 5, "lease_lost"));
        assert_eq!(new, [EXPIRED]);
        // Refused once more, there is nothing more to record.
        let (_, new) = added(&env, || not_sent(&env, &contract, 5, "lease_lost"));
        assert!(new.is_empty(), "{new:?}");
        assert_eq!(states(&env, "87"), ["1 failed with prep-agent"]);
        env.assert_sound();
    }
}

/// A trace in which the second request is overdue, and the first is as it was
/// left.
fn trace(first: &[&str]) -> TestEnvironment {
    let env = with_protocol("delegation");
    env.pace(1);
    env.send(asks(WRITER, RESEARCH, &[("/timeoutMs", json!(3_600_000))]))
        .success();
    for line in first {
        done(&env, &line.replace("ID", &traced(1)));
    }
    env.send(asks(WRITER, "validator", &[])).success();
    done(&env, &format!("claim {} --as validator", traced(2)));
    env.wait(30);
    env
}

#[test]
fn a_write_about_another_handoff_of_the_issue_records_it_too() {
    let expired = format!("validator: {} timed out: validator was not", traced(2));
    let claim = "claim ID --as research_agent";
    let block = "block ID --as research_agent --reason which?";
    for (first, line, exit) in [
        (&[][..], "claim ID --as research_agent", 0),
        (&[], "reject ID --as research_agent --reason no", 0),
        (&[], "cancel ID --as document_generator", 0),
        (
            &[],
            "reassign ID --to orchestrator --as document_generator",
            0,
        ),
        (&[claim], "extend ID --as research_agent --lease 2h", 0),
        (&[claim], "fail ID --as research_agent --message no", 0),
        (&[claim], "block ID --as research_agent --reason which?", 0),
        (&[claim, block], "answer ID both --as document_generator", 0),
        (&[claim, block], "claim ID --as research_agent", 4),
    ] {
        let env = trace(first);
        let line = line.replace("ID", &traced(1));
        let (_, new) = added(&env, || attempt(&env, &line).exits(exit));
        assert!(new[0].starts_with(&expired), "{line}: {new:?}");
        assert_eq!(new.len(), 2 - usize::from(exit != 0), "{line}: {new:?}");
        env.assert_sound();
    }
    for (contract, first) in [
        (answers(RESEARCH, "resolved", &[]), &[claim][..]),
        (asks("orchestrator", "human", &[]), &[]),
    ] {
        let env = trace(first);
        let (_, new) = added(&env, || env.send(&contract).success());
        assert!(new.len() == 2 && new[0].starts_with(&expired), "{new:?}");
        env.assert_sound();
    }
    let env = trace(&[]);
    let note = sample("delegation", "decision-with-reason", &[]).to_string();
    let args = ["send", "-", "--issue", TRACE, "--as", RESEARCH];
    let (_, new) = added(&env, || env.handoff_with(&args, note).success());
    assert!(new.len() == 2 && new[0].starts_with(&expired), "{new:?}");
    env.assert_sound();
}

#[test]
fn other_issues_are_untouched() {
    let env = overdue();
    env.send(opening(88)).success();
    done(&env, "claim 88.1 --as prep-agent");
    let prepared = prepared(88);
    env.send(prepared).success();
    assert_eq!(states(&env, "87"), ["1 in_progress with prep-agent"]);
    assert_eq!(
        record(&env, "87.1")["transitions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    env.assert_sound();
}

#[test]
fn a_repeat_is_no_write() {
    let env = claimed("10m");
    let prepared = prepared(87);
    let first = env
        .handoff_with(&["send", "-", "--json"], &prepared)
        .success()
        .json()["data"]
        .take();
    done(&env, "claim 87.2 --as implementer-agent --lease 1m");
    env.wait_minutes(5);
    let before = env.tip();
    let again = env
        .handoff_with(&["send", "-", "--json"], &prepared)
        .success()
        .json()["data"]
        .take();
    assert_eq!(again["repeated"], true);
    assert_eq!(again["handoff"]["id"], first["handoff"]["id"]);
    let again = env.send(opening(87)).success();
    assert!(
        again.stdout.contains("already in the ledger"),
        "{}",
        again.shown
    );
    assert_eq!(env.tip(), before);
    env.assert_sound();
}

#[test]
fn a_late_holder_is_refused_whatever_became_of_its_work() {
    let back = |env: &TestEnvironment| {
        for line in [
            "complete 87.1 --as prep-agent",
            "fail 87.1 --as prep-agent --message no",
            "block 87.1 --as prep-agent --reason which?",
            "extend 87.1 --as prep-agent",
            "extend 87.1 --as prep-agent --token 1",
        ] {
            denied(env, line, 5, "lease_lost");
        }
        not_sent(env, &prepared(87), 5, "lease_lost")
    };
    let env = overdue();
    done(&env, "reap");
    let before = env.tip();
    let mut hints = vec![hint(&back(&env))];
    assert_eq!(env.tip(), before);
    done(&env, "retry 87.1 --as orchestrator");
    let before = env.tip();
    hints.push(hint(&back(&env)));
    assert_eq!(env.tip(), before);
    env.assert_sound();
    // Once its attempts are spent, it is dead.
    let env = own("issue-to-pr", |p| {
        p["limits"]["retry"]["max_retries"] = json!(0)
    });
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent --lease 10m");
    env.wait_minutes(10);
    done(&env, "reap");
    assert_eq!(record(&env, "87.1")["state"], "dead");
    let before = env.tip();
    hints.push(hint(&back(&env)));
    assert_eq!(env.tip(), before);
    env.assert_sound();
    insta::assert_snapshot!(hints.join("\n"), @"
    prep-agent no longer holds 87.1: its lease ran out, recorded at 2026-03-02 09:17:00Z
      nothing was recorded, so keep your work; `git handoff next 87` says who can give it another attempt
    prep-agent no longer holds 87.1: its lease ran out, recorded at 2026-03-02 09:17:00Z
      nothing was recorded, so keep your work; claim it again: `git handoff claim 87.1`
    prep-agent no longer holds 87.1: its lease ran out, recorded at 2026-03-02 09:18:00Z
      nothing was recorded, so keep your work; `git handoff next 87` says who can give it another attempt
    ");
    // Taken over under the same name: only the token tells the two apart.
    let env = overdue();
    done(&env, "retry 87.1 --as orchestrator");
    done(&env, "claim 87.1 --as prep-agent");
    let before = env.tip();
    for line in [
        "complete",
        "extend",
        "fail --message no",
        "block --reason which?",
    ] {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let line = format!("{verb} 87.1 --as prep-agent --token 1 {rest}");
        denied(&env, &line, 5, "lease_lost");
    }
    let args = ["send", "-", "--token", "1", "--json"];
    let ran = env.handoff_with(&args, prepared(87)).exits(5);
    assert_eq!(code(&ran), "lease_lost");
    assert_eq!(env.tip(), before);
    let args = ["send", "-", "--token", "2"];
    env.handoff_with(&args, prepared(87)).success();
    env.assert_sound();
}

#[track_caller]
fn hint(ran: &test_support::Ran) -> String {
    let error = ran.json()["error"].take();
    let text = |key: &str| error[key].as_str().unwrap().to_owned();
    format!("{}\n  {}", text("message"), text("hint"))
}

#[test]
fn a_late_holder_is_refused_after_another_agent_went_on() {
    let id = traced(1);
    let env = with_protocol("delegation");
    env.pace(1);
    env.send(asks(WRITER, RESEARCH, &[])).success();
    done(&env, &format!("claim {id} --as {RESEARCH}"));
    env.wait(30);
    done(
        &env,
        &format!("reassign {id} --to orchestrator --as {WRITER}"),
    );
    let late = || {
        let before = env.tip();
        for line in [
            format!("complete {id} --as {RESEARCH}"),
            format!("fail {id} --as {RESEARCH} --message no"),
            format!("extend {id} --as {RESEARCH} --token 1"),
        ] {
            denied(&env, &line, 5, "lease_lost");
        }
        let answer = answers(RESEARCH, "resolved", &[]);
        let ran = not_sent(&env, &answer, 5, "lease_lost");
        assert_eq!(env.tip(), before);
        ran
    };
    late();
    done(&env, &format!("claim {id} --as orchestrator"));
    let held = late();
    assert!(
        held.stdout
            .contains("it is now held by orchestrator (claim 2)"),
        "{}",
        held.shown
    );
    env.send(answers(
        "orchestrator",
        "resolved",
        &[("/tokensUsed", json!(7))],
    ))
    .success();
    late();
    // It may ask for help itself, as before.
    env.send(asks(RESEARCH, "orchestrator", &[])).success();
    env.assert_sound();
}

#[test]
fn reap_records_every_lease_that_ran_out_once() {
    let env = TestEnvironment::with_ledger();
    for issue in 87..92 {
        env.send(opening(issue)).success();
    }
    done(&env, "reap").says("no lease ran out");
    for issue in 87..90 {
        done(
            &env,
            &format!("claim {issue}.1 --as prep-agent --lease 30m"),
        );
    }
    done(&env, "claim 90.1 --as prep-agent --lease 1day");
    done(&env, "reap").says("no lease ran out");
    env.wait_minutes(60);
    let (ran, new) = added(&env, || done(&env, "reap --json"));
    let reaped = ran.json()["data"]["handoffs"].take();
    let ids: Vec<&str> = reaped
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["87.1", "88.1", "89.1"]);
    assert_eq!(new.len(), 3);
    let (_, new) = added(&env, || done(&env, "reap").says("no lease ran out"));
    assert!(new.is_empty());
    assert_eq!(states(&env, "90"), ["1 in_progress with prep-agent"]);
    assert_eq!(states(&env, "91"), ["1 pending with prep-agent"]);
    env.assert_sound();
}

#[test]
fn reapers_at_once_record_each_once() {
    let env = TestEnvironment::with_ledger();
    for issue in 87..93 {
        env.send(opening(issue)).success();
        done(
            &env,
            &format!("claim {issue}.1 --as prep-agent --lease 30m"),
        );
    }
    env.wait_minutes(60);
    let before = commits(&env);
    let outputs = at_once(&env, &vec![vec!["reap", "--json"]; 8]);
    assert_eq!(exits(&outputs), [0; 8], "{}", said(&outputs));
    assert_eq!(commits(&env) - before, 6);
    let told = outputs.iter().map(|o| {
        let document: Value = serde_json::from_slice(&o.stdout).unwrap();
        document["data"]["handoffs"].as_array().unwrap().len()
    });
    assert_eq!(
        told.sum::<usize>(),
        6,
        "each is one reaper's: {}",
        said(&outputs)
    );
    for issue in 87..93 {
        assert_eq!(
            states(&env, &issue.to_string()),
            ["1 failed with prep-agent"]
        );
    }
    env.assert_sound();
}

#[test]
fn one_of_many_takes_over_what_ran_out() {
    let env = overdue();
    done(&env, "retry 87.1 --as orchestrator");
    let claim = |n: usize| {
        let line = format!("claim 87.1 --as prep-agent --json --worker worker-{n}");
        line.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let outputs = at_once(&env, &(0..8).map(claim).collect::<Vec<_>>());
    let mut wanted = vec![5; 8];
    wanted[0] = 0;
    assert_eq!(exits(&outputs), wanted, "{}", said(&outputs));
    assert_eq!(record(&env, "87.1")["lease"]["token"], 2);
    env.assert_sound();
}

#[test]
fn who_waits_for_the_parts_of_a_task_is_not_late() {
    let env = with_protocol("task-breakdown");
    let environment = sample("task-breakdown", "environment-to-planning", &[]);
    env.send(environment.to_string()).success();
    done(
        &env,
        "claim environment.1 --as task-orchestrator --lease 1h",
    );
    done(
        &env,
        "claim environment.2 --as task-orchestrator --lease 1h",
    );
    let plan = sample("task-breakdown", "planning-to-execution", &[]);
    env.send(plan.to_string()).success();
    let lease = record(&env, "environment.1")["lease"].take();
    assert_eq!(
        (&lease["expires_at"], &lease["token"]),
        (&Value::Null, &json!(1))
    );
    env.wait_minutes(60 * 24);
    let expired = |id: &str| env.data(&["show", id])["handoff"]["expired"].take();
    assert_eq!(
        (expired("environment.1"), expired("environment.2")),
        (json!(false), json!(true))
    );
    // So is the first part, which nobody claimed.
    let (_, new) = added(&env, || done(&env, "reap"));
    assert_eq!(new.len(), 2);
    assert_eq!(record(&env, "environment.1")["state"], "in_progress");
    assert_eq!(record(&env, "environment.2")["state"], "failed");
    done(
        &env,
        "extend environment.1 --as task-orchestrator --lease 1m",
    );
    assert_eq!(
        record(&env, "environment.1")["lease"]["expires_at"],
        Value::Null
    );
    env.assert_sound();
    assert_goes_there_and_back(&env, "task-breakdown");
}

#[test]
fn the_way_back_is_the_same_everywhere() {
    let env = overdue();
    done(&env, "retry 87.1 --as orchestrator");
    done(&env, "claim 87.1 --as prep-agent --lease 1h");
    done(&env, "extend 87.1 --as prep-agent --progress half");
    done(
        &env,
        "extend 87.1 --as prep-agent --lease 1m --progress more",
    );
    env.wait_minutes(60 * 5);
    done(&env, "reap");
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

#[test]
fn clocks_an_hour_apart_change_nothing_but_dates() {
    // The first machine is an hour ahead of the second.
    let (behind, ahead) = (-3600, 3600);
    let env = claimed("10m");
    let end = record(&env, "87.1")["lease"]["expires_at"].take();
    env.wait(behind);
    assert_eq!(env.data(&["show", "87.1"])["handoff"]["expired"], false);
    done(
        &env,
        "extend 87.1 --as prep-agent --lease 20m --progress half",
    );
    let lease = record(&env, "87.1")["lease"].take();
    assert_eq!(
        (&lease["expires_at"], &lease["progress"]["text"]),
        (&end, &json!("half"))
    );
    done(&env, "reap").says("no lease ran out");
    env.send(prepared(87)).success();
    done(&env, "claim 87.2 --as implementer-agent --lease 10m");
    env.assert_sound();
    // To the first machine, what the second claimed ran out long ago; it is asked once.
    env.wait(ahead);
    done(&env, "retry 87.2 --as orchestrator");
    env.wait(behind);
    denied(
        &env,
        "complete 87.2 --as implementer-agent --token 1",
        5,
        "lease_lost",
    );
    done(&env, "claim 87.2 --as implementer-agent --lease 10m").says("token 2");
    done(
        &env,
        "fail 87.2 --as implementer-agent --message no --recoverable --token 2",
    );
    let record = record(&env, "87.2");
    let events = record["transitions"].as_array().unwrap().iter();
    let events: Vec<&str> = events.filter_map(|t| t["event"].as_str()).collect();
    // The order is the branch's, whatever the dates say.
    assert_eq!(events, ["claim", "expire", "retry", "claim", "fail"]);
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

/// Says that a commit was made at another minute: its dates, and those in what
/// it changed.
fn redate(ledger: &Ledger, number: usize, was: u32, is: u32, paths: &[&str]) {
    let (was_text, is_text) = (format!("05:{was:02}:00Z"), format!("05:{is:02}:00Z"));
    let shift = (i64::from(is) - i64::from(was)) * 60;
    ledger.rewrite(number, |at, commit| {
        assert_eq!(at, number, "it is the newest");
        let mut edits = Vec::new();
        for path in paths {
            let text = ledger.file(path);
            assert!(text.contains(&was_text), "{path}: {text}");
            edits.push(set(path, text.replace(&was_text, &is_text)));
        }
        commit.tree = ledger.edited(&commit.tree, &edits);
        commit.message = commit.message.replace(&was_text, &is_text);
        for person in [&mut commit.author, &mut commit.committer] {
            let mut parts: Vec<String> = person.split(' ').map(str::to_owned).collect();
            let seconds = parts.len() - 2;
            let moved = parts[seconds].parse::<i64>().unwrap() + shift;
            parts[seconds] = moved.to_string();
            *person = parts.join(" ");
        }
    });
}

#[test]
fn a_lease_that_is_taken_away_too_early_is_found() {
    let ledger = Ledger::new();
    ledger.handoff(
        10,
        &["claim", "87.3", "--as", "reviewer-agent", "--lease", "5m"],
        "",
    );
    ledger.handoff(20, &["reap"], "");
    ledger.assert_sound(&[]);
    let record = format!("{}/0003.json", folder(87));
    let issue = format!("{}/issue.json", folder(87));
    let open = ledger.entry("87.3");
    let paths = [record.as_str(), &issue, &open];
    redate(&ledger, 11, 20, 16, &paths);
    ledger.assert_sound(&[]);
    redate(&ledger, 11, 16, 14, &paths);
    assert_eq!(ledger.damage(&[]), [format!("11 step.illegal {record}")]);
}

#[test]
fn a_step_that_passes_over_an_overdue_lease_is_found() {
    let ledger = Ledger::new();
    ledger.handoff(
        10,
        &["claim", "87.3", "--as", "reviewer-agent", "--lease", "5m"],
        "",
    );
    ledger.handoff(12, &["complete", "87.3", "--as", "reviewer-agent"], "");
    ledger.assert_sound(&[]);
    let record = format!("{}/0003.json", folder(87));
    let issue = format!("{}/issue.json", folder(87));
    let awaiting = &ledger.entry("87.3");
    redate(&ledger, 11, 12, 14, &[&record, &issue, awaiting]);
    // Its message says how long it was held.
    assert_eq!(ledger.damage(&[]), ["11 commit.message"]);
    redate(&ledger, 11, 14, 15, &[&record, &issue, awaiting]);
    assert_eq!(ledger.damage(&[]), [format!("11 step.illegal {record}")]);
}

#[test]
fn a_lease_that_was_made_longer_by_hand_is_found() {
    let ledger = Ledger::new();
    ledger.handoff(
        10,
        &["claim", "87.3", "--as", "reviewer-agent", "--lease", "5m"],
        "",
    );
    let record = format!("{}/0003.json", folder(87));
    let issue = format!("{}/issue.json", folder(87));
    let open = &ledger.entry("87.3");
    let longer = |path: &str| ledger.file(path).replace("05:15:00Z", "05:45:00Z");
    ledger.add(&[
        set(&record, longer(&record)),
        set(&issue, longer(&issue)),
        set(open, longer(open)),
    ]);
    let damage = ledger.damage(&[]);
    assert!(damage.iter().any(|d| d.starts_with("11 ")), "{damage:?}");
}

#[test]
fn extend_needs_no_id_where_one_handoff_is_held() {
    let env = TestEnvironment::with_ledger();
    for issue in [87, 88] {
        env.send(opening(issue)).success();
    }
    let mut shown = env
        .handoff(&["extend", "--as", "prep-agent"])
        .exits(2)
        .stderr;
    env.claim("87.1", "prep-agent").success();
    let extended = env.handoff(&["extend", "--as", "prep-agent"]).success();
    extended.says("87.1 issue-manager → prep-agent: in_progress");
    env.claim("88.1", "prep-agent").success();
    shown += &env
        .handoff(&["extend", "--as", "prep-agent"])
        .exits(2)
        .stderr;
    insta::assert_snapshot!(shown, @"
    error: prep-agent holds nothing here: say which handoff
    hint: `git handoff inbox --as prep-agent` lists its handoffs
    error: prep-agent holds 2 handoffs: say which
    hint: 87.1, 88.1; see `git handoff extend -h`
    ");
    env.assert_sound();
}

#[test]
fn a_claim_says_how_long_its_run_may_take() {
    let env = TestEnvironment::with_ledger();
    for issue in [87, 88, 89] {
        env.send(opening(issue)).success();
    }
    let claimed = |id: &str| {
        let claim = env.data(&["claim", id, "--as", "prep-agent"]);
        claim["longest_run_seconds"].clone()
    };
    assert_eq!(claimed("87.1"), 14_400);
    done(
        &env,
        "protocol set issue-to-pr time.longest_run_seconds 900",
    );
    assert_eq!(claimed("88.1"), 900);
    done(
        &env,
        "protocol set issue-to-pr time.longest_run_seconds default",
    );
    assert_eq!(claimed("89.1"), 14_400);
    denied(
        &env,
        "protocol set issue-to-pr time.longest_run_seconds 0",
        3,
        "protocol_refused",
    );
    env.assert_sound();
}
