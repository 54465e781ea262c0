use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::output::{Output, columns};
use crate::cli::render;
use crate::ledger::Refusal;
use crate::protocol::{AgentKind, State};

/// List what waits for you and what you hold
///
/// The most urgent first, then the oldest; what you hold comes before what
/// waits. An orchestrator also sees everything that failed or is blocked. Exits
/// 0 also when there is nothing.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff inbox --as reviewer-agent")]
pub(crate) struct Arguments {}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let agent = context.acting_agent(&repository)?;
        let tip = ledger.tip()?;
        let rules = tip.default_rules()?;
        let protocol = rules.protocol();
        if !protocol.agent_names().contains(&agent.as_str()) {
            return Err(Refusal::unknown_agent(&agent, protocol).into());
        }
        let leads = protocol.is_kind(agent.as_str(), AgentKind::Orchestrator);
        let mut records = Vec::new();
        for entry in tip.open()?.iter().filter(|e| leads || e.to == agent) {
            let record = tip.open_record(entry)?;
            if record.to == agent || matches!(record.state, State::Failed | State::Blocked) {
                records.push(record);
            }
        }
        let order = |state: State| match state {
            State::InProgress => 0,
            State::Pending => 1,
            _ => 2,
        };
        records.sort_by_key(|r| {
            let rank = protocol.priority_rank(r.priority.as_deref());
            (order(r.state), rank, r.sent_at())
        });
        let text = if records.is_empty() {
            format!("nothing waits for {agent}\n")
        } else {
            columns(&records.iter().map(render::row).collect::<Vec<_>>())
        };
        output.answer(&json!({ "agent": agent, "handoffs": records }), &text)
    }
}
