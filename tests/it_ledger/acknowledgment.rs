//! Handoffs that must be claimed in time, and what becomes of those that nobody claims.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::team::{record, refused_command, states, with_protocol};
use test_support::time::{
    RESEARCH, WRITER, added, asks, assert_goes_there_and_back, attempt, denied, done, own, sample,
    seconds_between, traced,
};

const TASK: &str = "environment.1";
const ORCHESTRATOR: &str = "task-orchestrator";

/// The first handoff of an issue in this protocol, with its receiver and the seconds it has to be
/// claimed.
fn sent(protocol: &str) -> (TestEnvironment, String, &'static str, i64) {
    let env = with_protocol(protocol);
    env.pace(0);
    let (contract, id, to, seconds) = match protocol {
        "task-breakdown" => {
            let contract = sample(protocol, "environment-to-planning", &[]).to_string();
            (contract, TASK.to_owned(), ORCHESTRATOR, 30)
        }
        "orchestrator-specialist" => {
            let contract = sample(protocol, "request", &[]).to_string();
            (
                contract,
                "loan-list-21.1".to_owned(),
                "@react-specialist",
                300,
            )
        }
        _ => {
            let contract = asks(WRITER, RESEARCH, &[("/timeoutMs", json!(12_000))]);
            (contract, traced(1), RESEARCH, 12)
        }
    };
    env.send(contract).success();
    (env, id, to, seconds)
}

fn ends(record: &Value) -> i64 {
    let since = &record["transitions"].as_array().unwrap().last().unwrap()["at"];
    seconds_between(since, &record["acknowledge_by"])
}

#[test]
fn what_nobody_claims_in_time_fails_and_gets_another_attempt() {
    for protocol in ["task-breakdown", "orchestrator-specialist", "delegation"] {
        let (env, id, to, seconds) = sent(protocol);
        assert_eq!(ends(&record(&env, &id)), seconds, "{protocol}");
        let issue = id.rsplit_once('.').unwrap().0;
        let status = env.data(&["status", issue]);
        let mut listed = status["handoffs"].as_array().unwrap().iter();
        let open = listed.find(|handoff| handoff["id"] == id).unwrap();
        assert_eq!(open["expires_at"], record(&env, &id)["acknowledge_by"]);
        env.wait(seconds - 1);
        assert_eq!(
            env.data(&["show", &id])["handoff"]["expired"],
            false,
            "{protocol}"
        );
        env.wait(1);
        assert_eq!(
            env.data(&["show", &id])["handoff"]["expired"],
            true,
            "{protocol}"
        );

        // The late claim is told why, and what happened is on record.
        let claim = format!("claim {id} --as {to}");
        let (late, new) = added(&env, || denied(&env, &claim, 4, "not_acknowledged"));
        // What else is overdue in the issue is recorded with it.
        let tasks = if protocol == "task-breakdown" { 2 } else { 1 };
        assert_eq!(new.len(), tasks, "{new:?}");
        let error = &late.json()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("did not claim"), "{message}");
        assert!(error["hint"].as_str().unwrap().contains("git handoff next"));
        let failed = record(&env, &id);
        assert_eq!(failed["state"], "failed", "{protocol}");
        assert_eq!(failed["acknowledge_by"], Value::Null);
        let expired = &failed["transitions"][1];
        assert_eq!(expired["event"], "expire");
        assert_eq!(expired["from"], "pending");
        assert_eq!(expired["failure"]["code"], "NOT_ACKNOWLEDGED");
        let since = seconds_between(&failed["transitions"][0]["at"], &expired["ran_out_at"]);
        assert_eq!(since, seconds);

        // The next attempt has the same time, from when it can be claimed.
        done(
            &env,
            &format!("retry {id} --as {}", failed["from"].as_str().unwrap()),
        );
        let again = record(&env, &id);
        let from = match &again["not_before"] {
            Value::Null => &again["transitions"].as_array().unwrap().last().unwrap()["at"],
            at => at,
        };
        assert_eq!(seconds_between(from, &again["acknowledge_by"]), seconds);
        env.wait(seconds_between(&expired["at"], from));
        done(&env, &claim);
        let claimed = record(&env, &id);
        assert_eq!(claimed["acknowledge_by"], Value::Null);
        assert_eq!(claimed["attempt"], 2);
        env.assert_sound();
        assert_goes_there_and_back(&env, protocol);
    }
}

#[test]
fn views_say_that_it_was_not_claimed_and_reap_records_it() {
    let (env, id, to, _) = sent("task-breakdown");
    env.wait(30);
    let shown = done(&env, "list");
    assert!(
        shown.stdout.contains("not claimed in time"),
        "{}",
        shown.shown
    );
    assert!(!shown.stdout.contains("lease ran out"), "{}", shown.shown);
    let status = done(&env, "status environment");
    assert!(
        status.stdout.contains("not claimed in time"),
        "{}",
        status.shown
    );
    let waited = attempt(&env, &format!("wait {id} --timeout 0")).exits(1);
    let said = "[NOT_ACKNOWLEDGED]: nobody claimed it in time";
    assert!(waited.shown.contains(said), "{}", waited.shown);
    // Nobody is offered what it is too late for.
    refused_command(&env, &format!("claim --next --as {to}"));
    let advice = env.data(&["next", "environment"]);
    assert_eq!(advice["action"], "retry", "{advice:#}");

    let (_, new) = added(&env, || done(&env, "reap"));
    assert_eq!(new.len(), 2, "the sample opens two tasks: {new:?}");
    assert!(new.iter().all(|subject| subject.starts_with(to)), "{new:?}");
    done(&env, "reap").says("no lease ran out");
    let failed = states(&env, "environment");
    assert!(
        failed.iter().all(|line| line.contains("failed")),
        "{failed:?}"
    );
    env.assert_sound();
}

#[test]
fn the_attempts_of_what_nobody_claims_end_with_a_person() {
    let (env, id, to, _) = sent("task-breakdown");
    for pause in [1, 2, 5, 10] {
        env.wait(30);
        done(&env, "reap");
        done(&env, &format!("retry {id} --as {to}"));
        env.wait(pause);
    }
    env.wait(30);
    done(&env, "reap");
    let dead = record(&env, &id);
    assert_eq!(
        (&dead["state"], &dead["attempt"]),
        (&json!("dead"), &json!(5))
    );
    let late = denied(
        &env,
        &format!("claim {id} --as {to}"),
        4,
        "not_acknowledged",
    );
    let hint = late.json()["error"]["hint"].take();
    assert!(
        hint.as_str().unwrap().contains("git handoff next"),
        "{hint}"
    );
    let told = done(&env, "next environment");
    assert!(told.shown.contains("operator"), "{}", told.shown);
    done(&env, &format!("retry {id} --as operator --reason started"));
    assert_eq!(ends(&record(&env, &id)), 30);
    done(&env, &format!("claim {id} --as {to}"));
    env.assert_sound();
}

#[test]
fn what_was_not_claimed_in_time_is_named_to_who_asks_for_work() {
    let (env, id, to, seconds) = sent("orchestrator-specialist");
    env.wait(seconds);
    let next = format!("claim --next --as {to}");
    let late = denied(&env, &next, 6, "nothing_to_claim");
    let error = late.json()["error"].take();
    assert_eq!(
        error["message"],
        format!("nothing waits for {to} that can be claimed: {id} was not claimed in time")
    );
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("`git handoff next loan-list-21`"), "{hint}");
    let advised = env.data(&["next", "loan-list-21"]);
    assert_eq!(advised["handoff"]["id"], id);
    env.assert_sound();
}

#[test]
fn a_time_begins_when_the_handoff_can_be_claimed() {
    let (env, id, to, _) = sent("task-breakdown");
    done(&env, &format!("claim {id} --as {to}"));
    let parent = record(&env, &id)["task"]["id"].clone();
    let plan = json!({
        "handoff_type": "planning_to_execution",
        "timestamp": "2026-03-02T06:40:00Z",
        "from_agent": to,
        "to_agent": "execution-guardian",
        "data": {
            "parent_task_id": parent,
            "subtask_ids": ["a", "b"],
            "dependency_graph": {"a": [], "b": ["a"]},
            "execution_order": ["a", "b"],
            "parallel_groups": [],
        },
    });
    env.send(plan.to_string()).success();
    let numbers: Vec<String> = states(&env, "environment")
        .iter()
        .filter(|line| line.contains("execution-guardian"))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    let [first, second] = &numbers[..] else {
        panic!("{numbers:?}");
    };
    let (first, second) = (
        format!("environment.{first}"),
        format!("environment.{second}"),
    );
    assert_eq!(ends(&record(&env, &first)), 30);
    assert_eq!(record(&env, &second)["acknowledge_by"], Value::Null);
    done(&env, &format!("claim {first} --as execution-guardian"));
    // Ten minutes later the first part is done, and only now can the second be claimed.
    let withdrawn = "cancel environment.2 --as environment-architect --reason later";
    done(&env, withdrawn);
    env.wait(600);
    let members = [
        ("/data/completed_task_id", json!("a")),
        ("/data/parent_task_id", parent),
    ];
    let report = sample("task-breakdown", "execution-to-planning", &members);
    env.send(report.to_string()).success();
    let freed = record(&env, &second);
    let report = states(&env, "environment").len();
    let sent = record(&env, &format!("environment.{report}"));
    let at = &sent["transitions"][0]["at"];
    // It came with the same message, which its receiver has; the report is a new one.
    assert_eq!(freed["acknowledge_by"], Value::Null);
    assert_eq!(seconds_between(at, &sent["acknowledge_by"]), 30);
    env.assert_sound();
}

#[test]
fn its_sender_may_withdraw_it_before_and_after() {
    let (env, id, _, _) = sent("orchestrator-specialist");
    let cancel = format!("cancel {id} --as @frontend-specialist --reason changed");
    done(&env, &cancel);
    assert_eq!(record(&env, &id)["state"], "cancelled");
    env.wait(400);
    done(&env, "reap").says("no lease ran out");
    env.assert_sound();

    let (env, id, _, _) = sent("orchestrator-specialist");
    env.wait(400);
    let (_, new) = added(&env, || done(&env, &cancel));
    assert_eq!(new.len(), 2, "the failure, then the withdrawal: {new:?}");
    let record = record(&env, &id);
    let events: Vec<&Value> = record["transitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["event"])
        .collect();
    assert_eq!(json!(events), json!([null, "expire", "cancel"]));
    env.assert_sound();
}

#[test]
fn a_person_takes_the_time_it_takes() {
    let env = with_protocol("delegation");
    let contract = asks(WRITER, "human", &[("/timeoutMs", json!(12_000))]);
    env.send(contract).success();
    assert_eq!(record(&env, &traced(1))["acknowledge_by"], Value::Null);
    env.wait_minutes(60 * 24);
    done(&env, &format!("claim {} --as human", traced(1)));
    env.assert_sound();
}

#[test]
fn own_routes_have_their_own_time_and_none_is_the_default() {
    let env = own("issue-to-pr", |_| {});
    env.send(test_support::contracts::opening(87)).success();
    assert_eq!(record(&env, "87.1")["acknowledge_by"], Value::Null);

    let env = own("issue-to-pr", |p| {
        p["words"]["errors"] = json!({"NoSuchIssue": {"meaning": "m", "recovery": "r"}});
        for route in p["routes"].as_array_mut().unwrap() {
            route["acknowledge_seconds"] = json!(90);
        }
    });
    env.send(test_support::contracts::opening(87)).success();
    assert_eq!(ends(&record(&env, "87.1")), 90);
    env.wait(90);
    done(&env, "reap");
    let failure = record(&env, "87.1")["transitions"][1]["failure"].take();
    assert_eq!(failure["code"], "NOT_ACKNOWLEDGED");
    let given = "retry 87.1 --as orchestrator";
    done(&env, given);
    done(&env, "claim 87.1 --as prep-agent");
    env.assert_sound();
}

#[test]
fn the_same_retry_after_another_time_ran_out_is_another_attempt() {
    let (env, id, ..) = sent("task-breakdown");
    for attempt in 2..=3 {
        env.wait(40);
        done(
            &env,
            &format!("next environment --apply --as {ORCHESTRATOR}"),
        );
        assert_eq!(record(&env, &id)["attempt"], attempt);
    }
    // What was done is still a repeat as long as its time runs.
    let tip = env.tip();
    let reason = "the handoff has attempts left";
    let again = ["retry", &id, "--as", ORCHESTRATOR, "--reason", reason];
    let ran = env.handoff(&again);
    assert!(ran.status == 0 || ran.status == 4, "{}", ran.shown);
    assert_eq!(env.tip(), tip);
    env.assert_sound();
}
