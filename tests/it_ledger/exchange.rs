//! The way out and the way in: what is exported makes the same ledger again,
//! what other systems keep becomes one, and what is refused is told.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use test_support::contracts::{opening, prepared, with};
use test_support::exchange::{
    SPECIALISTS, counts, decision, exported, fresh, handoff, import, lived, refused, sample, text,
    trees,
};
use test_support::team::{BUILT_IN, commits_in, run, with_protocol};
use test_support::workflow::completed;
use test_support::{TestEnvironment, stored, until};

fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    test_support::files::write(&dir.join(name), bytes);
}

fn there_and_back(protocol: &str, formats: &[&str]) {
    let env = lived(protocol);
    let own = trees(&env, &env.repo());
    let steps = commits_in(&env, &env.repo());
    for format in formats {
        let dir = exported(&env, format, format);
        let repo = fresh(&env, &format!("from-{format}"), protocol);
        let (data, status) = import(&env, &repo, &dir, &[]);
        assert_eq!(refused(&data), [""; 0], "{format}");
        assert_eq!((status, data["format"].as_str()), (0, Some("steps")));
        assert_eq!(counts(&data), (steps - 1, 1, 0, steps as u64 - 1));
        assert_eq!(trees(&env, &repo), own, "{format}");
        env.handoff_in(&repo, &["verify"]).success();
        // Again: nothing to do.
        let args = ["import", dir.to_str().unwrap()];
        let again = env.handoff_in(&repo, &args).success();
        assert_eq!(
            again.stdout,
            format!("{steps} there already; nothing was written\n")
        );
        assert_eq!(commits_in(&env, &repo), steps);
        let log = [
            "log",
            "--reverse",
            "--format=%an %ae %at %ai %s%n%b",
            "handoffs",
        ];
        let told = |repo: &Path| {
            let text = env.git(repo, &log);
            text.split_once("\n\n").unwrap().1.to_owned()
        };
        // Who put a protocol in force is whoever imports it.
        let without = |text: String| {
            let lines = text.lines().filter(|l| !l.contains("Update protocol"));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(without(told(&repo)), without(told(&env.repo())));
        // What comes out of the copy is what came out of the first.
        let args = ["export", "--format", format, "again"];
        env.handoff_in(&repo, &args).success();
        let lines = |path: &Path| {
            let text = fs::read_to_string(path.join("steps.jsonl")).unwrap();
            let lines = text
                .lines()
                .filter(|l| !l.contains("{\"protocol\":{\"name"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&repo.join("again")), lines(&dir), "{format}");
    }
}

#[test]
fn a_ledger_of_the_way_to_a_merge_goes_there_and_back() {
    there_and_back(BUILT_IN[0], &["folders", "log"]);
}

#[test]
fn a_ledger_of_calls_to_specialists_goes_there_and_back() {
    there_and_back(BUILT_IN[1], &["archive"]);
}

#[test]
fn a_ledger_of_tasks_goes_there_and_back() {
    there_and_back(BUILT_IN[2], &["files"]);
}

#[test]
fn a_ledger_of_delegations_goes_there_and_back() {
    there_and_back(BUILT_IN[3], &["folders"]);
}

#[test]
fn a_ledger_of_evaluated_work_goes_there_and_back() {
    there_and_back(BUILT_IN[4], &["log"]);
}

/// A folder in which nothing but these files is.
fn folder(env: &TestEnvironment, name: &str, files: &[(&str, Vec<u8>)]) -> std::path::PathBuf {
    let dir = env.root().join(name);
    fs::create_dir(&dir).unwrap();
    for (path, bytes) in files {
        write(&dir, path, bytes);
    }
    dir
}

fn record(env: &TestEnvironment, repo: &Path, id: &str) -> Value {
    let ran = env.handoff_in(repo, &["show", id, "--json"]).success();
    stored(&ran.json()["data"])
}

/// Imports twice: the second time nothing is written, and all is there.
fn twice(env: &TestEnvironment, repo: &Path, dir: &Path, more: &[&str]) -> Value {
    let before = commits_in(env, repo);
    let (dry, status) = import(env, repo, dir, &[more, &["--dry-run"]].concat());
    assert_eq!(commits_in(env, repo), before);
    let (data, same) = import(env, repo, dir, more);
    assert_eq!((counts(&dry), status), (counts(&data), same));
    assert_eq!(refused(&dry), refused(&data));
    let after = commits_in(env, repo);
    let made = data["commits"].as_u64().unwrap();
    assert_eq!(before as u64 + made, after as u64);
    let (again, _) = import(env, repo, dir, more);
    assert_eq!(again["commits"], 0);
    assert_eq!(again["imported"], json!([]));
    assert_eq!(refused(&again), refused(&data));
    assert_eq!(commits_in(env, repo), after);
    env.handoff_in(repo, &["verify"]).success();
    data
}

#[test]
fn an_issue_can_go_out_alone() {
    let env = lived("issue-to-pr");
    let dir = env.root().join("only");
    let args = ["--format", "files", "--issue", "90", "--json"];
    let ran = env.handoff(&[&["export", dir.to_str().unwrap()][..], &args].concat());
    let data = &ran.success().json()["data"];
    // The opening, six changes, a failure; and both versions of the protocol.
    assert_eq!(data["steps"], 10);
    assert_eq!(data["handoffs"], 1);
    let repo = fresh(&env, "alone", "issue-to-pr");
    assert_eq!(counts(&twice(&env, &repo, &dir, &[])), (9, 1, 0, 9));
    let of_90 = |repo: &Path| env.git(repo, &["rev-parse", "handoffs:issues/90"]);
    assert_eq!(of_90(&repo), of_90(&env.repo()));
    let none = env.root().join("none");
    let args = ["export", "--format", "log", none.to_str().unwrap()];
    env.handoff(&[&args[..], &["--issue", "4711"]].concat())
        .exits(6)
        .says("no issue 4711");
}

#[test]
fn the_zone_that_a_step_was_recorded_in_comes_back() {
    let env = TestEnvironment::with_ledger();
    let mut send = env.program(&["send", &env.file("87.xml", opening(87))]);
    send.env("GIT_AUTHOR_DATE", format!("@{} +0530", env.now()));
    assert!(send.status().unwrap().success());
    let dir = exported(&env, "files", "out");
    let repo = fresh(&env, "copy", "issue-to-pr");
    import(&env, &repo, &dir, &[]);
    let date = |repo: &Path| env.git(repo, &["log", "-1", "--format=%aI", "handoffs"]);
    assert_eq!(date(&repo), date(&env.repo()));
    assert!(date(&repo).contains("+05:30"), "{}", date(&repo));
}

#[test]
fn an_export_needs_a_folder_of_its_own() {
    let env = TestEnvironment::with_ledger();
    let dir = env.root().join("own");
    fs::create_dir(&dir).unwrap();
    write(&dir, "letter.txt", "mine");
    let args = ["export", "--format", "files", dir.to_str().unwrap()];
    env.handoff(&args).exits(2).says("is not empty");
    let file = dir.join("letter.txt");
    let args = ["export", "--format", "files", file.to_str().unwrap()];
    env.handoff(&args).exits(2).says("cannot be read");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    fs::remove_file(file).unwrap();
    exported(&env, "files", "own");
    // Of a clone without its beginning, not all can be told.
    env.send(opening(87)).success();
    let url = format!("file://{}", env.repo().display());
    let args = ["clone", "-q", "--depth=1", "-b", "handoffs", &url, "cut"];
    env.git(env.root(), &args);
    let cut = env.root().join("cut");
    let args = ["export", "--format", "files", "out"];
    env.handoff_in(&cut, &args)
        .exits(6)
        .says("git handoff fetch --full");
}

#[test]
fn a_log_tells_every_handoff_and_comes_back_as_notes() {
    let env = lived("task-breakdown");
    // "Log all handoff attempts": one that is refused is an attempt, too. The document's entry has its size.
    let early = sample("task-breakdown", "execution-to-planning").to_string();
    let file = env.file("early.json", &early);
    env.handoff(&["send", &file, "--issue", "environment"])
        .exits(4);
    let dir = exported(&env, "log", "log");
    let log: Value =
        serde_json::from_slice(&fs::read(dir.join("handoff_log.json")).unwrap()).unwrap();
    let entries = log["handoff_log"].as_array().unwrap();
    // What the environment was handed over for is still worked on: it has no entry yet.
    let of = |name: &str| {
        let values = entries.iter().map(|entry| entry[name].to_string());
        values.collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(of("trigger"), @r#""breakdown_complete" "breakdown_complete" "breakdown_complete" "subtask_complete" "breakdown_complete" "plan_ready" "subtask_complete""#);
    insta::assert_snapshot!(of("success"), @"true false true true true true false");
    let logged = entries
        .iter()
        .find(|entry| entry["trigger"] == "plan_ready");
    assert_eq!(*logged.unwrap(), sample("task-breakdown", "logged-handoff"));
    let attempt = entries.last().unwrap();
    assert_eq!(
        (&attempt["from"], &attempt["to"]),
        (&json!("execution-guardian"), &json!("task-orchestrator"))
    );
    assert_eq!(
        (&attempt["success"], &attempt["data_size"]),
        (&json!(false), &json!(early.len()))
    );
    fs::remove_file(dir.join("steps.jsonl")).unwrap();
    let repo = fresh(&env, "notes", "task-breakdown");
    let data = twice(&env, &repo, &dir, &[]);
    assert_eq!(data["format"], "log");
    assert_eq!(refused(&data), [""; 0]);
    let note = record(&env, &repo, "log.1");
    assert_eq!(note["contract_type"], "logged-handoff");
    assert_eq!(
        (&note["from"], &note["to"], &note["state"]),
        (&entries[0]["from"], &entries[0]["to"], &json!("completed"))
    );
    // The file alone, for an issue of its own; and what no log says.
    let (data, status) = import(
        &env,
        &repo,
        &dir.join("handoff_log.json"),
        &["--issue", "77"],
    );
    assert_eq!(
        (status, data["imported"][0]["id"].as_str()),
        (0, Some("77.1"))
    );
    let mut bad = log.clone();
    bad["handoff_log"][0]["from"] = json!("night-watch");
    bad["handoff_log"][2] = json!("late");
    let dir = folder(
        &env,
        "bad",
        &[("handoff_log.json", text(&bad).into_bytes())],
    );
    let (data, status) = import(&env, &repo, &dir, &["--issue", "78"]);
    assert_eq!(status, 3);
    let told = refused(&data);
    assert!(
        told[0].starts_with(
            "handoff_log.json#/handoff_log/0 contract_refused gate.valid_transition,agent.unknown"
        ),
        "{told:?}"
    );
    assert_eq!(told.len(), 2);
}

#[test]
fn what_is_kept_of_a_failed_handoff_goes_out_and_comes_in() {
    let env = with_protocol("task-breakdown");
    let one_task = [
        ("/data/task_ids", json!(["011"])),
        ("/data/difficulties", json!([8])),
    ];
    let opening = with(
        sample("task-breakdown", "environment-to-planning"),
        &one_task,
    );
    env.send(text(&opening)).success();
    let orchestrator = "--as task-orchestrator";
    for _ in 0..2 {
        run(&env, &format!("claim environment.1 {orchestrator}"));
        env.wait_minutes(2);
        run(
            &env,
            &format!(
                "fail environment.1 {orchestrator} --code NoModel --message late --recoverable"
            ),
        );
        run(&env, &format!("retry environment.1 {orchestrator}"));
        env.wait(5);
    }
    run(&env, &format!("claim environment.1 {orchestrator}"));
    run(
        &env,
        &format!("fail environment.1 {orchestrator} --code NoModel --message late"),
    );
    let dir = exported(&env, "log", "log");
    let read = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(dir.join(path)).unwrap()).unwrap()
    };
    let failed = read("failures/environment.1/handoff-failed.json");
    assert_eq!(failed["preserved_context"]["contract"], opening);
    let mut told = failed.clone();
    told["preserved_context"]["contract"] = json!("as it was sent");
    insta::assert_snapshot!(text(&told), @r#"
    {
      "failed_at": "2026-03-02T09:08:19Z",
      "from_agent": "environment-architect",
      "to_agent": "task-orchestrator",
      "preserved_context": {
        "handoff": "environment.1",
        "contract_type": "environment-to-planning",
        "contract": "as it was sent",
        "failure": {
          "code": "NoModel",
          "message": "late",
          "recoverable": false
        },
        "kept": "0001-failure/3"
      },
      "retry_count": 2
    }
    "#);
    let log = read("handoff_log.json");
    insta::assert_snapshot!(text(&log["handoff_log"]), @r#"
    [
      {
        "timestamp": "2026-03-02T09:04:01Z",
        "from": "environment-architect",
        "to": "task-orchestrator",
        "trigger": "high_difficulty_tasks",
        "data_size": 429,
        "success": false,
        "duration_ms": 1000
      },
      {
        "timestamp": "2026-03-02T09:06:04Z",
        "from": "environment-architect",
        "to": "task-orchestrator",
        "trigger": "high_difficulty_tasks",
        "data_size": 429,
        "success": false,
        "duration_ms": 6000
      },
      {
        "timestamp": "2026-03-02T09:08:12Z",
        "from": "environment-architect",
        "to": "task-orchestrator",
        "trigger": "high_difficulty_tasks",
        "data_size": 429,
        "success": false,
        "duration_ms": 6000
      }
    ]
    "#);
    fs::remove_file(dir.join("steps.jsonl")).unwrap();
    let repo = fresh(&env, "notes", "task-breakdown");
    let data = twice(&env, &repo, &dir, &[]);
    assert_eq!(refused(&data), [""; 0]);
    let notes: Vec<Value> = (1..=4)
        .map(|n| record(&env, &repo, &format!("log.{n}")))
        .collect();
    let short = |note: &Value| {
        let at = note["transitions"][0]["at"].as_str().unwrap();
        let status = note["status"].as_str().unwrap_or("-");
        let (kind, from) = (&note["contract_type"], &note["imported"]["file"]);
        format!("{at} {kind} {status} {from}")
    };
    let notes: Vec<String> = notes.iter().map(short).collect();
    insta::assert_snapshot!(notes.join("\n"), @r#"
    2026-03-02T09:04:01Z "logged-handoff" false "handoff_log.json#/handoff_log/0"
    2026-03-02T09:06:04Z "logged-handoff" false "handoff_log.json#/handoff_log/1"
    2026-03-02T09:08:12Z "logged-handoff" false "handoff_log.json#/handoff_log/2"
    2026-03-02T09:08:19Z "failed-handoff" - "failures/environment.1/handoff-failed.json"
    "#);
    // What came in goes out as it was.
    let args = ["export", "--format", "log", "again"];
    env.handoff_in(&repo, &args).success();
    let again = |path: &str| fs::read(repo.join("again").join(path)).unwrap();
    let same: Value = serde_json::from_slice(&again("handoff_log.json")).unwrap();
    assert_eq!(same, log);
    let same = again("failures/log.4/handoff-failed.json");
    assert_eq!(serde_json::from_slice::<Value>(&same).unwrap(), failed);
    // The file alone, wherever it lies.
    let alone = env.file("handoff-failed.json", text(&failed));
    let (data, _) = import(&env, &repo, Path::new(&alone), &["--issue", "77"]);
    assert_eq!(data["imported"][0]["id"], "77.1");
}

#[test]
fn a_log_that_is_none_is_told() {
    let env = with_protocol("task-breakdown");
    for (bytes, code) in [
        ("{\"handoff_log\": {}}", "import.entries"),
        ("[1, ", "import.entries"),
    ] {
        let file = env.file("handoff_log.json", bytes);
        let args = ["--format", "log"];
        let (data, status) = import(&env, &env.repo(), Path::new(&file), &args);
        let told = format!("handoff_log.json import_unreadable {code}");
        assert_eq!((status, refused(&data)), (3, vec![told]));
    }
}

#[test]
fn an_archive_comes_in_by_its_log() {
    let env = lived("directive");
    let dir = exported(&env, "archive", "archive");
    let log = fs::read_to_string(dir.join("handoffs.log")).unwrap();
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let told = json!({
        "handoff_id": "research",
        "from": "ResearchGPT",
        "to": "MetaGPT",
        "status": "success",
        "timestamp": "2026-03-02T09:05:00Z",
    });
    assert_eq!(first, told);
    // "Update {{WORKFLOW_STATE_JSON}} with": it lies beside the contracts and the log.
    let state = fs::read_to_string(dir.join("state.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["workflow_id"], "weir-4");
    let newest = &env.data(&["status", "weir-4"])["handoffs"];
    let newest = newest.as_array().unwrap().last().unwrap();
    assert_eq!(state["previous_agent"], newest["from"]);
    assert_eq!(state["context_snapshot"], newest["summary"]);
    assert!(state["artifacts_available"].is_array(), "{state}");
    assert!(state["facts"]["rationale"].is_string(), "{state}");
    let contract = fs::read(dir.join("handoff_contracts/research.json")).unwrap();
    let sent = text(&handoff("research", "ResearchGPT", "DesignGPT", "success"));
    assert_eq!(contract, sent.into_bytes());
    fs::remove_file(dir.join("steps.jsonl")).unwrap();
    let repo = fresh(&env, "archived", "directive");
    let data = twice(&env, &repo, &dir, &[]);
    assert_eq!(refused(&data), [""; 0]);
    assert_eq!(counts(&data), (8, 0, 0, 15));
    assert_eq!(data["format"], "archive");
    let states = |repo: &Path| {
        let ran = env
            .handoff_in(repo, &["status", "weir-4", "--json"])
            .success();
        let all = ran.json()["data"]["handoffs"].clone();
        let all = all.as_array().unwrap().iter();
        all.map(|r| format!("{} {} {}", r["id"], r["to"], r["state"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(states(&repo), states(&env.repo()));
}

#[test]
fn a_contract_whose_sender_holds_nothing_is_refused_and_the_others_go_on() {
    let env = with_protocol("directive");
    let to_evaluator = handoff("research", "ResearchGPT", "DesignGPT", "success");
    let unheld = handoff("design", "DesignGPT", "ImplementationGPT", "success");
    let later = handoff("later", "ImplementationGPT", "ResearchGPT", "success");
    let later = with(later, &[("/session_id", json!("weir-5"))]);
    let line = |id: &str| format!("{{\"handoff_id\":\"{id}\"}}\n");
    let log = ["design-0", "research", "design", "../out"]
        .map(line)
        .concat();
    let dir = folder(
        &env,
        "unheld",
        &[
            ("handoffs.log", log.into_bytes()),
            (
                "handoff_contracts/research.json",
                text(&to_evaluator).into(),
            ),
            ("handoff_contracts/design.json", text(&unheld).into()),
            ("handoff_contracts/later.json", text(&later).into()),
        ],
    );
    let data = twice(&env, &env.repo(), &dir, &[]);
    let told = [
        "handoffs.log:1 import_unreadable import.contract",
        "handoff_contracts/design.json not_held",
        "handoffs.log:4 import_unreadable import.contract",
    ];
    assert_eq!(refused(&data), told);
    // What the log does not name comes last.
    assert_eq!(data["imported"][1]["file"], "handoff_contracts/later.json");
}

#[test]
fn a_broken_line_of_an_archives_log_holds_up_its_issue() {
    let env = with_protocol("directive");
    let of = |issue: &str, mut value: Value| {
        value["workflow_id"] = json!(issue);
        text(&value).into_bytes()
    };
    let one = |id: &str| handoff(id, "ResearchGPT", "DesignGPT", "success");
    let log = "{\"handoff_id\": \"a1\"}\n{\"handoff_id\": \n{\"handoff_id\": \"a3\"}\n{\"handoff_id\": \"b1\"}\n";
    let dir = folder(
        &env,
        "broken",
        &[
            ("handoffs.log", log.into()),
            ("handoff_contracts/a1.json", of("a", one("a1"))),
            (
                "handoff_contracts/a2.json",
                of("a", decision("a1", "DesignGPT", "advance")),
            ),
            (
                "handoff_contracts/a3.json",
                of("a", handoff("a3", "DesignGPT", "MetaGPT", "success")),
            ),
            ("handoff_contracts/b1.json", of("b", one("b1"))),
        ],
    );
    let (data, status) = import(&env, &env.repo(), &dir, &[]);
    assert_eq!(status, 3);
    let told = [
        "handoffs.log:2 import_unreadable import.line",
        "handoff_contracts/a3.json out_of_order",
        "handoff_contracts/a2.json out_of_order",
    ];
    assert_eq!(refused(&data), told);
    let there: Vec<&str> = data["imported"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(there, ["a.1", "b.1"]);
}

#[test]
fn contracts_come_in_by_the_order_of_their_paths() {
    let env = completed(|_| test_support::contracts::Format::Xml);
    let dir = exported(&env, "files", "files");
    fs::remove_file(dir.join("steps.jsonl")).unwrap();
    // What failed was retried by a command, of which the contracts tell nothing.
    fs::remove_file(dir.join("87/0003-implementer-agent-to-orchestrator.xml")).unwrap();
    let repo = fresh(&env, "contracts", "issue-to-pr");
    let data = twice(&env, &repo, &dir, &[]);
    assert_eq!(refused(&data), [""; 0]);
    assert_eq!(counts(&data), (11, 0, 0, 21));
    let latest = |repo: &Path, id: &str| record(&env, repo, id)["contract"]["sha256"].clone();
    assert_eq!(latest(&repo, "87.11"), latest(&env.repo(), "87.12"));
    // One file is enough.
    let file = env.file("one.xml", opening(88));
    let (data, _) = import(&env, &repo, Path::new(&file), &[]);
    assert_eq!(data["imported"], json!([{"file": "one.xml", "id": "88.1"}]));
}

/// What a folder of states holds for a request that was answered.
fn answered(files: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let of = |name: &str| text(&sample(SPECIALISTS, name)).into_bytes();
    files
        .iter()
        .map(|(path, name)| ((*path).to_owned(), of(name)))
        .collect()
}

fn states_folder(env: &TestEnvironment, name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
    let files = answered(files);
    let files: Vec<(&str, Vec<u8>)> = files.iter().map(|(p, b)| (p.as_str(), b.clone())).collect();
    folder(env, name, &files)
}

#[test]
fn folders_of_states_come_in_by_time() {
    let env = with_protocol(SPECIALISTS);
    let working = text(&with(
        sample(SPECIALISTS, "request-in-progress"),
        &[("/handoff_id", json!("works"))],
    ));
    let dir = states_folder(
        &env,
        "states",
        &[
            ("handoffs/pending/database.json", "request-database"),
            ("handoffs/completed/loan-list-21.json", "response"),
            ("handoffs/requests/loan-list-21.json", "request"),
        ],
    );
    write(&dir, "handoffs/in-progress/works.json", &working);
    let data = twice(&env, &env.repo(), &dir, &[]);
    assert_eq!(refused(&data), [""; 0]);
    assert_eq!(
        (counts(&data), data["format"].as_str()),
        ((4, 0, 0, 7), Some("folders"))
    );
    assert_eq!(
        record(&env, &env.repo(), "loan-list-21.1")["state"],
        "completed"
    );
    assert_eq!(record(&env, &env.repo(), "works.1")["state"], "blocked");
    let out = exported(&env, "folders", "out");
    let has = |path: &str| assert!(out.join(path).is_file(), "{path}");
    has("handoffs/completed/loan-list-21.json");
    has("handoffs/requests/loan-list-21.json");
    has("handoffs/in-progress/works.json");
    // And back once more, from the layout alone.
    fs::remove_file(out.join("steps.jsonl")).unwrap();
    let repo = fresh(&env, "layout", SPECIALISTS);
    let again = twice(&env, &repo, &out, &[]);
    assert_eq!(counts(&again), counts(&data));
}

#[test]
fn a_document_that_is_request_and_answer_in_one_is_split() {
    let env = with_protocol(SPECIALISTS);
    let mut merged = sample(SPECIALISTS, "request");
    let answer = sample(SPECIALISTS, "response");
    for (name, value) in answer.as_object().unwrap() {
        if !["source", "target"].contains(&name.as_str()) {
            merged[name] = value.clone();
        }
    }
    let mut lacking = merged.clone();
    for name in ["timestamp_completed", "metadata"] {
        lacking.as_object_mut().unwrap().remove(name);
    }
    lacking["handoff_id"] = json!("lacking-1");
    let alone = with(answer, &[("/handoff_id", json!("alone-1"))]);
    let dir = folder(
        &env,
        "merged",
        &[
            ("completed/loan-list-21.json", text(&merged).into()),
            ("completed/lacking-1.json", text(&lacking).into()),
            ("completed/alone-1.json", text(&alone).into()),
        ],
    );
    let data = twice(&env, &env.repo(), &dir, &[]);
    assert_eq!(
        refused(&data),
        ["completed/alone-1.json import_unreadable import.request"]
    );
    for key in ["loan-list-21", "lacking-1"] {
        let (request, answer) = (format!("{key}.1"), format!("{key}.2"));
        assert_eq!(record(&env, &env.repo(), &request)["state"], "completed");
        assert_eq!(record(&env, &env.repo(), &answer)["answers"], request);
    }
    // What it lacked is not made up.
    assert_eq!(
        record(&env, &env.repo(), "lacking-1.2")["imported"],
        json!({
            "file": "completed/lacking-1.json",
            "profile": "state-files",
            "unknown": ["/metadata", "/timestamp_completed"],
        })
    );
    assert_eq!(
        record(&env, &env.repo(), "loan-list-21.2")["imported"],
        json!({"file": "completed/loan-list-21.json"})
    );
}

/// A file as it is written by functions that know less than a contract has.
fn state_file(id: &str, status: &str, more: &Value) -> Value {
    let mut value = json!({
        "handoff_id": id,
        "timestamp": "2026-02-11T08:00:00.125000Z",
        "status": status,
        "source": {"agent_id": "@frontend-specialist", "phase": 11, "agent_type": "orchestrator"},
        "target": {"agent_id": "@react-specialist", "phase": 13, "agent_type": "specialist"},
        "context": {"project_id": "loan-desk", "tech_stack": {"framework": "React", "version": "19.1"}},
        "input": {
            "schema": "react-specialist.input.schema.json",
            "data": {"component_requirements": [{"name": "LoanList", "type": "functional", "props": {}}]},
        },
        "timeout_seconds": 300,
    });
    for (name, more) in more.as_object().unwrap() {
        value[name] = more.clone();
    }
    value
}

/// The folders of a system that moves a file for each handoff from state to state.
fn state_files() -> Vec<(&'static str, Vec<u8>)> {
    // Longer than a lease, and taken up later than it had to be.
    let started = json!("2026-02-11T08:30:00.000002Z");
    let output = json!({
        "artifact_id": "loan-list-1",
        "artifact_path": "artifacts/loan-list-1.json",
        "artifact_type": "react-components",
        "schema_compliance": "valid",
    });
    let checks = json!({
        "status": "passed",
        "typescript_errors": 0,
        "eslint_warnings": 0,
        "tests_passing": true,
        "coverage_percentage": 91,
    });
    let done = json!({
        "started_at": started,
        "completed_at": "2026-02-11T09:30:00.5Z",
        "execution_time_seconds": 3600,
        "output": output,
        "validation": checks,
    });
    let failed = json!({
        "started_at": started,
        "failed_at": "2026-02-11T08:31:00Z",
        "error": {
            "code": "PROCESSING_ERROR",
            "message": "the generator stopped",
            "severity": "error",
            "timestamp": "2026-02-11T08:31:00Z",
        },
        "retry_available": true,
        "retry_count": 0,
    });
    let bytes = |value: &Value| text(value).into_bytes();
    let of = |id, status, more: &Value| bytes(&state_file(id, status, more));
    vec![
        (
            "handoffs/pending/hoff-1.json",
            of("hoff-1", "pending", &json!({})),
        ),
        (
            "handoffs/in-progress/hoff-2.json",
            of("hoff-2", "in_progress", &json!({"started_at": started})),
        ),
        (
            "handoffs/completed/hoff-3.json",
            of("hoff-3", "completed", &done),
        ),
        (
            "handoffs/failed/hoff-4.json",
            of("hoff-4", "failed", &failed),
        ),
    ]
}

#[test]
fn files_that_say_less_come_in_with_their_times_and_without_a_lease() {
    let env = with_protocol(SPECIALISTS);
    let mut files = state_files();
    let phases = json!([{"phase": 13, "status": "in_progress"}]);
    let context = json!({"project_id": "loan-desk", "phases": phases});
    files.push(("context/phase-status.json", text(&context).into_bytes()));
    files.push(("context/tech-stack.json", b"{}".to_vec()));
    files.push(("artifacts/loan-list-1.json", b"{}".to_vec()));
    let dir = folder(&env, "states", &files);
    let data = twice(&env, &env.repo(), &dir, &[]);
    // A shared document that cannot be one is refused; the rest comes in.
    let broken = "context/tech-stack.json document_refused field.missing,field.missing";
    assert_eq!(refused(&data), [broken]);
    assert_eq!(data["left_out"], json!(["artifacts/loan-list-1.json"]));
    let of = |id: &str| record(&env, &env.repo(), id);
    let steps = |id: &str| {
        let record = of(id);
        let steps = record["transitions"].as_array().unwrap().iter();
        let steps = steps.map(|t| {
            format!(
                "{} {}",
                t["at"].as_str().unwrap(),
                t["to"].as_str().unwrap()
            )
        });
        steps.collect::<Vec<_>>().join("\n")
    };
    let all = [
        "hoff-1.1", "hoff-2.1", "hoff-3.1", "hoff-3.2", "hoff-4.1", "hoff-4.2",
    ];
    for id in all {
        let record = of(id);
        assert_eq!(record["imported"]["profile"], "state-files", "{id}");
        for end in ["lease", "acknowledge_by"] {
            assert_eq!(record.get(end).filter(|v| !v.is_null()), None, "{id}");
        }
    }
    insta::assert_snapshot!(all.map(|id| format!("{id}\n{}", steps(id))).join("\n"), @"
    hoff-1.1
    2026-02-11T08:00:00.125Z pending
    hoff-2.1
    2026-02-11T08:00:00.125Z pending
    2026-02-11T08:30:00Z in_progress
    2026-02-11T08:30:00Z blocked
    hoff-3.1
    2026-02-11T08:00:00.125Z pending
    2026-02-11T08:30:00Z in_progress
    2026-02-11T09:30:00.500Z completed
    hoff-3.2
    2026-02-11T09:30:00.500Z completed
    hoff-4.1
    2026-02-11T08:00:00.125Z pending
    2026-02-11T08:30:00Z in_progress
    2026-02-11T08:31:00Z failed
    hoff-4.2
    2026-02-11T08:31:00Z completed
    ");
    insta::assert_snapshot!(text(&of("hoff-3.2")["imported"]), @r#"
    {
      "file": "handoffs/completed/hoff-3.json",
      "profile": "state-files",
      "unknown": [
        "/context/tech_stack/state_management",
        "/context/tech_stack/styling",
        "/context/tech_stack/testing",
        "/context/tech_stack_artifact_id",
        "/errors",
        "/metadata",
        "/next_steps",
        "/timestamp_completed",
        "/validation/accessibility_violations",
        "/warnings"
      ]
    }
    "#);
    insta::assert_snapshot!(text(&of("hoff-4.1")["transitions"][2]["failure"]), @r#"
    {
      "code": "PROCESSING_ERROR",
      "message": "the generator stopped",
      "recoverable": true,
      "suggested_action": "Read what it reported, then retry"
    }
    "#);
    // Nothing of it is overdue, however long ago it was.
    let reaped = env.handoff(&["reap", "--json"]).success().json();
    assert_eq!(reaped["data"]["handoffs"], json!([]), "{reaped:#}");
    let shown = env.handoff(&["show", "hoff-3.2"]).success().stdout;
    assert!(
        shown.contains("imported from handoffs/completed/hoff-3.json, by state-files"),
        "{shown}"
    );
    // One of the files alone, with request and answer in one.
    let one = env.root().join("states/handoffs/completed/hoff-3.json");
    let alone = fresh(&env, "alone", SPECIALISTS);
    let (data, status) = import(&env, &alone, &one, &[]);
    assert_eq!((status, counts(&data)), (0, (2, 0, 0, 3)), "{data:#}");
    assert_eq!(record(&env, &alone, "hoff-3.1")["state"], "completed");
    // What was in progress goes on with its outcome.
    fs::remove_file(dir.join("handoffs/in-progress/hoff-2.json")).unwrap();
    let done = String::from_utf8(files[2].1.clone())
        .unwrap()
        .replace("hoff-3", "hoff-2");
    write(&dir, "handoffs/completed/hoff-2.json", done);
    let (data, status) = import(&env, &env.repo(), &dir, &[]);
    assert_eq!((status, data["commits"].as_u64()), (3, Some(3)), "{data:#}");
    assert_eq!(of("hoff-2.1")["state"], "completed");
    env.handoff(&["verify"]).success();
    // An export goes there and back, with what is marked.
    let out = exported(&env, "folders", "out");
    let copy = fresh(&env, "copy", SPECIALISTS);
    let (data, _) = import(&env, &copy, &out, &[]);
    assert_eq!(refused(&data), [""; 0]);
    assert_eq!(trees(&env, &copy), trees(&env, &env.repo()));
}

#[test]
fn an_item_comes_in_whole_or_not_at_all() {
    let env = with_protocol(SPECIALISTS);
    let files = state_files();
    let done: Value = serde_json::from_slice(&files[2].1).unwrap();
    let odd = with(
        done.clone(),
        &[("/output/schema_compliance", json!("unknown"))],
    );
    let dir = folder(
        &env,
        "states",
        &[
            ("completed/hoff-3.json", text(&odd).into_bytes()),
            // The folder says that it is done, the file that it failed.
            ("completed/hoff-4.json", files[3].1.clone()),
            ("failed/hoff-3.json", files[2].1.clone()),
            ("pending/hoff-2.json", files[1].1.clone()),
        ],
    );
    let before = commits_in(&env, &env.repo());
    let data = twice(&env, &env.repo(), &dir, &[]);
    insta::assert_snapshot!(refused(&data).join("\n"), @"
    pending/hoff-2.json import_unreadable import.state
    completed/hoff-4.json import_unreadable import.state
    failed/hoff-3.json import_unreadable import.state
    completed/hoff-3.json contract_refused field.value
    ");
    assert_eq!(commits_in(&env, &env.repo()), before);
    // Strictly by a profile that the protocol does not have.
    let (data, status) = import(&env, &env.repo(), &dir, &["--profile", "other"]);
    assert_eq!((status, data["commits"].as_u64()), (3, Some(0)));
}

/// Imports and kills, until all is there; says whether it took more than one import.
fn killed_on_its_way(env: &TestEnvironment, repo: &Path, dir: &Path, all: usize) -> bool {
    let mut imports = 0;
    loop {
        let before = commits_in(env, repo);
        if before == all {
            return imports > 1;
        }
        imports += 1;
        let mut command = env.program(&["import", dir.to_str().unwrap()]);
        command
            .current_dir(repo)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // A few steps more each time, wherever in a step that is.
        until("the import goes on", || {
            commits_in(env, repo) >= (before + 3).min(all)
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn an_import_that_was_killed_goes_on_where_it_was() {
    let env = lived("issue-to-pr");
    let dir = exported(&env, "archive", "out");
    let all = commits_in(&env, &env.repo());
    // A whole import may pass between two looks at it: then another one is killed.
    let mut repos = (1..=20).map(|n| fresh(&env, &format!("killed-{n}"), "issue-to-pr"));
    let repo = repos.find(|repo| killed_on_its_way(&env, repo, &dir, all));
    let repo = repo.expect("an import is killed on its way");
    assert_eq!(trees(&env, &repo), trees(&env, &env.repo()));
    env.handoff_in(&repo, &["verify"]).success();
    let (data, _) = import(&env, &repo, &dir, &[]);
    assert_eq!(counts(&data), (0, all, 0, 0));
}

/// A folder with the steps of so many issues, each opened and claimed; more than an import
/// publishes one by one.
fn many(env: &TestEnvironment, name: &str, issues: std::ops::Range<u32>) -> PathBuf {
    let dir = env.root().join(name);
    let mut lines = vec![json!({ "version": 1, "default_protocol": "issue-to-pr" })];
    for issue in issues {
        let (contract, at) = (format!("{issue}.xml"), "2026-01-05T10:00:00+00:00");
        write(&dir, &contract, opening(issue));
        let step = |by: &str, request: &Value| json!({ "at": at, "by": by, "worker": "elsewhere", "request": request });
        let sha256 = handoff::base::digest(opening(issue).as_bytes());
        let contract = json!({ "file": contract, "format": "xml", "sha256": sha256, "protocol": "issue-to-pr" });
        let send = step("issue-manager", &json!({ "send": {} }));
        let claim = json!({ "change": { "handoff": 1, "event": "claim", "arguments": { "lease": 14_400 } } });
        let claim = step("prep-agent", &claim);
        let key = issue.to_string();
        lines.push(
            json!({ "issue": { "key": key, "number": 1, "step": send, "contract": contract } }),
        );
        lines.push(json!({ "issue": { "key": key, "number": 2, "step": claim } }));
    }
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    write(&dir, "steps.jsonl", lines);
    dir
}

#[test]
fn many_steps_come_in_as_packs_while_another_import_writes() {
    let env = TestEnvironment::with_ledger();
    let dirs = [many(&env, "first", 1..40), many(&env, "second", 40..80)];
    let repo = fresh(&env, "both", "issue-to-pr");
    let imports = dirs.each_ref().map(|dir| {
        let mut command = env.program(&["import", dir.to_str().unwrap()]);
        command.current_dir(&repo).stdout(Stdio::null());
        command.spawn().unwrap()
    });
    for mut import in imports {
        assert!(import.wait().unwrap().success());
    }
    assert_eq!(commits_in(&env, &repo), 1 + 2 * 79);
    for (dir, issues) in dirs.iter().zip([39, 40]) {
        let (data, _) = import(&env, &repo, dir, &[]);
        assert_eq!(counts(&data), (0, 2 * issues, 0, 0));
    }
    env.handoff_in(&repo, &["verify"]).success();
    env.git(&repo, &["fsck", "--strict", "--no-dangling"]);
    // Alone, the same steps make the same ledger.
    let alone = fresh(&env, "alone", "issue-to-pr");
    for (dir, issues) in dirs.iter().zip([39, 40]) {
        let (data, _) = import(&env, &alone, dir, &[]);
        assert_eq!(counts(&data), (2 * issues, 0, 0, 2 * issues as u64));
    }
    assert_eq!(trees(&env, &alone), trees(&env, &repo));
    env.handoff_in(&alone, &["verify"]).success();
    env.git(&alone, &["fsck", "--strict", "--no-dangling"]);
    let objects = env.git(&alone, &["count-objects", "-v"]);
    let number = |name: &str| -> usize {
        let line = objects.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse().unwrap()
    };
    assert!(number("packs: ") == 2, "{objects}");
    assert!(number("in-pack: ") > 100, "{objects}");
}

/// An export of two issues, with its lines changed.
fn altered(change: impl Fn(usize, &str) -> String) -> (TestEnvironment, std::path::PathBuf) {
    let env = TestEnvironment::with_ledger();
    for issue in [87, 88] {
        env.send(opening(issue)).success();
        run(&env, &format!("claim {issue}.1 --as prep-agent"));
        env.send(prepared(issue)).success();
    }
    let dir = exported(&env, "files", "out");
    let steps = fs::read_to_string(dir.join("steps.jsonl")).unwrap();
    let lines = steps
        .lines()
        .enumerate()
        .map(|(i, line)| change(i + 1, line) + "\n");
    fs::write(dir.join("steps.jsonl"), lines.collect::<String>()).unwrap();
    (env, dir)
}

#[test]
fn a_byte_order_mark_before_steps_or_a_log_is_passed_over() {
    let (env, steps) = altered(|_, line| line.to_owned());
    let log = exported(&env, "log", "log");
    fs::remove_file(log.join("steps.jsonl")).unwrap();
    for (dir, file) in [(steps, "steps.jsonl"), (log, "handoff_log.json")] {
        let text = fs::read_to_string(dir.join(file)).unwrap();
        fs::write(dir.join(file), format!("\u{feff}{text}")).unwrap();
        let repo = fresh(&env, file, "issue-to-pr");
        let (data, status) = import(&env, &repo, &dir, &[]);
        // What the log's contracts are refused for, is found in them.
        let is_read = |why: &String| why.contains("#/handoff_log/");
        assert!(refused(&data).iter().all(is_read), "{file}: {data}");
        assert_eq!(status == 0, file == "steps.jsonl", "{file}: {data}");
    }
}

#[test]
fn a_broken_line_holds_up_its_issue_and_no_other() {
    let (env, dir) = altered(|number, line| match number {
        4 => line[..line.len() / 2].to_owned(),
        _ => line.to_owned(),
    });
    let repo = fresh(&env, "fixed", "issue-to-pr");
    let data = twice(&env, &repo, &dir, &[]);
    let told = [
        "steps.jsonl:4 import_unreadable import.line",
        "steps.jsonl:5 out_of_order",
    ];
    assert_eq!(refused(&data), told);
    assert_eq!(counts(&data), (4, 1, 2, 4));
    assert_eq!(import(&env, &repo, &dir, &[]).1, 3);
    env.handoff_in(&repo, &["import", dir.to_str().unwrap()])
        .exits(3)
        .says("steps.jsonl:5: step 3 of issue 87 is out of order: the ledger has 1 step of it");
}

#[test]
fn a_contract_that_is_not_the_one_of_its_line_is_refused() {
    let (env, dir) = altered(|_, line| line.to_owned());
    let file = dir.join("87/0002-prep-agent-to-implementer-agent.xml");
    fs::write(&file, prepared(87).replace("4187", "4188")).unwrap();
    fs::remove_file(dir.join("88/0001-issue-manager-to-prep-agent.xml")).unwrap();
    let repo = fresh(&env, "other", "issue-to-pr");
    let (data, status) = import(&env, &repo, &dir, &[]);
    assert_eq!(status, 3);
    let told = [
        "steps.jsonl:5 import_unreadable import.sha256",
        "steps.jsonl:6 import_unreadable import.file",
        "steps.jsonl:7 out_of_order",
        "steps.jsonl:8 out_of_order",
    ];
    assert_eq!(refused(&data), told);
}

#[test]
fn nothing_that_the_protocol_refuses_comes_in() {
    // A claim by someone else, and one of what there is not.
    let (env, dir) = altered(|number, line| match number {
        4 => line.replace("prep-agent", "closer-agent"),
        7 => line.replace("\"handoff\":1", "\"handoff\":9"),
        _ => line.to_owned(),
    });
    let repo = fresh(&env, "refused", "issue-to-pr");
    let (data, status) = import(&env, &repo, &dir, &[]);
    assert_eq!(status, 4);
    let told = [
        "steps.jsonl:4 not_yours",
        "steps.jsonl:5 out_of_order",
        "steps.jsonl:7 no_handoff",
        "steps.jsonl:8 out_of_order",
    ];
    assert_eq!(refused(&data), told);
    // An unknown agent, a path out of the folder, a request of no issue.
    let (env, dir) = altered(|number, line| match number {
        3 => line.replace("\"file\":\"87/", "\"file\":\"../87/"),
        6 => line.replace("\"key\":\"88\",", ""),
        _ => line.to_owned(),
    });
    let repo = fresh(&env, "paths", "issue-to-pr");
    let (data, status) = import(&env, &repo, &dir, &[]);
    assert_eq!(status, 3);
    let told = refused(&data);
    assert_eq!(told[0], "steps.jsonl:3 import_unreadable import.file");
    assert_eq!(told[3], "steps.jsonl:6 import_unreadable import.line");
    assert_eq!(commits_in(&env, &repo), 1);
}

#[test]
fn what_the_ledger_has_otherwise_is_a_conflict() {
    let (env, dir) = altered(|_, line| line.to_owned());
    let repo = fresh(&env, "taken", "issue-to-pr");
    env.wait_minutes(90);
    let file = env.file("taken.xml", opening(87));
    env.handoff_in(&repo, &["send", &file]).success();
    let (data, status) = import(&env, &repo, &dir, &[]);
    assert_eq!(status, 5);
    let told = [
        "steps.jsonl:3 import_conflict",
        "steps.jsonl:4 out_of_order",
        "steps.jsonl:5 out_of_order",
    ];
    assert_eq!(refused(&data), told);
    assert_eq!(counts(&data), (3, 1, 3, 3));
}

#[test]
fn a_later_form_of_the_steps_is_told_as_such() {
    let (env, dir) = altered(|number, line| match number {
        1 => line.replace("\"version\":1", "\"version\":2,\"more\":{}"),
        _ => line.to_owned(),
    });
    env.handoff(&["import", dir.to_str().unwrap()])
        .exits(3)
        .says("has version 2, but this program reads 1");
    let (env, dir) = altered(|number, line| match number {
        1 => "steps".to_owned(),
        _ => line.to_owned(),
    });
    env.handoff(&["import", dir.to_str().unwrap()])
        .exits(3)
        .says("import.header");
}

#[test]
fn a_ledger_of_another_protocol_takes_it_in() {
    let env = lived("delegation");
    let dir = exported(&env, "log", "out");
    let repo = fresh(&env, "beside", "issue-to-pr");
    let data = twice(&env, &repo, &dir, &[]);
    assert_eq!(refused(&data), [""; 0]);
    let issues = |repo: &Path| env.git(repo, &["rev-parse", "handoffs:issues"]);
    assert_eq!(issues(&repo), issues(&env.repo()));
}

#[cfg(unix)]
#[test]
fn odd_files_are_told_and_never_waited_for() {
    use std::os::unix::fs::symlink;
    let env = TestEnvironment::with_ledger();
    let at = |path: &Path| env.handoff(&["import", path.to_str().unwrap()]);
    at(&env.root().join("nowhere"))
        .exits(6)
        .says("there is no file or folder");
    at(Path::new("/dev/zero"))
        .exits(3)
        .says("neither a file nor a folder");
    let dir = folder(&env, "odd", &[]);
    at(&dir).exits(6).says("holds nothing to import");
    let made = env
        .command("mkfifo")
        .arg(dir.join("pipe.xml"))
        .status()
        .unwrap();
    assert!(made.success());
    symlink(&dir, dir.join("loop")).unwrap();
    symlink("self.xml", dir.join("self.xml")).unwrap();
    symlink("/dev/zero", dir.join("zero.json")).unwrap();
    env.file("secret.xml", opening(90));
    symlink("../secret.xml", dir.join("out.xml")).unwrap();
    write(&dir, "in/good.xml", opening(87));
    symlink("in/good.xml", dir.join("same.xml")).unwrap();
    write(&dir, "huge.json", vec![b' '; (1 << 20) + 1]);
    write(&dir, "empty.md", "");
    let (data, status) = import(&env, &env.repo(), &dir, &[]);
    assert_eq!(status, 3);
    let told = refused(&data);
    let files = [
        "empty.md",
        "huge.json",
        "out.xml",
        "pipe.xml",
        "self.xml",
        "zero.json",
    ];
    let shown: Vec<&str> = told.iter().map(|t| t.split(' ').next().unwrap()).collect();
    assert_eq!(shown, files);
    assert_eq!(told[1], "huge.json contract_refused input.too_large");
    for item in &told[2..] {
        assert!(item.ends_with("import_unreadable import.file"), "{item}");
    }
    // The good one, once: a link to it in the folder says nothing new.
    let length = |name: &str| data[name].as_array().unwrap().len();
    assert_eq!((length("imported"), length("skipped")), (1, 1));
    let steps = folder(&env, "linked", &[]);
    symlink("/dev/zero", steps.join("steps.jsonl")).unwrap();
    at(&steps).exits(3).says("import.file");
}

#[test]
fn an_import_needs_a_ledger() {
    let env = TestEnvironment::with_repository();
    let file = env.file("one.xml", opening(87));
    env.handoff(&["import", &file]).exits(9).says("no ledger");
    env.handoff(&["export", "--format", "log", "out"])
        .exits(9)
        .says("no ledger");
    assert!(!env.repo().join("out").exists());
}

#[test]
fn what_no_command_could_have_asked_for_is_refused() {
    let (env, dir) = altered(|number, line| match number {
        2 => line.replace("schemas/error.xsd", "schemas//error.xsd"),
        4 => line.replace("\"claim\"", "\"claim\",\"reason\":\" \""),
        6 => line.replace("\"xml\"", "\"json\""),
        _ => line.to_owned(),
    });
    let repo = fresh(&env, "odd", "issue-to-pr");
    let (data, status) = import(&env, &repo, &dir, &[]);
    assert_eq!(status, 3);
    let told = [
        "steps.jsonl:2 import_unreadable import.line",
        "steps.jsonl:4 import_unreadable import.line",
        "steps.jsonl:5 out_of_order",
        "steps.jsonl:6 import_unreadable import.line",
        "steps.jsonl:7 out_of_order",
        "steps.jsonl:8 out_of_order",
    ];
    assert_eq!(refused(&data), told);
    assert_eq!(commits_in(&env, &repo), 2);
    // A time with a smaller fraction is the millisecond that a record can hold.
    let (env, dir) = altered(|_, line| line.replace(":00Z", ":00.0005Z"));
    let repo = fresh(&env, "fraction", "issue-to-pr");
    assert_eq!(counts(&twice(&env, &repo, &dir, &[])), (6, 1, 0, 6));
    assert_eq!(trees(&env, &repo), trees(&env, &env.repo()));
}

#[test]
fn a_note_without_a_sender_is_sent_by_whoever_says_so() {
    let env = with_protocol("delegation");
    let issue = ["--issue", "berth-4"];
    let sample = test_support::contracts::valid("delegation", "decision-without-target.json");
    let dir = folder(&env, "notes", &[("decision.json", sample.into())]);
    let (data, status) = import(&env, &env.repo(), &dir, &issue);
    assert_eq!(
        (status, refused(&data)),
        (4, vec!["decision.json usage".to_owned()])
    );
    let named = [&issue[..], &["--as", "document_generator"]].concat();
    let data = twice(&env, &env.repo(), &dir, &named);
    assert_eq!(counts(&data), (1, 0, 0, 1));
}

/// A step of an export that no command makes, after 7.1 was sent and claimed.
fn imported_after_a_claim(change: &Value, fails: bool) -> (TestEnvironment, Vec<String>) {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    run(&env, "claim 7.1 --as prep-agent");
    if fails {
        run(&env, "fail 7.1 --as prep-agent --message broken");
    }
    let dir = exported(&env, "files", "steps");
    let steps = dir.join("steps.jsonl");
    let lines = fs::read_to_string(&steps).unwrap();
    let mut line: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    let of = &mut line["issue"];
    of["number"] = json!(of["number"].as_u64().unwrap() + 1);
    of["step"]["request"] = json!({ "change": change });
    fs::write(&steps, format!("{lines}{line}\n")).unwrap();
    let repo = fresh(&env, "copy", "issue-to-pr");
    let (data, _) = import(&env, &repo, &dir, &[]);
    env.handoff_in(&repo, &["verify"]).success();
    let shown = env.handoff_in(&repo, &["show", "7.1", "--json"]).success();
    let record = &stored(&shown.json()["data"]);
    assert_eq!(record["to"], "prep-agent", "{record}");
    assert_ne!(record["state"], "dead");
    (env, refused(&data))
}

#[test]
fn an_import_makes_no_step_that_no_agent_can_make() {
    let exhausts = json!({"handoff": 1, "event": "exhaust", "arguments": {"reason": "enough"}});
    let (_env, refused) = imported_after_a_claim(&exhausts, true);
    assert_eq!(refused, ["steps.jsonl:6 illegal_transition"]);
    let to_nobody = json!({"handoff": 1, "event": "reassign", "arguments": {}});
    let (_env, refused) = imported_after_a_claim(&to_nobody, true);
    assert_eq!(refused, ["steps.jsonl:6 not_assignable"]);
    // Arguments of other events are left out.
    let arguments = json!({"receiver": "orchestrator", "lease": 5, "progress": "half"});
    let also = json!({"handoff": 1, "event": "complete", "arguments": arguments});
    let (_env, refused) = imported_after_a_claim(&also, false);
    assert_eq!(refused, [""; 0]);
}

/// The files of the folders of states, with the status that each says.
fn by_state(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for state in ["pending", "in-progress", "completed", "failed"] {
        for entry in fs::read_dir(dir.join("handoffs").join(state)).unwrap() {
            let path = entry.unwrap().path();
            let value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let status = value["status"].as_str().unwrap().to_owned();
            found.push((format!("{state}/{name}"), status));
        }
    }
    found.sort();
    found
}

/// "Update: status in_progress, Add: started_at", "Update: status failed, Add: error { code, message }": what is
/// exported is as the document's own programs leave it, and goes on from state to state.
#[test]
fn folders_of_states_agree_with_the_states_and_are_exported_again() {
    let env = with_protocol(SPECIALISTS);
    env.pace(1);
    let frontend = "--as @frontend-specialist";
    let react = "--as @react-specialist";
    let request = |id: &str| {
        with(
            sample(SPECIALISTS, "request"),
            &[("/handoff_id", json!(id))],
        )
    };
    for id in ["waits", "works", "fails", "late", "gone"] {
        env.send(text(&request(id))).success();
    }
    let answered = with(
        sample(SPECIALISTS, "response"),
        &[("/handoff_id", json!("done"))],
    );
    env.send(text(&request("done"))).success();
    run(&env, &format!("claim done.1 {react}"));
    env.send(text(&answered)).success();
    for id in ["works", "fails"] {
        run(&env, &format!("claim {id}.1 {react}"));
    }
    run(
        &env,
        &format!("fail fails.1 {react} --code PROCESSING_ERROR --message broken --recoverable"),
    );
    run(&env, &format!("cancel gone.1 {frontend} --reason twice"));
    // "context/tech-stack.json": as it came in, byte for byte.
    let stack = "{ \"framework\":\"React\",\n\t\"version\": \"19.1\" }";
    let file = env.file("stack.json", stack);
    let args = [
        "document",
        "set",
        "tech-stack",
        &file,
        "--as",
        "@frontend-specialist",
    ];
    env.handoff(&args).success();
    let dir = exported(&env, "folders", "out");
    let state = |path: &str, status: &str| (path.to_owned(), status.to_owned());
    let all = [
        state("completed/done.json", "completed"),
        state("failed/fails.json", "failed"),
        state("failed/gone.json", "failed"),
        state("in-progress/works.json", "in_progress"),
        state("pending/late.json", "pending"),
        state("pending/waits.json", "pending"),
    ];
    assert_eq!(by_state(&dir), all);
    let read = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(dir.join("handoffs").join(path)).unwrap()).unwrap()
    };
    assert!(read("in-progress/works.json")["started_at"].is_string());
    let error = &read("failed/fails.json")["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("PROCESSING_ERROR"), &json!("broken"))
    );
    assert_eq!(
        read("failed/gone.json")["error"]["message"],
        "cancelled: twice"
    );
    assert_eq!(
        fs::read_to_string(dir.join("context/tech-stack.json")).unwrap(),
        stack
    );
    // Our own import reads the layout alone.
    let layout = env.root().join("layout");
    let copied = env
        .command("cp")
        .arg("-r")
        .args([&dir, &layout])
        .status()
        .unwrap();
    assert!(copied.success());
    fs::remove_file(layout.join("steps.jsonl")).unwrap();
    let repo = fresh(&env, "layout-copy", SPECIALISTS);
    let data = twice(&env, &repo, &layout, &[]);
    assert_eq!(refused(&data), [""; 0]);
    for (id, is) in [
        ("waits", "pending"),
        ("works", "blocked"),
        ("fails", "failed"),
        ("done", "completed"),
    ] {
        assert_eq!(record(&env, &repo, &format!("{id}.1"))["state"], is);
    }
    // Again: nothing changes.
    exported(&env, "folders", "out");
    assert_eq!(by_state(&dir), all);
    // What others wrote stays, and is told; what is ours goes on with its handoff.
    write(&dir, "handoffs/pending/letter.txt", "mine");
    let changed = with(read("pending/late.json"), &[("/priority", json!("low"))]);
    write(&dir, "handoffs/pending/late.json", text(&changed));
    run(&env, &format!("claim late.1 {react}"));
    run(&env, &format!("claim waits.1 {react}"));
    run(&env, &format!("retry fails.1 {frontend} --reason again"));
    let args = [
        "export",
        "--format",
        "folders",
        dir.to_str().unwrap(),
        "--json",
    ];
    let data = env.handoff(&args).success().json()["data"].take();
    assert_eq!(data["kept"], json!(["handoffs/pending/late.json"]));
    assert_eq!(
        fs::read_to_string(dir.join("handoffs/pending/letter.txt")).unwrap(),
        "mine"
    );
    fs::remove_file(dir.join("handoffs/pending/letter.txt")).unwrap();
    let now = [
        state("completed/done.json", "completed"),
        state("failed/gone.json", "failed"),
        state("in-progress/waits.json", "in_progress"),
        state("in-progress/works.json", "in_progress"),
        state("pending/fails.json", "pending"),
        state("pending/late.json", "pending"),
    ];
    assert_eq!(by_state(&dir), now);
    assert_eq!(read("pending/late.json"), changed);
    assert_eq!(read("pending/fails.json")["retry_count"], 1);
}

#[test]
fn an_exchange_needs_a_folder_a_protocol_and_to_be_the_only_one() {
    let env = with_protocol(SPECIALISTS);
    let code = |args: &[&str]| {
        let ran = env.handoff(&[&["exchange"][..], args, &["--json"]].concat());
        ran.json()["error"]["code"].as_str().unwrap().to_owned()
    };
    let file = env.file("letter.txt", "mine");
    assert_eq!(code(&[&file]), "folder_unfit");
    assert_eq!(code(&[&format!("{file}/below")]), "folder_unreadable");
    assert_eq!(code(&[".git"]), "folder_unfit");
    assert_eq!(code(&[".git/shared"]), "folder_unfit");
    assert!(!env.repo().join(".git/shared").exists());
    let dir = env.root().join("shared");
    let dir = dir.to_str().unwrap();
    let other = test_support::running::Running::of(env.program(&["exchange", dir, "--watch"]));
    let mut other = other.waits();
    assert_eq!(code(&[dir]), "folder_busy");
    let args = ["export", "--format", "folders", dir, "--json"];
    assert_eq!(env.handoff(&args).json()["error"]["code"], "folder_busy");
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    env.handoff(&["exchange", dir]).success();
    // A protocol that is not in force is the cause, not the fields that another one wants.
    let env = TestEnvironment::with_ledger();
    let ran = env.handoff(&["exchange", "shared", "--json"]);
    let error = &ran.json()["error"];
    assert_eq!(error["code"], "no_import_profile");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("git handoff protocol add orchestrator-specialist")
    );
    let dir = folder(&env, "states", &state_files());
    let (data, _) = import(&env, &env.repo(), &dir, &[]);
    for item in data["refused"].as_array().unwrap() {
        assert_eq!(
            item["findings"][0]["code"], "contract.not_in_force",
            "{item:#}"
        );
        assert_eq!(item["findings"].as_array().unwrap().len(), 1);
    }
    assert_eq!(data["refused"].as_array().unwrap().len(), 4);
}

/// "Write to pending directory": the file that the document's first program makes is a file for `import`, and each
/// command that is given it says so.
#[test]
fn a_file_of_the_folders_is_told_by_what_takes_it() {
    let env = with_protocol(SPECIALISTS);
    let file = env.file(
        "hoff-9.json",
        text(&state_file("hoff-9", "pending", &json!({}))),
    );
    for args in [&["check"][..], &["send"]] {
        let ran = env.handoff(&[args, &[&file]].concat()).exits(3);
        ran.says("git handoff import").says("git handoff exchange");
    }
    write(
        &env.repo(),
        "handoffs/pending/hoff-9.json",
        fs::read(&file).unwrap(),
    );
    env.git(&env.repo(), &["add", "handoffs"]);
    let ran = env.handoff(&["hook", "pre-commit"]).exits(1);
    ran.says("git handoff import").says("git handoff exchange");
}
