//! Values on the command line: durations, moments, protocols, issues, texts, and the options that many
//! commands share.
//!
//! These modules turn the text of an argument into a value, and open no ledger.

pub(crate) mod duration;
pub(crate) mod gate;
pub(crate) mod moment;
pub(crate) mod page;
pub(crate) mod protocols;
pub(crate) mod reference;
pub(crate) mod remote;
pub(crate) mod text;
pub(crate) mod usage;
