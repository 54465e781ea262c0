//! Steps that are repeated on the state of the remote.

use handoff_base::ObjectId;
use handoff_base::ids::HandoffId;

/// The step cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    /// There is no refused step with that name.
    #[error("there is no refused step {0}")]
    NoRejected(String),
    /// A commit is not a ledger step, so it can't be repeated.
    #[error("commit {0} is not a ledger step")]
    NoStep(ObjectId),
    /// A step made offline depends on one that was refused on the remote's state.
    #[error("it depends on a step of {0} that was refused")]
    NotTaken(HandoffId),
    /// A step made offline would continue something else on the remote's state.
    #[error("it continued {was}, but would now continue {now}")]
    OtherHandoff { was: String, now: String },
}
