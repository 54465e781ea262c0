//! GitHub: events, workflows, and the action. These tests need npm and Python.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

#[cfg(unix)]
mod github_action;
#[cfg(unix)]
mod github_agents;
#[cfg(unix)]
mod github_forks;
#[cfg(unix)]
mod github_gate;
#[cfg(unix)]
mod github_out;
#[cfg(unix)]
mod github_rehearsal;
mod github_repositories;
mod github_rules;
mod github_samples;
#[cfg(unix)]
mod github_status;
#[cfg(unix)]
mod github_steps;
mod github_workflows;
#[cfg(unix)]
mod lives;
mod runner;

use std::path::Path;

use serde_json::Value;
use test_support::tools::GITHUB;

/// A YAML file as data. YAML takes the key `on` for true.
fn yaml(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&GITHUB.run("read-yaml.py", &[], &text)).unwrap()
}
