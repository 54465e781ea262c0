//! Leases and claims: who holds a handoff, and for how long.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_protocol::State;

use crate::refusal::time;

/// The agent does not hold the handoff, or another one does.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LeaseRefusal {
    /// Another agent claimed the handoff first.
    #[error("{id} has been claimed by {holder} since {}", time(*since))]
    AlreadyClaimed {
        id: HandoffId,
        holder: AgentName,
        since: Moment,
    },
    /// The sender has not claimed the work it was handed.
    #[error("{agent} has not claimed {id}")]
    NotClaimed { id: HandoffId, agent: AgentName },
    /// The sender's handoff is failed or blocked.
    #[error("{agent} is not working on {id}, which is {state}")]
    NotWorking {
        id: HandoffId,
        agent: AgentName,
        state: State,
    },
    /// The sender has no handoff.
    #[error("{agent} holds nothing in issue {issue}")]
    NotHeld {
        agent: AgentName,
        issue: IssueKey,
        open: Vec<(HandoffId, AgentName)>,
    },
    /// The requested lease length is out of range.
    #[error("a lease of {id} must be from 1 to {most} seconds")]
    Length {
        id: HandoffId,
        /// The longest length, in seconds.
        most: u64,
    },
    /// The sender, or the claim that it names, no longer holds the handoff.
    #[error("{agent} no longer holds {id}: {}", lost(*token, *ran_out, holder.as_ref()))]
    Lost {
        id: HandoffId,
        agent: AgentName,
        token: Option<u32>,
        ran_out: Option<Moment>,
        state: State,
        /// The agent that holds it now, and the token of its claim.
        holder: Option<(AgentName, u32)>,
    },
    /// A lease ran out, which must be recorded first.
    #[error("the lease of {0} ran out")]
    Overdue(HandoffId),
    /// The lease has not run out.
    #[error("{0} has no lease that ran out")]
    NotOverdue(HandoffId),
}

impl LeaseRefusal {
    /// The refusal of an agent that was handed work but does not work on it.
    pub(crate) fn not_working(id: &HandoffId, agent: &AgentName, state: State) -> Self {
        let (id, agent) = (id.clone(), agent.clone());
        match state {
            State::Pending => Self::NotClaimed { id, agent },
            state => Self::NotWorking { id, agent, state },
        }
    }
}

fn lost(token: Option<u32>, ran_out: Option<Moment>, holder: Option<&(AgentName, u32)>) -> String {
    let why = match (ran_out, token) {
        (Some(at), _) => format!("its lease ran out, recorded at {}", time(at)),
        (None, Some(token)) => format!("claim {token} is over"),
        (None, None) => "its claim is over".to_owned(),
    };
    match holder {
        Some((holder, token)) => format!("{why}; it is now held by {holder} (claim {token})"),
        None => why,
    }
}
