//! Retries, and the failures that lead to them.

use handoff_base::ids::{AgentName, HandoffId};

/// The attempt cannot fail or be retried like this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RetryRefusal {
    /// The failure context belongs to another attempt.
    #[error("{id} is at attempt {attempt}, but the saved context belongs to another attempt")]
    OtherAttempt { id: HandoffId, attempt: u32 },
    /// The handoff may not be retried again.
    #[error("{id} cannot be retried: {why}")]
    Spent { id: HandoffId, why: String },
    /// The contract can't take the place of the one that failed.
    #[error("{id} cannot be retried with this contract: {why}")]
    NotCorrectable { id: HandoffId, why: String },
    /// The protocol has no such error code.
    #[error("{code} is not an error code of protocol {protocol}")]
    UnknownCode {
        /// The code, escaped for display.
        code: String,
        protocol: String,
        codes: Vec<String>,
    },
    /// The agent cannot take this handoff over.
    #[error("{agent} cannot take over {id}: no route lets the same sender send it such a contract")]
    NotAssignable {
        id: HandoffId,
        agent: AgentName,
        others: Vec<AgentName>,
    },
}
