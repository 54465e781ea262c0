//! The step that an update becomes on a tip, or its refusal.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Moment, to_second};
use handoff_model::screening::screen_update;
use handoff_model::{Actor, EventArgs, Receipt, Refusal, Request, Update, View, plan};
use handoff_protocol::{Event, Protocol};

use super::draft::Decided;
use super::error::LedgerError;
use super::ledger::Ledger;
use super::order;
use super::session::Session;
use super::snapshot::Snapshot;

impl<'r> Ledger<'r> {
    /// The step that an update becomes on a tip, or the refusal.
    pub(super) fn plan_on(
        &self,
        tip: &Snapshot<'r>,
        actor: &Actor<'_>,
        key: &IssueKey,
        update: &Update,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let mut update = update.clone();
        self.plan_with(tip, actor, key, |protocol| {
            screen_update(protocol, &mut update)?;
            Ok(update)
        })
    }

    /// Plans an update under its protocol's rules.
    pub(super) fn plan_with(
        &self,
        tip: &Snapshot<'r>,
        actor: &Actor<'_>,
        key: &IssueKey,
        update: impl FnOnce(&Protocol) -> Result<Update, LedgerError>,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let folder = tip.issue(key)?;
        let issue = folder.issue()?.ok_or_else(|| Refusal::no_issue(key))?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        let name = canonical(protocol, Some(actor.name)).unwrap_or_else(|| actor.name.clone());
        let actor = Actor {
            name: &name,
            ..*actor
        };
        let update = update(protocol)?;
        let planned = plan(protocol, key, &folder, &actor, &Request::Update(&update))?;
        Decided::of(tip, &rules, name, planned)
    }

    /// Fails a handoff whose time ran out, in the name of its receiver.
    pub(super) fn expire(
        &self,
        session: &Session,
        tip: &Snapshot<'r>,
        at: Moment,
        id: &HandoffId,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let record = tip.issue(id.issue())?.record(id.number())?;
        let record = record.ok_or_else(|| Refusal::no_handoff(id))?;
        let recorded = order::recorded_after(tip.recorded(), session.committer().at);
        order::ensure_ran_out(&record, at, to_second(recorded))?;
        let update = Update::change(id.number(), Event::Expire, EventArgs::default());
        let actor = Actor {
            name: &record.to,
            worker: None,
            at,
            traceparent: None,
            usage: &[],
            delivery: None,
        };
        Ok(match self.plan_on(tip, &actor, id.issue(), &update)? {
            Decided::Write(draft, receipt) => Decided::Write(draft.by_anybody(), receipt),
            decided => decided,
        })
    }
}

/// An agent's name in its protocol; an agent that the protocol does not know keeps its name.
pub(super) fn canonical(protocol: &Protocol, agent: Option<&AgentName>) -> Option<AgentName> {
    let agent = agent?;
    let known = protocol.agent(agent.as_str());
    Some(known.map_or_else(|| agent.clone(), |known| known.id.clone()))
}
