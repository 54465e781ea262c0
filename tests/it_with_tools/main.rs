//! What other programs read: metrics, traces, events, drawings, pages, MCP. These tests
//! need npm, Python or a browser.
#![allow(clippy::unwrap_used)]

mod cloudevents;
mod collector;
mod decoders;
mod graph;
#[cfg(unix)]
mod hook_frameworks;
mod ledgers;
#[cfg(feature = "mcp")]
mod mcp;
mod mcp_client;
#[cfg(unix)]
mod metrics;
mod pages;
mod prime;
#[cfg(unix)]
mod report;
#[cfg(unix)]
mod serve;
mod tokens;
mod traces;
mod web;
