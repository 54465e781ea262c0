//! Events of GitHub, and what they prove about an issue of the ledger.
//!
//! [`Event`] is a payload as GitHub delivers it; `subject` finds its issue, `values` reads what a
//! contract needs, `markdown` finds what people said, `answer` reads the answer in a comment,
//! `permission` decides whether its author may cause it, and `staleness` whether it still counts.
//! [`carry_out`] makes the steps that the rules of the protocol name (`effects`), and
//! returns the `outcome`. A payload is data: it is compared, cut and kept, and nothing in it is run.

mod answer;
mod carry;
mod effects;
mod markdown;
mod outcome;
mod payload;
mod permission;
mod staleness;
mod subject;
mod values;

pub use carry::carry_out;
pub use outcome::{Carried, Did, Draft, EventContext, Left};
pub use payload::{Event, MAX_PAYLOAD, NoEvent};
pub use subject::{Naming, Subject};
pub use values::facts;
