//! The ledger shared through a remote: one machine's guarantees hold across clones, because a step
//! counts only once the remote has it.
//!
//! `sync` synchronizes both sides; `rerun` repeats an offline step on the remote's state, and
//! `rejected_step` keeps those that it refuses. `look` looks at the remote for commands that wait,
//! and `ask` for commands that read; `repair` recovers after a power failure.

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
    /// The same ledger, shared through a remote, given by name or URL: a step counts once the
    /// remote has it. Call [`Self::catch_up`] before the first step.
    #[must_use]
    pub fn shared_through(self, remote: &str) -> Self {
        self.with_remote(remote, |ledger, session, upstream| {
            ledger.reconcile(session, upstream).map(drop)
        })
    }
}
