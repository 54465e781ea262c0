//! A folder through which programs in Python hand work to each other, and a ledger that takes part.
//! The programs make the calls of the protocol's document, section 5 and 6: they write
//! `handoffs/pending/{id}.json`, move it to in-progress, completed or failed, and poll for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use test_support::contracts::with;
use test_support::exchange::{SPECIALISTS, sample, text};
use test_support::running::Running;
use test_support::team::{commits_in, run, with_protocol};
use test_support::{TestEnvironment, stored, until};

const REACT: &str = "@react-specialist";
const FRONTEND: &str = "@frontend-specialist";
const DATA: &str =
    r#"{"component_requirements": [{"name": "LoanList", "type": "functional", "props": {}}]}"#;

/// Runs one of the programs in the folder.
fn python(dir: &Path, args: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/file-tools/handoffs.py");
    let mut command = std::process::Command::new("python3");
    command.args(["-W", "ignore"]).arg(script).args(args);
    command.current_dir(dir).output().unwrap()
}

#[track_caller]
fn does(dir: &Path, args: &[&str]) -> String {
    let out = python(dir, args);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

fn shared(env: &TestEnvironment) -> PathBuf {
    env.pace(1);
    let dir = env.root().join("shared");
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[track_caller]
fn exchange(env: &TestEnvironment, dir: &Path) -> Value {
    let args = ["exchange", dir.to_str().unwrap(), "--json"];
    env.handoff(&args).success().json()["data"].clone()
}

fn record(env: &TestEnvironment, id: &str) -> Value {
    stored(&env.handoff(&["show", id, "--json"]).success().json()["data"])
}

/// Where the files of the handoffs are.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for state in ["pending", "in-progress", "completed", "failed"] {
        let Ok(entries) = fs::read_dir(dir.join("handoffs").join(state)) else {
            continue;
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        found.extend(names.map(|name| format!("{state}/{name}")));
    }
    found.sort();
    found
}

fn read(dir: &Path, path: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join("handoffs").join(path)).unwrap()).unwrap()
}

/// A second pass has nothing to do: nothing is lost, and nothing doubled.
#[track_caller]
fn settled(env: &TestEnvironment, dir: &Path) {
    let (commits, before) = (commits_in(env, &env.repo()), files(dir));
    let again = exchange(env, dir);
    for name in ["imported", "refused", "written", "removed", "kept"] {
        assert_eq!(again[name], json!([]), "{name}: {again:#}");
    }
    assert_eq!(
        (commits_in(env, &env.repo()), files(dir)),
        (commits, before)
    );
    env.handoff(&["verify"]).success();
}

#[test]
fn a_request_of_the_folder_is_picked_up_completed_and_waited_for_there() {
    let env = with_protocol(SPECIALISTS);
    let dir = shared(&env);
    does(&dir, &["create", "hoff-1", FRONTEND, REACT, DATA]);
    let data = exchange(&env, &dir);
    assert_eq!(data["imported"][0]["id"], "hoff-1.1", "{data:#}");
    settled(&env, &dir);
    assert_eq!(record(&env, "hoff-1.1")["state"], "pending");
    // "Move: pending -> in-progress, Add: started_at", after it came in.
    does(&dir, &["pick_up", "hoff-1"]);
    env.wait(60);
    exchange(&env, &dir);
    settled(&env, &dir);
    let taken = record(&env, "hoff-1.1");
    assert_eq!(
        (&taken["state"], taken.get("lease")),
        (&json!("blocked"), None)
    );
    does(&dir, &["complete", "hoff-1"]);
    assert_eq!(
        does(&dir, &["wait", "hoff-1", "60"]),
        "artifacts/phase-13-react/loan-list-1.json\n"
    );
    env.wait(60);
    exchange(&env, &dir);
    settled(&env, &dir);
    assert_eq!(record(&env, "hoff-1.1")["state"], "completed");
    assert_eq!(files(&dir), ["completed/hoff-1.json"]);
}

#[test]
fn a_request_of_the_ledger_is_done_in_the_folder() {
    let env = with_protocol(SPECIALISTS);
    let dir = shared(&env);
    let destination = json!("artifacts/phase-13-react/loan-list-{timestamp}.json");
    let own = [
        ("/handoff_id", json!("hoff-2")),
        ("/expected_output/destination", destination),
    ];
    let request = with(sample(SPECIALISTS, "request"), &own);
    env.send(text(&request)).success();
    let data = exchange(&env, &dir);
    assert_eq!(data["written"], json!(["handoffs/pending/hoff-2.json"]));
    assert_eq!(read(&dir, "pending/hoff-2.json"), request);
    does(&dir, &["pick_up", "hoff-2"]);
    // Nobody looked between the pick-up and the failure.
    does(&dir, &["fail", "hoff-2", "the generator stopped"]);
    env.wait(60);
    exchange(&env, &dir);
    settled(&env, &dir);
    let failed = record(&env, "hoff-2.1");
    assert_eq!(failed["state"], "failed", "{failed:#}");
    let out = python(&dir, &["wait", "hoff-2", "60"]);
    assert_eq!(
        String::from_utf8(out.stderr).unwrap(),
        "the generator stopped\n"
    );
    // The ledger retries: its file is pending again, and says how many attempts came before.
    run(
        &env,
        "retry hoff-2.1 --as @frontend-specialist --reason again",
    );
    let data = exchange(&env, &dir);
    assert_eq!(data["removed"], json!(["handoffs/failed/hoff-2.json"]));
    assert_eq!(files(&dir), ["pending/hoff-2.json"]);
    let pending = read(&dir, "pending/hoff-2.json");
    assert_eq!(
        (&pending["status"], &pending["retry_count"]),
        (&json!("pending"), &json!(1))
    );
    settled(&env, &dir);
    // An outcome within the 30 s of "Attempt 2: After 30 seconds" is taken, with a note.
    does(&dir, &["pick_up", "hoff-2"]);
    does(&dir, &["complete", "hoff-2"]);
    env.wait(1);
    exchange(&env, &dir);
    settled(&env, &dir);
    let done = record(&env, "hoff-2.1");
    assert_eq!(done["state"], "completed");
    let notes: Vec<&str> = done["transitions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|t| t["reason"].as_str())
        .collect();
    assert_eq!(
        notes,
        ["again", "taken up elsewhere before the delay was over"]
    );
}

#[test]
fn the_program_retries_what_failed() {
    let env = with_protocol(SPECIALISTS);
    let dir = shared(&env);
    does(&dir, &["create", "hoff-3", FRONTEND, REACT, DATA]);
    does(&dir, &["pick_up", "hoff-3"]);
    does(&dir, &["fail", "hoff-3", "no disk"]);
    env.wait(60);
    exchange(&env, &dir);
    settled(&env, &dir);
    does(&dir, &["retry", "hoff-3"]);
    env.wait(60);
    exchange(&env, &dir);
    settled(&env, &dir);
    assert_eq!(record(&env, "hoff-3.1")["state"], "pending");
    does(&dir, &["pick_up", "hoff-3"]);
    does(&dir, &["fail", "hoff-3", "no memory"]);
    // It retries at once, corrects the input, and fails: all before anybody looks.
    env.wait(60);
    exchange(&env, &dir);
    settled(&env, &dir);
    let failed = record(&env, "hoff-3.1");
    assert_eq!(
        (&failed["state"], &failed["attempt"]),
        (&json!("failed"), &json!(2))
    );
    does(&dir, &["retry", "hoff-3"]);
    let path = dir.join("handoffs/pending/hoff-3.json");
    let mut corrected = read(&dir, "pending/hoff-3.json");
    corrected["input"]["data"]["component_requirements"][0]["name"] = json!("LoanTable");
    fs::write(&path, text(&corrected)).unwrap();
    env.wait(60);
    exchange(&env, &dir);
    settled(&env, &dir);
    let again = env
        .handoff(&["status", "hoff-3", "--json"])
        .success()
        .json();
    let newest = again["data"]["handoffs"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()["id"]
        .clone();
    let newest = record(&env, newest.as_str().unwrap());
    assert_eq!(
        (&newest["replaces"], &newest["state"]),
        (&json!("hoff-3.1"), &json!("pending"))
    );
    assert_eq!(files(&dir), ["pending/hoff-3.json"]);
}

#[test]
fn what_agents_here_do_is_seen_in_the_folder() {
    let env = with_protocol(SPECIALISTS);
    let dir = shared(&env);
    does(&dir, &["create", "hoff-4", FRONTEND, REACT, DATA]);
    exchange(&env, &dir);
    run(&env, &format!("claim hoff-4.1 --as {REACT}"));
    let data = exchange(&env, &dir);
    assert_eq!(data["written"], json!(["handoffs/in-progress/hoff-4.json"]));
    let taken = read(&dir, "in-progress/hoff-4.json");
    assert_eq!(taken["status"], "in_progress");
    assert!(taken["started_at"].is_string());
    settled(&env, &dir);
    run(
        &env,
        &format!(
            "fail hoff-4.1 --as {REACT} --code PROCESSING_ERROR --message broken --recoverable"
        ),
    );
    exchange(&env, &dir);
    let failed = read(&dir, "failed/hoff-4.json");
    assert_eq!(
        (
            &failed["status"],
            &failed["error"]["code"],
            &failed["retry_available"]
        ),
        (&json!("failed"), &json!("PROCESSING_ERROR"), &json!(true))
    );
    assert_eq!(files(&dir), ["failed/hoff-4.json"]);
    let out = python(&dir, &["wait", "hoff-4", "60"]);
    assert_eq!(String::from_utf8(out.stderr).unwrap(), "broken\n");
    settled(&env, &dir);
}

/// The programs, while an exchange runs, is killed and started again.
#[test]
fn an_exchange_that_is_killed_and_started_again_loses_and_doubles_nothing() {
    let env = with_protocol(SPECIALISTS);
    let dir = shared(&env);
    let watch = || {
        let mut command = env.program(&["exchange", dir.to_str().unwrap(), "--watch"]);
        command
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE");
        Running::silent(command)
    };
    let mut running = watch();
    let ids: Vec<String> = (1..=6).map(|n| format!("hoff-{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        does(&dir, &["create", id, FRONTEND, REACT, DATA]);
        if n % 2 == 0 {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
            running = watch();
        }
        does(&dir, &["pick_up", id]);
        if n % 3 == 0 {
            does(&dir, &["fail", id, "no disk"]);
        } else {
            does(&dir, &["complete", id]);
        }
    }
    let ends = |n: usize| {
        if n.is_multiple_of(3) {
            "failed"
        } else {
            "completed"
        }
    };
    until("all outcomes came in", || {
        ids.iter().enumerate().all(|(n, id)| {
            let shown = env.handoff(&["show", &format!("{id}.1"), "--json"]);
            shown.status == 0 && stored(&shown.json()["data"])["state"] == ends(n)
        })
    });
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    env.wait_minutes(5);
    exchange(&env, &dir);
    settled(&env, &dir);
    let expected: Vec<String> = {
        let all = ids.iter().enumerate();
        let mut all: Vec<String> = all
            .map(|(n, id)| format!("{}/{id}.json", ends(n)))
            .collect();
        all.sort();
        all
    };
    assert_eq!(files(&dir), expected);
    for id in &ids {
        let status = env.handoff(&["status", id, "--json"]).success().json();
        assert_eq!(
            status["data"]["handoffs"].as_array().unwrap().len(),
            2,
            "{id}"
        );
    }
}
