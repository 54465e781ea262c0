//! What the repository says of a contract's claims.
//!
//! `judge` carries out the checks on the user's commits and files, `merged` the one of a merge.
//! `again` repeats for the audit what can be decided from recorded commits, `delivered` looks at
//! artifacts when they are claimed.

mod again;
mod delivered;
mod judge;
mod merged;

pub(super) use again::again;
pub(super) use delivered::{MISSING, changed};
pub(super) use judge::{Ground, Judge, Judged, Merged};
