//! What a ledger tells about the work, for people and for monitors: figures,
//! alarms, traces, pictures and pages. All of it is derived from a
//! [`Survey`](crate::ledger::Survey) or from the records; nothing here writes to
//! the ledger, and nothing is stored twice.

pub mod attention;
pub mod cloudevents;
pub mod graph;
pub mod times;
