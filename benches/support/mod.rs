//! Shared by benches and `examples/bench_tool.rs`: sample contracts and a generator of legal
//! ledgers.
//!
//! [`Work`] generates a ledger by running issues through `ledger::plan` in memory, step by step;
//! the caller writes the steps.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::new_without_default,
    clippy::unwrap_used
)]

pub mod contracts;
pub mod work;

pub use contracts::Samples;
pub use work::Work;
