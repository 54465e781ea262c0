//! Reports on a ledger for people and monitors: metrics, alerts, traces and the HTML report.
//! Everything is derived from a [`Survey`](handoff::ledger::Survey) or from the records; nothing
//! here writes to the ledger.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod alerts;
mod events;
pub mod metrics;
pub mod openmetrics;
pub mod otlp;
pub mod report;
