//! Plans an update on a tip, or refuses it.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Moment, to_second};
use handoff_model::screening::screen_update;
use handoff_model::{EventArgs, Receipt, Refusal, Request, Step, Update, View, plan};
use handoff_protocol::{Event, Protocol};

use super::draft::{Decided, Draft};
use super::ledger::Ledger;
use super::order;
use super::session::Session;
use super::snapshot::Snapshot;

impl<'r> Ledger<'r> {
    /// Plans a step other than a send on a tip, or refuses it. Screens it for secrets, unless that
    /// was done.
    pub(super) fn plan_on(
        &self,
        tip: &Snapshot<'r>,
        key: &IssueKey,
        mut step: Step,
        is_screened: bool,
    ) -> Decided<Receipt> {
        let folder = tip.issue(key)?;
        let issue = folder.issue()?.ok_or_else(|| Refusal::no_issue(key))?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        if let (Request::Update(update), false) = (&mut step.request, is_screened) {
            screen_update(protocol, update)?;
        }
        step.by = canonical(protocol, &step.by);
        let planned = plan(protocol, key, &folder, &step, None)?;
        Draft::decided(tip, &rules, step, planned)
    }

    /// Fails a handoff whose deadline passed, in the name of its receiver.
    pub(super) fn expire(
        &self,
        session: &Session,
        tip: &Snapshot<'r>,
        at: Moment,
        id: &HandoffId,
    ) -> Decided<Receipt> {
        let record = tip.issue(id.issue())?.record(id.number())?;
        let record = record.ok_or_else(|| Refusal::no_handoff(id))?;
        let limit = tip.limit(session.now())?;
        let recorded = order::recorded_after(limit, session.committer().at);
        order::ensure_ran_out(&record, at, to_second(recorded))?;
        let update = Update::change(id.number(), Event::Expire, EventArgs::default());
        let step = Step::new(record.to, at, Request::Update(update));
        self.plan_on(tip, id.issue(), step, false)
    }
}

/// An agent's name in its protocol; an agent that the protocol does not know keeps its name.
pub(super) fn canonical(protocol: &Protocol, agent: &AgentName) -> AgentName {
    let known = protocol.agent(agent.as_str());
    known.map_or(agent, |known| &known.id).clone()
}
