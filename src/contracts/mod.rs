//! Contracts as commands read and print them: `input` reads the bytes, `against` checks them
//! without recording anything, `not_in_force`
//! names the protocol of those that belong to another one, `onward` says which can be sent next, `skeleton` writes one to fill in,
//! `settings` fills in what the command line says, `by_send` what `send` itself knows, `compose` and `draft` write whole ones, `fields` lists its fields.
//!
//! Modules here are about a contract's text, for more than one command.

pub(crate) mod against;
pub(crate) mod attempt;
pub(crate) mod by_send;
pub(crate) mod compose;
pub(crate) mod draft;
pub(crate) mod fields;
pub(crate) mod input;
pub(crate) mod not_in_force;
pub(crate) mod onward;
pub(crate) mod settings;
pub(crate) mod skeleton;
