//! Agents and the harnesses that they work in.
//!
//! [`harness`] writes what harnesses read, beside a user's own; [`prime`] is what an agent needs to
//! begin.

pub mod harness;
pub mod prime;
