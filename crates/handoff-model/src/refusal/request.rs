//! Requests, questions and their answers.

use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_protocol::State;

use crate::record::NoUsage;

/// The request cannot be made or answered like this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestRefusal {
    /// The protocol keeps no such refusals on record.
    #[error("the protocol of issue {0} keeps no such refusals on record")]
    NotOnRecord(IssueKey),
    /// The report of what the work took can't be recorded.
    #[error("the usage cannot be recorded")]
    Usage(#[source] NoUsage),
    /// The issue is a single request that has its answer.
    #[error("issue {0} is a single request, and is already answered")]
    OneRequest(IssueKey),
    /// A request must be answered, not only completed.
    #[error("{id} is a request: {from} waits for an answer")]
    NeedsAnswer {
        id: HandoffId,
        from: AgentName,
        to: AgentName,
        /// The types of contract that answer it.
        types: Vec<String>,
    },
    /// A part of a task must be reported, not only completed.
    #[error("{id} is a part of task {task}, and is completed with a report on it")]
    NeedsReport {
        id: HandoffId,
        from: AgentName,
        to: AgentName,
        /// The task that it is part of.
        task: Box<str>,
        /// The type of contract that reports it.
        kind: Box<str>,
    },
    /// A handoff that is evaluated must be decided on, not only completed.
    #[error("{id} awaits a decision of {agent}")]
    NeedsDecision {
        id: HandoffId,
        agent: AgentName,
        /// The agent that takes over if the decision is to go on.
        to: Option<AgentName>,
    },
    /// The request already has its answer.
    #[error("{id} is {state}: {answer} is its answer")]
    Answered {
        id: HandoffId,
        state: State,
        answer: HandoffId,
    },
    /// The contract contradicts what the issue knows.
    #[error("the contract does not fit issue {issue}")]
    Unfit {
        issue: IssueKey,
        findings: Vec<Finding>,
    },
    /// The answer does not match the questions.
    #[error("the answer to {id} does not match the question")]
    AnswerUnfit {
        id: HandoffId,
        findings: Vec<Finding>,
    },
    /// The receiver waits for the sender, directly or through others.
    #[error("{to} is already waiting for {from} in {id}: {reason}")]
    Loop {
        from: AgentName,
        to: AgentName,
        id: HandoffId,
        reason: String,
    },
}
