//! Refusals about failures and retries.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint;
use handoff_base::ids::{AgentName, HandoffId};

use handoff_protocol::State;

use crate::refusal::listed;

/// The failure or the retry can't be accepted like this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RetryRefusal {
    /// The failure context belongs to another attempt.
    #[error("{id} is at attempt {attempt}, but the saved context belongs to another attempt")]
    OtherAttempt { id: HandoffId, attempt: u32 },
    /// The handoff may not be retried again.
    #[error("{id} cannot be retried: {why}")]
    Spent { id: HandoffId, why: String },
    /// The corrected contract can't replace the failed one.
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
    /// The agent can't take this handoff over.
    #[error("{agent} cannot take over {id}: no route lets the same sender send it such a contract")]
    NotAssignable {
        id: HandoffId,
        agent: AgentName,
        others: Vec<AgentName>,
        /// Its receiver.
        to: Box<AgentName>,
        state: State,
        /// Whether the agent is a person, who may act as the receiver.
        is_person: bool,
    },
}

impl Explained for RetryRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::OtherAttempt { id, .. } => ErrorCode::OtherAttempt
                .hint(hint!("nothing was written; see `git handoff show {}`", id)),
            Self::Spent { id, .. } => ErrorCode::RetriesSpent.hint(hint!(
                "`git handoff next {}` says who can give it new attempts, or end it; otherwise send it as a new handoff",
                id.issue()
            )),
            Self::NotCorrectable { id, .. } => ErrorCode::CorrectionRefused.hint(hint!(
                "see `git handoff show {}`; `git handoff retry {}` gives it another attempt as it is",
                id,
                id
            )),
            Self::UnknownCode { codes, .. } => {
                ErrorCode::UnknownFailureCode.hint(hint!("use one of: {}", codes.join(", ")))
            }
            Self::NotAssignable {
                id,
                to,
                state,
                is_person: true,
                ..
            } if *state != State::InProgress => {
                let retry = match state {
                    State::Pending => hint!(""),
                    State::Blocked => hint!("`git handoff answer {} ANSWER`, then ", id),
                    _ => hint!("`git handoff retry {} --reason WHY`, then ", id),
                };
                let act = hint!("to do the work of {} yourself, act as it: ", to);
                let claim = hint!("`git handoff claim {} --as {}`", id, to);
                ErrorCode::NotAssignable.hint(act.and(retry).and(claim))
            }
            Self::NotAssignable { others, id, to, state, .. } if others.is_empty() => {
                let same = match state {
                    State::InProgress => hint!(
                        "no other agent can; another worker of {} can take it over: `git handoff claim {} --take-over --as {} --reason WHY`",
                        to,
                        id,
                        to
                    ),
                    State::Failed => hint!("no other agent can; retry with the same agent: `git handoff retry {}`", id),
                    State::Pending => hint!("no other agent can; {} can claim it: `git handoff claim {} --as {}`", to, id, to),
                    _ => hint!("no other agent can"),
                };
                ErrorCode::NotAssignable
                    .hint(same.and(hint!("; or cancel it: `git handoff cancel {}`", id)))
            }
            Self::NotAssignable { others, .. } => ErrorCode::NotAssignable
                .hint(hint!("agents that can: {}", listed(others, ", "))),
        }
    }
}
