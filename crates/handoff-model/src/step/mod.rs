//! Steps: requests with their actor and time, and the commits that they become.
//!
//! `request` defines requests and the [`Step`], which `trailers` writes into the commit message and
//! parses again. `plan` has the planner's result types, `message` and `archive_message` word
//! commits, `answers` compares answers with questions, and [`screening`] looks for secrets.

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
