//! The ledger: one branch, one commit for each step.
//!
//! [`Ledger`] opens it and writes to it; [`Snapshot`] reads it at one commit.
//! `intake` is the door for contracts, `planner` decides what a request does,
//! `step` holds the types of that, `record` is the stored form, `layout` says
//! where things are, `message` what a commit says. `verify` runs history
//! through `planner` again.

mod context;
mod error;
mod intake;
mod layout;
mod message;
mod planner;
mod record;
mod refusal;
mod session;
mod snapshot;
mod step;
mod verify;
mod write;

pub use context::context;
pub use error::LedgerError;
pub use intake::{Contract, Review, Schemas, review};
pub use layout::{issue_folder, record_file};
pub use message::{Change, trailers};
pub use planner::plan;
pub use record::{
    ContractFile, Evidence, Failure, Issue, IssueStatus, Lease, Manifest, Moment, OpenHandoff,
    Record, Reopening, StoredError, Transition,
};
pub use refusal::Refusal;
pub use session::{Clock, Session};
pub use snapshot::{IssueFolder, OpenEntry, Rules, Snapshot};
pub use step::{Actor, Planned, Receipt, Request, Step, Stop, View};
pub use verify::{Audit, AuditScope};
pub use write::{Done, Founding, Ledger, Target};

/// The branch that a ledger is on unless something else is said.
pub const DEFAULT_BRANCH: &str = "handoffs";
