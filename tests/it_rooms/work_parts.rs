//! Parts of one issue that run beside each other: each in a worktree and on a branch of its own.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use test_support::agents::{agent, now, outcomes, run_now, work_as, worker};
use test_support::running::Running;
use test_support::team::with_protocol;
use test_support::{TestEnvironment, until};

const AGENT: &str = "execution-guardian";

/// What the agent of a part hands on by.
const DONE: &str = "git handoff new --issue environment --to task-orchestrator --set data.execution_metrics.duration='10 minutes' \
     --set data.execution_metrics.confidence_final=0.9 --set data.execution_metrics.gates_passed=tests \
     --set data.execution_metrics.checkpoints_created=1 > .git-handoff/contract";

/// Commits a file that is named after the part.
const COMMITTED: &str = "echo $GIT_HANDOFF_ID > $GIT_HANDOFF_ID.txt; git add $GIT_HANDOFF_ID.txt; git commit -q -m part";

/// Waits until both parts run. The count of `begun` is how often parts were begun.
const TOGETHER: &str = "cat > $OUT/prompt-$GIT_HANDOFF_ID; pwd > $OUT/place-$GIT_HANDOFF_ID\n\
     touch $OUT/begun-$GIT_HANDOFF_ID\n\
     until [ -e $OUT/begun-environment.3 ] && [ -e $OUT/begun-environment.4 ]; do sleep 0.02; done";

/// A ledger in which a task was broken down into two parts that depend on nothing: environment.3 and 4.
fn two_parts() -> TestEnvironment {
    broken_down(
        &json!({"parent_task_id": "021", "subtask_ids": ["021_1", "021_2"],
            "dependency_graph": {"021_1": [], "021_2": []}, "execution_order": ["021_1", "021_2"],
            "parallel_groups": [["021_1", "021_2"]]}),
    )
}

/// A ledger in which a task was broken down like this.
fn broken_down(plan: &Value) -> TestEnvironment {
    let env = with_protocol("task-breakdown");
    let send = |from: &str, to: &str, kind: &str, data: Value| {
        let contract = json!({"handoff_type": kind, "timestamp": "2026-03-02T06:15:00Z", "from_agent": from, "to_agent": to, "data": data});
        let args = ["send", "-"];
        let contract = contract.to_string();
        env.run(now(&env, &args), &args, Some(contract.as_bytes()))
            .success();
    };
    send(
        "environment-architect",
        "task-orchestrator",
        "environment_to_planning",
        json!({"task_ids": ["021", "022"], "difficulties": [8.0, 7.5], "template_used": "greenhouse",
            "assumptions_made": ["Valves answer within a second"], "confidence_score": 0.7}),
    );
    let claim = ["claim", "environment.1", "--as", "task-orchestrator"];
    run_now(&env, &claim).success();
    send(
        "task-orchestrator",
        AGENT,
        "planning_to_execution",
        plan.clone(),
    );
    env
}

/// What is the user's: branch, index, files.
fn users(env: &TestEnvironment) -> String {
    let git = |words: &[&str]| env.git(&env.repo(), words);
    git(&["symbolic-ref", "HEAD"]) + &git(&["rev-parse", "HEAD"]) + &git(&["status", "--porcelain"])
}

/// The files on a branch that parts made.
fn files(env: &TestEnvironment, branch: &str) -> Vec<String> {
    let words = ["ls-tree", "--name-only", branch];
    let all = env.git(&env.repo(), &words);
    let parts = all.lines().filter(|name| name.starts_with("environment."));
    parts.map(str::to_owned).collect()
}

/// Insists that each part was done on a branch of its own, and that the user's is as it was.
#[track_caller]
fn are_apart(env: &TestEnvironment, before: &str) {
    let [shared, own] = ["handoff/environment", "handoff/environment.4"].map(|one| files(env, one));
    assert_eq!(shared, ["environment.3.txt"]);
    assert_eq!(own, ["environment.4.txt"]);
    assert_eq!(users(env), before);
    env.assert_sound();
}

fn said(env: &TestEnvironment, name: &str) -> String {
    fs::read_to_string(env.root().join(name)).unwrap()
}

#[test]
fn two_parts_of_an_issue_run_at_once_each_on_a_branch_of_its_own() {
    let env = two_parts();
    let before = users(&env);
    let script = agent(&env, &format!("{TOGETHER}\n{COMMITTED}\n{DONE}"));
    let ran = work_as(&env, AGENT, &script, &["--jobs", "2", "--until-idle"]).success();
    let mut ended = outcomes(&ran);
    ended.sort();
    let handed_on = |id: &str| [id.to_owned(), "handed_on".to_owned(), String::new()];
    assert_eq!(ended, ["environment.3", "environment.4"].map(handed_on));
    assert_ne!(
        said(&env, "place-environment.3"),
        said(&env, "place-environment.4")
    );
    are_apart(&env, &before);
    // Each was told to complete its own task.
    for (id, task) in [("environment.3", "021_1"), ("environment.4", "021_2")] {
        let prompt = said(&env, &format!("prompt-{id}"));
        let named = format!("\"completed_task_id\": \"{task}\"");
        assert!(prompt.contains(&named), "{id}: {prompt}");
    }
    // Who goes on with the issue is told where the other part is.
    let reader = agent(&env, "cat > $OUT/prompt; exit 3");
    work_as(&env, "task-orchestrator", &reader, &["--once"]).exits(1);
    let prompt = said(&env, "prompt");
    let told = "on branches of their own, which this one lacks: handoff/environment.4\n";
    assert!(prompt.contains(told), "{prompt}");
}

/// "Parallel possible: [003_3, 003_4] after 003_2": both wait for the two before them, and then run at once.
#[test]
fn parallel_parts_run_at_once_when_what_they_wait_for_is_done() {
    let order = ["021_1", "021_2", "021_3", "021_4"];
    let env = broken_down(&json!({"parent_task_id": "021", "subtask_ids": order,
        "dependency_graph": {"021_1": [], "021_2": ["021_1"], "021_3": ["021_2"], "021_4": ["021_2"]},
        "execution_order": order, "parallel_groups": [["021_3", "021_4"]]}));
    let text = format!(
        "case $GIT_HANDOFF_ID in\n\
         environment.5|environment.6) touch $OUT/begun-$GIT_HANDOFF_ID\n\
         until [ -e $OUT/begun-environment.5 ] && [ -e $OUT/begun-environment.6 ]; do sleep 0.02; done ;;\n\
         esac\n{COMMITTED}\n{DONE}"
    );
    let script = agent(&env, &text);
    let ran = work_as(&env, AGENT, &script, &["--jobs", "2", "--until-idle"]).success();
    let mut ended = outcomes(&ran);
    ended.sort();
    let ids = [
        "environment.3",
        "environment.4",
        "environment.5",
        "environment.6",
    ];
    let handed_on = |id: &str| [id.to_owned(), "handed_on".to_owned(), String::new()];
    assert_eq!(ended, ids.map(handed_on));
    env.assert_sound();
}

#[test]
fn parts_whose_worker_is_killed_are_gone_on_with_on_their_branches() {
    let env = two_parts();
    let before = users(&env);
    let text = format!(
        "{TOGETHER}\n[ -e $OUT/again ] || {{ {COMMITTED}; touch $OUT/half-$GIT_HANDOFF_ID; sleep 600; }}\n{DONE}"
    );
    let script = agent(&env, &text);
    let path = script.to_str().unwrap();
    let args = ["--as", AGENT, "--jobs", "2", "--", path];
    let mut running = Running::silent(worker(&env, &args));
    for id in ["environment.3", "environment.4"] {
        let half = env.root().join(format!("half-{id}"));
        until("each has committed", || half.exists());
    }
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    for name in ["begun-environment.3", "begun-environment.4"] {
        fs::remove_file(env.root().join(name)).unwrap();
    }
    fs::write(env.root().join("again"), "").unwrap();
    let ran = work_as(&env, AGENT, &script, &["--jobs", "2", "--until-idle"]).success();
    assert_eq!(outcomes(&ran).len(), 2, "{}", ran.shown);
    are_apart(&env, &before);
}

#[test]
fn a_part_that_is_retried_beside_the_other_goes_on_on_its_branch() {
    let env = two_parts();
    let before = users(&env);
    // The first fails while the other runs, is retried, and the other ends after it.
    let text = format!(
        "{TOGETHER}\n\
         case $GIT_HANDOFF_ID in\n\
         environment.3) [ -e $OUT/again ] || {{ {COMMITTED}; touch $OUT/again; exit 3; }}; touch $OUT/over ;;\n\
         *) {COMMITTED}; until [ -e $OUT/over ]; do sleep 0.02; done ;;\n\
         esac\n{DONE}"
    );
    let script = agent(&env, &text);
    let path = script.to_str().unwrap();
    let args = ["--as", AGENT, "--jobs", "2", "--until-idle", "--", path];
    let running = worker(&env, &args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let failed = || env.data(&["show", "environment.3"])["handoff"]["state"] == "failed";
    until("the first has failed", failed);
    let args = [
        "retry",
        "environment.3",
        "--as",
        "task-orchestrator",
        "--reason",
        "again",
    ];
    run_now(&env, &args).success();
    let ended = running.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{told}");
    are_apart(&env, &before);
}
