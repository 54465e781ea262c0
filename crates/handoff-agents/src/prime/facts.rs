//! The facts for an agent's page, before they become text.

use std::collections::{BTreeMap, BTreeSet};

use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::ledger::{Overview, UnpushedCode, WorkBrief};
use handoff::model::view::News;
use handoff::model::{Halt, Paused, Record};
use handoff::protocol::{Agent, Protocol};

use handoff_cli::context::fresh::Fresh;
use handoff_cli::contracts::onward::NextContract;
use handoff_cli::contracts::skeleton::Skeleton;
use handoff_cli::output::Carried;

/// The next contract.
pub(super) struct Contract {
    pub(super) next: NextContract,
    pub(super) skeleton: Skeleton,
    /// Whether values in it were shortened.
    pub(super) shortened: bool,
}

impl Facts<'_> {
    /// Whether the work can be completed without a contract: a request needs an answer, and what a
    /// limit keeps from being sent on would be stuck.
    pub(super) fn may_complete(&self, work: &Record) -> bool {
        self.at_limit.is_none() && self.protocol.answers_to(&work.contract_type).is_empty()
    }

    /// The handoff that its work reports and that it has to decide about.
    pub(super) fn reported(&self) -> Option<&Record> {
        let about = self.work.as_ref()?.follows.as_ref()?;
        let mut all = self.overview.to_decide.first.iter();
        all.find(|record| record.id == *about)
    }
}

/// What an agent's page is made from.
pub(super) struct Facts<'a> {
    pub(super) agent: AgentName,
    pub(super) party: Option<&'a Agent>,
    pub(super) protocol: &'a Protocol,
    /// Its policy for statements that the repository contradicts, with what was set.
    pub(super) policy: String,
    /// The other protocols that list the agent.
    pub(super) elsewhere: Vec<&'a Protocol>,
    pub(super) overview: Overview,
    /// The completed issue whose branch is checked out, if its merge is left and nothing waits for
    /// the agent.
    pub(super) left: Option<IssueKey>,
    /// The code that was handed on, and is only here.
    pub(super) unpushed: Vec<UnpushedCode>,
    /// The handoffs whose claim was made here offline, with the remote that lacks it.
    pub(super) unpublished: Vec<(HandoffId, String)>,
    /// The commands by which it goes on with handoffs whose time ran out.
    pub(super) again: BTreeMap<HandoffId, String>,
    /// The pauses of the held handoffs' issues.
    pub(super) paused: BTreeMap<IssueKey, Paused>,
    /// The pauses of more than single issues.
    pub(super) halts: Vec<Halt>,
    /// How many steps made here offline were refused and are kept.
    pub(super) rejected: usize,
    /// The handoff that it holds, or would claim next.
    pub(super) work: Option<Record>,
    /// The requirements of that work, if it holds it.
    pub(super) brief: Option<WorkBrief>,
    /// The limit that keeps it from sending all that it might from that work.
    pub(super) at_limit: Option<String>,
    /// The unfinished work that can be restored: the handoff, and the folder that keeps it.
    pub(super) restorable: BTreeSet<(HandoffId, String)>,
    /// The tree of the kept work that was restored in this working tree.
    pub(super) restored: Option<String>,
    /// What others said about that work since it was claimed.
    pub(super) news: Vec<News>,
    pub(super) contract: Option<Contract>,
    /// The other contracts that it may send.
    pub(super) others: Vec<NextContract>,
    /// The options that its commands need.
    pub(super) carried: Carried,
    pub(super) now: Moment,
    /// The result of asking the remote, if there is one.
    pub(super) fresh: Option<Fresh>,
}
