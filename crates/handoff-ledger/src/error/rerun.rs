//! Errors about steps that are repeated on the remote's state.

use handoff_base::ObjectId;
use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
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
    /// A step made offline would continue another handoff on the remote's state.
    #[error("it continued {was}, but would now continue {now}")]
    OtherHandoff { was: String, now: String },
}

impl Explained for RerunError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::NoRejected(_) => ErrorCode::NoRejected.hint("`git handoff refused` lists them"),
            Self::NoStep(_) => {
                ErrorCode::LedgerDamaged.hint("`git handoff verify` shows what is wrong with it")
            }
            Self::NotTaken(_) => ErrorCode::NotTaken
                .hint("retry that step first: `git handoff refused` lists the refused steps"),
            Self::OtherHandoff { .. } => ErrorCode::OtherHandoff.hint(
                "check the state of the issue, and send the contract again: `git handoff refused show NAME` prints it",
            ),
        }
    }
}
