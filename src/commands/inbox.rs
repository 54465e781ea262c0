use std::collections::BTreeMap;

use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::ledger::attention::{Attention, another_attempt};
use handoff::ledger::{OverviewLimits, Snapshot, overview};
use handoff::model::{Claimable, Paused, Record, Refusal, View};
use handoff::protocol::Protocol;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::remote::AskArgs;
use crate::context::fresh::{Fresh, Reading};
use crate::context::worker::holder;
use crate::context::{Context, fresh};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output};
use crate::render::attention::attention_text;
use crate::render::pauses_text;
use crate::render::rows::{self, ListedHandoff};
use crate::render::stored::say_how_to_read;
use crate::view::Look;

/// List what you hold, what waits for you, and what came back to you
///
/// What needs you comes first, with the reason and the command: what was rejected or cancelled, an
/// answer, work that you did not hand on, a lease that is about to end; for an orchestrator also what
/// failed, is dead or is blocked. Then what you hold, and what waits for you, the most urgent first,
/// then the oldest. Exits 0 even if the list is empty. Asks the ledger's remote first, for at most 2
/// seconds.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff inbox --as reviewer-agent")]
pub(crate) struct Arguments {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    asks: AskArgs,
}

/// How many entries that need an agent are printed.
const PRINTED: usize = 20;

/// An agent's work.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Inbox")]
pub(crate) struct InboxView {
    /// the acting agent
    agent: AgentName,
    /// what it is told of, the most urgent first; some of it is another agent's turn. At most
    /// `--limit`, and empty with `--after`
    attention: Vec<Attention>,
    /// how much it is told of in all
    attention_total: usize,
    /// what it holds, then what waits for it, then what failed or is blocked; within each, the most
    /// urgent first, then the oldest
    handoffs: Vec<ListedHandoff>,
    /// the pauses of their issues
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    paused: BTreeMap<IssueKey, Paused>,
    #[serde(flatten)]
    page: Page,
    /// whether the remote was asked first; null if the ledger has no remote
    fresh: Option<Fresh>,
    #[serde(skip)]
    printed: usize,
    /// What is wanted of the agent with each handoff.
    #[serde(skip)]
    wanted: Vec<String>,
}

impl Answer for InboxView {
    fn text(&self, look: &Look) -> String {
        if self.handoffs.is_empty() && self.attention.is_empty() {
            return format!("nothing waits for {}\n", self.agent);
        }
        let is_new = |handoff: &ListedHandoff| {
            let mut told = self.attention.iter();
            !handoff.record().state.is_stuck() || !told.any(|a| a.id == handoff.record().id)
        };
        let wanted = self.wanted.iter().map(String::as_str);
        let handoffs = self.handoffs.iter().zip(wanted);
        let handoffs = handoffs.filter(|(handoff, _)| is_new(handoff));
        let handoffs = handoffs.map(|(handoff, wanted)| (handoff.record(), wanted));
        let count = (self.printed, self.attention_total, "--limit 0");
        attention_text(&self.attention, count, look)
            + &rows::wanted_table(handoffs, look)
            + &pauses_text(&self.paused)
            + self.page.text()
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let agent = context.acting_agent(&repository)?;
        let reading = context.fresh(&repository, self.asks.offline, output)?;
        let Reading { tip, fresh, .. } = reading;
        let mut protocols = Vec::new();
        for name in tip.protocols()? {
            protocols.push(tip.rules(&name)?.protocol().clone());
        }
        let knows = |p: &&Protocol| p.agent(agent.as_str()).is_some();
        if !protocols.iter().any(|p| knows(&p)) {
            let first = protocols.first().map(|p| Refusal::unknown_agent(&agent, p));
            return Err(first
                .unwrap_or_else(|| Claimable::default().refusal(&agent))
                .into());
        }
        let knowing: Vec<&Protocol> = protocols.iter().filter(knows).collect();
        let now = now()?;
        let worker = context.worker(&repository)?;
        let who = holder(&agent, worker.as_ref());
        let most = self.page.most(output);
        let after = self.page.after.as_deref().map(str::parse).transpose()?;
        let limits = OverviewLimits {
            each: most,
            after: after.as_ref(),
            ..OverviewLimits::ALL
        };
        let mut found = overview(&tip, who, &knowing, now, limits)?;
        output.complete(&mut found.attention);
        let attention_total = found.attention.len();
        found.attention.truncate(self.page.most_before(most));
        for one in &mut found.attention {
            say_how_to_read(&tip, one)?;
        }
        let buckets = [
            found.held,
            found.held_by_others,
            found.waiting,
            found.later,
            found.stuck,
            found.to_decide,
        ];
        let skipped = found.skipped.ok_or_else(|| self.page.gone(output))?;
        let total = buckets.iter().map(|b| b.count).sum();
        let mut records: Vec<Record> = buckets.into_iter().flat_map(|b| b.first).collect();
        records.truncate(most);
        let last = records.last().map(|record| record.id.to_string());
        let cursor = last.filter(|_| skipped + records.len() < total);
        let page = Page::new(Some(total), records.len(), cursor, output);
        let wanted = records.iter().map(|r| wanted(&tip, &knowing, &agent, r));
        let wanted = wanted.collect::<Result<_, _>>()?;
        let mut again = Vec::new();
        for record in records.iter().filter(|record| record.to == agent) {
            let command = another_attempt(&tip, &knowing, record, now)?;
            again.extend(command.map(|command| output.command(&command)));
        }
        let paused = tip.paused_among(records.iter().map(|record| record.id.issue()))?;
        let view = InboxView {
            paused,
            wanted,
            agent,
            attention: found.attention,
            attention_total,
            printed: self.page.most_before(PRINTED),
            handoffs: ListedHandoff::all(records, now),
            page,
            fresh,
        };
        output.answer(&view)?;
        for command in again {
            output.say(&format!(
                "its time ran out; whoever has its work goes on with it: {command}"
            ));
        }
        fresh::say(view.fresh.as_ref(), output);
        Ok(())
    }
}

/// What is wanted of an agent with a handoff: the open findings that it raised, else what its
/// contract's type is for, with its summary. Empty if it is with another one.
fn wanted(
    tip: &Snapshot<'_>,
    protocols: &[&Protocol],
    agent: &AgentName,
    record: &Record,
) -> Result<String, Failure> {
    let mut protocols = protocols.iter();
    let protocol = protocols.find(|protocol| protocol.name() == record.protocol.as_str());
    let kind = protocol.and_then(|protocol| protocol.contract_type(&record.contract_type));
    let Some(kind) = kind.filter(|_| record.to == *agent && !record.state.is_stuck()) else {
        return Ok(String::new());
    };
    let title = &kind.title;
    if kind.raises.is_some()
        && let Some(issue) = tip.issue(record.id.issue())?.shared_issue()?
    {
        let own = issue.unsettled().filter(|one| one.raised_by == record.id);
        let own: Vec<String> = own.map(|one| format!("{}, {}", one.id, one.text)).collect();
        if !own.is_empty() {
            return Ok(format!("{title}: {}", own.join("; ")));
        }
    }
    let is_said = record.summary == record.subject() || record.summary == *title;
    Ok(if is_said {
        title.clone()
    } else {
        format!("{title}: {}", record.summary)
    })
}
