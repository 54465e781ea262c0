//! Tasks that are broken down, carried out in parts, and complete by themselves.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::team::{
    Refused, at_once, commits, exits, record, refused, refused_command, run, said, sent, states,
    trailers, with_protocol,
};
use test_support::{TestEnvironment, stored_issue};

const KEY: &str = "environment";

/// The environment stands, and these tasks are too hard to be done in one piece.
fn environment(tasks: &[(&str, f64)]) -> String {
    let ids: Vec<&str> = tasks.iter().map(|(id, _)| *id).collect();
    let difficulties: Vec<f64> = tasks.iter().map(|(_, how)| *how).collect();
    json!({
        "handoff_type": "environment_to_planning",
        "timestamp": "2026-03-02T06:15:00Z",
        "from_agent": "environment-architect",
        "to_agent": "task-orchestrator",
        "data": {
            "task_ids": ids,
            "difficulties": difficulties,
            "template_used": "greenhouse",
            "assumptions_made": ["Valves answer within a second"],
            "confidence_score": 0.7,
        },
    })
    .to_string()
}

/// A task is broken down; its parts are listed in an order that can be followed.
fn plan(parent: &str, parts: &[(&str, &[&str])]) -> Value {
    let ids: Vec<&str> = parts.iter().map(|(id, _)| *id).collect();
    let graph: serde_json::Map<String, Value> = parts
        .iter()
        .map(|(id, on)| ((*id).to_owned(), json!(on)))
        .collect();
    json!({
        "handoff_type": "planning_to_execution",
        "timestamp": "2026-03-02T06:40:00Z",
        "from_agent": "task-orchestrator",
        "to_agent": "execution-guardian",
        "data": {
            "parent_task_id": parent,
            "subtask_ids": ids,
            "dependency_graph": graph,
            "execution_order": ids,
            "parallel_groups": [],
        },
    })
}

/// A part is done.
pub(crate) fn done(parent: &str, part: &str) -> String {
    json!({
        "handoff_type": "execution_to_planning",
        "timestamp": "2026-03-02T07:20:00Z",
        "from_agent": "execution-guardian",
        "to_agent": "task-orchestrator",
        "data": {
            "completed_task_id": part,
            "parent_task_id": parent,
            "execution_metrics": {
                "duration": format!("{} minutes", 10 + part.len()),
                "confidence_final": 0.95,
                "gates_passed": ["valve closes"],
                "checkpoints_created": 2,
            },
        },
    })
    .to_string()
}

/// Task 021 in three parts: `021_2` and `021_3` wait for `021_1`.
fn three_parts() -> Value {
    let mut plan = plan(
        "021",
        &[("021_1", &[]), ("021_2", &["021_1"]), ("021_3", &["021_1"])],
    );
    plan["data"]["parallel_groups"] = json!([["021_2", "021_3"]]);
    plan
}

/// A ledger in which 021 and 022 were handed over; 021 is worked on.
pub(crate) fn begun() -> TestEnvironment {
    let env = with_protocol("task-breakdown");
    sent(&env, environment(&[("021", 8.0), ("022", 7.5)]));
    run(&env, "claim environment.1 --as task-orchestrator");
    env
}

/// The same, with 021 broken down in three parts: handoffs 3, 4 and 5.
pub(crate) fn broken_down() -> TestEnvironment {
    let env = begun();
    sent(&env, three_parts().to_string());
    env
}

/// The same, with the first part done and reported by handoff 6.
fn first_done() -> TestEnvironment {
    let env = broken_down();
    run(&env, "claim environment.3 --as execution-guardian");
    sent(&env, done("021", "021_1"));
    env
}

/// `task state handoff`, one line for each task.
fn tasks(env: &TestEnvironment) -> Vec<String> {
    let data = env.data(&["status", KEY]);
    let tasks = data["record"]["tasks"].as_array().unwrap();
    let line = |t: &Value| {
        let text = |key: &str| t[key].as_str().unwrap().to_owned();
        format!("{} {} {}", text("id"), text("state"), text("handoff"))
    };
    tasks.iter().map(line).collect()
}

/// The orchestrator takes these reports up.
#[track_caller]
fn taken_up(env: &TestEnvironment, reports: &[&str]) {
    for id in reports {
        run(env, &format!("claim {id} --as task-orchestrator"));
        run(env, &format!("complete {id} --as task-orchestrator"));
    }
}

fn issue_status(env: &TestEnvironment) -> String {
    let data = env.data(&["status", KEY]);
    data["issue"]["status"].as_str().unwrap().to_owned()
}

/// The handoffs that one waits for.
fn waits(env: &TestEnvironment, id: &str) -> Value {
    record(env, id)["waits_for"].take()
}

#[test]
fn an_environment_opens_a_handoff_for_each_task() {
    let env = with_protocol("task-breakdown");
    let data = sent(
        &env,
        environment(&[("021", 8.0), ("022", 7.5), ("023", 2.0)]),
    );
    assert_eq!(data["handoff"]["id"], "environment.1");
    let log = run(&env, "log environment").stdout;
    assert!(
        log.ends_with("; with environment.2, environment.3\n"),
        "{log}"
    );
    assert_eq!(
        states(&env, KEY),
        [
            "1 pending with task-orchestrator",
            "2 pending with task-orchestrator",
            "3 pending with task-orchestrator"
        ]
    );
    assert_eq!(
        tasks(&env),
        [
            "021 pending environment.1",
            "022 pending environment.2",
            "023 pending environment.3"
        ]
    );
    assert_eq!(commits(&env), 2);
    assert_eq!(
        trailers(&env, "Transition"),
        [
            "environment.1 none..pending",
            "environment.2 none..pending",
            "environment.3 none..pending"
        ]
    );
    // One contract, and a record of each task that it hands over.
    let digests: BTreeSet<String> = (1..=3)
        .map(|n| record(&env, &format!("environment.{n}"))["contract"]["sha256"].to_string())
        .collect();
    assert_eq!(digests.len(), 1);
    assert_eq!(record(&env, "environment.2")["task"]["id"], "022");
    // Once more is a repeat.
    let again = sent(
        &env,
        environment(&[("021", 8.0), ("022", 7.5), ("023", 2.0)]),
    );
    assert_eq!(again["repeated"], true);
    assert_eq!(commits(&env), 2);
    env.assert_sound();
}

#[test]
fn a_task_stands_as_its_handoff_does() {
    let env = begun();
    run(
        &env,
        "fail environment.1 --as task-orchestrator --message stuck",
    );
    let status = env.handoff(&["status", KEY]).shown;
    let lines: Vec<&str> = status
        .lines()
        .filter(|line| line.contains("task 0"))
        .collect();
    assert_eq!(
        lines,
        [
            "  task 021: failed (environment.1)",
            "  task 022: pending (environment.2)"
        ]
    );
    run(
        &env,
        "cancel environment.2 --as task-orchestrator --reason scrapped",
    );
    let stands = ["021 failed environment.1", "022 cancelled environment.2"];
    assert_eq!(tasks(&env), stands);
    env.assert_sound();
}

#[test]
fn tasks_that_are_not_hard_need_no_breakdown() {
    let env = with_protocol("task-breakdown");
    let easy = refused(&env, &[], environment(&[("021", 6.9), ("022", 3.0)]));
    assert_eq!(easy.says(), (3, "contract_refused"));
    assert!(easy.codes().contains(&"gate.data_integrity"), "{easy:?}");
    assert!(
        easy.findings
            .iter()
            .any(|f| f.contains("/data/difficulties")),
        "{easy:?}"
    );
    let unequal = environment(&[("021", 8.0)]).replace("[8.0]", "[8.0, 9.0]");
    let unequal = refused(&env, &["--issue", KEY], unequal);
    assert_eq!(unequal.codes(), ["gate.data_integrity", "task.count"]);
    sent(&env, environment(&[("021", 6.9), ("022", 7.0)]));
    env.assert_sound();
}

#[test]
fn a_plan_opens_a_handoff_for_each_part_with_what_it_waits_for() {
    let env = begun();
    let data = sent(&env, three_parts().to_string());
    assert_eq!(data["handoff"]["id"], "environment.3");
    assert_eq!(
        states(&env, KEY),
        [
            "1 in_progress with task-orchestrator",
            "2 pending with task-orchestrator",
            "3 pending with execution-guardian",
            "4 pending with execution-guardian",
            "5 pending with execution-guardian"
        ]
    );
    assert_eq!(
        tasks(&env),
        [
            "021 broken_down environment.1",
            "022 pending environment.2",
            "021_1 pending environment.3",
            "021_2 pending environment.4",
            "021_3 pending environment.5"
        ]
    );
    assert_eq!(waits(&env, "environment.3"), Value::Null);
    for id in ["environment.4", "environment.5"] {
        assert_eq!(waits(&env, id), json!(["environment.3"]));
        let early = refused_command(&env, &format!("claim {id} --as execution-guardian"));
        assert_eq!(early.says(), (4, "waits"));
        assert_eq!(early.message, format!("{id} waits for environment.3"));
    }
    // The next one is the one that can be begun, and there is only one.
    let shown = run(&env, "inbox --as execution-guardian").stdout;
    let rows: Vec<&str> = shown.lines().collect();
    assert!(rows[0].starts_with("environment.3  pending"), "{shown}");
    for row in [rows[1], rows[2]] {
        assert!(row.contains("waits for environment.3: "), "{shown}");
    }
    let next = env.data(&["claim", "--next", "--as", "execution-guardian"]);
    assert_eq!(next["handoff"]["id"], "environment.3");
    let none = refused_command(&env, "claim --next --as execution-guardian");
    assert_eq!(none.says(), (6, "nothing_to_claim"));
    let nobody = refused_command(&env, "claim --next --as execution-guard");
    assert_eq!(nobody.says(), (4, "unknown_agent"));
    env.assert_sound();
}

#[test]
fn parts_of_a_group_are_in_progress_at_once_and_the_right_one_is_completed() {
    let env = first_done();
    assert_eq!(waits(&env, "environment.4"), Value::Null);
    assert_eq!(waits(&env, "environment.5"), Value::Null);
    for id in ["environment.4", "environment.5"] {
        run(&env, &format!("claim {id} --as execution-guardian"));
    }
    assert_eq!(
        tasks(&env)[3..],
        [
            "021_2 in_progress environment.4",
            "021_3 in_progress environment.5"
        ]
    );
    // The older of the two, while the newer is held too; then the other order.
    let data = sent(&env, done("021", "021_2"));
    assert_eq!(data["handoff"]["id"], "environment.7");
    assert_eq!(
        trailers(&env, "Transition"),
        [
            "environment.4 in_progress..completed",
            "environment.7 none..pending"
        ]
    );
    assert_eq!(record(&env, "environment.7")["task"]["id"], "021_2");
    assert_eq!(record(&env, "environment.7")["follows"], "environment.4");
    assert_eq!(
        tasks(&env)[3..],
        [
            "021_2 completed environment.4",
            "021_3 in_progress environment.5"
        ]
    );
    env.assert_sound();
}

#[test]
fn the_parent_completes_when_its_last_report_is_taken_up() {
    let env = first_done();
    for (id, part) in [("environment.4", "021_2"), ("environment.5", "021_3")] {
        run(&env, &format!("claim {id} --as execution-guardian"));
        sent(&env, done("021", part));
    }
    let parts = json!(["environment.6", "environment.7", "environment.8"]);
    assert_eq!(record(&env, "environment.1")["parts"], parts);
    taken_up(&env, &["environment.8", "environment.6"]);
    assert_eq!(tasks(&env)[0], "021 broken_down environment.1");
    taken_up(&env, &["environment.7"]);
    assert_eq!(tasks(&env)[0], "021 completed environment.1");
    assert_eq!(
        trailers(&env, "Transition"),
        [
            "environment.7 in_progress..completed",
            "environment.1 in_progress..completed"
        ]
    );
    assert_eq!(trailers(&env, "Handoff-Id"), ["environment.7"]);
    let parent = record(&env, "environment.1");
    assert_eq!(parent["parts"], Value::Null);
    let last = parent["transitions"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["event"], &last["sent"]),
        (&json!("complete"), &json!("environment.7"))
    );
    // The other task is as it was, and the issue goes on.
    assert_eq!(tasks(&env)[1], "022 pending environment.2");
    assert_eq!(issue_status(&env), "open");
    run(&env, "claim environment.2 --as task-orchestrator");
    env.assert_sound();
}

#[test]
fn an_issue_ends_when_its_last_report_is_taken_up_and_goes_on_with_new_tasks() {
    let env = with_protocol("task-breakdown");
    sent(&env, environment(&[("021", 8.0)]));
    run(&env, "claim environment.1 --as task-orchestrator");
    sent(&env, plan("021", &[("021_1", &[])]).to_string());
    run(&env, "claim environment.2 --as execution-guardian");
    sent(&env, done("021", "021_1"));
    assert_eq!(issue_status(&env), "open");
    env.handoff(&["gate", KEY]).exits(1);
    env.handoff(&["wait", KEY, "--timeout", "0s"]).exits(7);
    let before = commits(&env);
    taken_up(&env, &["environment.3"]);
    // It ends in the commit that completes the report and the parent.
    assert_eq!(commits(&env), before + 2);
    assert_eq!(issue_status(&env), "completed");
    let issue = stored_issue(&env.data(&["status", KEY]));
    assert_eq!(issue["completed_at"], issue["updated_at"]);
    assert_eq!(issue["unfollowed"], Value::Null);
    env.handoff(&["gate", KEY]).success();
    env.handoff(&["wait", KEY, "--timeout", "0s"]).success();
    #[cfg(feature = "report")]
    {
        let metrics = env.data(&["metrics"]);
        assert_eq!(metrics["figures"]["issues"]["completed"], 1, "{metrics:#}");
    }
    // What its log tells afterwards does not open it again; another environment does.
    let more = plan("021", &[("021_2", &[])]);
    let late = refused(&env, &["--issue", KEY], more.to_string());
    assert_eq!(late.says(), (4, "issue_completed"));
    sent(&env, environment(&[("031", 9.0)]));
    let issue = stored_issue(&env.data(&["status", KEY]));
    assert_eq!(
        (&issue["status"], &issue["completed_at"]),
        (&json!("open"), &Value::Null)
    );
    env.handoff(&["gate", KEY]).exits(1);
    run(&env, "claim environment.4 --as task-orchestrator");
    run(&env, "complete environment.4 --as task-orchestrator");
    assert_eq!(issue_status(&env), "completed");
    env.assert_sound();
}

#[test]
fn what_was_given_up_does_not_end_an_issue() {
    for give_up in [
        "cancel environment.1 --as task-orchestrator --reason scrapped",
        "reject environment.1 --as task-orchestrator --reason easy",
    ] {
        let env = with_protocol("task-breakdown");
        sent(&env, environment(&[("021", 8.0)]));
        run(&env, give_up);
        assert_eq!(issue_status(&env), "open");
        env.handoff(&["wait", KEY, "--timeout", "0s"]).exits(1);
        env.assert_sound();
    }
}

#[test]
fn a_parent_is_not_ended_while_its_parts_run() {
    let env = first_done();
    let parts = json!(["environment.4", "environment.5", "environment.6"]);
    assert_eq!(record(&env, "environment.1")["parts"], parts);
    for line in [
        "complete environment.1 --as task-orchestrator",
        "fail environment.1 --as task-orchestrator --code AWAY --reason storm",
        "block environment.1 --as task-orchestrator --reason which",
    ] {
        let refused = refused_command(&env, line);
        assert_eq!(refused.says(), (4, "parts_run"), "{line}");
        assert_eq!(
            refused.message,
            "environment.1 waits for its parts: environment.4, environment.5, environment.6"
        );
        let hint =
            "it is completed when the last report on them is; see `git handoff status environment`";
        assert_eq!(refused.hint, hint);
    }
    let shown = run(&env, "show environment.1").stdout;
    assert!(
        shown.contains("parts     environment.4, environment.5, environment.6"),
        "{shown}"
    );
    let shown = run(&env, "status environment").stdout;
    let line = "its parts run (environment.4, environment.5, environment.6)";
    assert!(shown.contains(line), "{shown}");
    env.assert_sound();
}

#[cfg(feature = "agents")]
#[test]
fn a_parent_whose_parts_run_is_not_work_to_hand_on() {
    let env = broken_down();
    let page = run(&env, "prime --as task-orchestrator").stdout;
    let line = "environment.1 from environment-architect, worker repo, its parts run: environment.3, environment.4, environment.5";
    assert!(page.contains(line), "{page}");
    let held = env.data(&["prime", "--as", "task-orchestrator"])["holds"].take();
    assert_eq!(held["count"], 0);
    run(&env, "claim environment.3 --as execution-guardian");
    let stop = |agent: &str| {
        let args = ["agents", "hook", "claude-code", "stop", "--as", agent];
        env.handoff_with(&args, "{\"stop_hook_active\": false}")
            .success()
            .stdout
    };
    assert_eq!(stop("task-orchestrator"), "");
    let kept = stop("execution-guardian");
    assert!(kept.contains("still hold environment.3"), "{kept}");
    env.assert_sound();
}

#[test]
fn cancelling_a_parent_cancels_its_parts() {
    let env = first_done();
    run(&env, "claim environment.4 --as execution-guardian");
    let before = commits(&env);
    let shown = run(
        &env,
        "cancel environment.1 --as task-orchestrator --reason scrapped",
    );
    assert_eq!(commits(&env), before + 1);
    let parts = [
        "environment.4 in_progress..cancelled",
        "environment.5 pending..cancelled",
        "environment.6 pending..cancelled",
    ];
    for part in parts {
        assert!(shown.stdout.contains(part), "{}", shown.shown);
    }
    let changes = trailers(&env, "Transition");
    assert_eq!(changes[0], "environment.1 in_progress..cancelled");
    assert_eq!(changes[1..], parts);
    assert_eq!(record(&env, "environment.1")["parts"], Value::Null);
    for id in ["environment.1", "environment.4", "environment.6"] {
        let transitions = record(&env, id)["transitions"].take();
        let last = transitions.as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["reason"], "scrapped", "{id}");
    }
    // The holder of a part is refused when it goes on.
    let late = refused(&env, &[], done("021", "021_2"));
    assert_eq!(late.says(), (4, "not_held"));
    assert_eq!(issue_status(&env), "open");
    env.assert_sound();
}

#[cfg(feature = "agents")]
#[test]
fn a_report_is_taken_note_of_by_completing_it() {
    let env = first_done();
    let data = env.data(&["list", "--type", "execution-to-planning"]);
    let report = data["handoffs"][0]["id"].as_str().unwrap().to_owned();
    let claimed = env.data(&["claim", &report, "--as", "task-orchestrator"]);
    let next = claimed["next"][0].as_str().unwrap();
    assert_eq!(
        next,
        format!("git handoff complete {report} --as task-orchestrator")
    );
    let primed = env.data(&["prime", "--as", "task-orchestrator"]);
    assert_eq!(primed["commands"][2], next);
    run(&env, next.strip_prefix("git handoff ").unwrap());
    env.assert_sound();
}

#[test]
fn a_part_is_completed_by_its_report() {
    let env = broken_down();
    run(&env, "claim environment.3 --as execution-guardian");
    let bare = refused_command(&env, "complete environment.3 --as execution-guardian");
    assert_eq!(bare.says(), (4, "needs_report"));
    assert_eq!(
        bare.message,
        "environment.3 is a part of task 021, and is completed with a report on it"
    );
    let command = "git handoff new --issue environment --from execution-guardian --to task-orchestrator --type execution-to-planning";
    assert!(bare.hint.contains(command), "{}", bare.hint);
    run(&env, command.strip_prefix("git handoff ").unwrap());
    sent(&env, done("021", "021_1"));
    assert_eq!(record(&env, "environment.3")["state"], "completed");
    assert_eq!(record(&env, "environment.6")["follows"], "environment.3");
    env.assert_sound();
}

/// A plan with one change.
fn but(change: impl Fn(&mut Value)) -> String {
    let mut plan = three_parts();
    change(&mut plan["data"]);
    plan.to_string()
}

#[test]
fn a_plan_that_does_not_fit_together_is_refused_with_its_gate() {
    let env = begun();
    env.pace(0);
    let table: Vec<(&str, String)> = vec![
        (
            "unknown dependency",
            but(|d| d["dependency_graph"]["021_3"] = json!(["021_9"])),
        ),
        (
            "cycle",
            but(|d| d["dependency_graph"]["021_1"] = json!(["021_3"])),
        ),
        (
            "on itself",
            but(|d| d["dependency_graph"]["021_1"] = json!(["021_1"])),
        ),
        (
            "duplicate",
            but(|d| d["subtask_ids"] = json!(["021_1", "021_1", "021_2", "021_3"])),
        ),
        (
            "duplicate in the order",
            but(|d| d["execution_order"] = json!(["021_1", "021_2", "021_1", "021_3"])),
        ),
        (
            "orphan in the order",
            but(|d| d["execution_order"] = json!(["021_1", "021_2", "021_3", "021_4"])),
        ),
        (
            "no place in the order",
            but(|d| d["execution_order"] = json!(["021_1", "021_2"])),
        ),
        (
            "orphan in a group",
            but(|d| d["parallel_groups"] = json!([["021_2", "021_7"]])),
        ),
        (
            "orphan in the graph",
            but(|d| d["dependency_graph"]["021_8"] = json!([])),
        ),
        (
            "dependent in a group",
            but(|d| d["parallel_groups"] = json!([["021_1", "021_2"]])),
        ),
        (
            "wrong order",
            but(|d| d["execution_order"] = json!(["021_2", "021_1", "021_3"])),
        ),
        (
            "unknown parent",
            but(|d| d["parent_task_id"] = json!("031")),
        ),
        (
            "nothing to hand over",
            but(|d| d["subtask_ids"] = json!([])),
        ),
        (
            "missing graph",
            but(|d| {
                d.as_object_mut().unwrap().remove("dependency_graph");
            }),
        ),
        (
            "route",
            three_parts()
                .to_string()
                .replace("\"execution-guardian\"", "\"environment-architect\""),
        ),
        (
            "agent",
            three_parts()
                .to_string()
                .replace("\"task-orchestrator\"", "\"task-planner\""),
        ),
        (
            "pending parent",
            but(|d| d["parent_task_id"] = json!("022")),
        ),
    ];
    let mut text = String::new();
    for (name, contract) in table {
        let refused = refused(&env, &["--issue", KEY], &contract);
        let (exit, code) = refused.says();
        text += &format!("{name}: {exit} {code}\n");
        for finding in &refused.findings {
            text += &format!("  {finding}\n");
        }
    }
    insta::assert_snapshot!(text, @r#"
    unknown dependency: 4 tasks_refused
      task.unknown_dependency /data/dependency_graph: "021_3" depends on "021_9", which is unknown
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
    cycle: 3 contract_refused
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
      task.cycle /data/dependency_graph: the tasks wait for one another: 021_1 → 021_3 → 021_1
    on itself: 3 contract_refused
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
      task.cycle /data/dependency_graph: the tasks wait for one another: 021_1 → 021_1
    duplicate: 3 contract_refused
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
      field.invalid /data/subtask_ids: the list holds the same item twice
    duplicate in the order: 3 contract_refused
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
      field.invalid /data/execution_order: the list holds the same item twice
    orphan in the order: 3 contract_refused
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
      task.orphan /data/execution_order: "021_4" is not among the tasks that are handed over
    no place in the order: 3 contract_refused
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
      task.orphan /data/execution_order: "021_3" has no place in the order
    orphan in a group: 3 contract_refused
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
      task.orphan /data/parallel_groups: "021_7" is not among the tasks that are handed over
    orphan in the graph: 3 contract_refused
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
      task.orphan /data/dependency_graph: "021_8" has dependencies, and is not handed over
    dependent in a group: 3 contract_refused
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
      task.group /data/parallel_groups: "021_2" depends on "021_1", and can't be done at the same time
    wrong order: 3 contract_refused
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
      task.order /data/execution_order: "021_2" comes before "021_1", which it depends on
    unknown parent: 4 tasks_refused
      task.orphan /data/parent_task_id: no task "031" was handed over in this issue
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
    nothing to hand over: 3 contract_refused
      gate.data_integrity: the gate is not passed: 1 fault, listed beside this
      gate.no_orphaned_tasks: the gate is not passed: 3 faults, listed beside this
      field.length /data/subtask_ids: the list is empty
      task.orphan /data/dependency_graph: "021_1" has dependencies, and is not handed over
      task.orphan /data/execution_order: "021_1" is not among the tasks that are handed over
      task.orphan /data/parallel_groups: "021_2" is not among the tasks that are handed over
    missing graph: 3 contract_refused
      gate.required_fields: the gate is not passed: 1 fault, listed beside this
      field.missing /data/dependency_graph: `dependency_graph` is missing
    route: 4 route_refused
      route.unknown /to_agent: protocol task-breakdown has no route from task-orchestrator to environment-architect
      gate.valid_transition: the gate is not passed: 1 fault, listed beside this
    agent: 3 contract_refused
      agent.unknown /from_agent: "task-planner" is not an agent of protocol task-breakdown
      gate.valid_transition: the gate is not passed: 1 fault, listed beside this
    pending parent: 4 tasks_refused
      task.state /data/parent_task_id: task "022" is pending with task-orchestrator: task-orchestrator does not work on it
      gate.state_consistency: the gate is not passed: 1 fault, listed beside this
    "#);
    env.assert_sound();
}

#[test]
fn what_a_contract_says_of_tasks_must_be_where_they_stand() {
    let env = first_done();
    env.pace(0);
    run(&env, "claim environment.4 --as execution-guardian");
    run(&env, "claim environment.2 --as task-orchestrator");
    let mut text = String::new();
    let mut told = |name: &str, contract: &str| {
        let refused = refused(&env, &[], contract);
        let (exit, code) = refused.says();
        text += &format!("{name}: {exit} {code}\n");
        for finding in &refused.findings {
            text += &format!("  {finding}\n");
        }
        // The check says the same before anything is sent.
        let check = env.handoff_with(&["check", "-", "--json"], contract);
        assert_eq!(check.status, exit, "{}", check.shown);
        let mut findings = Refused::of(&check).findings;
        findings.sort();
        let mut sent = refused.findings;
        sent.sort();
        assert_eq!(findings, sent, "{name}");
    };
    told("a part that waits to be claimed", &done("021", "021_3"));
    let reported = done("021", "021_1").replace("0.95", "0.9");
    told("a part that was reported", &reported);
    told("a part that nobody knows", &done("021", "021_4"));
    told("a part of another task", &done("022", "021_2"));
    told("a part of a task that nobody knows", &done("031", "031_1"));
    let mut again = three_parts();
    again["data"]["dependency_graph"]["021_2"] = json!([]);
    told("parts that are done and worked on", &again.to_string());
    let part = plan("021_2", &[("021_2_1", &[])]);
    told("parts of a part", &part.to_string());
    run(&env, "claim environment.5 --as execution-guardian");
    for part in ["021_2", "021_3"] {
        sent(&env, done("021", part));
    }
    taken_up(&env, &["environment.6", "environment.7", "environment.8"]);
    let late = plan("021", &[("021_4", &[])]);
    told("parts of what is done", &late.to_string());
    insta::assert_snapshot!(text, @r#"
    a part that waits to be claimed: 4 tasks_refused
      task.state /data/completed_task_id: task "021_3" is pending with execution-guardian: execution-guardian does not work on it
      gate.state_consistency: the gate is not passed: 1 fault, listed beside this
    a part that was reported: 4 tasks_refused
      task.state /data/completed_task_id: task "021_1" is completed already
      gate.state_consistency: the gate is not passed: 1 fault, listed beside this
    a part that nobody knows: 4 tasks_refused
      task.orphan /data/completed_task_id: no task "021_4" was handed over under its parent
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
    a part of another task: 4 tasks_refused
      task.orphan /data/completed_task_id: no task "021_2" was handed over under its parent
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
    a part of a task that nobody knows: 4 tasks_refused
      task.orphan /data/parent_task_id: no task "031" was handed over in this issue
      task.orphan /data/completed_task_id: no task "031_1" was handed over under its parent
      gate.no_orphaned_tasks: the gate is not passed: 2 faults, listed beside this
    parts that are done and worked on: 4 tasks_refused
      task.state /data/subtask_ids: task "021_1" is completed already
      task.state /data/subtask_ids: task "021_2" is in_progress already
      gate.state_consistency: the gate is not passed: 2 faults, listed beside this
    parts of a part: 4 tasks_refused
      task.orphan /data/parent_task_id: no task "021_2" was handed over in this issue
      gate.no_orphaned_tasks: the gate is not passed: 1 fault, listed beside this
    parts of what is done: 4 tasks_refused
      task.state /data/parent_task_id: task "021" is completed
      gate.state_consistency: the gate is not passed: 1 fault, listed beside this
    "#);
    env.assert_sound();
}

#[test]
fn nothing_moves_before_the_acknowledgment() {
    let env = with_protocol("task-breakdown");
    sent(&env, environment(&[("021", 8.0)]));
    // Its sender has let go of it, its receiver has not taken it yet.
    let early = refused(&env, &["--issue", KEY], three_parts().to_string());
    assert_eq!(early.says(), (4, "not_claimed"));
    assert_eq!(early.codes(), ["gate.valid_transition"]);
    assert_eq!(tasks(&env), ["021 pending environment.1"]);
    let stranger = refused_command(&env, "claim environment.1 --as execution-guardian");
    assert_eq!(stranger.says(), (4, "not_yours"));
    run(&env, "claim environment.1 --as task-orchestrator");
    assert_eq!(tasks(&env), ["021 in_progress environment.1"]);
    sent(&env, three_parts().to_string());
    let early = refused(&env, &["--issue", KEY], done("021", "021_1"));
    assert_eq!(early.says(), (4, "not_claimed"));
    env.assert_sound();
}

/// Who works on which task right now.
fn at_work(env: &TestEnvironment) -> Vec<(String, String)> {
    let data = env.data(&["list", "--issue", KEY, "--state", "in_progress"]);
    let handoffs = data["handoffs"].as_array().unwrap();
    let pair = |h: &Value| {
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        (text(&h["record"]["task"]["id"]), text(&h["to"]))
    };
    handoffs.iter().map(pair).collect()
}

#[test]
fn a_task_is_in_one_pair_of_hands() {
    let env = with_protocol("task-breakdown");
    let steps: Vec<Result<String, &str>> = vec![
        Ok(environment(&[("021", 8.0)])),
        Err("claim environment.1 --as task-orchestrator"),
        Ok(three_parts().to_string()),
        Err("claim environment.2 --as execution-guardian"),
        Ok(done("021", "021_1")),
        Err("claim environment.5 --as task-orchestrator"),
        Err("claim environment.3 --as execution-guardian"),
        Err("complete environment.5 --as task-orchestrator"),
        Err("fail environment.3 --as execution-guardian --reason stuck"),
        Err("retry environment.3 --as task-orchestrator --reason greased"),
        Err("claim environment.3 --as execution-guardian"),
        Ok(done("021", "021_2")),
        Err("claim environment.4 --as execution-guardian"),
        Ok(done("021", "021_3")),
        Err("claim environment.6 --as task-orchestrator"),
        Err("complete environment.6 --as task-orchestrator"),
        Err("claim environment.7 --as task-orchestrator"),
        Err("complete environment.7 --as task-orchestrator"),
    ];
    for step in steps {
        match step {
            Ok(contract) => drop(sent(&env, contract)),
            Err(line) => drop(run(&env, line)),
        }
        let work = at_work(&env);
        let tasks: BTreeSet<&String> = work.iter().map(|(task, _)| task).collect();
        assert_eq!(tasks.len(), work.len(), "{work:?}");
    }
    assert_eq!(at_work(&env), []);
    env.assert_sound();
}

#[test]
fn a_new_plan_takes_the_place_of_what_still_waits() {
    let env = first_done();
    // The report on the first part is in hand when the plan changes.
    run(&env, "claim environment.6 --as task-orchestrator");
    let change = plan("021", &[("021_3", &[]), ("021_4", &["021_3"])]);
    let data = sent(&env, change.to_string());
    assert_eq!(data["handoff"]["id"], "environment.7");
    let mut changes = trailers(&env, "Transition");
    changes.sort();
    assert_eq!(
        changes,
        [
            "environment.5 pending..cancelled",
            "environment.6 in_progress..completed",
            "environment.7 none..pending",
            "environment.8 none..pending"
        ]
    );
    assert_eq!(
        tasks(&env),
        [
            "021 broken_down environment.1",
            "022 pending environment.2",
            "021_1 completed environment.3",
            "021_2 pending environment.4",
            "021_3 pending environment.7",
            "021_4 pending environment.8"
        ]
    );
    let gone = refused_command(&env, "claim environment.5 --as execution-guardian");
    assert_eq!(gone.says(), (4, "illegal_transition"));
    for (id, part) in [("environment.7", "021_3"), ("environment.8", "021_4")] {
        run(&env, &format!("claim {id} --as execution-guardian"));
        sent(&env, done("021", part));
        assert_eq!(tasks(&env)[0], "021 broken_down environment.1");
    }
    run(&env, "claim environment.4 --as execution-guardian");
    sent(&env, done("021", "021_2"));
    taken_up(&env, &["environment.9", "environment.10", "environment.11"]);
    assert_eq!(tasks(&env)[0], "021 completed environment.1");
    env.assert_sound();
}

#[test]
fn what_waited_for_a_part_waits_for_its_new_handoff() {
    let env = broken_down();
    // 021_1 is planned again; 021_2 and 021_3 stay as they were planned.
    let again = plan("021", &[("021_1", &[])]);
    let data = sent(&env, again.to_string());
    assert_eq!(data["handoff"]["id"], "environment.6");
    assert_eq!(waits(&env, "environment.4"), json!(["environment.6"]));
    run(&env, "claim environment.6 --as execution-guardian");
    sent(&env, done("021", "021_1"));
    run(&env, "claim environment.4 --as execution-guardian");
    env.assert_sound();
}

#[test]
fn a_new_plan_may_build_on_what_is_done_and_what_waits() {
    let env = first_done();
    let more = plan("021", &[("021_5", &["021_1", "021_2"])]);
    sent(&env, more.to_string());
    // Of the two, only one is still to come.
    assert_eq!(waits(&env, "environment.7"), json!(["environment.4"]));
    env.assert_sound();
}

#[test]
fn a_new_plan_must_not_make_parts_wait_for_one_another() {
    let env = broken_down();
    // 021_2 waits for 021_1, which was planned before.
    let circle = plan("021", &[("021_1", &["021_2"])]);
    let circle = refused(&env, &[], circle.to_string());
    assert_eq!(circle.says(), (4, "tasks_refused"));
    assert_eq!(circle.codes(), ["task.cycle", "gate.data_integrity"]);
    env.assert_sound();
}

#[test]
fn a_part_that_failed_is_tried_again_while_its_parent_waits() {
    let env = first_done();
    run(&env, "claim environment.5 --as execution-guardian");
    sent(&env, done("021", "021_3"));
    run(&env, "claim environment.4 --as execution-guardian");
    let failed = "fail environment.4 --as execution-guardian --code LEAK --reason dripping";
    run(&env, failed);
    assert_eq!(tasks(&env)[0], "021 broken_down environment.1");
    assert_eq!(tasks(&env)[3], "021_2 failed environment.4");
    let early = refused_command(&env, "complete environment.1 --as task-orchestrator");
    assert_eq!(early.says(), (4, "parts_run"));
    assert_eq!(
        early.message,
        "environment.1 waits for its parts: environment.4, environment.6, environment.7"
    );
    let early = refused(&env, &["--issue", KEY], done("021", "021_2"));
    assert_eq!(early.says(), (4, "not_working"));
    let shown = run(&env, "inbox --as task-orchestrator").stdout;
    assert!(shown.contains("! environment.4 failed"), "{shown}");
    run(
        &env,
        "retry environment.4 --as task-orchestrator --reason sealed",
    );
    assert_eq!(record(&env, "environment.4")["attempt"], 2);
    run(&env, "claim environment.4 --as execution-guardian");
    sent(&env, done("021", "021_2"));
    taken_up(&env, &["environment.6", "environment.7", "environment.8"]);
    assert_eq!(tasks(&env)[0], "021 completed environment.1");
    env.assert_sound();
}

#[test]
fn a_part_that_is_turned_down_keeps_its_parent_open_until_it_is_planned_again() {
    let env = first_done();
    run(
        &env,
        "reject environment.4 --as execution-guardian --reason unclear",
    );
    run(&env, "claim environment.5 --as execution-guardian");
    sent(&env, done("021", "021_3"));
    assert_eq!(tasks(&env)[0], "021 broken_down environment.1");
    let again = plan("021", &[("021_2", &[])]);
    let data = sent(&env, again.to_string());
    let id = data["handoff"]["id"].as_str().unwrap().to_owned();
    run(&env, &format!("claim {id} --as execution-guardian"));
    sent(&env, done("021", "021_2"));
    taken_up(&env, &["environment.6", "environment.7", "environment.9"]);
    assert_eq!(tasks(&env)[0], "021 completed environment.1");
    env.assert_sound();
}

#[test]
fn a_parent_whose_parts_were_all_given_up_is_completed_by_hand() {
    let env = broken_down();
    for id in ["environment.5", "environment.4", "environment.3"] {
        run(
            &env,
            &format!("cancel {id} --as task-orchestrator --reason scrapped"),
        );
    }
    assert_eq!(tasks(&env)[0], "021 broken_down environment.1");
    // Its holder waits for nothing any more. Once nothing else moves, it is told.
    let attention = || env.data(&["status", KEY])["attention"].clone();
    assert_eq!(attention(), json!([]));
    run(
        &env,
        "cancel environment.2 --as environment-architect --reason scrapped",
    );
    let told = attention();
    assert!(
        told.to_string().contains("\"turn\":\"task-orchestrator\""),
        "{told}"
    );
    run(
        &env,
        "complete environment.1 --as task-orchestrator --reason scrapped",
    );
    assert_eq!(tasks(&env)[0], "021 completed environment.1");
    env.assert_sound();
}

#[test]
fn what_waits_for_a_cancelled_part_is_planned_again() {
    let env = broken_down();
    run(
        &env,
        "cancel environment.3 --as task-orchestrator --reason scrapped",
    );
    let stuck = refused_command(&env, "claim environment.4 --as execution-guardian");
    assert_eq!(stuck.says(), (4, "waits"));
    // The orchestrator is told at once, and by name.
    let next = env.data(&["next", KEY]);
    assert_eq!(
        (&next["agent"], &next["handoff"]["id"], &next["why"]),
        (
            &json!("task-orchestrator"),
            &json!("environment.4"),
            &json!(
                "environment.4 waits for environment.3, which is cancelled: plan its task again, or cancel it"
            )
        )
    );
    let commands = json!([
        "git handoff new --issue environment --from task-orchestrator --to execution-guardian",
        "git handoff cancel environment.4 --as task-orchestrator --reason WHY",
    ]);
    assert_eq!(next["commands"], commands);
    // A new plan says what comes before it now.
    let again = plan("021", &[("021_2", &[]), ("021_3", &["021_2"])]);
    sent(&env, again.to_string());
    for (id, part) in [("environment.6", "021_2"), ("environment.7", "021_3")] {
        run(&env, &format!("claim {id} --as execution-guardian"));
        sent(&env, done("021", part));
    }
    taken_up(&env, &["environment.8", "environment.9"]);
    // The one that was given up is for its holder to decide about.
    assert_eq!(tasks(&env)[0], "021 broken_down environment.1");
    run(&env, "complete environment.1 --as task-orchestrator");
    env.assert_sound();
}

#[test]
fn of_many_guardians_one_gets_the_part() {
    let env = broken_down();
    let claim = |n: u32| {
        let line = format!("claim environment.3 --as execution-guardian --worker worker-{n}");
        line.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let before = commits(&env);
    let ended = at_once(&env, &(0..8).map(claim).collect::<Vec<_>>());
    let expected = [0, 5, 5, 5, 5, 5, 5, 5];
    assert_eq!(exits(&ended), expected, "{}", said(&ended));
    assert_eq!(commits(&env), before + 1);
    env.assert_sound();
}

#[test]
fn guardians_that_take_the_next_share_a_group() {
    let env = first_done();
    let next = vec!["claim", "--next", "--as", "execution-guardian", "--json"];
    let ended = at_once(&env, &vec![next; 5]);
    assert_eq!(exits(&ended), [0, 0, 6, 6, 6], "{}", said(&ended));
    let winners = ended.iter().filter(|o| o.status.success());
    let taken: BTreeSet<String> = winners
        .map(|o| serde_json::from_slice::<Value>(&o.stdout).unwrap())
        .map(|answer| answer["data"]["record"]["task"]["id"].to_string())
        .collect();
    let expected = [r#""021_2""#.to_owned(), r#""021_3""#.to_owned()];
    assert_eq!(taken, BTreeSet::from(expected));
    env.assert_sound();
}

#[test]
fn the_last_two_reports_at_once_complete_their_parent_once() {
    for round in 0..6 {
        let env = first_done();
        taken_up(&env, &["environment.6"]);
        for (id, part) in [("environment.4", "021_2"), ("environment.5", "021_3")] {
            run(&env, &format!("claim {id} --as execution-guardian"));
            sent(&env, done("021", part));
        }
        for id in ["environment.7", "environment.8"] {
            run(&env, &format!("claim {id} --as task-orchestrator"));
        }
        let orders = [
            ["environment.7", "environment.8"],
            ["environment.8", "environment.7"],
        ];
        let complete = |id| vec!["complete", id, "--as", "task-orchestrator"];
        let before = commits(&env);
        let ended = at_once(&env, &orders[round % 2].map(complete));
        assert_eq!(exits(&ended), [0, 0], "{}", said(&ended));
        assert_eq!(commits(&env), before + 2);
        assert_eq!(tasks(&env)[0], "021 completed environment.1");
        let transitions = record(&env, "environment.1")["transitions"].take();
        let completed = transitions.as_array().unwrap().iter();
        assert_eq!(completed.filter(|t| t["event"] == "complete").count(), 1);
        // The newest commit is the one that did it.
        let changes = trailers(&env, "Transition");
        let parent = "environment.1 in_progress..completed".to_owned();
        assert!(changes.contains(&parent), "{changes:?}");
        env.assert_sound();
    }
}

#[test]
fn the_state_of_a_task_says_whose_turn_it_is() {
    let env = with_protocol("task-breakdown");
    sent(&env, environment(&[("021", 8.0), ("022", 7.5)]));
    let mut text = String::new();
    let mut ask = |when: &str, args: &str| {
        let shown = run(&env, &format!("next environment{args}")).stdout;
        text += &format!("{when}{args}: {shown}");
    };
    let between = " --between execution-guardian,task-orchestrator";
    ask("handed over", " --task 021");
    ask("handed over", "");
    run(&env, "claim environment.1 --as task-orchestrator");
    sent(&env, three_parts().to_string());
    ask("broken down", " --task 021");
    ask("broken down", " --task 021_1");
    ask("broken down", "");
    ask("broken down", between);
    run(&env, "claim environment.3 --as execution-guardian");
    ask("part claimed", " --task 021_1");
    ask("part claimed", " --task 021_1 --between task-orchestrator");
    ask("part claimed", &format!(" --task 021_2{between}"));
    sent(&env, done("021", "021_1"));
    ask("part done", " --task 021_1");
    ask("part done", " --between operator,environment-architect");
    insta::assert_snapshot!(text, @"
    handed over --task 021: task-orchestrator with environment.1: the task is pending
    handed over: task-orchestrator with environment.1: no other agent can act
    broken down --task 021: execution-guardian with environment.3: no other agent can act
    broken down --task 021_1: execution-guardian with environment.3: no other agent can act
    broken down: task-orchestrator with environment.2: its phase, 2, is the lowest; execution-guardian yields
    broken down --between execution-guardian,task-orchestrator: task-orchestrator with environment.2: its phase, 2, is the lowest; execution-guardian yields
    part claimed --task 021_1: execution-guardian with environment.3: the task is in_progress
    part claimed --task 021_1 --between task-orchestrator: task-orchestrator: no other agent is named
    part claimed --task 021_2 --between execution-guardian,task-orchestrator: execution-guardian with environment.3: no other agent can act; task-orchestrator yields
    part done --task 021_1: task-orchestrator with environment.6: no other agent can act
    part done --between operator,environment-architect: environment-architect: its phase, 1, is the lowest; operator yields
    ");
    let none = refused_command(&env, "next environment --task 099");
    assert_eq!(none.says(), (6, "no_task"));
    let stranger = refused_command(&env, "next environment --between gardener");
    assert_eq!(stranger.says(), (4, "unknown_agent"));
    let data = env.data(&["next", "environment", "--task", "021_2"]);
    assert_eq!(data["agent"], "execution-guardian");
    env.assert_sound();
}

/// A skeleton with these words in the place of its marks, in order.
fn filled(env: &TestEnvironment, line: &str, words: &[&str]) -> String {
    let mut text = run(env, line).stdout;
    for word in words {
        let start = text.find("{{fill:").unwrap_or_else(|| panic!("{text}"));
        let end = start + text[start..].find("}}").unwrap() + 2;
        text.replace_range(start..end, word);
    }
    assert!(!text.contains("{{"), "{text}");
    text
}

/// The words of a report on a part, in the order of its skeleton's marks.
const VALVE_MOVED: [&str; 9] = [
    "A valve moved",
    "\"A valve\"",
    "95%",
    "25 minutes",
    "2",
    "0",
    "See what is left",
    "0.95",
    "25 minutes",
];

/// Every list tells the two parts apart, by their names and by what they are about.
fn each_part_is_named(env: &TestEnvironment) {
    for line in [
        "inbox --as execution-guardian",
        "list",
        "status",
        "list --issue environment",
    ] {
        let shown = run(env, line).stdout;
        for (part, about) in [
            ("021_1: ", "\"Open a valve\""),
            ("021_2: ", "\"Close it again\""),
        ] {
            let is_named = |row: &str| row.contains(part) && row.contains(about);
            assert!(shown.lines().any(is_named), "{line}: {shown}");
        }
    }
    #[cfg(feature = "agents")]
    for part in [
        r#": task "021_1", "\"Open a valve\""#,
        r#": task "021_2", "\"Close it again\""#,
    ] {
        run(env, "prime --as execution-guardian").says(part);
    }
}

#[test]
fn messages_carry_the_whole_way() {
    let env = with_protocol("task-breakdown");
    let to_planning = "new --issue environment --from environment-architect --to task-orchestrator --type environment-message";
    let bullets = "- Task 021: \"Water the ferns\" (difficulty: 8)";
    let words = [
        "The greenhouse stands",
        "greenhouse",
        "5",
        "valves, sensors",
        bullets,
        "Break 021 down",
        "021",
        "8",
        "greenhouse",
        "Rain is rare",
    ];
    let message = filled(&env, to_planning, &words).replace("\"8\"", "8");
    let data = sent(&env, &message);
    assert_eq!(data["handoff"]["contract_type"], "environment-message");
    assert_eq!(tasks(&env), ["021 pending environment.1"]);
    let claimed = run(&env, "claim environment.1 --as task-orchestrator").stdout;
    assert!(claimed.contains(message.trim_end()), "{claimed}");

    let to_execution = "new --issue environment --from task-orchestrator --to execution-guardian --type breakdown-message --format md";
    let words = [
        "021 in two parts",
        "\"Water the ferns\"",
        "- 021_1: \"Open a valve\" (difficulty: 3)\n- 021_2: \"Close it again\" (difficulty: 2)",
        "021_1, then 021_2",
        "none",
        "021_1, 021_2",
        r#"{"021_2": ["021_1"]}"#,
        "021_1",
    ];
    let message = filled(&env, to_execution, &words);
    sent(&env, &message);
    assert_eq!(
        tasks(&env),
        [
            "021 broken_down environment.1",
            "021_1 pending environment.2",
            "021_2 pending environment.3"
        ]
    );
    assert_eq!(waits(&env, "environment.3"), json!(["environment.2"]));
    each_part_is_named(&env);

    let to_planning = "new --issue environment --from execution-guardian --to task-orchestrator --type execution-message --format md";
    for (id, task) in [
        (
            "environment.2",
            "task 021_1: \"Open a valve\" (difficulty: 3)",
        ),
        (
            "environment.3",
            "task 021_2: \"Close it again\" (difficulty: 2)",
        ),
    ] {
        let claimed = run(&env, &format!("claim {id} --as execution-guardian")).stdout;
        assert!(
            claimed.contains(&format!("\nthe work\n  {task}\n")),
            "{claimed}"
        );
        let message = filled(&env, to_planning, &VALVE_MOVED);
        let message = message.replace("\"0.95\"", "0.95");
        let data = sent(&env, &message);
        assert_eq!(data["handoff"]["contract_type"], "execution-message");
    }
    taken_up(&env, &["environment.4", "environment.5"]);
    assert_eq!(tasks(&env)[0], "021 completed environment.1");
    let facts = env.data(&["context", KEY])["known"].take();
    assert_eq!(facts["template"], "greenhouse");
    assert_eq!(facts["assumptions"], json!(["Rain is rare"]));
    assert_eq!(
        (&facts["breakdowns"], &facts["subtasks_done"]),
        (&json!(1), &json!(2))
    );
    env.assert_sound();
}

#[test]
fn a_message_around_a_whole_contract_keeps_its_ids() {
    let env = with_protocol("task-breakdown");
    let line =
        "new --issue environment --from environment-architect --to task-orchestrator --format md";
    let words = ["AUTH-3", "9", "portal", "Sessions last a day", "0.8"];
    let message = filled(&env, line, &words);
    let message = message.replace("\"9\"", "9").replace("\"0.8\"", "0.8");
    let data = sent(&env, &message);
    assert_eq!(data["handoff"]["contract_type"], "environment-to-planning");
    assert_eq!(tasks(&env), ["AUTH-3 pending environment.1"]);
    let stored = record(&env, "environment.1")["contract"].take();
    assert_eq!(stored["format"], "md");
    assert!(stored["file"].as_str().unwrap().ends_with(".md"));
    run(&env, "claim environment.1 --as task-orchestrator");
    // The answer may be JSON.
    let parts = plan("AUTH-3", &[("AUTH-3.a", &[]), ("AUTH-3.b", &["AUTH-3.a"])]);
    sent(&env, parts.to_string());
    run(&env, "claim environment.2 --as execution-guardian");
    sent(&env, done("AUTH-3", "AUTH-3.a"));
    assert_eq!(
        tasks(&env),
        [
            "AUTH-3 broken_down environment.1",
            "AUTH-3.a completed environment.2",
            "AUTH-3.b pending environment.3"
        ]
    );
    env.assert_sound();
}

#[test]
fn the_same_contract_again_changes_nothing() {
    let env = broken_down();
    let before = commits(&env);
    let again = sent(&env, three_parts().to_string());
    assert_eq!(
        (&again["handoff"]["id"], &again["repeated"]),
        (&json!("environment.3"), &json!(true))
    );
    run(&env, "claim environment.3 --as execution-guardian");
    let again = sent(&env, three_parts().to_string());
    assert_eq!(again["repeated"], true);
    sent(&env, done("021", "021_1"));
    let more = plan("021", &[("021_4", &[])]).to_string();
    sent(&env, &more);
    // What its sender holds now is newer than the report.
    run(&env, "claim environment.7 --as execution-guardian");
    for (contract, id) in [
        (done("021", "021_1"), "environment.6"),
        (three_parts().to_string(), "environment.3"),
        (more, "environment.7"),
    ] {
        let again = sent(&env, contract);
        assert_eq!(
            (&again["handoff"]["id"], &again["repeated"]),
            (&json!(id), &json!(true))
        );
    }
    assert_eq!(commits(&env), before + 5 - 1);
    env.assert_sound();
}

#[test]
fn a_plan_that_was_turned_down_may_be_sent_again() {
    let env = begun();
    let one = plan("021", &[("021_1", &[])]).to_string();
    sent(&env, &one);
    run(
        &env,
        "reject environment.3 --as execution-guardian --reason unclear",
    );
    let again = sent(&env, &one);
    assert_eq!(
        (&again["handoff"]["id"], &again["repeated"]),
        (&json!("environment.4"), &json!(false))
    );
    let again = sent(&env, &one);
    assert_eq!(
        (&again["handoff"]["id"], &again["repeated"]),
        (&json!("environment.4"), &json!(true))
    );
    // So may a report.
    run(&env, "claim environment.4 --as execution-guardian");
    sent(&env, done("021", "021_1"));
    run(
        &env,
        "reject environment.5 --as task-orchestrator --reason where",
    );
    let again = sent(&env, done("021", "021_1"));
    assert_eq!(
        (&again["handoff"]["id"], &again["repeated"]),
        (&json!("environment.6"), &json!(false))
    );
    env.assert_sound();
}

/// "3. Update parent if all complete": a report that is turned down completes neither.
#[test]
fn a_report_that_is_turned_down_takes_its_part_back() {
    for taken_first in [true, false] {
        let env = begun();
        let parts: [(&str, &[&str]); 3] = [("021_1", &[]), ("021_2", &[]), ("021_3", &["021_2"])];
        sent(&env, plan("021", &parts).to_string());
        for (id, part) in [("environment.3", "021_1"), ("environment.4", "021_2")] {
            run(&env, &format!("claim {id} --as execution-guardian"));
            sent(&env, done("021", part));
        }
        assert_eq!(waits(&env, "environment.5"), Value::Null);
        if taken_first {
            taken_up(&env, &["environment.6"]);
        }
        let reject = "reject environment.7 --as task-orchestrator --reason untested";
        run(&env, reject);
        if !taken_first {
            taken_up(&env, &["environment.6"]);
        }
        let stands = [
            "021 broken_down environment.1",
            "022 pending environment.2",
            "021_1 completed environment.3",
            "021_2 in_progress environment.4",
            "021_3 pending environment.5",
        ];
        assert_eq!(tasks(&env), stands);
        assert_eq!(waits(&env, "environment.5"), json!(["environment.4"]));
        let early = refused_command(&env, "complete environment.1 --as task-orchestrator");
        assert_eq!(early.says(), (4, "parts_run"));
        // Reported again, or planned anew, it goes on.
        if taken_first {
            sent(&env, done("021", "021_2"));
            taken_up(&env, &["environment.8"]);
            assert_eq!(tasks(&env)[3], "021_2 completed environment.4");
            assert_eq!(waits(&env, "environment.5"), Value::Null);
        } else {
            sent(&env, plan("021", &[("021_2", &[])]).to_string());
            run(&env, "claim environment.8 --as execution-guardian");
            let later = done("021", "021_2").replace("07:20", "09:20");
            let report = sent(&env, later);
            taken_up(&env, &[report["handoff"]["id"].as_str().unwrap()]);
        }
        run(&env, "claim environment.5 --as execution-guardian");
        let report = sent(&env, done("021", "021_3"));
        assert_eq!(tasks(&env)[0], "021 broken_down environment.1");
        taken_up(&env, &[report["handoff"]["id"].as_str().unwrap()]);
        assert_eq!(tasks(&env)[0], "021 completed environment.1");
        env.assert_sound();
    }
}

/// "4. Acknowledgment Required: Receiving agent confirms receipt" of the message: its tasks do not run
/// out while their only receiver works on another.
#[test]
fn one_claim_acknowledges_a_message_and_who_works_is_not_lost() {
    let until = |env: &TestEnvironment, id: &str| record(env, id)["acknowledge_by"].take();
    let env = begun();
    assert_eq!(until(&env, "environment.2"), Value::Null);
    env.wait(3600);
    let mut parts = three_parts();
    parts["data"]["dependency_graph"]["021_2"] = json!([]);
    parts["data"]["parallel_groups"] = json!([["021_1", "021_2"]]);
    sent(&env, parts.to_string());
    assert_ne!(until(&env, "environment.4"), Value::Null);
    run(&env, "claim environment.3 --as execution-guardian");
    assert_eq!(until(&env, "environment.4"), Value::Null);
    env.wait(3600);
    sent(&env, done("021", "021_1"));
    // What its report frees belongs to the same message; the report is another one.
    assert_eq!(until(&env, "environment.5"), Value::Null);
    assert_ne!(until(&env, "environment.6"), Value::Null);
    run(&env, "claim environment.2 --as task-orchestrator");
    assert_eq!(until(&env, "environment.6"), Value::Null);
    env.wait(3600);
    sent(&env, plan("022", &[("022_1", &[])]).to_string());
    // Its receiver has nothing to do again.
    assert_ne!(until(&env, "environment.6"), Value::Null);
    run(&env, "claim --next --as execution-guardian");
    taken_up(&env, &["environment.6"]);
    let expired = |line: &str| line.contains("failed");
    assert!(!states(&env, KEY).iter().any(|line| expired(line)));
    env.assert_sound();
}

/// "execution_order": ["string"], and "RECOMMENDED STARTING TASK".
#[test]
fn parts_are_handed_out_in_their_order() {
    let env = begun();
    let ids: Vec<String> = (1..=12).map(|n| format!("021_{n}")).collect();
    let parts: Vec<(&str, &[&str])> = ids.iter().map(|id| (id.as_str(), &[][..])).collect();
    let mut plan = plan("021", &parts);
    let mut order: Vec<&str> = ids.iter().map(String::as_str).collect();
    order.swap(0, 11);
    plan["data"]["execution_order"] = json!(order);
    sent(&env, plan.to_string());
    for part in &order {
        let claimed = env.data(&["claim", "--next", "--as", "execution-guardian"]);
        assert_eq!(claimed["record"]["task"]["id"], *part);
    }
    let message =
        std::fs::read_to_string("tests/samples/task-breakdown/valid/breakdown-message.md");
    let message = message.unwrap().replace("011", "022");
    for (fault, by, code) in [
        ("STARTING TASK: 022_1", "STARTING TASK: 022_2", "task.order"),
        ("[022_2, 022_3]", "[022_1, 022_3]", "task.group"),
    ] {
        run(&env, "claim environment.2 --as task-orchestrator");
        let found = refused(&env, &[], message.replace(fault, by));
        assert!(found.codes().contains(&code), "{found:?}");
    }
    let start = message.replace("\"022_2\": [\"022_1\"]", "\"022_2\": []");
    let start = start.replace("[022_2, 022_3] after 022_1", "[022_1, 022_2]");
    sent(&env, start.replace("TASK: 022_1", "TASK: 022_2"));
    let claimed = env.data(&["claim", "--next", "--as", "execution-guardian"]);
    assert_eq!(claimed["record"]["task"]["id"], "022_2");
    env.assert_sound();
}

#[test]
fn an_environment_is_followed_by_another() {
    let env = with_protocol("task-breakdown");
    sent(&env, environment(&[("021", 8.0)]));
    run(&env, "claim environment.1 --as task-orchestrator");
    sent(&env, plan("021", &[("021_1", &[])]).to_string());
    let early = refused(&env, &["--issue", KEY], environment(&[("031", 9.0)]));
    assert_eq!(early.says(), (4, "not_held"));
    run(&env, "claim environment.2 --as execution-guardian");
    sent(&env, done("021", "021_1"));
    run(&env, "claim environment.3 --as task-orchestrator");
    run(&env, "complete environment.3 --as task-orchestrator");
    let known = refused(&env, &[], environment(&[("021", 9.0)]));
    assert_eq!(known.says(), (4, "tasks_refused"));
    assert_eq!(known.codes(), ["task.state", "gate.state_consistency"]);
    sent(&env, environment(&[("031", 9.0)]));
    assert_eq!(
        tasks(&env),
        [
            "021 completed environment.1",
            "021_1 completed environment.2",
            "031 pending environment.4"
        ]
    );
    env.assert_sound();
}

#[test]
fn a_breakdown_is_of_the_task_that_was_not_broken_down() {
    let env = with_protocol("task-breakdown");
    env.send(environment(&[("021", 8.0), ("022", 9.0)]))
        .success();
    for id in ["environment.1", "environment.2"] {
        run(&env, &format!("claim {id} --as task-orchestrator"));
    }
    env.send(plan("021", &[("021_1", &[])]).to_string())
        .success();
    let line = "new --issue environment --from task-orchestrator --to execution-guardian --json";
    let words: Vec<&str> = line.split(' ').collect();
    let skeleton = env.handoff(&words).success().json()["data"].to_string();
    assert!(skeleton.contains("022"), "{skeleton}");
    let sent = "send --issue environment --to execution-guardian --as task-orchestrator --set data.subtask_ids=022_1 \
                --set data.dependency_graph={} --set data.execution_order=022_1 --set data.parallel_groups=[]";
    run(&env, sent);
    assert!(
        tasks(&env).contains(&"022_1 pending environment.4".to_owned()),
        "{:?}",
        tasks(&env)
    );
    let data = env.data(&["status", KEY]);
    let all = data["record"]["tasks"].as_array().unwrap();
    let part = all.iter().find(|task| task["id"] == "022_1").unwrap();
    assert_eq!(part["parent"], "022", "{part:#}");
}
