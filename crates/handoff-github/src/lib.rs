//! What the ledger tells GitHub's workflows, and what it takes from GitHub's events.
//!
//! `status` gathers what the others render: `annotations` writes commands into a step's log,
//! `output` values for later steps, `summary` the page of a run and the body of a comment.
//! `comment` finds that comment, `reply` answers commands in comments, `parts` cuts a page to GitHub's limits, and `text` escapes
//! foreign text for each place. Nothing here uses the network or knows a token.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod answering;
pub mod comment;
pub mod event;
pub mod output;
mod parts;
pub mod pull_request;
pub mod reply;
pub mod status;
pub mod summary;
pub mod text;
