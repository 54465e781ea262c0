//! What other programs run: git's hooks, and the harnesses that agents work in.
//!
//! [`hooks`] puts the ledger's hooks beside a user's own, [`agents`] writes the instructions and
//! configurations of harnesses. Neither knows of ledgers.

pub mod agents;
pub mod hooks;
