use clap::Args;
use handoff_base::ids::AgentName;
use handoff_ledger::attention::Attention;
use handoff_ledger::{OverviewLimits, overview};
use handoff_model::{Claimable, Record, Refusal};
use handoff_protocol::{Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::remote::AskArgs;
use crate::context::fresh::{Fresh, Reading};
use crate::context::worker::holder;
use crate::context::{Context, fresh};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::render::attention::attention_text;
use crate::render::rows::{self, RecordView};
use crate::view::Look;

/// List what you hold, what waits for you, and what came back to you
///
/// What needs you comes first, with the reason and the command to run: a handoff
/// of yours that was rejected or cancelled, an answer to your question, work that
/// you completed and did not hand on, a lease that is about to end; for an
/// orchestrator also what failed, is dead or is blocked. Then the handoffs that
/// you hold, and those that wait for you to claim them, the most urgent first,
/// then the oldest. Exits 0 even if the list is empty. If the ledger has a remote,
/// asks it first, for at most 2 seconds.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff inbox --as reviewer-agent")]
pub(crate) struct Arguments {
    /// List at most so many of each kind, 0 for all; on a terminal 50, otherwise all
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    asks: AskArgs,
}

/// How much of what needs an agent is printed.
const PRINTED: usize = 20;

/// How many handoffs of each kind are listed on a terminal.
const LISTED: usize = 50;

/// The work of an agent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Inbox")]
pub(crate) struct InboxView {
    /// the acting agent
    agent: AgentName,
    /// what it is told of, the most urgent first; some of it is another agent's turn
    attention: Vec<Attention>,
    /// what it holds, then what waits for it, then what failed or is blocked; within each, the most
    /// urgent first, then the oldest
    handoffs: Vec<RecordView>,
    /// how many more there are than `--limit` lets through
    more: usize,
    /// whether the remote was asked first; null if the ledger has no remote
    fresh: Option<Fresh>,
}

impl Answer for InboxView {
    fn text(&self, look: &Look) -> String {
        if self.handoffs.is_empty() && self.attention.is_empty() {
            return format!("nothing waits for {}\n", self.agent);
        }
        let is_new = |handoff: &&RecordView| {
            let mut told = self.attention.iter();
            let stuck = [State::Failed, State::Blocked, State::Dead];
            !stuck.contains(&handoff.record.state) || !told.any(|a| a.id == handoff.record.id)
        };
        let handoffs = self.handoffs.iter().filter(is_new);
        let more = match self.more {
            0 => String::new(),
            more => format!("and {more} more: --limit 0 lists all\n"),
        };
        attention_text(&self.attention, PRINTED, look)
            + &rows::table(handoffs.map(|h| &h.record), look)
            + &more
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let agent = context.acting_agent(&repository)?;
        let Reading { tip, fresh, .. } = context.fresh(&repository, self.asks.offline, output)?;
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
        let knowing: Vec<&Protocol> = protocols.iter().filter(knows).collect();
        let now = now()?;
        let worker = context.worker(&repository)?;
        let who = holder(&agent, worker.as_ref());
        let each = match self.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None if output.is_on_terminal() => LISTED,
            None => usize::MAX,
        };
        let limits = OverviewLimits {
            each,
            ..OverviewLimits::ALL
        };
        let mut found = overview(&tip, who, &knowing, now, limits)?;
        output.complete(&mut found.attention);
        let buckets = [
            found.held,
            found.held_by_others,
            found.waiting,
            found.later,
            found.stuck,
            found.to_decide,
        ];
        let more = buckets.iter().map(|b| b.count - b.first.len()).sum();
        let records: Vec<Record> = buckets.into_iter().flat_map(|b| b.first).collect();
        let view = InboxView {
            agent,
            attention: found.attention,
            handoffs: RecordView::all(records, now),
            more,
            fresh,
        };
        output.answer(&view)?;
        fresh::say(view.fresh.as_ref(), output);
        Ok(())
    }
}
