//! What the commands of `git-handoff` and its feature crates share.
//!
//! Below, only [`environment`] reads clock and environment, and only [`output`] prints. [`args`]
//! are shared command-line values, [`context`] opens what commands need, [`contracts`] reads and
//! writes contracts. [`failure`] describes errors, [`view`] adapts to the terminal, and [`render`]
//! turns records into text and JSON. [`hooks`] installs git's hooks beside a user's own, and reads no
//! ledger. [`process`] ends processes that agents and notices started.

pub mod args;
pub mod context;
pub mod contracts;
pub mod environment;
pub mod failure;
pub mod hooks;
pub mod output;
pub mod process;
pub mod render;
pub mod view;
