//! What is built around the ledger: alerts, the worker, GitHub, MCP, notices, traces, agents' pages. What of them takes
//! programs of npm or PyPI is in `it_with_github` and `it_with_tools`.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

mod alerts;
mod collector;
mod github_commands;
mod github_events;
mod github_facts;
mod github_unfinished;
#[cfg(target_os = "linux")]
mod hostile_agents;
mod mcp;
#[cfg(unix)]
mod notify;
#[cfg(target_os = "linux")]
mod planted_text;
mod prime;
#[cfg(unix)]
mod usage;
#[cfg(target_os = "linux")]
mod work;
#[cfg(target_os = "linux")]
mod work_leftovers;
#[cfg(target_os = "linux")]
mod work_outcomes;
#[cfg(target_os = "linux")]
mod work_parts;
#[cfg(target_os = "linux")]
mod work_prompt;
