//! The ledger shared through a remote: what one machine promises holds across clones, because
//! a step counts only once the remote has it.
//!
//! `sync` brings both sides together; `rerun` makes a step that was made offline again, on the remote's
//! state, and `rejected_step` keeps those that are refused there. `look` looks at the remote for commands
//! that wait, and `ask` for commands that read; `repair` fetches what a power cut took.

mod ask;
mod divergence;
mod look;
mod rejected_step;
mod repair;
mod rerun;
mod sync;

use super::ledger::Ledger;

pub use rejected_step::{Rejected, RejectedStep};
pub use repair::Repaired;
pub use rerun::Renamed;
pub use sync::{RemoteDistance, Synced};

impl Ledger<'_> {
    /// The same ledger, shared through a remote, given by name or address: a step counts once the
    /// remote has it. Call [`Self::catch_up`] before the first step.
    #[must_use]
    pub fn shared_through(self, remote: &str) -> Self {
        self.with_remote(remote, |ledger, session, upstream| {
            ledger.reconcile(session, upstream).map(drop)
        })
    }
}
