//! Handoffs from their opening to their end: leases, limits, failures, waiting, and
//! what is taken along to other ledgers. They pass without any room, too.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

mod acknowledgment;
mod annotate;
mod archive;
mod attention;
mod briefing;
mod checking;
mod doctor;
mod exchange;
#[cfg(unix)]
mod failure_context;
mod findings;
mod flow;
mod gate;
mod gate_changes;
mod give_up;
mod halts;
mod housekeeping;
mod leases;
mod limits;
mod milliseconds;
#[cfg(unix)]
mod named_worktree;
mod on_record;
mod one_shape;
mod outcomes;
mod own_needs;
mod pages;
mod pause;
mod people;
mod refusals;
mod release;
mod repository_formats;
#[cfg(unix)]
mod restore;
mod retries;
mod same_files;
mod set;
mod turns;
mod wait;
#[cfg(unix)]
mod watch;
