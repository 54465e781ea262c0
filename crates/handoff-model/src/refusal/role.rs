//! Who may act, and who may send.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_protocol::Event;

/// The agent may not do this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RoleRefusal {
    /// The protocol has no agent by that name.
    #[error("{agent} is not an agent of protocol {protocol}")]
    UnknownAgent {
        agent: AgentName,
        protocol: String,
        agents: Vec<String>,
    },
    /// The contract names no sender.
    #[error("the contract names no sender")]
    NoSender,
    /// The contract names another sender.
    #[error("{agent} cannot send a contract from {from}")]
    NotTheSender { agent: AgentName, from: AgentName },
    /// Another agent may cause the event.
    #[error("{agent} cannot {event} {id}, which was handed to {to}")]
    NotYours {
        id: HandoffId,
        agent: AgentName,
        event: Event,
        to: AgentName,
    },
    /// Another agent decides about the issue.
    #[error("{agent} cannot give up issue {issue}, which {sender} opened")]
    NotGivenUpBy {
        issue: IssueKey,
        agent: AgentName,
        sender: AgentName,
    },
    /// Another agent pauses and resumes the issue.
    #[error("{agent} cannot pause or resume issue {issue}, which {sender} opened")]
    NotPausedBy {
        issue: IssueKey,
        agent: AgentName,
        sender: AgentName,
    },
    /// Only a person approves.
    #[error("{agent} is no person: only a person approves or disapproves")]
    NotAPerson {
        agent: AgentName,
        people: Vec<AgentName>,
        protocol: String,
    },
    /// Another agent decides about the handoff.
    #[error("{agent} cannot decide about {id}, which was handed to {to}")]
    NotDecider {
        id: HandoffId,
        agent: AgentName,
        to: AgentName,
    },
}
