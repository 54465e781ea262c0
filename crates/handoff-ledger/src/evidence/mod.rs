//! Compares a contract's claims with the repository.
//!
//! `judge` runs the checks against the user's commits and files, `commits` the check
//! of a list of commits, `merged` that of a merge.
//! `again` repeats for the audit what recorded commits can decide, `delivered` checks artifacts
//! when a handoff is claimed.

mod again;
mod commits;
mod delivered;
mod judge;
mod merged;

pub(super) use again::again;
pub(super) use delivered::changed;
pub(super) use judge::{Ground, Judge, Judged, Merged, OnRemote};
