//! Refusals about roles: who may act, and who may send.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_protocol::Event;

use crate::refusal::listed;

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
    /// Another agent must cause the event.
    #[error("{agent} cannot {} {id}, which was handed to {to}", event.as_str().replace('_', " "))]
    NotYours {
        id: HandoffId,
        agent: AgentName,
        /// Whether that is a person, who may act as any agent.
        is_person: bool,
        event: Event,
        to: AgentName,
    },
    /// Another agent may give the issue up.
    #[error("{agent} cannot give up issue {issue}, which {sender} opened")]
    NotGivenUpBy {
        issue: IssueKey,
        agent: AgentName,
        sender: AgentName,
    },
    /// Another agent may pause and resume the issue.
    #[error("{agent} cannot {done} issue {issue}, which {sender} opened")]
    NotPausedBy {
        /// `pause or resume`, or `set priority of`.
        done: Box<str>,
        issue: IssueKey,
        agent: AgentName,
        sender: AgentName,
    },
    /// Only an orchestrator or a person may pause more than one issue.
    #[error("{agent} cannot pause or resume work of more than one issue")]
    NotLead {
        agent: AgentName,
        leads: Vec<AgentName>,
    },
    /// Only a person may sign off a quarantine.
    #[error("{agent} cannot sign off a quarantine")]
    NoSignOff {
        agent: AgentName,
        people: Vec<AgentName>,
    },
    /// Only a person may approve.
    #[error("only a person can approve or disapprove; {agent} is an agent")]
    NotAPerson {
        agent: AgentName,
        people: Vec<AgentName>,
        protocol: String,
    },
    /// The fact has another source.
    #[error("{agent} cannot note the fact {fact}: it comes from {told_by}")]
    NotItsFact {
        agent: AgentName,
        fact: String,
        /// Who states or corrects it.
        told_by: Box<str>,
        /// Who of them can be asked.
        asked: &'static str,
    },
    /// Another agent decides about the handoff.
    #[error("{agent} cannot decide about {id}, which was handed to {to}")]
    NotDecider {
        id: HandoffId,
        agent: AgentName,
        to: AgentName,
    },
}

impl Explained for RoleRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::UnknownAgent { agents, .. } => {
                ErrorCode::UnknownAgent.hint(hint!("agents are: {}", agents.join(", ")))
            }
            Self::NoSender => {
                ErrorCode::Usage.hint("name the sender with --as AGENT or GIT_HANDOFF_AGENT")
            }
            Self::NotTheSender { from, .. } => ErrorCode::NotTheSender
                .hint(hint!("only {} can send it, with --as {}", from, from)),
            Self::NotGivenUpBy { issue, sender, .. } => ErrorCode::NotYours.hint(hint!(
                "{}, an agent that it awaits, an orchestrator or a person can; see `git handoff status {}`",
                sender,
                issue
            )),
            Self::NotPausedBy { issue, sender, .. } => ErrorCode::NotYours.hint(hint!(
                "{}, an orchestrator or a person can; see `git handoff status {}`",
                sender,
                issue
            )),
            Self::NotAPerson { people, protocol, .. } if people.is_empty() => {
                ErrorCode::NotYours.hint(hint!(
                    "{} has no agent of kind `human`: `git handoff protocol copy {}`, add one, then `git handoff protocol update` it",
                    protocol,
                    protocol
                ))
            }
            Self::NotLead { leads: people, .. }
            | Self::NotAPerson { people, .. }
            | Self::NoSignOff { people, .. } => {
                ErrorCode::NotYours.hint(hint!("who can: {}", listed(people, ", ")))
            }
            Self::NotItsFact { asked, .. } => ErrorCode::NotYours.hint(format!(
                "leave the fact out, and let the note ask {asked} to correct it"
            )),
            Self::NotYours { id, event, .. } if *event == Event::Answer => ErrorCode::NotYours
                .hint(hint!(
                    "its sender, an orchestrator or a person can; see `git handoff show {}`",
                    id
                )),
            Self::NotYours {
                id,
                event,
                to,
                is_person: true,
                ..
            } if event.is_claim() => {
                let claim = match event {
                    Event::TakeOver => hint!(
                        "`git handoff claim {} --take-over --reason WHY --as {}`",
                        id,
                        to
                    ),
                    _ => hint!("`git handoff claim {} --as {}`", id, to),
                };
                let act = hint!("to do the work of {} yourself, act as it: ", to);
                ErrorCode::NotYours.hint(act.and(claim))
            }
            Self::NotYours { id, event, to, .. } if event.is_receivers() => {
                ErrorCode::NotYours.hint(hint!("only {} can; see `git handoff show {}`", to, id))
            }
            Self::NotYours { id, to, .. } | Self::NotDecider { id, to, .. } => {
                ErrorCode::NotYours.hint(hint!(
                    "its sender, its receiver ({}), an orchestrator or a person can; see `git handoff show {}`",
                    to,
                    id
                ))
            }
        }
    }
}
