//! Values on the command line: durations, moments, protocols, texts, and the options for a remote that
//! many commands have.
//!
//! What enters here turns the text of an argument into a value, and opens no ledger.

pub(crate) mod duration;
pub(crate) mod moment;
pub(crate) mod protocols;
pub(crate) mod remote;
pub(crate) mod text;
