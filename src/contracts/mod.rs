//! Contracts as commands take and give them: `input` reads the bytes, `against` checks them where
//! nothing is recorded, `skeleton` writes one to fill in, `fields` lists what one can say.
//!
//! What enters here is about a contract's text, for more than one command.

pub(crate) mod against;
pub(crate) mod fields;
pub(crate) mod input;
pub(crate) mod skeleton;
