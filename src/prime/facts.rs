//! The facts gathered for an agent, before they become text.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_ledger::{Overview, WorkBrief};
use handoff_model::Record;
use handoff_protocol::{Agent, Protocol};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::fresh::Fresh;
use crate::contracts::skeleton::{Format, Skeleton};
use crate::output::Carried;

/// A contract that the agent may send next.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct NextContract {
    /// its receiver
    pub(super) to: AgentName,
    /// the title of its type
    pub(super) title: String,
    /// its type
    pub(super) contract_type: String,
    /// the command that prints its skeleton
    pub(super) command: String,
    /// the command that writes, checks and sends it, with a mark for each value that only its sender
    /// knows; null if it is not a usual way on
    pub(super) send: Option<String>,
    /// Whether it is a usual way on, not one to an agent that steps in.
    #[serde(skip)]
    pub(super) usual: bool,
    /// The request that it answers, if it must be named.
    #[serde(skip)]
    pub(super) answers: Option<HandoffId>,
    /// Whether its type must be named.
    #[serde(skip)]
    pub(super) names_type: bool,
    #[serde(skip)]
    pub(super) format: Format,
}

/// The contract that comes next.
pub(super) struct Contract {
    pub(super) next: NextContract,
    pub(super) skeleton: Skeleton,
    /// Whether values in it were shortened.
    pub(super) shortened: bool,
}

/// All the facts.
pub(super) struct Facts<'a> {
    pub(super) agent: AgentName,
    pub(super) party: Option<&'a Agent>,
    pub(super) protocol: &'a Protocol,
    /// The other protocols that know the agent.
    pub(super) elsewhere: Vec<&'a Protocol>,
    pub(super) overview: Overview,
    /// What it holds by a claim that was made here offline, with the remote that does not have it.
    pub(super) unpublished: Vec<(HandoffId, String)>,
    /// How many steps made here offline were refused and are kept.
    pub(super) rejected: usize,
    /// The handoff it holds, or would claim next.
    pub(super) work: Option<Record>,
    /// What that work needs, if it holds it.
    pub(super) brief: Option<WorkBrief>,
    pub(super) contract: Option<Contract>,
    /// The other contracts that it may send.
    pub(super) others: Vec<NextContract>,
    /// What its commands carry.
    pub(super) carried: Carried,
    pub(super) now: Moment,
    /// How the ledger relates to its remote, if it has one.
    pub(super) fresh: Option<Fresh>,
}

/// The placeholder for the issue in commands that open one.
pub(super) const NEW_ISSUE: &str = "ISSUE";
