//! Proofs: random and enumerated cases against what must always hold. Each has a short form here,
//! and a long one in `scripts/prove`; docs/reliability.md says what those found.
#![allow(clippy::unwrap_used)]

#[cfg(target_os = "linux")]
mod clocks;
#[cfg(target_os = "linux")]
mod crash;
#[cfg(unix)]
mod fan_out;
mod forger;
mod fuzz;
#[cfg(target_os = "linux")]
mod growth;
#[cfg(unix)]
mod linearizable;
mod model;
mod offers;
