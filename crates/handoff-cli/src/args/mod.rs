//! Command-line values: durations, moments, protocols, issues, texts, and options shared by
//! commands.
//!
//! These modules parse arguments and open no ledger; `filter` resolves words in an open one.

pub mod duration;
pub mod filter;
pub mod moment;
pub mod protocols;
pub mod reference;
pub mod remote;
pub mod text;
