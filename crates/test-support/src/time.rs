//! Helpers for tests of time and failure: modified protocols, expired leases, and the steps that a
//! write adds.

use std::path::Path;

use serde_json::{Value, json};

pub use crate::contracts::value as sample;
use crate::contracts::value;
use crate::team::{Folder, commits};
use crate::{Ran, TestEnvironment};

/// A trace id for the protocol `delegation`.
pub const TRACE: &str = "5a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4c";
pub const WRITER: &str = "document_generator";
pub const RESEARCH: &str = "research_agent";

/// A repository whose ledger has a modified built-in protocol. Requests have no time limit for
/// claims, unless a contract or the changes set one.
pub fn own(protocol: &str, change: impl FnOnce(&mut Value)) -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, protocol, "own");
    folder.define(|definition| {
        if let Some(time) = definition["limits"].as_object_mut() {
            time.remove("acknowledge_seconds");
        }
        change(definition);
    });
    env.handoff(&["init", "--protocol", &folder.path(), "--evidence", "off"])
        .success();
    env
}

/// Replaces a definition's limits, except those of leases and retries.
pub fn limit(definition: &mut Value, limits: &Value) {
    let own = definition["limits"].as_object_mut().unwrap();
    own.retain(|name, _| {
        let is_time = name.ends_with("lease_seconds") || name == "longest_run_seconds";
        is_time || name == "acknowledge_seconds" || name == "retry"
    });
    own.extend(limits.as_object().unwrap().clone());
}

/// A request for help in the trace.
pub fn asks(from: &str, to: &str, more: &[(&str, Value)]) -> String {
    let mut members = vec![
        ("/traceId", TRACE.into()),
        ("/sourceAgent", from.into()),
        ("/handoffTo", to.into()),
    ];
    members.extend(more.iter().cloned());
    value("delegation", "request", &members).to_string()
}

/// An answer to a request in the trace; one that resolves it provides the inputs.
pub fn answers(from: &str, status: &str, more: &[(&str, Value)]) -> String {
    let mut members = vec![
        ("/traceId", TRACE.into()),
        ("/respondingAgent", from.into()),
        ("/status", status.into()),
    ];
    if status == "resolved" {
        members.push(("/providedInputs", json!({"tide_tables": {}})));
    }
    members.extend(more.iter().cloned());
    value("delegation", "response-least", &members).to_string()
}

/// The id of a handoff in the trace.
pub fn traced(number: u32) -> String {
    format!("{TRACE}.{number}")
}

/// Splits a command at blanks; quoted words stay together.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        match i % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Runs a command, whatever its exit code.
pub fn attempt(env: &TestEnvironment, line: &str) -> Ran {
    let words = words(line);
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    env.handoff(&args)
}

/// Runs a command that must succeed.
#[track_caller]
pub fn done(env: &TestEnvironment, line: &str) -> Ran {
    attempt(env, line).success()
}

/// The subjects of the ledger's newest commits, the newest last.
pub fn subjects(env: &TestEnvironment, count: usize) -> Vec<String> {
    let count = format!("-{count}");
    let shown = env.git(
        &env.repo(),
        &["log", "--reverse", &count, "--format=%an: %s", "handoffs"],
    );
    shown.lines().map(str::to_owned).collect()
}

/// The commits that a write adds to the ledger, each with author and subject.
pub fn added(env: &TestEnvironment, write: impl FnOnce() -> Ran) -> (Ran, Vec<String>) {
    let before = commits(env);
    let ran = write();
    let new = commits(env) - before;
    let subjects = if new == 0 {
        Vec::new()
    } else {
        subjects(env, new)
    };
    (ran, subjects)
}

/// The error code of a command with `--json` that was refused.
#[track_caller]
pub fn code(ran: &Ran) -> String {
    let document = ran.json();
    assert_eq!(document["ok"], false, "{}", ran.shown);
    document["error"]["code"].as_str().unwrap().to_owned()
}

/// Runs a command that must be refused with this exit code and error code.
#[track_caller]
pub fn denied(env: &TestEnvironment, line: &str, exit: i32, wanted: &str) -> Ran {
    let ran = attempt(env, &format!("{line} --json")).exits(exit);
    assert_eq!(code(&ran), wanted, "{}", ran.shown);
    ran
}

/// Sends a contract that must be refused with this exit code and error code.
#[track_caller]
pub fn not_sent(env: &TestEnvironment, contract: &str, exit: i32, wanted: &str) -> Ran {
    let ran = env.handoff_with(&["send", "-", "--json"], contract);
    let ran = ran.exits(exit);
    assert_eq!(code(&ran), wanted, "{}", ran.shown);
    ran
}

/// The seconds between two times of a record.
#[track_caller]
pub fn seconds_between(from: &Value, to: &Value) -> i64 {
    let at = |value: &Value| {
        let text = value.as_str().unwrap();
        chrono::DateTime::parse_from_rfc3339(text).unwrap()
    };
    (at(to) - at(from)).num_seconds()
}

/// Exports the ledger, imports it into a new repository, and compares every tree. A program without
/// that room can't.
#[track_caller]
pub fn assert_goes_there_and_back(env: &TestEnvironment, protocol: &str) {
    let help = env.handoff(&["export", "-h"]);
    if help.shown.contains("unrecognized subcommand 'export'") {
        return;
    }
    let dir = env.root().join("exported");
    let dir = dir.to_str().unwrap();
    done(env, &format!("export --format log {dir}"));
    env.git(env.root(), &["init", "-q", "other"]);
    let other = env.root().join("other");
    env.handoff_in(
        &other,
        &["init", "--protocol", protocol, "--evidence", "off"],
    )
    .success();
    env.handoff_in(&other, &["import", dir]).success();
    env.handoff_in(&other, &["verify"]).success();
    let trees = |repo: &Path| {
        let paths = [
            "ls-tree",
            "handoffs",
            "--",
            "issues",
            "open",
            "protocols",
            "spent",
        ];
        env.git(repo, &paths)
    };
    assert_eq!(trees(&other), trees(&env.repo()));
}
