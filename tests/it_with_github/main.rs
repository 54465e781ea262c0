//! GitHub: events, workflows, and the action. These tests need npm and Python.
#![allow(clippy::unwrap_used)]

mod events;
#[cfg(unix)]
mod github_action;
mod github_events;
#[cfg(unix)]
mod github_gate;
#[cfg(unix)]
mod github_out;
#[cfg(unix)]
mod github_rehearsal;
mod github_rules;
mod github_workflows;
mod runner;
mod tools;
