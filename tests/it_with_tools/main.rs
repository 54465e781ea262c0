//! What other programs read: metrics, traces, events, drawings, pages, MCP. These tests
//! need npm, Python or a browser.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

#[cfg(unix)]
mod bots;
mod collector;
mod graph;
#[cfg(unix)]
mod hook_frameworks;
mod ledgers;
mod mcp_clients;
#[cfg(unix)]
mod metrics;
#[cfg(target_os = "linux")]
mod packages;
mod pages;
mod prime;
#[cfg(unix)]
mod report;
#[cfg(unix)]
mod serve;
mod shared_folder;
mod traces;

use serde_json::Value;
use test_support::tools::TRACE;

/// What a script of `tests/trace-tools` reads in a text: a document a line.
#[track_caller]
fn decoded(script: &str, text: &str) -> Vec<Value> {
    let lines = TRACE.run(script, &[], text);
    let parsed = lines.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().unwrap()
}
