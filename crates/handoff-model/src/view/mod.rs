//! Read-only views of a ledger for people and programs.

mod attention;
mod choices;
pub mod commands;
mod detail;
mod handoff;
mod issue;
pub mod needs;
mod news;
pub mod survey;
mod turn;
mod wait_status;

pub use attention::{needs_attention, stuck_advice};
pub use choices::{choices, not_held_in};
pub use detail::Detail;
pub use handoff::Handoff;
pub use issue::IssueSummary;
pub use news::{News, news};
pub use turn::{Turn, turn};
pub use wait_status::{Outcome, WaitStatus, overdue_text};
