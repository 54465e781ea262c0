//! Contracts as read and printed by commands: `input` reads the bytes, `against` checks them
//! without recording, `not_in_force` detects other protocols' contracts, `onward` lists what can be
//! sent next, `skeleton` writes one to fill in, `settings` applies command-line values, `by_send`
//! fills in the values known to `send`, `compose` and `draft` write whole ones, `fields` lists
//! fields.
//!
//! Modules here handle a contract's text for several commands.

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
