//! What benches and `examples/bench_tool.rs` share: sample contracts and the generator of legal ledgers.
//!
//! A ledger is made by [`Work`], which runs issues through `ledger::plan` in memory, one step at a time; whoever
//! drives it writes the steps.
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
