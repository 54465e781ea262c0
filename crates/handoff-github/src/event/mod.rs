//! Events of GitHub, and what they prove about an issue of the ledger.
//!
//! [`Event`] is one as GitHub delivers it, `subject` says which issue it is about,
//! `values` takes from it what a contract needs, `markdown` reads what people wrote, `said`
//! finds the answer in a comment, `staleness` tells what still counts. [`carry_out`] makes of it
//! the steps that the rules of the protocol name (`effects`), and tells the `outcome`.
//! What an event holds is data: it is compared, cut and kept, and nothing in it is run.

mod answer;
mod carry;
mod effects;
mod markdown;
mod outcome;
mod payload;
mod staleness;
mod subject;
mod values;

pub use carry::carry_out;
pub use outcome::{Carried, Did, Draft, EventContext, Left};
pub use payload::{Event, Fork, MAX_PAYLOAD, NoEvent};
pub use subject::{Subject, pull_request_of};
