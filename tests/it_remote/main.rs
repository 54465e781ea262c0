//! Several clones and processes at one ledger, and everything that can break between them.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

mod archived;
#[cfg(unix)]
mod archiving;
mod clones;
#[cfg(unix)]
mod faults;
#[cfg(all(target_os = "linux", feature = "work"))]
mod fleet;
#[cfg(unix)]
#[cfg(feature = "agents")]
mod fresh;
#[cfg(all(target_os = "linux", feature = "work"))]
mod handed_on;
#[cfg(unix)]
mod killed;
mod killing;
mod light_clones;
mod notes;
#[cfg(unix)]
mod obstacles;
#[cfg(unix)]
mod offline;
#[cfg(unix)]
mod partial_clones;
mod pruned;
mod races;
#[cfg(unix)]
mod remote_verbs;
#[cfg(unix)]
mod remotes;
mod repair;
#[cfg(unix)]
mod status_remote;
mod sync;
#[cfg(target_os = "linux")]
mod torture;
mod torture_field;
#[cfg(unix)]
mod wait_remote;
#[cfg(feature = "agents")]
mod workers;
mod worktrees_remote;
#[cfg(target_os = "linux")]
mod writing;
