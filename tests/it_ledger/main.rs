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
#[cfg(feature = "agents")]
mod briefing;
mod checking;
mod doctor;
#[cfg(feature = "exchange")]
mod exchange;
#[cfg(unix)]
mod failure_context;
mod findings;
mod first_words;
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
mod one_turn;
mod outcomes;
mod own_needs;
#[cfg(feature = "exchange")]
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
