//! A Git-backed ledger of handoffs between AI agents.

pub mod contract;
pub mod finding;
pub mod git;
pub mod ids;
pub mod protocol;
