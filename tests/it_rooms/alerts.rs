//! Each threshold of the protocols, crossed and not crossed, in real ledgers with set times.

use handoff::protocol::{Level, Metric, Protocol};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample as pull_request};
use test_support::team::{Folder, refused, with_protocol};
use test_support::terminal::Terminal;
use test_support::time::{RESEARCH, WRITER, answers, asks, done, own, sample};

/// Every alarm that fires, by name.
#[track_caller]
fn firing(env: &TestEnvironment) -> Vec<Value> {
    let ran = env.handoff(&["alerts", "--json"]);
    let document = ran.json();
    let firing = document["data"]["firing"].as_array().unwrap().clone();
    let crossed = !firing.is_empty();
    assert_eq!(ran.status, i32::from(crossed), "{}", ran.shown);
    assert_eq!(document["ok"], !crossed);
    firing
}

fn names(env: &TestEnvironment) -> Vec<String> {
    let all = firing(env);
    let names = all.iter().map(|a| a["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[track_caller]
fn alarm(env: &TestEnvironment, name: &str) -> Value {
    let all = firing(env);
    let found = all.iter().find(|alert| alert["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {all:#?}"))
        .clone()
}

fn fires(env: &TestEnvironment, name: &str) -> bool {
    names(env).iter().any(|known| known == name)
}

/// The environment's time, or some seconds before it, as answers have times.
fn ago(env: &TestEnvironment, seconds: i64) -> String {
    let at = chrono::DateTime::from_timestamp(env.now() - seconds, 0).unwrap();
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A trace of its own.
fn trace(number: u32) -> String {
    format!("5a1c7e90-0b2d-4f38-9c64-{number:012}")
}

/// A ledger whose clock stands still.
fn still(protocol: &str) -> TestEnvironment {
    let env = with_protocol(protocol);
    env.pace(0);
    env
}

/// A request in a trace of its own, claimed.
fn asked(env: &TestEnvironment, number: u32) {
    let request = asks(WRITER, RESEARCH, &[("/traceId", json!(trace(number)))]);
    env.send(request).success();
    env.claim(&format!("{}.1", trace(number)), RESEARCH)
        .success();
}

/// A request that was answered so.
fn answered(env: &TestEnvironment, number: u32, status: &str, more: &[(&str, Value)]) {
    asked(env, number);
    let mut members = vec![("/traceId", json!(trace(number)))];
    members.extend(more.iter().cloned());
    env.send(answers(RESEARCH, status, &members)).success();
}

#[test]
fn delegation_warns_of_many_failures_in_five_minutes() {
    let env = still("delegation");
    let because = [("/failureReason", json!("no sources"))];
    for number in 1..=5 {
        answered(&env, number, "failed", &because);
        env.wait(10);
    }
    assert!(!fires(&env, "many-failures"));
    answered(&env, 6, "failed", &because);
    let sixth = ago(&env, 0);
    env.wait(100);
    let alert = alarm(&env, "many-failures");
    let expected = json!({
        "protocol": "delegation", "name": "many-failures", "severity": "warning",
        "metric": "failures", "quantile": null, "value": 6.0, "unit": "", "side": "above",
        "threshold": 5.0, "within_seconds": 300, "longer_than_seconds": null, "since": sixth,
        "ids": (1..=6).map(|n| format!("{}.1", trace(n))).collect::<Vec<_>>(),
        "keys": (1..=6).map(trace).collect::<Vec<_>>(),
        "action": alert["action"],
    });
    assert_eq!(alert, expected);
    // The first was 150 s ago: after 149 more it counts, after 150 it does not.
    env.wait(149);
    assert!(fires(&env, "many-failures"));
    env.wait(1);
    assert!(!fires(&env, "many-failures"));
}

#[test]
fn delegation_tells_of_many_escalations_in_an_hour() {
    let env = still("delegation");
    for number in 1..=6 {
        let to_person = [
            ("/traceId", json!(trace(number))),
            ("/reason", json!("requires_human_decision")),
        ];
        env.send(asks(WRITER, "human", &to_person)).success();
        assert_eq!(fires(&env, "many-escalations"), number == 6, "{number}");
        env.wait(60);
    }
    let alert = alarm(&env, "many-escalations");
    assert_eq!(
        (&alert["severity"], &alert["value"]),
        (&json!("info"), &json!(6.0))
    );
    assert_eq!(alert["since"], ago(&env, 60));
    env.wait(3600 - 6 * 60);
    assert!(!fires(&env, "many-escalations"));
}

#[test]
fn delegation_warns_of_circles() {
    let env = still("delegation");
    env.send(asks(WRITER, "validator", &[])).success();
    env.claim(&test_support::time::traced(1), "validator")
        .success();
    assert!(!fires(&env, "circles"));
    let said = refused(&env, &[], asks("validator", WRITER, &[]));
    assert_eq!(said.says(), (4, "loop"));
    let alert = alarm(&env, "circles");
    assert_eq!((&alert["value"], &alert["ids"]), (&json!(1.0), &json!([])));
    assert_eq!(alert["keys"], json!([test_support::time::TRACE]));
    env.wait(86_400);
    assert!(!fires(&env, "circles"));
}

#[test]
fn delegation_warns_of_slow_answers() {
    let env = still("delegation");
    // Of twenty, the 19th decides; one that takes long is passed by.
    for (number, seconds) in (1..=20).map(|n| (n, if n == 20 { 31 } else { 1 })) {
        let members = [
            ("/traceId", json!(trace(number))),
            ("/timeoutMs", json!(60_000)),
        ];
        env.send(asks(WRITER, RESEARCH, &members)).success();
        env.wait(seconds);
        env.claim(&format!("{}.1", trace(number)), RESEARCH)
            .success();
        let members = [("/traceId", json!(trace(number)))];
        env.send(answers(RESEARCH, "resolved", &members)).success();
    }
    assert!(!fires(&env, "slow-answers"));
    for (number, seconds) in [(21, 30), (22, 31)] {
        let members = [
            ("/traceId", json!(trace(number))),
            ("/timeoutMs", json!(60_000)),
        ];
        env.send(asks(WRITER, RESEARCH, &members)).success();
        env.wait(seconds);
        env.claim(&format!("{}.1", trace(number)), RESEARCH)
            .success();
        let members = [("/traceId", json!(trace(number)))];
        env.send(answers(RESEARCH, "resolved", &members)).success();
    }
    let alert = alarm(&env, "slow-answers");
    assert_eq!(
        (&alert["value"], &alert["quantile"]),
        (&json!(31.0), &json!(0.95))
    );
    assert_eq!(alert["since"], ago(&env, 0));
    let slow = json!([format!("{}.1", trace(20)), format!("{}.1", trace(22))]);
    assert_eq!(alert["ids"], slow);
}

/// A task that waits for its planner.
fn environment() -> TestEnvironment {
    let env = still("task-breakdown");
    let tasks = [
        ("/data/task_ids", json!(["one"])),
        ("/data/difficulties", json!([8.0])),
    ];
    env.send(sample("task-breakdown", "environment-to-planning", &tasks).to_string())
        .success();
    env
}

const TASK: &str = "environment.1";
const PLANNER: &str = "task-orchestrator";

fn claim(env: &TestEnvironment) {
    done(env, &format!("claim {TASK} --as {PLANNER}"));
}

fn fail(env: &TestEnvironment) {
    done(
        env,
        &format!("fail {TASK} --as {PLANNER} --message no --recoverable"),
    );
}

fn retry(env: &TestEnvironment) {
    done(env, &format!("retry {TASK} --as {PLANNER} --reason again"));
}

#[test]
fn tasks_that_go_well_cross_nothing() {
    let env = environment();
    claim(&env);
    let ran = env.handoff(&["alerts"]).success();
    assert_eq!(ran.shown, "$ git handoff alerts\nno threshold is crossed\n");
    done(&env, "verify");
    assert_eq!(names(&env), Vec::<String>::new());
}

#[test]
fn tasks_warn_of_a_slow_handoff() {
    let env = environment();
    env.wait(1);
    claim(&env);
    // A second is over the average of 100 ms, and not over a second.
    assert_eq!(names(&env), ["handoff-time"]);
    let average = alarm(&env, "handoff-time");
    assert_eq!(
        (&average["threshold"], &average["side"]),
        (&json!(0.1), &json!("at_least"))
    );

    let env = environment();
    env.wait(2);
    claim(&env);
    let slow = alarm(&env, "slow-handoff");
    assert_eq!(
        (&slow["severity"], &slow["value"]),
        (&json!("warning"), &json!(2.0))
    );
    assert_eq!(
        (&slow["ids"], &slow["since"]),
        (&json!([TASK]), &json!(ago(&env, 0)))
    );
    env.wait(3600);
    assert!(!fires(&env, "slow-handoff"));
    assert!(fires(&env, "handoff-time"));
    env.wait(86_400);
    assert!(!fires(&env, "handoff-time"));
}

#[test]
fn tasks_warn_of_what_nobody_takes_up() {
    let env = environment();
    env.wait(299);
    assert!(!fires(&env, "acknowledgment-rate"));
    env.wait(1);
    let alert = alarm(&env, "acknowledgment-rate");
    assert_eq!(
        (&alert["value"], &alert["ids"]),
        (&json!(0.0), &json!([TASK]))
    );
    assert_eq!(alert["since"], ago(&env, 0));
    // By then it has failed, and is sent to its receiver once more.
    done(&env, "reap");
    retry(&env);
    env.wait(1);
    claim(&env);
    assert!(!fires(&env, "acknowledgment-rate"));
}

#[test]
fn a_failed_handoff_alarms_at_once() {
    let env = environment();
    claim(&env);
    assert!(!fires(&env, "failed-handoff"));
    env.wait(20);
    fail(&env);
    let alert = alarm(&env, "failed-handoff");
    assert_eq!(alert["severity"], "critical");
    assert_eq!(
        (&alert["ids"], &alert["since"]),
        (&json!([TASK]), &json!(ago(&env, 0)))
    );
    // And it is no success.
    let rate = alarm(&env, "success-rate");
    assert_eq!(
        (&rate["value"], &rate["side"]),
        (&json!(0.0), &json!("at_most"))
    );
    // The gravest comes first.
    assert_eq!(names(&env), ["failed-handoff", "success-rate"]);
    env.wait(1);
    retry(&env);
    assert!(!fires(&env, "success-rate"));
    env.wait(3600);
    assert!(!fires(&env, "failed-handoff"));
}

#[test]
fn ninety_nine_percent_are_not_over_ninety_nine() {
    let env = own("task-breakdown", |p| {
        p["alerts"] = json!([
            {"name": "half", "metric": "success_rate", "at_most": 0.5, "severity": "info", "action": "look"},
            {"name": "less", "metric": "success_rate", "below": 0.5, "severity": "info", "action": "look"},
        ]);
    });
    let tasks = [
        ("/data/task_ids", json!(["one", "two"])),
        ("/data/difficulties", json!([8.0, 9.0])),
    ];
    env.pace(1);
    env.send(sample("task-breakdown", "environment-to-planning", &tasks).to_string())
        .success();
    done(&env, &format!("claim {TASK} --as {PLANNER}"));
    done(&env, &format!("complete {TASK} --as {PLANNER}"));
    assert_eq!(names(&env), Vec::<String>::new());
    done(&env, &format!("claim environment.2 --as {PLANNER}"));
    done(
        &env,
        &format!("fail environment.2 --as {PLANNER} --message no"),
    );
    assert_eq!(names(&env), ["half"]);
}

#[test]
fn tasks_warn_of_slow_recovery_and_of_many_retries() {
    let env = environment();
    claim(&env);
    fail(&env);
    env.wait(1);
    retry(&env);
    env.wait(3);
    claim(&env);
    assert!(!fires(&env, "recovery-time"));
    assert!(!fires(&env, "many-retries"));
    fail(&env);
    env.wait(2);
    retry(&env);
    let alert = alarm(&env, "many-retries");
    assert_eq!(
        (&alert["value"], &alert["ids"]),
        (&json!(2.0), &json!([TASK]))
    );
    assert_eq!(alert["since"], ago(&env, 0));
    // 4 s and 6 s are 5 s on the average.
    env.wait(4);
    claim(&env);
    let alert = alarm(&env, "recovery-time");
    assert_eq!(
        (&alert["value"], &alert["since"]),
        (&json!(5.0), &json!(ago(&env, 0)))
    );
    env.wait(86_400);
    assert!(!fires(&env, "many-retries") && !fires(&env, "recovery-time"));
}

#[test]
fn a_contract_that_is_refused_is_critical() {
    let env = environment();
    claim(&env);
    assert!(!fires(&env, "refused-contract"));
    let broken = sample(
        "task-breakdown",
        "planning-to-execution",
        &[("/data/subtask_ids", json!(1))],
    );
    assert_eq!(refused(&env, &[], broken.to_string()).exit, 3);
    let alert = alarm(&env, "refused-contract");
    assert_eq!(
        (&alert["severity"], &alert["value"]),
        (&json!("critical"), &json!(1.0))
    );
    env.wait(3600);
    assert!(!fires(&env, "refused-contract"));
}

#[test]
fn a_corrupt_ledger_is_critical_wherever_it_is_watched() {
    for protocol in [
        "task-breakdown",
        "issue-to-pr",
        "orchestrator-specialist",
        "directive",
    ] {
        let env = still(protocol);
        done(&env, "verify");
        assert!(!fires(&env, "corrupt-ledger"), "{protocol}");
        let tree = [
            "commit-tree",
            "-p",
            "handoffs",
            "-m",
            "x",
            "handoffs^{tree}",
        ];
        let commit = env.git(&env.repo(), &tree);
        env.git(
            &env.repo(),
            &["update-ref", "refs/heads/handoffs", commit.trim()],
        );
        env.handoff(&["verify"]).exits(10);
        let audited = ago(&env, 0);
        env.wait(60);
        let alert = alarm(&env, "corrupt-ledger");
        assert_eq!(
            (&alert["severity"], &alert["since"]),
            (&json!("critical"), &json!(audited))
        );
    }
}

#[test]
fn work_that_is_dead_is_critical_in_every_protocol() {
    for protocol in test_support::team::BUILT_IN {
        let definition = handoff::templates::built_in(protocol).unwrap();
        let definition = Protocol::load(definition.file("protocol.json").unwrap()).unwrap();
        let mut alerts = definition.definition().alerts.iter();
        let dead = alerts.find(|alert| alert.metric == Metric::Dead).unwrap();
        assert_eq!(dead.severity, Level::Critical, "{protocol}");
    }
    let env = environment();
    for seconds in [1, 2, 5, 10, 0] {
        claim(&env);
        assert!(!fires(&env, "dead-work"));
        fail(&env);
        env.wait(seconds);
        if seconds > 0 {
            retry(&env);
        }
    }
    let alert = alarm(&env, "dead-work");
    assert_eq!(
        (&alert["ids"], &alert["since"]),
        (&json!([TASK]), &json!(ago(&env, 0)))
    );
    done(&env, &format!("retry {TASK} --as {PLANNER} --reason fixed"));
    assert!(!fires(&env, "dead-work"));
}

#[test]
fn what_stops_a_pull_request_is_told() {
    let env = still("issue-to-pr");
    env.send(opening(87)).success();
    let hour = 3600;
    env.wait(4 * hour - 1);
    assert_eq!(names(&env), Vec::<String>::new());
    env.wait(1);
    let alert = alarm(&env, "not-taken-up");
    assert_eq!(
        (&alert["ids"], &alert["since"]),
        (&json!(["87.1"]), &json!(ago(&env, 0)))
    );
    done(&env, "claim 87.1 --as prep-agent");
    assert_eq!(names(&env), Vec::<String>::new());
    env.wait(4 * hour);
    assert_eq!(names(&env), ["lost-agent"]);
    done(&env, "reap");
    env.wait(hour);
    let alert = alarm(&env, "left-failed");
    assert_eq!(alert["since"], ago(&env, 0));
    done(&env, "retry 87.1 --as orchestrator --reason again");
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "block 87.1 --as prep-agent --reason 'which port?'");
    assert_eq!(names(&env), Vec::<String>::new());
    env.wait(4 * hour + 30);
    let alert = alarm(&env, "unanswered");
    assert_eq!(
        (&alert["since"], &alert["longer_than_seconds"]),
        (&json!(ago(&env, 30)), &json!(4 * hour))
    );
    done(&env, "answer 87.1 8080 --as orchestrator");
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "complete 87.1 --as prep-agent");
    env.wait(hour);
    let alert = alarm(&env, "nobody-at-it");
    assert_eq!(
        (&alert["severity"], &alert["keys"]),
        (&json!("info"), &json!(["87"]))
    );
    // Only what weighs enough, and only this issue.
    env.handoff(&["alerts", "--severity", "warning"]).success();
    env.handoff(&["alerts", "--severity", "info"]).exits(1);
    env.send(opening(88)).success();
    env.handoff(&["alerts", "--issue", "88"]).success();
    env.handoff(&["alerts", "--issue", "87"]).exits(1);
    env.handoff(&["alerts", "--issue", "89"]).exits(6);
}

#[test]
fn the_last_round_is_told_before_the_next_is_refused() {
    let env = still("issue-to-pr");
    env.send(opening(87)).success();
    done(&env, "claim 87 --as prep-agent");
    env.send(prepared(87)).success();
    done(&env, "claim 87 --as implementer-agent");
    env.send(pull_request(
        "implementer-agent-to-reviewer-agent",
        Format::Json,
        87,
    ))
    .success();
    for round in 1..=5 {
        done(&env, "claim 87 --as reviewer-agent");
        let review = pull_request("reviewer-agent-to-fixer-agent", Format::Json, 87);
        env.send(review).success();
        assert_eq!(fires(&env, "last-round"), round == 5, "{round}");
        env.wait(1);
        done(&env, "claim 87 --as fixer-agent");
        env.send(pull_request(
            "fixer-agent-to-reviewer-agent",
            Format::Json,
            87,
        ))
        .success();
    }
    let alert = alarm(&env, "last-round");
    assert_eq!(
        (&alert["value"], &alert["keys"]),
        (&json!(0.0), &json!(["87"]))
    );
    assert_eq!(alert["since"], ago(&env, 1));
}

#[test]
fn a_violated_role_is_told() {
    let env = still("directive");
    let work =
        |actions: Value| sample("directive", "handoff", &[("/actions", actions)]).to_string();
    let allowed = with_protocol("directive");
    allowed.pace(0);
    let contract: Value = sample("directive", "handoff", &[]);
    let from = contract["from_agent"].as_str().unwrap();
    let definition = handoff::templates::built_in("directive").unwrap();
    let definition: Value =
        serde_json::from_slice(definition.file("protocol.json").unwrap()).unwrap();
    let agents = definition["agents"].as_array().unwrap();
    let agent = agents.iter().find(|a| a["id"] == from).unwrap();
    allowed.send(work(json!([agent["allowed"][0]]))).success();
    assert!(!fires(&allowed, "role-violation"));
    env.send(work(json!([agent["forbidden"][0]]))).success();
    assert!(fires(&env, "role-violation"));
    env.wait(86_400);
    assert!(!fires(&env, "role-violation"));
}

#[test]
fn people_read_what_is_crossed_since_when_and_what_to_do() {
    let env = environment();
    claim(&env);
    env.wait(20);
    fail(&env);
    env.wait(90);
    let ran = env.handoff(&["alerts", "--severity", "critical"]).exits(1);
    assert_eq!(
        ran.shown,
        "$ git handoff alerts --severity critical\n\
         critical failed-handoff: failures within 1h is 1, above 0 (task-breakdown)\n  \
         since 2026-03-02 09:04:20Z (1m 30s)\n  \
         environment.1\n  \
         Read what went wrong, and what `git handoff next` advises\n\
         --- exit 1\n"
    );
}

#[test]
fn a_protocol_without_alerts_says_how_to_get_them() {
    let env = own("issue-to-pr", |p| {
        p.as_object_mut().unwrap().remove("alerts");
        p["version"] = json!("1.0.0");
    });
    env.send(opening(87)).success();
    env.wait(86_400);
    // Where nothing is watched, that nothing is crossed would be a false comfort.
    let ran = env.handoff(&["alerts"]).exits(6).says("nothing is watched");
    let ran = ran.says("`git handoff protocol update issue-to-pr` adopts those");
    assert_eq!(ran.stdout, "");
    let refused = env.handoff(&["alerts", "--json"]).exits(6).json();
    assert_eq!(refused["error"]["code"], "no_alerts");
    assert_eq!(refused["data"]["without_alerts"], json!(["issue-to-pr"]));
    env.handoff(&["metrics"]).success();
    done(&env, "protocol update issue-to-pr");
    assert_eq!(names(&env), ["not-taken-up"]);
}

#[test]
fn a_protocol_of_ones_own_without_alerts_is_told_to_add_them() {
    let env = own("delegation", |p| {
        p.as_object_mut().unwrap().remove("alerts");
        p["name"] = json!("our-own");
    });
    let ran = env.handoff(&["alerts"]).exits(6).says("nothing is watched");
    let ran = ran.says("add `alerts` to our-own (`git handoff help protocols.md`)");
    assert!(!ran.stderr.contains("protocol update"), "{}", ran.shown);
    // Beside one that watches something, it is a remark.
    env.handoff(&["protocol", "add", "delegation"]).success();
    let ran = env.handoff(&["alerts"]).success();
    let ran = ran.says("protocol our-own has no alerts: add `alerts` to our-own");
    assert_eq!(ran.stdout, "no threshold is crossed\n");
}

#[test]
fn a_clock_that_is_behind_hides_nothing_that_stands() {
    let env = environment();
    claim(&env);
    fail(&env);
    env.wait(-3600);
    let failed = alarm(&env, "failed-handoff");
    assert_eq!(failed["since"], ago(&env, 0).as_str());
    assert_eq!(failed["ids"], json!([TASK]));
    // What ended there has ended, whatever this clock says.
    env.wait(3600);
    done(&env, &format!("retry {TASK} --as {PLANNER} --reason again"));
    let env = own("issue-to-pr", |p| {
        p["alerts"] = json!([{"name": "blocked-now", "metric": "blocked", "above": 0,
            "severity": "warning", "action": "Answer"}]);
    });
    env.pace(0);
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    done(&env, "block 87.1 --as prep-agent --reason 'which port?'");
    env.wait(-60);
    assert_eq!(alarm(&env, "blocked-now")["value"], 1.0);
    env.wait(120);
    done(&env, "answer 87.1 8080 --as orchestrator");
    env.wait(-90);
    assert_eq!(names(&env), Vec::<String>::new());
}

#[test]
fn alarms_fit_the_terminal() {
    let env = environment();
    claim(&env);
    fail(&env);
    env.wait(90);
    let seen = Terminal::new(&env, 44).handoff(&["alerts"]);
    assert_eq!(seen.status, 1, "{}", seen.raw);
    assert!(seen.screen.lines().all(|line| line.chars().count() <= 44));
    // Broken between words, so that each line begins with a whole one.
    assert!(
        seen.screen
            .contains("critical failed-handoff: failures within 1h"),
        "{}",
        seen.screen
    );
}

#[test]
fn an_empty_ledger_crosses_nothing() {
    for protocol in test_support::team::BUILT_IN {
        let env = still(protocol);
        assert_eq!(names(&env), Vec::<String>::new(), "{protocol}");
    }
}

#[test]
fn each_fault_of_an_alert_is_told() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "own");
    let alert = json!({"name": "a", "metric": "failures", "above": 1, "severity": "info", "action": "look"});
    for (change, place) in [
        (json!({"name": "Two words"}), "/alerts/0/name"),
        (json!({"action": " "}), "/alerts/0/action"),
        (json!({"below": 3}), "/alerts/0"),
        (json!({"above": null}), "/alerts/0"),
        (json!({"above": -1}), "/alerts/0"),
        (json!({"metric": "success_rate", "above": 99}), "/alerts/0"),
        (
            json!({"longer_than_seconds": 5}),
            "/alerts/0/longer_than_seconds",
        ),
        (
            json!({"metric": "blocked", "within_seconds": 5}),
            "/alerts/0/within_seconds",
        ),
        (json!({"within_seconds": 0}), "/alerts/0/within_seconds"),
        (json!({"quantile": 0.5}), "/alerts/0/quantile"),
        (
            json!({"metric": "duration", "quantile": 95}),
            "/alerts/0/quantile",
        ),
    ] {
        let mut alert = alert.clone();
        alert
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        folder.define(|p| p["alerts"] = json!([alert]));
        let ran = env.handoff(&["protocol", "check", &folder.path()]).exits(1);
        let said = format!("protocol.alert {place}: ");
        let shown = ran.shown.replace(" protocol.alert", ": ").clone();
        let found = ran.shown.contains(&said) || shown.contains(&format!("{place}: "));
        assert!(found, "{change}\n{}", ran.shown);
    }
    folder.define(|p| {
        p["alerts"] = json!([alert, alert]);
    });
    let ran = env.handoff(&["protocol", "check", &folder.path()]).exits(1);
    ran.says("protocol.duplicate");
    folder.define(|p| {
        p.as_object_mut().unwrap().remove("limits");
        p["alerts"] = json!([{"name": "a", "metric": "rounds_left", "below": 1, "severity": "info", "action": "look"}]);
    });
    let ran = env.handoff(&["protocol", "check", &folder.path()]).exits(1);
    ran.says("the limits have no `rounds`");
}
