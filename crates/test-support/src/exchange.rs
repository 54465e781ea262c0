//! Ledgers with every kind of step, one per built-in protocol, and helpers for tests of exports and
//! imports.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::TestEnvironment;
use crate::contracts::{Format, opening, prepared, valid, value, with};
use crate::team::{run, with_protocol};
use crate::workflow::{self, workflow};

/// A valid sample of a protocol.
pub fn sample(protocol: &str, name: &str) -> Value {
    value(protocol, name, &[])
}

pub fn text(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn send(env: &TestEnvironment, value: &Value) {
    env.send(text(value)).success();
}

/// A new repository beside the first, with a ledger of this protocol.
pub fn fresh(env: &TestEnvironment, name: &str, protocol: &str) -> PathBuf {
    env.git(env.root(), &["init", "-q", name]);
    let repo = env.root().join(name);
    env.handoff_in(
        &repo,
        &["init", "--protocol", protocol, "--evidence", "off"],
    )
    .success();
    repo
}

/// The ids of the trees, which an import must reproduce.
pub fn trees(env: &TestEnvironment, repo: &Path) -> String {
    let paths = ["issues", "open", "protocols", "documents"];
    env.git(repo, &[&["ls-tree", "handoffs", "--"][..], &paths].concat())
}

/// Exports the ledger, and returns the folder.
pub fn exported(env: &TestEnvironment, format: &str, name: &str) -> PathBuf {
    let dir = env.root().join(name);
    env.handoff(&["export", "--format", format, dir.to_str().unwrap()])
        .success();
    dir
}

/// Imports with `--json`, where refusals are allowed; returns the output and the exit code.
pub fn import(env: &TestEnvironment, repo: &Path, dir: &Path, more: &[&str]) -> (Value, i32) {
    let args = [&["import", dir.to_str().unwrap(), "--json"][..], more].concat();
    let ran = env.handoff_in(repo, &args);
    let mut document = ran.json();
    assert_eq!(document["ok"], ran.status == 0, "{}", ran.shown);
    let data = document["data"].take();
    assert!(data.is_object(), "{}", ran.shown);
    (data, ran.status)
}

/// The counts of an import: imported, already there, refused, commits.
pub fn counts(data: &Value) -> (usize, usize, usize, u64) {
    let length = |name: &str| data[name].as_array().unwrap().len();
    let commits = data["commits"].as_u64().unwrap();
    (
        length("imported"),
        length("skipped"),
        length("refused"),
        commits,
    )
}

/// The files and codes of the refusals.
pub fn refused(data: &Value) -> Vec<String> {
    let items = data["refused"].as_array().unwrap().iter();
    items
        .map(|item| {
            let found = item["findings"].as_array().unwrap().iter();
            let codes: Vec<&str> = found.map(|f| f["code"].as_str().unwrap()).collect();
            let (file, code) = (&item["file"], &item["code"]);
            format!(
                "{} {} {}",
                file.as_str().unwrap(),
                code.as_str().unwrap(),
                codes.join(",")
            )
            .trim_end()
            .to_owned()
        })
        .collect()
}

/// Updates a protocol to a new version in which an agent's role differs.
pub fn update(env: &TestEnvironment, protocol: &str) {
    let folder = env.root().join("new-version");
    let top = format!("protocols/{protocol}/");
    let names = env.git(
        &env.repo(),
        &["ls-tree", "-r", "--name-only", "handoffs", &top],
    );
    for path in names.lines() {
        let to = folder.join(path.strip_prefix(&top).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let bytes = env.git(&env.repo(), &["show", &format!("handoffs:{path}")]);
        fs::write(to, bytes).unwrap();
    }
    let file = folder.join("protocol.json");
    let mut definition: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    definition["version"] = json!("9.0.0");
    definition["agents"][0]["role"] = json!("Another role");
    fs::write(&file, text(&definition)).unwrap();
    env.handoff(&["protocol", "update", folder.to_str().unwrap()])
        .success();
}

/// A ledger of this protocol with failures, retries, answers and everything else that the protocol
/// has; the last step updates the protocol.
pub fn lived(protocol: &str) -> TestEnvironment {
    TestEnvironment::prepared(&format!("lived-{protocol}"), || made_to_live(protocol))
}

fn made_to_live(protocol: &str) -> TestEnvironment {
    let env = with_protocol(protocol);
    match protocol {
        "issue-to-pr" => to_merge(&env),
        "orchestrator-specialist" => specialists(&env),
        "task-breakdown" => tasks(&env),
        "delegation" => delegation(&env),
        "directive" => evaluated(&env),
        other => panic!("{other}"),
    }
    update(&env, protocol);
    env.assert_sound();
    env
}

fn to_merge(env: &TestEnvironment) {
    let format = |round| match round % 2 {
        0 => Format::Json,
        _ => Format::Xml,
    };
    workflow::run(env, &workflow(format));
    env.handoff(&[
        "reopen",
        "87",
        "--as",
        "closer-agent",
        "--reason",
        "it came back",
    ])
    .success();
    env.send(opening(90)).success();
    run(
        env,
        "pause 90 --reason freeze --except closer-agent --as orchestrator",
    );
    run(env, "reopen 90 --reason thaw --as maintainer");
    run(env, "claim 90.1 --as prep-agent");
    run(env, "block 90.1 --reason which? --as prep-agent");
    run(env, "answer 90.1 both --as issue-manager");
    run(env, "claim 90.1 --as prep-agent");
    env.handoff(&[
        "fail",
        "90.1",
        "--as",
        "prep-agent",
        "--code",
        "DiskFull",
        "--message",
        "no space",
        "--details",
        "df says 0",
        "--recoverable",
    ])
    .success();
    // A branch named in a contract is recorded with its tip.
    env.git(&env.repo(), &["branch", "enhancement/87-csv-export"]);
    env.send(opening(91)).success();
    run(env, "claim 91.1 --as prep-agent");
    env.send(prepared(91)).success();
    run(env, "cancel 91.2 --as prep-agent");
    env.send(opening(92)).success();
    run(env, "reject 92.1 --as prep-agent --reason twice");
}

pub const SPECIALISTS: &str = "orchestrator-specialist";

fn specialists(env: &TestEnvironment) {
    let stack = json!({"framework": "React", "version": "19.1"});
    let stack = env.file("stack.json", text(&stack));
    let set = |file: &str| {
        let agent = ["--as", "@frontend-specialist"];
        env.handoff(&[&["document", "set", "tech-stack", file][..], &agent].concat())
            .success();
    };
    set(&stack);
    let newer = json!({"framework": "React", "version": "19.2"});
    set(&env.file("newer.json", text(&newer)));
    let request = sample(SPECIALISTS, "request");
    send(env, &request);
    run(env, "claim loan-list-21 --as @react-specialist");
    let dir = env.repo().join("artifacts/react");
    fs::create_dir_all(&dir).unwrap();
    send(env, &sample(SPECIALISTS, "response"));
    let failing = sample(SPECIALISTS, "failure");
    let (id, source, target) = (
        failing["handoff_id"].clone(),
        failing["source"]["agent_id"].clone(),
        failing["target"]["agent_id"].clone(),
    );
    let request = with(
        sample(SPECIALISTS, "request-dotnet"),
        &[
            ("/handoff_id", id.clone()),
            ("/source/agent_id", source),
            ("/target/agent_id", target.clone()),
        ],
    );
    send(env, &request);
    let (id, target) = (id.as_str().unwrap(), target.as_str().unwrap());
    run(env, &format!("claim {id}.1 --as {target}"));
    send(env, &failing);
    run(
        env,
        &format!("retry {id}.1 --as @backend-specialist --reason fixed"),
    );
    run(env, &format!("claim {id}.1 --as {target}"));
    send(
        env,
        &with(
            failing,
            &[
                ("/error/message", json!("It still has the field")),
                ("/retry_count", json!(1)),
            ],
        ),
    );
    send(
        env,
        &with(
            request,
            &[
                ("/handoff_id", json!("loan-list-22")),
                ("/status", json!("in_progress")),
                ("/started_at", json!("2026-05-04T09:00:00Z")),
            ],
        ),
    );
}

fn tasks(env: &TestEnvironment) {
    const NAME: &str = "task-breakdown";
    env.send(valid(NAME, "environment-to-planning.json"))
        .success();
    run(env, "claim environment.1 --as task-orchestrator");
    env.send(valid(NAME, "planning-to-execution.json"))
        .success();
    run(env, "claim environment.3 --as execution-guardian");
    env.send(valid(NAME, "execution-to-planning.json"))
        .success();
    run(env, "claim environment.6 --as task-orchestrator");
    run(env, "complete environment.6 --as task-orchestrator");
    run(env, "claim environment.4 --as execution-guardian");
    run(
        env,
        "fail environment.4 --as execution-guardian --message broken",
    );
    run(env, "retry environment.4 --as operator");
    run(env, "claim environment.4 --as execution-guardian");
    for (id, task) in [("environment.4", "011_2"), ("environment.5", "011_3")] {
        if task == "011_3" {
            run(env, &format!("claim {id} --as execution-guardian"));
        }
        let done = with(
            sample(NAME, "execution-to-planning"),
            &[("/data/completed_task_id", json!(task))],
        );
        send(env, &done);
        run(env, "claim --next --as task-orchestrator");
    }
    env.handoff_with(
        &["send", "-", "--issue", "log"],
        valid(NAME, "logged-handoff.json"),
    )
    .success();
    env.handoff_with(
        &["send", "-", "--issue", "message"],
        valid(NAME, "environment-message.md"),
    )
    .success();
}

fn delegation(env: &TestEnvironment) {
    const NAME: &str = "delegation";
    env.pace(6);
    let trace = |id: &str| json!(format!("3f6e0a58-94c1-4d27-8a3b-5e1d7c90b2{id}"));
    for (id, answer) in [
        ("64", "response"),
        ("65", "response-failed"),
        ("66", "response-partial"),
        ("67", "response-escalated"),
    ] {
        let request = with(sample(NAME, "request"), &[("/traceId", trace(id))]);
        send(env, &request);
        let issue = trace(id);
        let issue = issue.as_str().unwrap();
        if id == "64" {
            env.handoff_with(
                &["send", "-", "--issue", issue],
                valid(NAME, "decision-naming-its-agent.json"),
            )
            .success();
        }
        run(env, &format!("claim {issue}.1 --as research_agent"));
        let agent = ("/respondingAgent", json!("research_agent"));
        let answer = with(sample(NAME, answer), &[("/traceId", trace(id)), agent]);
        send(env, &answer);
        if id == "65" {
            run(
                env,
                &format!("retry {issue}.1 --as document_generator --reason again"),
            );
            run(env, &format!("claim {issue}.1 --as research_agent"));
            send(
                env,
                &with(sample(NAME, "response"), &[("/traceId", trace(id))]),
            );
        }
    }
}

/// Completed work for the next agent.
pub fn handoff(id: &str, from: &str, to: &str, status: &str) -> Value {
    let missing = json!([{
        "required": "How many lanes the weir has",
        "reason": "Decides how many gates are drawn",
        "blocking": true,
    }]);
    let missing = if status == "blocked" {
        missing
    } else {
        json!([])
    };
    with(
        sample("directive", "handoff"),
        &[
            ("/handoff_id", json!(id)),
            ("/from_agent", json!(from)),
            ("/to_agent", json!(to)),
            ("/status", json!(status)),
            ("/missing_inputs", missing),
            ("/session_id", json!("weir-4")),
        ],
    )
}

/// A decision about a contract.
pub fn decision(about: &str, to: &str, outcome: &str) -> Value {
    let mut decision = with(
        sample("directive", "evaluation"),
        &[
            ("/handoff_id", json!(about)),
            ("/evaluation_id", json!(format!("about-{about}-{outcome}"))),
            ("/to_agent", json!(to)),
            ("/decision", json!(outcome)),
        ],
    );
    match outcome {
        "ask" => decision["questions"] = json!(["How many lanes?"]),
        "retry" => decision["instructions"] = json!("Count them on the plan."),
        _ => {}
    }
    decision
}

fn evaluated(env: &TestEnvironment) {
    send(
        env,
        &handoff("research", "ResearchGPT", "DesignGPT", "success"),
    );
    run(env, "claim weir-4.1 --as MetaGPT");
    send(env, &decision("research", "DesignGPT", "advance"));
    run(env, "claim weir-4.2 --as DesignGPT");
    send(env, &handoff("design", "DesignGPT", "METAGPT", "blocked"));
    run(env, "claim weir-4.3 --as MetaGPT");
    send(env, &decision("design", "USER", "ask"));
    run(env, "claim weir-4.4 --as USER");
    let answer = with(
        sample("directive", "user-input"),
        &[
            ("/handoff_id", json!("design")),
            ("/answers/0/required", json!("How many lanes?")),
        ],
    );
    send(env, &answer);
    run(env, "claim weir-4.5 --as MetaGPT");
    send(env, &decision("design", "DesignGPT", "advance"));
    run(env, "claim weir-4.6 --as DesignGPT");
    send(env, &handoff("design-3", "DesignGPT", "METAGPT", "failed"));
    run(env, "claim weir-4.7 --as MetaGPT");
    send(env, &decision("design-3", "workflow-end", "terminate"));
    run(env, "reopen weir-4 --as MetaGPT --reason another");
}
