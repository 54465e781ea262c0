//! Contracts as commands read and print them: `input` reads the bytes, `against` checks them
//! without recording anything, `not_in_force`
//! names the protocol of those that belong to another one, `onward` says which can be sent next, `skeleton` writes one to fill in,
//! `settings` fills in what the command line says, `by_send` what `send` itself knows, `compose` and `draft` write whole ones, `fields` lists its fields.
//!
//! Modules here are about a contract's text, for more than one command.

pub mod against;
pub mod asking;
pub mod attempt;
pub mod by_send;
pub mod compose;
pub mod draft;
pub mod fields;
pub mod input;
pub mod not_in_force;
pub mod onward;
pub mod settings;
pub mod skeleton;
pub mod usage;
