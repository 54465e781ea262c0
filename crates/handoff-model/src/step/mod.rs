//! Steps: what was asked, by whom and when, and the commit that it becomes.
//!
//! `request` is what a caller asks for; with who asks and when it is a [`Step`], which `trailers` writes
//! into the commit's message and reads back. `plan` has the types that the planner returns,
//! `message` and `archive_message` word commits. `answers` compares the values of an answer with the
//! questions, and [`screening`] looks for secrets in what a step would store.

pub(crate) mod answers;
mod archive_message;
mod event;
pub(crate) mod message;
mod plan;
mod request;
pub mod screening;
pub(crate) mod trailers;

pub use archive_message::{archive_message, archived_before, unarchive_message};
pub use event::{Change, StepEvent};
pub use plan::{FileChanges, Planned, PlannedStep, Receipt, Stop};
pub use request::{EventArgs, Request, SendOptions, SendRequest, Step, Update};
pub use trailers::{NoStep, recorded};
