use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::output::{Output, columns};
use crate::cli::render;
use crate::protocol::State;

/// List what waits for you and what you hold
///
/// The most urgent first, then the oldest; what you hold comes before what
/// waits. Exits 0 also when there is nothing.
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
        if rules.protocol().agent(agent.as_str()).is_none() {
            return Err(crate::ledger::Refusal::UnknownAgent {
                agent,
                protocol: rules.protocol().name().to_owned(),
                agents: rules
                    .protocol()
                    .agent_names()
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            }
            .into());
        }
        let mut records = Vec::new();
        for entry in tip.open()?.iter().filter(|e| e.to == agent) {
            records.push(tip.open_record(entry)?);
        }
        let order = |state: State| match state {
            State::InProgress => 0,
            State::Pending => 1,
            _ => 2,
        };
        records.sort_by_key(|r| {
            let rank = rules.protocol().priority_rank(r.priority.as_deref());
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
