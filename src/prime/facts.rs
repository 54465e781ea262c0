//! The facts gathered for an agent, before they become text.

use std::collections::BTreeMap;

use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::ledger::{Overview, WorkBrief};
use handoff::model::view::News;
use handoff::model::{Halt, Paused, Record};
use handoff::protocol::{Agent, Protocol};

use crate::context::fresh::Fresh;
use crate::contracts::onward::NextContract;
use crate::contracts::skeleton::Skeleton;
use crate::output::Carried;

/// The contract that comes next.
pub(super) struct Contract {
    pub(super) next: NextContract,
    pub(super) skeleton: Skeleton,
    /// Whether values in it were shortened.
    pub(super) shortened: bool,
}

impl Facts<'_> {
    /// Whether work is completed without a contract: it is no request, which takes an answer.
    pub(super) fn may_complete(&self, work: &Record) -> bool {
        self.protocol.answers_to(&work.contract_type).is_empty()
    }
}

/// All the facts.
pub(super) struct Facts<'a> {
    pub(super) agent: AgentName,
    pub(super) party: Option<&'a Agent>,
    pub(super) protocol: &'a Protocol,
    /// How it treats statements that the repository contradicts, and what was set in it.
    pub(super) policy: String,
    /// The other protocols that know the agent.
    pub(super) elsewhere: Vec<&'a Protocol>,
    pub(super) overview: Overview,
    /// What it holds by a claim that was made here offline, with the remote that does not have it.
    pub(super) unpublished: Vec<(HandoffId, String)>,
    /// The pauses of what it holds.
    pub(super) paused: BTreeMap<IssueKey, Paused>,
    /// What is paused beyond single issues.
    pub(super) halts: Vec<Halt>,
    /// How many steps made here offline were refused and are kept.
    pub(super) rejected: usize,
    /// The handoff it holds, or would claim next.
    pub(super) work: Option<Record>,
    /// What that work needs, if it holds it.
    pub(super) brief: Option<WorkBrief>,
    /// What others said about that work since it was claimed.
    pub(super) news: Vec<News>,
    pub(super) contract: Option<Contract>,
    /// The other contracts that it may send.
    pub(super) others: Vec<NextContract>,
    /// What its commands carry.
    pub(super) carried: Carried,
    pub(super) now: Moment,
    /// How the ledger relates to its remote, if it has one.
    pub(super) fresh: Option<Fresh>,
}
