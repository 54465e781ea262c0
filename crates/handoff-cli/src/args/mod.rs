//! Values on the command line: durations, moments, protocols, issues, texts, and the options that many
//! commands share.
//!
//! These modules turn the text of an argument into a value, and open no ledger; `filter` asks one that is open which words it knows.

pub mod duration;
pub mod filter;
pub mod moment;
pub mod protocols;
pub mod reference;
pub mod remote;
pub mod text;
