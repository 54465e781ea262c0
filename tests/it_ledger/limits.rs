//! When enough was handed over: limits of an item and of a run, deadlines, cooldowns, cycles, rounds.

use serde_json::{Value, json};
use test_support::contracts::{Format, opening, sample as pull_request};
use test_support::tamper::{Ledger, folder, set};
use test_support::team::{Folder, Refused, refused, states, with_protocol};
use test_support::time::{
    RESEARCH, TRACE, WRITER, answers, asks, assert_goes_there_and_back, done, limit, own, sample,
    traced,
};
use test_support::{Ran, TestEnvironment};

/// The reasons that a request can have.
const REASONS: [&str; 5] = [
    "missing_required_input",
    "validation_failure",
    "expertise_mismatch",
    "resource_exhausted",
    "requires_human_decision",
];

/// A ledger of the shipped protocol, whose clock moves a second a command.
fn delegating() -> TestEnvironment {
    let env = with_protocol("delegation");
    env.pace(1);
    env
}

/// The same with other limits.
fn limited(limits: &Value) -> TestEnvironment {
    let env = own("delegation", |p| limit(p, limits));
    env.pace(1);
    env
}

/// A request about an item, for a reason by its number.
fn about(from: &str, to: &str, item: &str, reason: usize) -> String {
    let item = match item {
        "" => ("/sourceContext/documentType", Value::Null),
        item => ("/sourceContext/documentType", json!(item)),
    };
    // Nobody has to claim it within the protocol's half a minute.
    let time = ("/timeoutMs", json!(3_600_000));
    let text = asks(from, to, &[item, time, ("/reason", json!(REASONS[reason]))]);
    // What names no item has no member for it.
    text.replace("\"documentType\":null,", "")
}

/// A refusal as its message and its hint.
fn told(refused: &Refused) -> String {
    format!("{}\n  {}", refused.message, refused.hint).replace(TRACE, "TRACE")
}

#[test]
fn an_item_has_so_many_handoffs() {
    let env = delegating();
    for (number, to) in ["validator", "orchestrator", "human"]
        .into_iter()
        .enumerate()
    {
        env.send(about(WRITER, to, "tender", number)).success();
    }
    let full = refused(&env, &[], about(WRITER, RESEARCH, "tender", 3));
    assert_eq!(full.says(), (4, "limit_reached"));
    insta::assert_snapshot!(told(&full), @r#"
    issue TRACE has reached a limit: 3 handoffs about "tender"
      hand it to human, or continue with the open work (`git handoff status TRACE`); a person can raise the limit with `git handoff protocol set delegation limits.item NUMBER`
    "#);
    // Whoever sends from within a handoff is told to end that.
    done(&env, &format!("claim {} --as validator", traced(1)));
    let full = refused(&env, &[], about("validator", "orchestrator", "tender", 3));
    insta::assert_snapshot!(told(&full), @r#"
    issue TRACE has reached a limit: 3 handoffs about "tender"
      hand it to human, or end TRACE.1, which you hold: `git handoff fail TRACE.1 --code CODE --message WHY`; then `git handoff next TRACE` says what follows; a person can raise the limit with `git handoff protocol set delegation limits.item NUMBER`
    "#);
    // A repeat is no new handoff; an answer is none either.
    env.send(about(WRITER, "human", "tender", 2))
        .success()
        .says("already in the ledger");
    env.send(answers("validator", "resolved", &[])).success();
    // Another item has handoffs of its own; all without an item are about one.
    env.send(about(WRITER, RESEARCH, "annex", 3)).success();
    for (from, to) in [
        ("validator", "orchestrator"),
        ("validator", "human"),
        (RESEARCH, "human"),
    ] {
        env.send(about(from, to, "", 4)).success();
    }
    let full = refused(&env, &[], about("validator", "document_generator", "", 3));
    assert!(
        full.message.contains("3 handoffs about \"global\""),
        "{full:?}"
    );
    env.assert_sound();
    assert_goes_there_and_back(&env, "delegation");
}

#[test]
fn after_the_last_handoff_about_an_item_a_person_is_left() {
    let env = delegating();
    let before = ["validator", "orchestrator", RESEARCH];
    for (number, to) in before.into_iter().enumerate() {
        env.send(about(WRITER, to, "tender", number)).success();
    }
    env.wait(60);
    let full = refused(&env, &[], about(WRITER, "validator", "tender", 3));
    assert_eq!(full.says(), (4, "limit_reached"));
    assert!(full.hint.contains("hand it to human"), "{full:?}");
    env.send(about(WRITER, "human", "tender", 3)).success();
    env.send(about("validator", "human", "tender", 4)).success();
    let full = refused(&env, &[], about(WRITER, "orchestrator", "tender", 4));
    assert_eq!(full.says(), (4, "limit_reached"));
    assert_eq!(states(&env, TRACE).len(), 5);
    env.assert_sound();
    assert_goes_there_and_back(&env, "delegation");
}

#[test]
fn a_run_has_so_many_handoffs() {
    let env = delegating();
    for number in 0..10 {
        env.send(about(
            WRITER,
            ["validator", RESEARCH][number % 2],
            &format!("item-{number}"),
            number % 5,
        ))
        .success();
        env.wait(5);
    }
    let full = refused(&env, &[], about(WRITER, "orchestrator", "item-11", 0));
    assert_eq!(full.says(), (4, "limit_reached"));
    // The way to a person stays open.
    env.send(about(WRITER, "human", "item-11", 0)).success();
    insta::assert_snapshot!(told(&full), @"
    issue TRACE has reached a limit: 10 handoffs
      hand it to human, or continue with the open work (`git handoff status TRACE`); a person can raise the limit with `git handoff protocol set delegation limits.handoffs NUMBER`
    ");
    // Notes and answers still find room, and another trace knows nothing of it.
    let note = sample("delegation", "decision-with-reason", &[]).to_string();
    env.handoff_with(&["send", "-", "--issue", TRACE, "--as", RESEARCH], note)
        .success();
    done(&env, &format!("claim {} --as {RESEARCH}", traced(10)));
    env.send(answers(RESEARCH, "resolved", &[])).success();
    let other =
        about(WRITER, "human", "item-1", 0).replace(TRACE, "0e9d8c7b-6a5f-4e3d-8c2b-1a0f9e8d7c6b");
    env.send(other).success();
    env.assert_sound();
}

#[test]
fn a_retry_is_no_new_handoff() {
    let env = limited(&json!({"handoffs": 1}));
    env.send(asks(WRITER, RESEARCH, &[])).success();
    for _ in 0..2 {
        done(&env, &format!("claim {} --as {RESEARCH}", traced(1)));
        env.send(answers(RESEARCH, "failed", &[])).success();
        done(&env, &format!("retry {} --as {WRITER}", traced(1)));
    }
    done(
        &env,
        &format!("reassign {} --to human --as {WRITER}", traced(1)),
    );
    assert_eq!(refused(&env, &[], asks(WRITER, "validator", &[])).exit, 4);
    env.assert_sound();
}

#[test]
fn the_same_way_takes_a_rest() {
    let env = delegating();
    env.pace(0);
    env.send(about(WRITER, RESEARCH, "tender", 0)).success();
    let soon = refused(&env, &[], about(WRITER, RESEARCH, "annex", 1));
    assert_eq!(soon.says(), (4, "cooldown"));
    insta::assert_snapshot!(told(&soon), @"
    issue TRACE has reached a limit: 5 s must pass between two handoffs from document_generator to research_agent
      send it again in 5 s, or continue with the open work (`git handoff status TRACE`)
    ");
    env.wait(4);
    let soon = refused(&env, &[], about(WRITER, RESEARCH, "annex", 1));
    assert!(soon.hint.starts_with("send it again in 1 s"), "{soon:?}");
    // Another way is open, also back and forth.
    env.send(about(WRITER, "validator", "annex", 1)).success();
    env.send(about(RESEARCH, "orchestrator", "annex", 1))
        .success();
    env.wait(1);
    env.send(about(WRITER, RESEARCH, "annex", 1)).success();
    // A refusal begins no rest anew.
    env.wait(3);
    refused(&env, &[], about(WRITER, RESEARCH, "map", 2));
    env.wait(2);
    env.send(about(WRITER, RESEARCH, "map", 2)).success();
    env.assert_sound();
    assert_goes_there_and_back(&env, "delegation");
}

#[test]
fn a_clock_that_jumps_makes_no_rest_longer() {
    let env = delegating();
    env.pace(0);
    env.send(about(WRITER, RESEARCH, "tender", 0)).success();
    env.wait(-3600);
    env.send(about(WRITER, RESEARCH, "annex", 1)).success();
    env.wait(-3);
    let soon = refused(&env, &[], about(WRITER, RESEARCH, "map", 2));
    assert!(soon.hint.starts_with("send it again in 5 s"), "{soon:?}");
    env.wait(8);
    env.send(about(WRITER, RESEARCH, "map", 2)).success();
    env.wait(3600);
    env.send(about(WRITER, RESEARCH, "list", 3)).success();
    env.assert_sound();
    assert_goes_there_and_back(&env, "delegation");
}

#[test]
fn the_same_again_and_again_is_a_cycle() {
    let env = delegating();
    env.pace(5);
    env.send(about(WRITER, RESEARCH, "tender", 0)).success();
    env.send(about(WRITER, "human", "annex", 0)).success();
    env.send(about(WRITER, RESEARCH, "annex", 0)).success();
    let circle = refused(&env, &[], about(WRITER, RESEARCH, "map", 0));
    assert_eq!(circle.says(), (4, "cycle"));
    insta::assert_snapshot!(told(&circle), @r#"
    issue TRACE has reached a limit: 2 of the last 3 handoffs went from document_generator to research_agent for the same reason, "missing_required_input"
      ask another agent or a person, or continue with the open work (`git handoff status TRACE`)
    "#);
    // For another reason, it is another request; so it is once others came between.
    env.send(about(WRITER, RESEARCH, "map", 1)).success();
    env.send(about(WRITER, RESEARCH, "map", 0)).success();
    env.assert_sound();
    assert_goes_there_and_back(&env, "delegation");
}

#[test]
fn a_run_has_a_deadline() {
    let env = limited(&json!({"deadline_seconds": 600}));
    env.pace(0);
    env.send(asks(WRITER, RESEARCH, &[])).success();
    env.wait(599);
    env.send(asks(WRITER, "validator", &[])).success();
    env.wait(1);
    let late = refused(&env, &[], asks(WRITER, "human", &[]));
    assert_eq!(late.says(), (4, "limit_reached"));
    insta::assert_snapshot!(told(&late), @"
    issue TRACE has reached a limit: its deadline was 2026-03-02 09:15:00Z
      the deadline has passed, so that nothing can be sent but what ends the issue; human gives it more time, `git handoff protocol set delegation limits.deadline_seconds NUMBER`, or ends it: `git handoff cancel TRACE --all --as human --reason WHY`
    ");
    // What is open can still be ended.
    done(&env, &format!("claim {} --as validator", traced(2)));
    env.send(answers("validator", "resolved", &[])).success();
    env.assert_sound();
    // A clock that was set back has time again; the chain is what it is.
    env.wait(-3600);
    env.send(asks(WRITER, "human", &[])).success();
    env.assert_sound();
}

#[test]
fn past_the_deadline_it_is_the_turn_of_who_can_raise_it() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let limit = [
        "protocol",
        "set",
        "issue-to-pr",
        "limits.deadline_seconds",
        "600",
    ];
    env.handoff(&[&limit[..], &["--as", "maintainer"]].concat())
        .success();
    env.wait(900);
    let turn = || {
        let attention = &env.data(&["status"])["attention"];
        assert_eq!(attention[0]["need"], "past_deadline", "{attention}");
        attention[0]["turn"].as_str().unwrap().to_owned()
    };
    let before = turn();
    // Completed all the same, it awaits its agent, who can't raise the limit.
    done(&env, "complete 87.1 --as prep-agent");
    assert_eq!(turn(), before);
    assert_ne!(before, "prep-agent");
}

/// Takes issue 87 to its first review.
fn reviewed(env: &TestEnvironment) {
    for (agent, name) in [
        ("", "issue-manager-to-prep-agent"),
        ("prep-agent", "prep-agent-to-implementer-agent"),
        ("implementer-agent", "implementer-agent-to-reviewer-agent"),
    ] {
        if !agent.is_empty() {
            env.claim("87", agent).success();
        }
        env.send(pull_request(name, Format::Json, 87)).success();
    }
    env.claim("87", "reviewer-agent").success();
}

/// A review or a fix that says something of its own.
fn round(name: &str, number: usize) -> String {
    pull_request(name, Format::Json, 87).replacen('{', &format!("{{{}", " ".repeat(number)), 1)
}

#[test]
fn reviews_go_round_so_often() {
    let env = TestEnvironment::with_ledger();
    reviewed(&env);
    for number in 0..5 {
        env.send(round("reviewer-agent-to-fixer-agent", number))
            .success();
        env.claim("87", "fixer-agent").success();
        env.send(round("fixer-agent-to-reviewer-agent", number))
            .success();
        // What is nearly used up is told to who begins the work.
        let used = format!("rounds of changes: {} of 5", number + 1);
        let next = env.handoff(&["next", "87"]).success();
        let claimed = env.claim("87", "reviewer-agent").success();
        let said = |ran: &Ran| ran.stdout.contains(&used);
        assert_eq!(said(&next), number == 3, "{}", next.shown);
        assert_eq!(said(&claimed), number >= 3, "{}", claimed.shown);
    }
    let full = refused(&env, &[], round("reviewer-agent-to-fixer-agent", 5));
    assert_eq!(full.says(), (4, "limit_reached"));
    insta::assert_snapshot!(told(&full), @"
    issue 87 has reached a limit: 5 rounds of changes
      use another route of the protocol (`git handoff protocol show issue-to-pr`), or end 87.13, which you hold: `git handoff fail 87.13 --code CODE --message WHY`; then `git handoff next 87` says what follows; a person can raise the limit with `git handoff protocol set issue-to-pr 'limits.rounds.rounds of changes' NUMBER`
    ");
    // The other way is open. Failed validations are rounds of their own.
    for number in 0..5 {
        env.send(round("reviewer-agent-to-validator-agent", number))
            .success();
        env.claim("87", "validator-agent").success();
        env.send(round("validator-agent-to-fixer-agent", number))
            .success();
        env.claim("87", "fixer-agent").success();
        env.send(round("fixer-agent-to-reviewer-agent", number + 5))
            .success();
        env.claim("87", "reviewer-agent").success();
    }
    env.send(round("reviewer-agent-to-validator-agent", 5))
        .success();
    env.claim("87", "validator-agent").success();
    let full = refused(&env, &[], round("validator-agent-to-fixer-agent", 5));
    assert_eq!(full.says(), (4, "limit_reached"));
    assert!(full.message.contains("5 failed validations"), "{full:?}");
    // Once the issue is completed and opened again, it counts anew.
    env.send(pull_request(
        "validator-agent-to-closer-agent",
        Format::Json,
        87,
    ))
    .success();
    env.claim("87", "closer-agent").success();
    env.send(pull_request("workflow-complete", Format::Json, 87))
        .success();
    done(&env, "reopen 87 --as orchestrator --reason 'it came back'");
    env.send(round("issue-manager-to-prep-agent", 1)).success();
    for (agent, name) in [
        ("prep-agent", "prep-agent-to-implementer-agent"),
        ("implementer-agent", "implementer-agent-to-reviewer-agent"),
    ] {
        env.claim("87", agent).success();
        env.send(round(name, 1)).success();
    }
    env.claim("87", "reviewer-agent").success();
    env.send(round("reviewer-agent-to-fixer-agent", 6))
        .success();
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

#[test]
fn an_issue_that_is_opened_again_has_its_time_again() {
    let env = own("issue-to-pr", |p| {
        limit(p, &json!({"deadline_seconds": 3600, "handoffs": 5}));
        // One of them is about rounds.
        p["alerts"] = json!([]);
        p["limits"]["lease_seconds"] = json!(360_000);
    });
    env.send(opening(87)).success();
    for (agent, name) in [
        ("prep-agent", "prep-agent-to-implementer-agent"),
        ("implementer-agent", "implementer-agent-to-reviewer-agent"),
        ("reviewer-agent", "reviewer-agent-to-validator-agent"),
        ("validator-agent", "validator-agent-to-closer-agent"),
    ] {
        env.claim("87", agent).success();
        env.send(pull_request(name, Format::Json, 87)).success();
    }
    env.claim("87", "closer-agent").success();
    // No limit keeps an issue from being ended, however late.
    env.wait_minutes(600);
    let late = round("workflow-complete", 1);
    env.send(late).success();
    done(&env, "reopen 87 --as orchestrator --reason again");
    env.send(round("issue-manager-to-prep-agent", 1)).success();
    env.assert_sound();
}

/// Puts other limits in force.
fn raise(env: &TestEnvironment, limits: &Value) {
    let folder = Folder::new(env, "own");
    folder.define(|p| {
        limit(p, limits);
        p["version"] = json!("9.0.0");
    });
    folder.put("update").success();
}

#[test]
fn limits_that_are_raised_hold_from_then_on() {
    let env = limited(&json!({"handoffs": 1}));
    env.send(asks(WRITER, RESEARCH, &[])).success();
    refused(&env, &[], asks(WRITER, "validator", &[]));
    raise(&env, &json!({"handoffs": 2}));
    env.send(asks(WRITER, "human", &[])).success();
    refused(&env, &[], asks(WRITER, "validator", &[]));
    env.assert_sound();
}

#[test]
fn limits_hold_where_many_send_at_once() {
    let env = limited(&json!({"handoffs": 3}));
    env.pace(0);
    let files: Vec<String> = (0..8)
        .map(|n| {
            env.file(
                &format!("{n}.json"),
                asks(
                    WRITER,
                    RESEARCH,
                    &[("/contextForTarget/summary", json!(n.to_string()))],
                ),
            )
        })
        .collect();
    let all: Vec<Vec<&str>> = files.iter().map(|f| vec!["send", f.as_str()]).collect();
    let outputs = test_support::team::at_once(&env, &all);
    let exits = test_support::team::exits(&outputs);
    assert_eq!(
        exits,
        [0, 0, 0, 4, 4, 4, 4, 4],
        "{}",
        test_support::team::said(&outputs)
    );
    env.assert_sound();
}

#[test]
fn a_handoff_beyond_the_limit_is_found() {
    // The commits of a ledger without a deadline, under a protocol that has one.
    let ledger = Ledger::new();
    let path = "protocols/issue-to-pr/protocol.json";
    let mut protocol: Value = serde_json::from_str(&ledger.file(path)).unwrap();
    limit(&mut protocol, &json!({"deadline_seconds": 360}));
    protocol["alerts"] = json!([]);
    let bytes = serde_json::to_string_pretty(&protocol).unwrap();
    ledger.rewrite(0, |_, commit| {
        commit.tree = ledger.edited(&commit.tree, &[set(path, bytes.clone())]);
    });
    let beyond = |at: u32, issue, number: u32| {
        format!("{at} step.illegal {}/{number:04}.json", folder(issue))
    };
    assert_eq!(ledger.damage(&[]), [beyond(7, 87, 3), beyond(8, 88, 2)]);
}
