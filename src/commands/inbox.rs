use clap::Args;
use handoff_base::ids::AgentName;
use handoff_base::text::plain;
use handoff_model::{Claimable, Record, Refusal};
use handoff_protocol::{AgentKind, Protocol, State, Style};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::render::rows::{self, RecordView};
use crate::view::Look;

/// List handoffs that wait for you and handoffs you hold
///
/// Handoffs you hold come first, then those that wait; within each group, the
/// most urgent first, then the oldest. An orchestrator also sees everything that
/// failed, is dead or is blocked. Exits 0 even if the list is empty.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff inbox --as reviewer-agent")]
pub(crate) struct Arguments {}

/// The work of an agent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Inbox")]
pub(crate) struct InboxView {
    /// the acting agent
    agent: AgentName,
    /// what it holds, then what waits for it, then what failed or is blocked; within each, the most
    /// urgent first, then the oldest
    handoffs: Vec<RecordView>,
}

impl Answer for InboxView {
    fn text(&self, look: &Look) -> String {
        match &self.handoffs[..] {
            [] => format!("nothing waits for {}\n", self.agent),
            handoffs => rows::table(handoffs.iter().map(|h| &h.record), look),
        }
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let agent = context.acting_agent(&repository)?;
        let tip = context.tip(&repository)?;
        let mut protocols = Vec::new();
        for name in tip.protocols()? {
            protocols.push(tip.rules(&name)?.protocol().clone());
        }
        let knows = |p: &&Protocol| p.agent(agent.as_str()).is_some();
        let Some(known) = protocols.iter().find(knows) else {
            let first = protocols.first().map(|p| Refusal::unknown_agent(&agent, p));
            return Err(first
                .unwrap_or_else(|| Claimable::default().refusal(&agent))
                .into());
        };
        // Use the protocol's own name for the agent.
        let agent = known
            .agent(agent.as_str())
            .map_or(&agent, |a| &a.id)
            .clone();
        let protocol = |record: &Record| {
            let mut all = protocols.iter();
            all.find(|p| p.name() == record.protocol.as_str())
        };
        let decides = |p: &Protocol| p.is_kind(agent.as_str(), AgentKind::Orchestrator);
        // In a call, the requester decides what happens to a failed request.
        let calls = |p: &Protocol| p.definition().style == Style::Call;
        let everywhere = protocols.iter().any(|p| decides(p) || calls(p));
        let mut records = Vec::new();
        for entry in tip.open()?.iter().filter(|e| everywhere || e.to == agent) {
            let record = tip.open_record(entry)?;
            let stuck = matches!(record.state, State::Failed | State::Blocked | State::Dead);
            let own = |p: &Protocol| decides(p) || calls(p) && record.from == agent;
            if record.to == agent || stuck && protocol(&record).is_some_and(own) {
                records.push(record);
            }
        }
        let order = |record: &Record| match record.state {
            State::InProgress => 0,
            State::Pending if record.waits_for.is_empty() => 1,
            State::Pending => 2,
            _ => 3,
        };
        records.sort_by_key(|r| {
            let rank = protocol(r).map(|p| p.priority_rank(r.priority.as_deref()));
            (order(r), rank, r.sent_at())
        });
        let remote = context.remote(&repository)?.filter(|_| records.is_empty());
        let handoffs = RecordView::all(records, now()?);
        output.answer(&InboxView { agent, handoffs })?;
        if let Some(remote) = remote {
            output.say(&format!(
                "only this clone was checked; `git handoff claim --next` also checks {}",
                plain(&remote)
            ));
        }
        Ok(())
    }
}
