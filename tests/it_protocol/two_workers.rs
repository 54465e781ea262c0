//! Two workers of one agent, each in a worktree of its own: neither is told to do the other's work.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::team::{Folder, run, sent, with_protocol};

const GUARDIAN: &str = "execution-guardian";

/// Task 021 is broken down in two parts; a guardian works on the first in the main worktree.
fn begun(parts: &[&str]) -> (TestEnvironment, PathBuf) {
    let env = with_protocol("task-breakdown");
    let opened = json!({
        "handoff_type": "environment_to_planning",
        "timestamp": "2026-03-02T06:15:00Z",
        "from_agent": "environment-architect",
        "to_agent": "task-orchestrator",
        "data": {
            "task_ids": ["021"],
            "difficulties": [8.0],
            "template_used": "greenhouse",
            "assumptions_made": ["Valves answer within a second"],
            "confidence_score": 0.7,
        },
    });
    sent(&env, opened.to_string());
    run(&env, "claim environment.1 --as task-orchestrator");
    let graph: Value = parts
        .iter()
        .map(|part| ((*part).to_owned(), json!([])))
        .collect();
    let plan = json!({
        "handoff_type": "planning_to_execution",
        "timestamp": "2026-03-02T06:40:00Z",
        "from_agent": "task-orchestrator",
        "to_agent": GUARDIAN,
        "data": {
            "parent_task_id": "021",
            "subtask_ids": parts,
            "dependency_graph": graph,
            "execution_order": parts,
            "parallel_groups": [],
        },
    });
    sent(&env, plan.to_string());
    let other = env.root().join("other");
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", "--detach", other.to_str().unwrap()],
    );
    run(&env, "claim environment.2 --as execution-guardian");
    (env, other)
}

/// What the five commands tell the guardian in a worktree.
fn told(env: &TestEnvironment, folder: &Path) -> Vec<(String, String)> {
    let lines = [
        #[cfg(feature = "agents")]
        "prime --as execution-guardian",
        "new --issue environment --to task-orchestrator --as execution-guardian",
        "status --as execution-guardian",
        "inbox --as execution-guardian",
        "claim --next --as execution-guardian",
    ];
    let told = lines.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = env.handoff_in(folder, &words);
        (line.to_owned(), ran.stdout.clone() + &ran.stderr)
    });
    told.into()
}

#[test]
fn the_second_worker_is_not_told_to_do_the_firsts_work() {
    let (env, other) = begun(&["021_1"]);
    for (line, text) in told(&env, &other) {
        assert!(!text.contains("--take-over"), "{line}: {text}");
        for verb in [
            "extend", "fail", "complete", "block", "release", "send", "claim",
        ] {
            let command = format!("git handoff {verb} environment.2");
            assert!(!text.contains(&command), "{line}: {text}");
        }
        if line.starts_with("new") {
            assert!(
                !text.contains("021_1"),
                "{line} fills in the other's task: {text}"
            );
        }
    }
    // The lease of one that is gone ends, and is recorded as that: nobody takes over.
    let first = env.data(&["inbox", "--as", GUARDIAN]);
    assert_eq!(first["handoffs"][0]["id"], "environment.2");
}

#[test]
fn the_second_worker_gets_its_own_part() {
    let (env, other) = begun(&["021_1", "021_2"]);
    let all = told(&env, &other);
    let (_, claimed) = all.last().unwrap();
    assert!(claimed.contains("environment.3"), "{claimed}");
    let filled = |folder: &Path| {
        let words = ["new", "--issue", "environment", "--to", "task-orchestrator"];
        let words = [&words[..], &["--as", GUARDIAN, "--format", "json"]].concat();
        let made = env.handoff_in(folder, &words).success().stdout;
        let made: Value = serde_json::from_str(&made).unwrap();
        made["data"]["completed_task_id"].clone()
    };
    assert_eq!(
        (filled(&env.repo()), filled(&other)),
        (json!("021_1"), json!("021_2"))
    );
}

/// "Sibling tasks: [003_1, 003_2]", "EG completes A": each of two guardians sees what it holds, fills it in, and sends
/// its own, whichever is first.
#[test]
fn each_of_two_guardians_sends_its_own_part() {
    let (env, other) = begun(&["021_1", "021_2"]);
    let claim = ["claim", "--next", "--as", GUARDIAN];
    env.handoff_in(&other, &claim).success();
    let words = [
        "new",
        "--issue",
        "environment",
        "--to",
        "task-orchestrator",
        "--as",
        GUARDIAN,
    ];
    let values = [
        "data.execution_metrics.duration=10 minutes",
        "data.execution_metrics.confidence_final=0.9",
        "data.execution_metrics.gates_passed=tests",
        "data.execution_metrics.checkpoints_created=1",
    ];
    let values = values.iter().flat_map(|value| ["--set", value]);
    let words: Vec<&str> = words.into_iter().chain(values).collect();
    // The second one is first.
    for (folder, own, task) in [
        (&other, "environment.3", "021_2"),
        (&env.repo(), "environment.2", "021_1"),
    ] {
        let inbox = env
            .handoff_in(folder, &["inbox", "--as", GUARDIAN])
            .success()
            .stdout;
        assert!(inbox.contains(own), "{inbox}");
        let made = env.handoff_in(folder, &words).success().stdout;
        let file = env.file(&format!("{task}.md"), made);
        let sent = ["send", &file, "--as", GUARDIAN, "--json"];
        let sent = env.handoff_in(folder, &sent).success().json();
        let id = sent["data"]["handoff"]["id"].as_str().unwrap();
        let shown = env.handoff(&["show", id]).success().stdout;
        assert!(shown.contains(task), "{shown}");
        assert_eq!(env.data(&["show", own])["handoff"]["state"], "completed");
    }
}

/// An approval by the worker that wrote what it is about does not count: its `send` says so, and the
/// gate has it sent again by another worker, as long as nobody claimed it and after.
#[test]
fn an_approval_that_cannot_count_is_told_and_sent_again() {
    let env = TestEnvironment::with_repository();
    let agents = "writer,editor,printer";
    env.handoff(&["protocol", "new", "press", "--agents", agents])
        .success();
    let folder = Folder::new(&env, "repo/press");
    folder.define(|definition| {
        definition["requirements"] = json!({"edited": {"title": "Another one edited it",
            "shown_by": ["editor-to-printer"], "undone_by": ["writer-to-editor"],
            "apart_from": ["writer-to-editor"], "merge": true}});
    });
    env.handoff(&["init", "--protocol", "./press"]).success();
    let send = |issue: &str, to: &str, from: &str, worker: &str| {
        let line =
            format!("send --issue {issue} --to {to} --as {from} --set summary=S --worker {worker}");
        run(&env, &line)
    };
    for (issue, is_claimed, end) in [
        (
            "moon",
            false,
            "git handoff reject moon.2 --as printer --reason WHY",
        ),
        (
            "tides",
            true,
            "git handoff cancel tides.2 --as editor --reason WHY",
        ),
    ] {
        send(issue, "editor", "writer", "w1");
        run(&env, &format!("claim {issue} --as editor --worker w1"));
        let again = format!(
            "`{end}`; then another worker sends it again: `git handoff send --issue {issue} --to printer --as editor --worker NAME`"
        );
        let why = format!("worker w1 sent both {issue}.1 and {issue}.2");
        let sent = send(issue, "printer", "editor", "w1");
        sent.says(&format!("this does not count for `edited`: {why}"));
        if is_claimed {
            run(&env, &format!("claim {issue} --as printer --worker w3"));
        }
        let gate = ["gate", "--issue", issue];
        env.handoff(&gate).exits(1).says(&why).says(&again);
        run(
            &env,
            &end.strip_prefix("git handoff ")
                .unwrap()
                .replace("WHY", "same"),
        );
        let sent = send(issue, "printer", "editor", "w2");
        assert!(!sent.shown.contains("does not count"), "{}", sent.shown);
        env.handoff(&gate).success();
    }
}
