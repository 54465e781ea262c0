//! The states of issues and handoffs.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_protocol::{IllegalEvent, State};

use crate::record::Paused;
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
    /// It was given up.
    #[error("issue {0} is cancelled: nothing can be added to it")]
    Cancelled(IssueKey),
    /// Only an issue in which nothing is open can be given up.
    #[error("issue {issue} cannot be given up: {} still open in it", listed(open))]
    StillOpen {
        issue: IssueKey,
        open: Vec<HandoffId>,
    },
    /// The issue is paused for this agent.
    #[error("issue {issue} is {paused}")]
    Paused {
        issue: IssueKey,
        /// The agent that was refused.
        agent: AgentName,
        /// Whether that agent may resume it.
        may_resume: bool,
        paused: Box<Paused>,
    },
    /// Only a completed, cancelled or paused issue can be reopened.
    #[error("issue {0} is open")]
    NotCompleted(IssueKey),
    /// The lifecycle has no such transition.
    #[error("{id}: {illegal}")]
    Illegal {
        id: HandoffId,
        illegal: IllegalEvent,
    },
    /// What was turned down hands nothing on.
    #[error("{id} is {state}: there is nothing to approve")]
    NothingToApprove { id: HandoffId, state: State },
    /// It was said before what decides now whether the work of the issue goes on.
    #[error("this is from {}, and issue {issue} was {done} at {}", time(*said_at), time(*since))]
    SaidEarlier {
        issue: IssueKey,
        said_at: Moment,
        /// `paused` or `reopened`.
        done: &'static str,
        since: Moment,
    },
    /// The event was said before the situation that it would apply to now.
    #[error("this is from {}, before {id} reached its current state at {}", time(*said_at), time(*since))]
    SaidBefore {
        id: HandoffId,
        since: Moment,
        said_at: Moment,
    },
}

/// `7.1 is`, or `7.1, 7.2 are`.
fn listed(ids: &[HandoffId]) -> String {
    let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let verb = if ids.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}
