//! What the commands of `git-handoff` share, and its rooms that have a command line.
//!
//! Of what stands below, nothing prints, exits, or reads clock and environment ([`environment`]). [`args`] are values
//! that many commands take, [`context`] opens what they need, [`contracts`] reads and writes contracts. [`failure`] is
//! what is said of everything that goes wrong, [`view`] says how a terminal shows things, [`output`] prints, and
//! [`render`] makes text and JSON of records. [`process`] ends the processes that an agent or a notice started.

pub mod args;
pub mod context;
pub mod contracts;
pub mod environment;
pub mod failure;
pub mod output;
pub mod process;
pub mod render;
pub mod view;
