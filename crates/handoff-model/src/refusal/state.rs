//! The states of issues and handoffs.

use handoff_base::Moment;
use handoff_base::ids::{HandoffId, IssueKey};
use handoff_protocol::IllegalEvent;

use crate::refusal::time;

/// The state of the issue or of the handoff does not allow it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StateRefusal {
    /// The first contract of an issue must be one that opens it.
    #[error("issue {issue} has not been opened yet")]
    NotOpened {
        issue: IssueKey,
        /// The agents that may open an issue, each with the receiver of its contract.
        openers: Vec<(String, String)>,
    },
    /// The closing contract was already sent.
    #[error("issue {0} is completed: nothing can be added to it")]
    Completed(IssueKey),
    /// Only a completed issue can be reopened.
    #[error("issue {0} is open")]
    NotCompleted(IssueKey),
    /// The lifecycle has no such transition.
    #[error("{id}: {illegal}")]
    Illegal {
        id: HandoffId,
        illegal: IllegalEvent,
    },
    /// The event was said before the situation that it would apply to now.
    #[error("this is from {}, before {id} reached its current state at {}", time(*said_at), time(*since))]
    SaidBefore {
        id: HandoffId,
        since: Moment,
        said_at: Moment,
    },
}
