//! What a ledger tells about the work, for people and for monitors: figures,
//! alarms, traces, pictures and pages. All of it is derived from a
//! [`Survey`](handoff_ledger::Survey) or from the records; nothing here writes to
//! the ledger, and nothing is stored twice.

pub mod alerts;
pub mod attention;
pub mod cloudevents;
mod events;
pub mod graph;
pub mod metrics;
pub mod openmetrics;
pub mod otlp;
pub mod report;
pub mod times;
