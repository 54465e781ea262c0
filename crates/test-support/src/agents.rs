//! Helpers for tests of `git handoff work`: scripts as agents, workers, and outcomes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::contracts::opening;
use crate::files::script;
use crate::{Ran, TestEnvironment};

/// The arguments with which prep-agent sends its contract.
pub const PREPARED: &str = "--to implementer-agent --issue 87 --set branch=$GIT_HANDOFF_BRANCH --set workspace_type=worktree \
     --set port=3000 --set validation.dependencies=installed --set validation.build=passed \
     --set validation.dev_server=started";

/// A ledger in which issue 87 waits for prep-agent.
pub fn opened() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env
}

/// A script that acts as an agent.
pub fn agent(env: &TestEnvironment, text: &str) -> PathBuf {
    let path = env.root().join("agent.sh");
    script(&path, format!("#!/bin/sh\n{text}\n"));
    path
}

/// A command of the program with the real clock, which workers' leases use.
pub fn now(env: &TestEnvironment, args: &[&str]) -> Command {
    let mut command = env.program(args);
    command
        .env_remove("GIT_AUTHOR_DATE")
        .env_remove("GIT_COMMITTER_DATE");
    command
}

/// Runs a command with the real clock.
pub fn run_now(env: &TestEnvironment, args: &[&str]) -> Ran {
    env.run(now(env, args), args, None)
}

/// A worker that is not started yet. Its agents get `$OUT` and `$REPO`.
pub fn worker(env: &TestEnvironment, args: &[&str]) -> Command {
    let mut command = now(
        env,
        &[&["work", "--env", "OUT", "--env", "REPO"], args].concat(),
    );
    command.env("OUT", env.root()).env("REPO", env.repo());
    command
}

/// Runs a worker to its end.
pub fn work(env: &TestEnvironment, args: &[&str]) -> Ran {
    env.run(worker(env, args), args, None)
}

/// Runs an agent's command, with these options of the worker.
pub fn work_as(env: &TestEnvironment, name: &str, command: &Path, options: &[&str]) -> Ran {
    let mut args = vec!["--as", name, "--json"];
    args.extend(options);
    args.extend(["--", command.to_str().unwrap()]);
    work(env, &args)
}

/// Runs prep-agent's script for one handoff.
pub fn once(env: &TestEnvironment, text: &str) -> Ran {
    let path = agent(env, text);
    work_as(env, "prep-agent", &path, &["--once", "--grace", "300ms"])
}

/// The outcome of each handoff: id, outcome, and reason.
#[track_caller]
pub fn outcomes(ran: &Ran) -> Vec<[String; 3]> {
    let document = ran.json();
    let pieces = document["data"]["pieces"].as_array();
    let pieces = pieces.unwrap_or_else(|| panic!("{}", ran.shown));
    let text = |piece: &Value, name: &str| piece[name].as_str().unwrap_or_default().to_owned();
    let named = |piece| ["id", "outcome", "why"].map(|name| text(piece, name));
    pieces.iter().map(named).collect()
}

/// The outcome of the only handoff, with its reason.
#[track_caller]
pub fn outcome(ran: &Ran) -> (String, String) {
    let [[_, outcome, why]] = &outcomes(ran)[..] else {
        panic!("not one piece of work: {}", ran.shown);
    };
    (outcome.clone(), why.clone())
}

/// The record of 87.1.
pub fn record(env: &TestEnvironment) -> Value {
    crate::stored(&env.data(&["show", "87.1"]))
}

/// Retries 87.1 as the orchestrator.
pub fn retry(env: &TestEnvironment) {
    let args = ["retry", "87.1", "--as", "orchestrator", "--reason", "again"];
    run_now(env, &args).success();
}
