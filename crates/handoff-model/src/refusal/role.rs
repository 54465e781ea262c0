//! Who may act, and who may send.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::Event;

/// The agent may not do this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RoleRefusal {
    /// The protocol has no agent by that name.
    #[error("{agent} is not an agent of protocol {protocol}")]
    UnknownAgent {
        /// The name that was given.
        agent: AgentName,
        /// The protocol.
        protocol: String,
        /// The agents that take part.
        agents: Vec<String>,
    },
    /// The contract names no sender.
    #[error("the contract names no sender")]
    NoSender,
    /// The contract names another sender.
    #[error("{agent} cannot send a contract from {from}")]
    NotTheSender {
        /// The agent that sends.
        agent: AgentName,
        /// The sender that the contract names.
        from: AgentName,
    },
    /// Another agent may cause the event.
    #[error("{agent} cannot {event} {id}, which was handed to {to}")]
    NotYours {
        /// The handoff.
        id: HandoffId,
        /// The agent that tried.
        agent: AgentName,
        /// The event it tried.
        event: Event,
        /// The receiver.
        to: AgentName,
    },
    /// Another agent decides about the handoff.
    #[error("{agent} cannot decide about {id}, which was handed to {to}")]
    NotDecider {
        /// The handoff.
        id: HandoffId,
        /// The agent that tried.
        agent: AgentName,
        /// The receiver.
        to: AgentName,
    },
}
