//! Work that is given back: its claim was no attempt, and nobody is told.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::team::{record, states, trailers};
use test_support::time::{assert_goes_there_and_back, attempt, denied, done, own, subjects};

/// Issue 87, whose first handoff prep-agent holds.
fn claimed() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    env
}

fn open(env: &TestEnvironment) -> Vec<String> {
    let names = env.git(&env.repo(), &["ls-tree", "-r", "--name-only", "handoffs"]);
    let open = names.lines().filter(|name| name.starts_with("open/"));
    open.map(str::to_owned).collect()
}

#[test]
fn work_that_is_given_back_can_be_claimed_at_once_and_was_no_attempt() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let place = open(&env);
    let first = env.data(&["claim", "87.1", "--as", "prep-agent"]);
    let released = done(
        &env,
        "release 87.1 --as prep-agent --reason 'rate limited' --progress 'read the code'",
    );
    let told = released.stdout;
    assert!(
        told.starts_with("87.1 issue-manager → prep-agent: pending\n"),
        "{told}"
    );
    assert_eq!(
        subjects(&env, 1),
        ["prep-agent: 87.1 released: rate limited"]
    );
    for (name, value) in [
        ("Event", "release"),
        ("Reason", "rate limited"),
        ("Attempt", "1"),
        ("Transition", "87.1 in_progress..pending"),
    ] {
        assert_eq!(trailers(&env, name), [value]);
    }
    // It is where it was before the claim.
    assert_eq!(open(&env), place);
    let after = record(&env, "87.1");
    assert_eq!(
        (&after["lease"], &after["state"], &after["attempt"]),
        (&Value::Null, &json!("pending"), &json!(1))
    );
    assert_eq!(after["transitions"][2]["failure"], Value::Null);
    // The same again writes nothing, and another worker has it at once.
    let tip = env.tip();
    done(
        &env,
        "release 87.1 --as prep-agent --reason 'rate limited' --progress 'read the code'",
    );
    assert_eq!(env.tip(), tip);
    let again = env.data(&["claim", "--next", "--as", "prep-agent", "--worker", "other"]);
    assert_eq!(
        (&first["handoff"]["token"], &again["handoff"]["token"]),
        (&json!(1), &json!(2)),
        "the token is a fence"
    );
    assert_eq!(again["handoff"]["attempt"], first["handoff"]["attempt"]);
    let shown = done(&env, "show 87.1").stdout;
    assert!(
        shown.contains("release by prep-agent → pending\n      | rate limited"),
        "{shown}"
    );
    assert!(shown.contains("Z: read the code"), "{shown}");
    // Neither it nor its claim counts for what is told.
    let status = env.data(&["status"]);
    assert_eq!(status["attention"], json!([]), "{status}");
    #[cfg(feature = "report")]
    done(&env, "alerts");
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

#[test]
fn only_the_worker_that_holds_it_gives_it_back() {
    let env = claimed();
    let tip = env.tip();
    let line = |more: &str| format!("release 87.1 --reason tired {more}");
    denied(&env, &line("--as implementer-agent"), 4, "not_yours");
    denied(
        &env,
        &line("--as prep-agent --worker other"),
        5,
        "held_by_worker",
    );
    denied(&env, &line("--as prep-agent --token 7"), 5, "lease_lost");
    denied(&env, &line("--as prep-agent --after 20y"), 2, "usage");
    attempt(&env, "release 87.1 --as prep-agent").exits(2);
    assert_eq!(env.tip(), tip);
    done(&env, &line("--as prep-agent --token 1"));
    // Who gave it back has nothing to report of it any more.
    denied(
        &env,
        "fail 87.1 --as prep-agent --message x --token 1",
        5,
        "lease_lost",
    );
    denied(
        &env,
        "complete 87.1 --as prep-agent",
        4,
        "illegal_transition",
    );
    done(&env, "claim 87.1 --as prep-agent --worker other");
    denied(
        &env,
        &line("--as prep-agent --token 1"),
        5,
        "held_by_worker",
    );
    env.wait_minutes(60 * 5);
    denied(
        &env,
        &line("--as prep-agent --worker other"),
        5,
        "lease_lost",
    );
    assert_eq!(states(&env, "87"), ["1 failed with prep-agent"]);
    env.assert_sound();
}

#[test]
fn what_is_given_back_for_a_time_is_offered_after_it() {
    let env = claimed();
    done(
        &env,
        "release 87.1 --as prep-agent --reason 'rate limited' --after 40m",
    );
    assert_eq!(
        subjects(&env, 1),
        ["prep-agent: 87.1 released, not before 09:47: rate limited"]
    );
    denied(&env, "claim 87.1 --as prep-agent", 4, "too_early");
    denied(&env, "claim --next --as prep-agent", 6, "nothing_to_claim");
    // Another time is no repetition.
    let longer = "release 87.1 --as prep-agent --reason 'rate limited' --after 50m";
    denied(&env, longer, 4, "illegal_transition");
    env.wait_minutes(40);
    let again = env.data(&["claim", "--next", "--as", "prep-agent"]);
    assert_eq!(again["handoff"]["attempt"], 1);
    // As long as a claim may last, and no longer.
    let env = own("issue-to-pr", |p| {
        p["limits"]["longest_lease_seconds"] = json!(14_400)
    });
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    let line = "release 87.1 --as prep-agent --reason x --after";
    denied(&env, &format!("{line} 5h"), 2, "usage").says("14400 seconds");
    done(&env, &format!("{line} 4h"));
    env.assert_sound();
}

#[test]
fn what_is_given_back_keeps_its_place_and_has_its_time_to_be_claimed_anew() {
    let env = own("issue-to-pr", |p| {
        p["routes"][0]["acknowledge_seconds"] = json!(1800);
    });
    env.send(opening(87)).success();
    env.send(opening(88)).success();
    done(&env, "claim 87.1 --as prep-agent");
    env.wait_minutes(60);
    done(
        &env,
        "release 87.1 --as prep-agent --reason later --after 10m",
    );
    let by = record(&env, "87.1")["acknowledge_by"].take();
    assert_eq!(by, "2026-03-02T10:49:00Z");
    env.wait_minutes(10);
    done(&env, "reap");
    assert_eq!(states(&env, "87"), ["1 pending with prep-agent"]);
    // An answer stays one.
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "block 87.1 --as prep-agent --reason 'which port?'");
    done(&env, "answer 87.1 8080 --as issue-manager");
    let place = open(&env);
    let name = |all: &[String]| {
        let own = all.iter().find(|name| name.contains(".87.1.")).unwrap();
        own.split('.').next().unwrap().to_owned()
    };
    assert_eq!(name(&place), "open/prep-agent/answered");
    for _ in 0..2 {
        done(&env, "claim 87.1 --as prep-agent");
        done(
            &env,
            "claim 87.1 --as prep-agent --worker w --take-over --reason gone",
        );
        done(
            &env,
            "release 87.1 --as prep-agent --worker w --reason later",
        );
        assert_eq!(name(&open(&env)), "open/prep-agent/answered");
    }
    env.wait_minutes(60);
    done(&env, "reap");
    assert_eq!(states(&env, "87"), ["1 failed with prep-agent"]);
    env.assert_sound();
}

#[test]
fn attempts_and_budgets_count_only_what_was_tried() {
    let env = own("issue-to-pr", |p| {
        p["limits"]["retry"]["max_retries"] = json!(1);
        p["limits"]["budgets"] = json!({
            "team": {"per": "issue", "cost": 5, "currency": "USD", "attempts": 3},
            "day": {"per": "day", "agent": "prep-agent", "attempts": 3},
        });
    });
    env.send(opening(87)).success();
    let usage = json!({"model": "m", "output_tokens": 5, "cost": 1, "currency": "USD"});
    for n in 1..=4 {
        done(&env, "claim 87.1 --as prep-agent");
        let reason = format!("--reason=outage {n}");
        let line = ["release", "87.1", "--as", "prep-agent", &reason];
        let usage = ["--usage", &usage.to_string()];
        env.handoff(&[&line[..], &usage[..]].concat()).success();
    }
    // What it took is recorded with each claim.
    let used = record(&env, "87.1")["usage"].take();
    let tokens = used.as_array().unwrap().iter().map(|one| &one["token"]);
    assert_eq!(tokens.collect::<Vec<_>>(), [1, 2, 3, 4]);
    done(&env, "claim 87.1 --as prep-agent");
    done(
        &env,
        "fail 87.1 --as prep-agent --message broken --recoverable",
    );
    assert_eq!(states(&env, "87"), ["1 failed with prep-agent"]);
    done(&env, "retry 87.1 --as orchestrator");
    let claim = env.data(&["claim", "87.1", "--as", "prep-agent"]);
    assert_eq!(claim["handoff"]["attempt"], 2);
    let left = claim["budget"].as_array().unwrap().iter();
    let left: Vec<String> = left
        .map(|one| format!("{} {}", one["unit"], one["left"]))
        .collect();
    assert_eq!(left, ["\"attempts\" 1", "\"cost\" 1.0", "\"attempts\" 1"]);
    done(
        &env,
        "fail 87.1 --as prep-agent --message broken --recoverable",
    );
    assert_eq!(states(&env, "87"), ["1 dead with prep-agent"]);
    let all = record(&env, "87.1")["transitions"].take();
    let failed = all.as_array().unwrap().iter();
    assert_eq!(failed.filter(|t| t["failure"].is_object()).count(), 2);
    env.assert_sound();
    assert_goes_there_and_back(&env, &env.root().join("own").display().to_string());
}

#[test]
fn views_and_events_tell_of_what_is_given_back() {
    let env = claimed();
    done(
        &env,
        "release 87.1 --as prep-agent --reason later --after 10m",
    );
    env.wait_minutes(10);
    let log = done(&env, "log --event release").stdout;
    assert!(
        log.contains("87.1 released, not before 09:17: later"),
        "{log}"
    );
    let watched = done(&env, "watch --all --once").stdout;
    assert!(watched.contains(r#""event":"release""#), "{watched}");
    done(&env, "claim 87.1 --as prep-agent");
    env.send(prepared(87)).success();
    #[cfg(feature = "report")]
    {
        let page = done(&env, "report --output -").stdout;
        let gave = "prep-agent gave 87.1 back, after 1 min: later";
        assert!(page.contains(gave), "{page}");
    }
    env.assert_sound();
}

/// Whoever takes up what was given back may be another worker.
#[test]
fn the_next_claim_names_no_worker() {
    let env = claimed();
    let release = "release 87.1 --as prep-agent --reason x";
    done(&env, release).says("next, for prep-agent: git handoff claim 87.1 --as prep-agent\n");
    let claimed = done(&env, "claim 87.1 --as prep-agent --worker w");
    assert!(claimed.shown.contains("--worker w"), "{}", claimed.shown);
    let released = done(&env, &format!("{release} --worker w"));
    released.says("next, for prep-agent: git handoff claim 87.1 --as prep-agent\n");
}
