//! Retries, and the failures that lead to them.

use handoff_base::ids::{AgentName, HandoffId};

/// The attempt cannot fail or be retried like this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RetryRefusal {
    /// The failure context belongs to another attempt.
    #[error("{id} is at attempt {attempt}, but the saved context belongs to another attempt")]
    OtherAttempt {
        /// The handoff.
        id: HandoffId,
        /// Its attempt.
        attempt: u32,
    },
    /// The handoff may not be retried again.
    #[error("{id} cannot be retried: {why}")]
    Spent {
        /// The handoff.
        id: HandoffId,
        /// Why.
        why: String,
    },
    /// The protocol has no such error code.
    #[error("{code} is not an error code of protocol {protocol}")]
    UnknownCode {
        /// The code, escaped for display.
        code: String,
        /// The protocol.
        protocol: String,
        /// The codes it has.
        codes: Vec<String>,
    },
    /// The agent cannot take this handoff over.
    #[error("{agent} cannot take over {id}: no route lets the same sender send it such a contract")]
    NotAssignable {
        /// The handoff.
        id: HandoffId,
        /// The agent.
        agent: AgentName,
        /// The agents that can.
        others: Vec<AgentName>,
    },
}
