//! Integrations: git's hooks, and the harnesses that agents work in.
//!
//! [`hooks`] installs the ledger's hooks beside a user's own, [`agents`] writes the instructions
//! and configurations of harnesses, [`workflows`] writes GitHub's. None of them reads a ledger.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod agents;
pub mod hooks;
pub mod workflows;
