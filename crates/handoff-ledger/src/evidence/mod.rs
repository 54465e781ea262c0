//! Compares a contract's claims with the repository.
//!
//! `judge` runs the checks against the user's commits and files, `commits` those of a list of
//! commits, `merge` those of a merge, `named` those of named commits. `recheck` repeats for the
//! audit what recorded commits can decide, `artifacts` checks delivered files when a handoff is
//! claimed.

mod artifacts;
mod commits;
mod judge;
mod merge;
mod named;
mod recheck;

pub(super) use artifacts::changed;
pub(super) use judge::{Ground, Judge, Judged, Merged, OnRemote};
pub(super) use recheck::again;
