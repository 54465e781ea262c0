//! Integrations: git's hooks, and the harnesses that agents work in.
//!
//! [`hooks`] installs the ledger's hooks beside a user's own, [`agents`] writes the instructions
//! and configurations of harnesses. Neither reads a ledger.

pub mod agents;
pub mod hooks;
