//! Refusals: why the ledger refuses a step, with code and hint.
//!
//! Each file has the refusals about one subject; [`Refusal`] unites them.

#![allow(missing_docs, reason = "a variant's message says what its fields are")]

mod contract;
mod lease;
mod limit;
mod lookup;
mod queue;
mod request;
mod retry;
mod role;
mod state;

pub use contract::{ContractRefusal, Correction};
pub use lease::{ClaimEnd, Holding, LeaseRefusal};
pub(crate) use limit::PAST_DEADLINE;
pub use limit::{Limit, LimitReached};
pub use lookup::LookupRefusal;
pub use queue::QueueRefusal;
pub use request::RequestRefusal;
pub use retry::RetryRefusal;
pub use role::RoleRefusal;
pub use state::StateRefusal;

use std::fmt::Display;

use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_base::hint::Hint;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Moment, hint};
use handoff_protocol::Protocol;

use crate::record::{BudgetSpent, Claimable};

/// A refused request. The ledger is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// Who may act and send.
    #[error(transparent)]
    Role(#[from] RoleRefusal),
    /// Leases and claims.
    #[error(transparent)]
    Lease(#[from] LeaseRefusal),
    /// Work that can't be claimed yet.
    #[error(transparent)]
    Queue(#[from] QueueRefusal),
    /// Retries and failures.
    #[error(transparent)]
    Retry(#[from] RetryRefusal),
    /// Requests and answers.
    #[error(transparent)]
    Request(#[from] RequestRefusal),
    /// Unknown issues, handoffs and requirements.
    #[error(transparent)]
    Lookup(#[from] LookupRefusal),
    /// States of issues and handoffs.
    #[error(transparent)]
    State(#[from] StateRefusal),
    /// The contract and its issue.
    #[error(transparent)]
    Contract(#[from] ContractRefusal),
    /// Limits.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// Budgets.
    #[error(transparent)]
    Budget(#[from] BudgetSpent),
}

impl Explained for Refusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Role(refusal) => refusal.explanation(),
            Self::Lease(refusal) => refusal.explanation(),
            Self::Queue(refusal) => refusal.explanation(),
            Self::Retry(refusal) => refusal.explanation(),
            Self::Request(refusal) => refusal.explanation(),
            Self::Lookup(refusal) => refusal.explanation(),
            Self::State(refusal) => refusal.explanation(),
            Self::Contract(refusal) => refusal.explanation(),
            Self::Limit(refusal) => refusal.explanation(),
            Self::Budget(refusal) => refusal.explanation(),
        }
    }
}

impl Refusal {
    /// The refusal of a name that is not an agent of the protocol.
    pub fn unknown_agent(agent: &AgentName, protocol: &Protocol) -> Self {
        let agents = protocol.agent_names();
        let agents = agents.into_iter().map(str::to_owned).collect();
        RoleRefusal::UnknownAgent {
            agent: agent.clone(),
            protocol: protocol.name().to_owned(),
            agents,
        }
        .into()
    }

    /// The findings of a refusal that consists of findings, so that others can be added.
    pub fn misfits(&mut self) -> Option<&mut Vec<Finding>> {
        match self {
            Self::Contract(
                ContractRefusal::Tasks { findings, .. }
                | ContractRefusal::Findings { findings, .. }
                | ContractRefusal::Inconsistent { findings, .. },
            )
            | Self::Request(RequestRefusal::Unfit { findings, .. }) => Some(findings),
            _ => None,
        }
    }

    /// Whether it is about who sends what and when, so that nothing can be said of the work.
    pub fn is_before_work(&self) -> bool {
        match self {
            Self::Limit(_) | Self::Budget(_) => false,
            Self::Request(refusal) => !matches!(refusal, RequestRefusal::Unfit { .. }),
            Self::Contract(refusal) => matches!(
                refusal,
                ContractRefusal::OtherProtocol { .. }
                    | ContractRefusal::IdTaken { .. }
                    | ContractRefusal::NothingFailed { .. }
                    | ContractRefusal::Evidence { .. }
            ),
            _ => true,
        }
    }

    /// The refusal of a key that no issue has.
    pub fn no_issue(key: &IssueKey) -> Self {
        let issue = key.clone();
        LookupRefusal::NoIssue(issue).into()
    }

    /// The refusal of an id that no handoff has.
    pub fn no_handoff(id: &HandoffId) -> Self {
        LookupRefusal::NoHandoff(id.clone()).into()
    }
}

impl Claimable {
    /// The refusal of a claim when nothing is claimable.
    pub fn refusal(self, agent: &AgentName) -> Refusal {
        if let Some(spent) = self.spent {
            return spent.into();
        }
        let (agent, found) = (agent.clone(), Box::new(self));
        QueueRefusal::NothingToClaim { agent, found }.into()
    }
}

fn time(at: Moment) -> String {
    at.to_string()
}

fn see_handoff(id: &HandoffId) -> Hint {
    hint!("see `git handoff show {}`", id)
}

fn see_issue(issue: &IssueKey) -> Hint {
    hint!("see `git handoff status {}`", issue)
}

fn listed(names: &[impl Display], between: &str) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.join(between)
}
