//! What is built around the ledger: GitHub, MCP, notices, traces, agents' pages. What of them takes
//! programs of npm or PyPI is in `it_with_github` and `it_with_tools`.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

mod collector;
mod github_commands;
mod github_events;
mod github_facts;
mod github_unfinished;
mod mcp;
#[cfg(unix)]
mod notify;
mod prime;
