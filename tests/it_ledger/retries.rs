//! When failed work is tried again, how often, and what is left when no attempt is.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::tamper::{Ledger, folder, set};
use test_support::team::{record, refused_command, run, states, trailers, with_protocol};
use test_support::time::{
    RESEARCH, TRACE, WRITER, added, answers, asks, assert_goes_there_and_back, attempt, denied,
    done, own, sample, seconds_between, traced,
};

/// Fails a handoff that waits to be claimed, and gives it another attempt; the
/// seconds from the failure to when it can be claimed, 0 if that is now.
#[track_caller]
fn delay(env: &TestEnvironment, id: &str, agent: &str, by: &str) -> i64 {
    done(env, &format!("claim {id} --as {agent}"));
    done(
        env,
        &format!("fail {id} --as {agent} --message no --recoverable"),
    );
    let told = done(env, &format!("retry {id} --as {by} --reason again --json")).json();
    let record = record(env, id);
    assert_eq!(record["not_before"], told["data"]["handoff"]["not_before"]);
    let failed = record["transitions"].as_array().unwrap().iter().rev();
    let failed = failed.clone().find(|t| t["event"] == "fail").unwrap();
    match &record["not_before"] {
        Value::Null => 0,
        at => seconds_between(&failed["at"], at),
    }
}

/// Waits for as long as a retry's delay is, and finds that a second less is too
/// early.
#[track_caller]
fn sit_out(env: &TestEnvironment, id: &str, agent: &str, seconds: i64) {
    if seconds == 0 {
        return;
    }
    let before = env.tip();
    env.wait(seconds - 1);
    denied(env, &format!("claim {id} --as {agent}"), 4, "too_early");
    assert_eq!(env.tip(), before);
    env.wait(1);
}

#[test]
fn delays_are_a_list() {
    let env = with_protocol("task-breakdown");
    env.pace(0);
    env.send(sample("task-breakdown", "environment-to-planning", &[]).to_string())
        .success();
    let (id, agent) = ("environment.1", "task-orchestrator");
    for seconds in [1, 2, 5, 10] {
        assert_eq!(delay(&env, id, agent, "operator"), seconds);
        sit_out(&env, id, agent, seconds);
    }
    done(&env, &format!("claim {id} --as {agent}"));
    done(&env, &format!("fail {id} --as {agent} --message no"));
    assert_eq!(record(&env, id)["state"], "dead");
    // The other task has attempts of its own.
    assert_eq!(delay(&env, "environment.2", agent, "operator"), 1);
    env.assert_sound();
    assert_goes_there_and_back(&env, "task-breakdown");
}

#[test]
fn delays_grow_as_protocol_and_contract_say() {
    let (id, agent, by) = (
        "loan-list-21.1",
        "@react-specialist",
        "@frontend-specialist",
    );
    for (policy, delays) in [
        (
            json!({"max_retries": 3, "retry_delay_seconds": 30}),
            &[30, 60, 120][..],
        ),
        (
            json!({"max_retries": 2, "retry_delay_seconds": 45}),
            &[45, 90],
        ),
        (
            json!({"max_retries": 4, "retry_delay_seconds": 7, "backoff_multiplier": 1}),
            &[7, 7, 7, 7],
        ),
        (
            json!({"max_retries": 3, "retry_delay_seconds": 10, "backoff_multiplier": 1.5}),
            &[10, 15, 23],
        ),
        // No delay is longer than an hour.
        (
            json!({"max_retries": 3, "retry_delay_seconds": 1500}),
            &[1500, 3000, 3600],
        ),
        (json!({"max_retries": 2, "retry_delay_seconds": 0}), &[0, 0]),
    ] {
        let env = with_protocol("orchestrator-specialist");
        env.pace(0);
        let own = ("/retry_policy", policy.clone());
        let request = sample("orchestrator-specialist", "request", &[own]);
        env.send(request.to_string()).success();
        for seconds in delays {
            assert_eq!(delay(&env, id, agent, by), *seconds, "{policy}");
            sit_out(&env, id, agent, *seconds);
        }
        done(&env, &format!("claim {id} --as {agent}"));
        done(&env, &format!("fail {id} --as {agent} --message no"));
        assert_eq!(record(&env, id)["state"], "dead", "{policy}");
        env.assert_sound();
        assert_goes_there_and_back(&env, "orchestrator-specialist");
    }
}

#[test]
fn protocols_without_delays_retry_at_once() {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    env.send(opening(87)).success();
    for _ in 0..3 {
        assert_eq!(delay(&env, "87.1", "prep-agent", "orchestrator"), 0);
    }
    env.assert_sound();
}

/// The shipped protocol with other rules for retries; issue 87 is opened.
fn with_retry(retry: &Value) -> TestEnvironment {
    let env = own("issue-to-pr", |p| p["limits"]["retry"] = retry.clone());
    env.pace(0);
    env.send(opening(87)).success();
    env
}

#[test]
fn a_delay_is_counted_from_the_failure() {
    let env = with_retry(&json!({"max_retries": 9, "initial_seconds": 100}));
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "fail 87.1 --as prep-agent --message no");
    env.wait(60);
    let told = env.data(&["retry", "87.1", "--as", "orchestrator"]);
    let shown = done(&env, "show 87.1").shown;
    let at = "2026-03-02 09:06:40Z";
    assert!(shown.contains(&format!("  not before {at}\n")), "{shown}");
    assert_eq!(told["handoff"]["not_before"], "2026-03-02T09:06:40Z");
    done(&env, "status 87").says("pending, claimable in ");
    done(&env, "inbox --as prep-agent").says("pending, claimable in ");
    let early = attempt(&env, "claim 87.1 --as prep-agent").exits(4);
    insta::assert_snapshot!(early.shown, @"
    $ git handoff claim 87.1 --as prep-agent
    --- stderr
    error: 87.1 cannot be claimed before 2026-03-02 09:06:40Z
    hint: try again then; `git handoff show 87.1` shows what went wrong
    --- exit 4
    ");
    sit_out(&env, "87.1", "prep-agent", 40);
    done(&env, "claim 87.1 --as prep-agent");
    assert_eq!(record(&env, "87.1")["not_before"], Value::Null);
    // Whoever retries late enough waits no more.
    done(&env, "fail 87.1 --as prep-agent --message no");
    env.wait(100);
    let told = env.data(&["retry", "87.1", "--as", "orchestrator"]);
    assert_eq!(told["handoff"]["not_before"], Value::Null);
    done(&env, "claim 87.1 --as prep-agent");
    env.assert_sound();
}

#[test]
fn a_clock_that_jumps_makes_no_retry_wait_longer() {
    let retry = json!({"max_retries": 9, "initial_seconds": 100});
    // The failure comes from a clock that is an hour ahead.
    let env = with_retry(&retry);
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "fail 87.1 --as prep-agent --message no");
    env.wait(-3600);
    let told = env.data(&["retry", "87.1", "--as", "orchestrator"]);
    assert_eq!(told["handoff"]["not_before"], "2026-03-02T08:06:40Z");
    sit_out(&env, "87.1", "prep-agent", 100);
    done(&env, "claim 87.1 --as prep-agent");
    env.assert_sound();
    // So does the retry.
    let env = with_retry(&retry);
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "fail 87.1 --as prep-agent --message no");
    done(&env, "retry 87.1 --as orchestrator");
    env.wait(-3600);
    let shown = done(&env, "status 87").stdout;
    assert!(!shown.contains("pending from"), "{shown}");
    done(&env, "claim 87.1 --as prep-agent");
    env.assert_sound();
    // A clock ahead finds the delay over.
    let env = with_retry(&retry);
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "fail 87.1 --as prep-agent --message no");
    done(&env, "retry 87.1 --as orchestrator");
    env.wait(3600);
    done(&env, "claim 87.1 --as prep-agent");
    env.assert_sound();
    assert_goes_there_and_back(&env, &env.root().join("own").display().to_string());
}

#[test]
fn a_delay_can_be_drawn_by_lot() {
    let retry = json!({"max_retries": 30, "initial_seconds": 100_000, "jitter": "full"});
    let env = with_retry(&retry);
    let mut drawn = Vec::new();
    for _ in 0..6 {
        let seconds = delay(&env, "87.1", "prep-agent", "orchestrator");
        assert!((0..=100_000).contains(&seconds), "{seconds}");
        let record = record(&env, "87.1");
        let last = record["transitions"].as_array().unwrap().last().unwrap();
        if seconds > 0 {
            assert_eq!(last["jitter"], seconds / 100);
        }
        sit_out(&env, "87.1", "prep-agent", seconds);
        drawn.push(seconds);
    }
    drawn.sort_unstable();
    drawn.dedup();
    // Six draws of a thousand are hardly ever the same few.
    assert!(drawn.len() > 3, "{drawn:?}");
    env.assert_sound();
    assert_goes_there_and_back(&env, &env.root().join("own").display().to_string());
}

#[test]
fn a_retry_that_says_something_else_is_found() {
    let retried = || {
        let ledger = Ledger::new();
        for (minute, line) in [
            (10, "claim 87.3 --as reviewer-agent"),
            (11, "fail 87.3 --as reviewer-agent --message no"),
            (12, "retry 87.3 --as orchestrator"),
        ] {
            let args: Vec<&str> = line.split(' ').collect();
            ledger.handoff(minute, &args, "");
        }
        ledger.assert_sound(&[]);
        ledger
    };
    let record = format!("{}/0003.json", folder(87));
    for (was, is) in [
        // An attempt that was not counted, and a delay that no rule has.
        ("\"attempt\": 2,", "\"attempt\": 1,"),
        (
            "\"attempt\": 2,",
            "\"attempt\": 2,\n  \"not_before\": \"2026-03-04T05:20:00Z\",",
        ),
    ] {
        let ledger = retried();
        let open = &ledger.entry("87.3");
        ledger.rewrite(12, |_, commit| {
            let altered = |path: &str| {
                let text = ledger.file(path);
                assert!(text.contains(was), "{text}");
                text.replace(was, is)
            };
            let edits = [set(&record, altered(&record)), set(open, altered(open))];
            commit.tree = ledger.edited(&commit.tree, &edits);
        });
        let found = ledger.damage(&[]);
        let wanted = [
            format!("12 record.altered {record}"),
            format!("12 open.stale {open}"),
        ];
        assert!(wanted.iter().all(|w| found.contains(w)), "{found:?}");
    }
}

#[test]
fn some_failures_are_never_tried_again() {
    let retry = json!({"max_retries": 3, "never": ["NoSuchIssue", "TIMEOUT"]});
    let env = with_retry(&retry);
    done(&env, "claim 87.1 --as prep-agent");
    let fail = "fail 87.1 --as prep-agent --message gone --recoverable --code NoSuchIssue";
    let told = done(&env, &format!("{fail} --json")).json()["data"].take();
    assert_eq!(told["handoff"]["state"], "dead");
    assert_eq!(trailers(&env, "Transition"), ["87.1 in_progress..dead"]);
    let before = env.tip();
    let refused = refused_command(&env, "retry 87.1 --as orchestrator");
    assert_eq!(refused.says(), (4, "retries_spent"));
    assert!(
        refused
            .message
            .contains("what fails with NoSuchIssue is not tried again"),
        "{refused:?}"
    );
    // Said twice, it is once.
    done(&env, fail).says("already in the ledger");
    assert_eq!(env.tip(), before);
    // A failure of another kind is tried again as ever.
    env.send(opening(88)).success();
    done(&env, "claim 88.1 --as prep-agent");
    done(&env, "fail 88.1 --as prep-agent --message broken");
    assert_eq!(record(&env, "88.1")["state"], "failed");
    // Whoever is late is not tried again here either.
    env.send(opening(89)).success();
    done(&env, "claim 89.1 --as prep-agent --lease 1m");
    env.wait(60);
    done(&env, "show 89.1").says("git handoff retry 89.1");
    done(&env, "reap");
    assert_eq!(record(&env, "89.1")["state"], "dead");
    env.assert_sound();
}

/// Claims and fails as often as it may be done; it is dead then.
fn spend(env: &TestEnvironment, retries: u32) {
    for attempt in 0..=retries {
        if attempt > 0 {
            done(env, "retry 87.1 --as orchestrator");
        }
        done(env, "claim 87.1 --as prep-agent");
        assert_eq!(record(env, "87.1")["state"], "in_progress");
        done(
            env,
            &format!("fail 87.1 --as prep-agent --message attempt-{attempt} --recoverable"),
        );
    }
    assert_eq!(record(env, "87.1")["state"], "dead");
}

#[test]
fn what_is_spent_is_dead_and_keeps_everything() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    spend(&env, 3);
    assert_eq!(trailers(&env, "Transition"), ["87.1 in_progress..dead"]);
    let kept = record(&env, "87.1");
    let transitions = kept["transitions"].as_array().unwrap();
    let failures: Vec<&str> = transitions
        .iter()
        .filter_map(|t| t["failure"]["message"].as_str())
        .collect();
    assert_eq!(
        failures,
        ["attempt-0", "attempt-1", "attempt-2", "attempt-3"]
    );
    assert_eq!(kept["attempt"], 4);
    let contract = done(&env, "show 87.1 --contract").stdout;
    assert_eq!(contract, opening(87));
    assert_eq!(env.data(&["status"])["open"]["dead"], 1);
    let inbox = env.data(&["inbox", "--as", "orchestrator"]);
    assert_eq!(inbox["attention"][0]["need"], "dead");
    let refused = refused_command(&env, "retry 87.1 --as orchestrator");
    assert_eq!(refused.says(), (4, "retries_spent"));
    assert!(
        refused
            .message
            .contains("it was retried 3 times, as often as it may be")
    );
    assert!(refused.hint.contains("git handoff next 87"), "{refused:?}");
    for line in [
        "claim 87.1 --as prep-agent",
        "reassign 87.1 --to prep-agent --as orchestrator",
    ] {
        assert_eq!(refused_command(&env, line).exit, 4);
    }
    let shown = done(&env, "show 87.1").stdout;
    insta::assert_snapshot!(shown.split("\n\n```xml\n").next().unwrap(), @"
    87.1 issue-manager → prep-agent: dead
      summary   Dispatchers ask for their delivery history as a file
      type      issue-manager-to-prep-agent (xml)
      sha256    d0e2e1eba115df4e5ba383b04f40a0d16df9332f775ae66980129842ac64cb6f
      priority  medium
      attempt   4
      2026-03-02 09:05:00Z send by issue-manager → pending
      2026-03-02 09:06:00Z claim by prep-agent → in_progress
      2026-03-02 09:08:00Z fail by prep-agent → failed
          FAILED: attempt-0 (recoverable)
          kept in issues/87/00/87/0001-failure/1; nothing of the work was kept
      2026-03-02 09:09:00Z retry by orchestrator → pending
      2026-03-02 09:10:00Z claim by prep-agent → in_progress
      2026-03-02 09:12:00Z fail by prep-agent → failed
          FAILED: attempt-1 (recoverable)
          kept in issues/87/00/87/0001-failure/2; nothing of the work was kept
      2026-03-02 09:13:00Z retry by orchestrator → pending
      2026-03-02 09:14:00Z claim by prep-agent → in_progress
      2026-03-02 09:16:00Z fail by prep-agent → failed
          FAILED: attempt-2 (recoverable)
          kept in issues/87/00/87/0001-failure/3; nothing of the work was kept
      2026-03-02 09:17:00Z retry by orchestrator → pending
      2026-03-02 09:18:00Z claim by prep-agent → in_progress
      2026-03-02 09:20:00Z fail by prep-agent → failed
          FAILED: attempt-3 (recoverable)
          kept in issues/87/00/87/0001-failure/4; nothing of the work was kept
      2026-03-02 09:20:00Z exhaust by prep-agent → dead
          | it was retried 3 times, as often as it may be

    options
      retry     git handoff retry 87.1 --as maintainer --reason WHY
      terminate git handoff cancel 87.1 --as maintainer --reason WHY
    ");
    env.assert_sound();
}

#[test]
fn a_retry_of_dead_work_gives_new_attempts_for_a_reason() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let refused = refused_command(&env, "retry 87.1 --as orchestrator --reason again");
    assert_eq!(refused.says(), (4, "illegal_transition"));
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "fail 87.1 --as prep-agent --message no");
    for _ in 1..=3 {
        done(&env, "retry 87.1 --as orchestrator");
        done(&env, "claim 87.1 --as prep-agent");
        done(&env, "fail 87.1 --as prep-agent --message no");
    }
    let before = env.tip();
    attempt(&env, "retry 87.1 --as orchestrator")
        .exits(4)
        .says("git handoff next 87");
    attempt(&env, "retry 87.1 --as orchestrator --reason ''").exits(2);
    denied(
        &env,
        "retry 87.1 --as fixer-agent --reason again",
        4,
        "not_yours",
    );
    assert_eq!(env.tip(), before);
    let revive = "retry 87.1 --as orchestrator --reason 'the registry is up'";
    done(&env, revive);
    assert_eq!(trailers(&env, "Transition"), ["87.1 dead..pending"]);
    let before = env.tip();
    let again = revive.replacen("retry", "redrive", 1);
    done(&env, &again).says("already in the ledger");
    assert_eq!(env.tip(), before);
    let redriven = record(&env, "87.1");
    assert_eq!(
        (&redriven["attempt"], &redriven["redriven_at"]),
        (&json!(5), &json!(5))
    );
    let last = redriven["transitions"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(
        (&last["event"], &last["reason"]),
        (&json!("redrive"), &json!("the registry is up"))
    );
    // As many as before, and then it is dead again.
    spend(&env, 3);
    assert_eq!(record(&env, "87.1")["attempt"], 8);
    done(&env, "retry 87.1 --as issue-manager --reason 'once more'");
    done(&env, "claim 87.1 --as prep-agent");
    env.send(prepared(87)).success();
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

#[test]
fn a_revived_handoff_begins_with_the_first_delay() {
    let env = with_protocol("task-breakdown");
    env.pace(0);
    env.send(sample("task-breakdown", "environment-to-planning", &[]).to_string())
        .success();
    let (id, agent) = ("environment.1", "task-orchestrator");
    for round in 0..2 {
        if round > 0 {
            done(&env, &format!("retry {id} --as operator --reason again"));
            assert_eq!(record(&env, id)["not_before"], Value::Null);
        }
        for seconds in [1, 2, 5, 10] {
            assert_eq!(delay(&env, id, agent, "operator"), seconds);
            env.wait(seconds);
        }
        done(&env, &format!("claim {id} --as {agent}"));
        done(&env, &format!("fail {id} --as {agent} --message no"));
        assert_eq!(record(&env, id)["state"], "dead");
    }
    env.assert_sound();
}

/// A trace in which the writer asked the research agent.
fn asked() -> TestEnvironment {
    let env = with_protocol("delegation");
    env.pace(1);
    env.send(asks(WRITER, RESEARCH, &[])).success();
    env
}

#[test]
fn another_agent_can_be_given_the_work() {
    let id = traced(1);
    let reassign = |to: &str, by: &str| format!("reassign {id} --to {to} --as {by} --reason knows");
    // What waits.
    let env = asked();
    let (ran, _) = added(&env, || done(&env, &reassign("orchestrator", WRITER)));
    ran.says(&format!("{id} {WRITER} → orchestrator: pending"));
    assert_eq!(
        trailers(&env, "Transition"),
        [format!("{id} pending..pending")]
    );
    assert_eq!(trailers(&env, "To"), ["orchestrator"]);
    let open = env.git(
        &env.repo(),
        &["ls-tree", "-r", "--name-only", "handoffs:open"],
    );
    assert!(open.starts_with("orchestrator/ready."), "{open}");
    assert!(open.ends_with(&format!(".{id}.json\n")), "{open}");
    assert_eq!(record(&env, &id)["attempt"], 1);
    let before = env.tip();
    done(&env, &reassign("orchestrator", WRITER)).says("already in the ledger");
    assert_eq!(env.tip(), before);
    denied(&env, &format!("claim {id} --as {RESEARCH}"), 4, "not_yours");
    denied(
        &env,
        &format!("claim --next --as {RESEARCH}"),
        6,
        "nothing_to_claim",
    );
    let none = env.data(&["inbox", "--as", RESEARCH]);
    assert_eq!(none["handoffs"], json!([]));
    done(&env, "claim --next --as orchestrator");
    // In progress, it is its holder's.
    denied(
        &env,
        &reassign("validator", WRITER),
        4,
        "illegal_transition",
    );
    env.send(answers("orchestrator", "failed", &[])).success();
    // What failed, as another attempt.
    done(&env, &reassign("validator", "orchestrator"));
    assert_eq!(record(&env, &id)["attempt"], 2);
    assert_eq!(record(&env, &id)["state"], "pending");
    done(&env, &format!("show {id}")).says("now with validator");
    done(&env, &format!("claim {id} --as validator"));
    env.send(answers("validator", "resolved", &[])).success();
    assert_eq!(states(&env, TRACE)[0], "1 completed with validator");
    env.assert_sound();
    assert_goes_there_and_back(&env, "delegation");
}

#[test]
fn not_everyone_can_be_given_the_work() {
    let id = traced(1);
    let env = asked();
    let before = env.tip();
    for (to, by, exit, code) in [
        (RESEARCH, WRITER, 4, "not_assignable"),
        (WRITER, WRITER, 4, "not_assignable"),
        ("stranger", WRITER, 4, "not_assignable"),
        ("validator", "validator", 4, "not_yours"),
    ] {
        let line = format!("reassign {id} --to {to} --as {by}");
        denied(&env, &line, exit, code);
    }
    assert_eq!(env.tip(), before);
    let refused = refused_command(
        &env,
        &format!("reassign {id} --to {RESEARCH} --as {WRITER}"),
    );
    assert!(
        refused
            .hint
            .contains("agents that can: validator, orchestrator, human"),
        "{refused:?}"
    );
    // Where only one agent can do it, nobody else is offered.
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let refused = refused_command(&env, "reassign 87.1 --to fixer-agent --as orchestrator");
    assert_eq!(refused.says(), (4, "not_assignable"));
    assert!(refused.hint.contains("no other agent can"), "{refused:?}");
    env.claim("87.1", "prep-agent").success();
    let refused = refused_command(&env, "reassign 87.1 --to fixer-agent --as orchestrator");
    let take_over = "`git handoff claim 87.1 --take-over --as prep-agent --reason WHY`";
    assert!(refused.hint.contains(take_over), "{refused:?}");
}

#[test]
fn reassigning_spends_attempts_too() {
    let id = traced(1);
    let env = asked();
    for (agent, next) in [
        (RESEARCH, Some("validator")),
        ("validator", Some("human")),
        ("human", None),
    ] {
        done(&env, &format!("claim {id} --as {agent}"));
        env.send(answers(
            agent,
            "failed",
            &[("/tokensUsed", json!(agent.len()))],
        ))
        .success();
        let Some(next) = next else {
            continue;
        };
        assert_eq!(record(&env, &id)["state"], "failed");
        done(&env, &format!("reassign {id} --to {next} --as {WRITER}"));
    }
    assert_eq!(record(&env, &id)["state"], "dead");
    assert_eq!(
        refused_command(
            &env,
            &format!("reassign {id} --to orchestrator --as {WRITER}")
        )
        .exit,
        4
    );
    env.assert_sound();
}

#[test]
fn a_failed_handoff_waits_for_the_next_claim_of_the_most_urgent() {
    let env = with_retry(&json!({"max_retries": 3, "initial_seconds": 100}));
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "fail 87.1 --as prep-agent --message no");
    done(&env, "retry 87.1 --as orchestrator");
    // What may not be claimed yet is passed over.
    denied(&env, "claim --next --as prep-agent", 6, "nothing_to_claim");
    env.send(opening(88)).success();
    let told = run(&env, "claim --next --as prep-agent --json").json();
    assert_eq!(told["data"]["handoff"]["id"], "88.1");
    env.wait(100);
    let told = run(&env, "claim --next --as prep-agent --json").json();
    assert_eq!(told["data"]["handoff"]["id"], "87.1");
    // A clock that was set back finds it as well.
    done(&env, "fail 87.1 --as prep-agent --message no");
    done(&env, "retry 87.1 --as orchestrator");
    denied(&env, "claim --next --as prep-agent", 6, "nothing_to_claim");
    env.wait(-3600);
    let told = run(&env, "claim --next --as prep-agent --json").json();
    assert_eq!(told["data"]["handoff"]["id"], "87.1");
    env.assert_sound();
}

#[test]
fn a_run_without_a_result_has_the_code_that_the_protocol_has_for_it() {
    let claimed = |env: &TestEnvironment| {
        let request = sample("orchestrator-specialist", "request", &[]);
        env.send(request.to_string()).success();
        env.claim("loan-list-21", "@react-specialist").success();
    };
    let failure = |env: &TestEnvironment, id: &str| {
        let all = record(env, id)["transitions"].take();
        all[2]["failure"].clone()
    };
    let fail = "fail loan-list-21.1 --as @react-specialist --message gone --recoverable";
    for (run, code) in [("TIME_SPENT", "TIMEOUT"), ("EXIT", "PROCESSING_ERROR")] {
        let env = with_protocol("orchestrator-specialist");
        claimed(&env);
        denied(
            &env,
            &format!("{fail} --code {run}"),
            4,
            "unknown_error_code",
        );
        let line = format!("{fail} --run-failure {run}");
        done(&env, &line);
        let told = failure(&env, "loan-list-21.1");
        assert_eq!((&told["code"], &told["run"]), (&json!(code), &json!(run)));
        assert!(told["suggested_action"].is_string(), "{told}");
        // The same again is the same.
        let tip = env.tip();
        done(&env, &line);
        assert_eq!(env.tip(), tip);
        let shown = done(&env, "show loan-list-21.1").stdout;
        assert!(shown.contains(&format!("{code} ({run}): gone")), "{shown}");
        assert_eq!(trailers(&env, "Failure-Code"), [code]);
        env.assert_sound();
        assert_goes_there_and_back(&env, "orchestrator-specialist");
    }
    // What no code stands for fails all the same.
    let env = own("orchestrator-specialist", |p| {
        let errors = p["words"]["errors"].as_object_mut().unwrap();
        errors.values_mut().for_each(|code| {
            code.as_object_mut().unwrap().remove("runs");
        });
    });
    claimed(&env);
    done(&env, &format!("{fail} --run-failure SIGNAL"));
    let told = failure(&env, "loan-list-21.1");
    assert_eq!(
        (&told["code"], &told["run"]),
        (&json!("FAILED"), &json!("SIGNAL"))
    );
    env.assert_sound();
    // Where a protocol names no codes, it is one itself.
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    let line = "fail 87.1 --as prep-agent --message gone --run-failure EXIT";
    attempt(&env, &format!("{line} --code X")).exits(2);
    attempt(&env, &line.replace("EXIT", "exit")).exits(2);
    done(&env, line);
    let told = failure(&env, "87.1");
    assert_eq!(
        (&told["code"], &told["run"]),
        (&json!("EXIT"), &Value::Null)
    );
    env.assert_sound();
}
