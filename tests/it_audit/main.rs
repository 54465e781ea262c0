//! What a ledger proves: history, signatures, evidence, and what tampering leaves behind.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

mod archive_forged;
mod attacks;
mod audit;
mod audit_trail;
mod canonical;
mod commits;
mod deep_trees;
mod delivered;
mod desk;
mod evidence;
mod forged;
mod halts;
mod keys;
mod merges;
mod on_remote;
#[cfg(unix)]
mod openpgp;
mod pause_forged;
mod quarantine;
mod reports;
#[cfg(unix)]
mod signatures;
#[cfg(unix)]
mod signed_history;
mod survey;
mod traceparent;
mod trail;
mod tree_bombs;
mod verify;
#[cfg(unix)]
mod weaker;

/// Held by a test that goes into a folder: the tests of one process share it.
static FOLDER: std::sync::Mutex<()> = std::sync::Mutex::new(());
