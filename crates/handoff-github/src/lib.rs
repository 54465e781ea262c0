//! At home on GitHub: what its workflows are told of a ledger.
//!
//! `annotations` are remarks beside a step's log, `output` the values that later steps
//! read, `summary` the page beneath a run and the body of a comment, `comment` which
//! comment that is. `standing` gathers what they tell, `parts` fits it into what GitHub
//! takes, `text` makes foreign words harmless in each place. Nothing here asks the
//! network, and nothing knows a token.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod annotations;
pub mod comment;
pub mod event;
pub mod output;
mod parts;
pub mod status;
pub mod summary;
pub mod text;
