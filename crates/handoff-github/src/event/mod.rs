//! GitHub events, and what they prove about an issue of the ledger.
//!
//! [`Event`] is a payload as GitHub delivers it; `subject` finds its issue, `values` reads the
//! values for a contract, `markdown` finds statements, `commands` parses the commands in a comment,
//! and `answer` an answer; `repository` detects another repository's events, `beside` another pull
//! request's; `permission` decides whether its author may cause it, and `staleness` whether it
//! still counts. [`carry_out`] makes the steps that the rules of the protocol name
//! (`effects`) and allow (`command_steps`), and returns the `outcome`. A payload is data: it is
//! compared, truncated and stored, never executed.

mod answer;
mod beside;
mod carry;
mod command_steps;
mod commands;
mod contract;
mod effects;
mod markdown;
mod outcome;
mod payload;
mod permission;
mod repository;
mod staleness;
mod subject;
mod values;

pub use carry::carry_out;
pub use outcome::{Carried, Commanded, Did, Draft, EventContext, Left};
pub use payload::{Event, MAX_PAYLOAD, NoEvent};
pub use permission::unproven;
pub use subject::{Naming, Subject, pull_request_in};
pub use values::facts;
