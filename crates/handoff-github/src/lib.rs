//! The ledger's output for GitHub workflows, and its input from GitHub events.
//!
//! `status` collects what the others render: `annotations` writes commands into a step's log,
//! `output` values for later steps, `summary` the page of a run and the body of a comment.
//! `comment` finds that comment, `reply` answers commands in comments, `parts` truncates a page to
//! GitHub's limits, and `text` escapes foreign text for each place. `workflows`
//! writes GitHub's workflows into a repository. Nothing here uses the network
//! or a token.

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
pub mod workflows;
