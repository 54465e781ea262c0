use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::output::{Output, plain};
use crate::ids::{AgentName, IssueKey, quoted};
use crate::ledger::{Refusal, View, turn};

/// Say whose turn it is in an issue, and why
///
/// Where several agents could act, the state of the task decides, as the
/// protocol says; where it says nothing, the lower phase goes first, and the
/// others yield.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff next 123
  git handoff next environment --task 12 --between task-orchestrator,execution-guardian")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE")]
    issue: String,
    /// The task that they act on
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The agents that would act; by default those with whom something is open
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',')]
    between: Vec<AgentName>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let key: IssueKey = self.issue.parse()?;
        let repository = context.repository()?;
        let tip = context.ledger(&repository)?.tip()?;
        let issue = tip.issue(&key)?.issue()?;
        let issue = issue.ok_or(Refusal::NoIssue { issue: key.clone() })?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        for agent in &self.between {
            if protocol.agent(agent.as_str()).is_none() {
                return Err(Refusal::unknown_agent(agent, protocol).into());
            }
        }
        if let Some(task) = &self.task
            && !issue.tasks.iter().any(|t| t.id == *task)
        {
            let text = format!("issue {key} has no task {}", quoted(task));
            return Err(Failure::new(exit::NOT_FOUND, "no_task", text)
                .hint(format!("`git handoff status {key}` lists its tasks")));
        }
        let turn = turn(protocol, &issue, self.task.as_deref(), &self.between);
        let Some(turn) = turn else {
            let text = format!("nothing is open in issue {key}\n");
            let data =
                json!({ "issue": key, "agent": null, "handoff": null, "why": "nothing is open" });
            return output.answer(&data, &text);
        };
        let at = turn.handoff.as_ref().map(|id| format!(" with {id}"));
        let text = format!(
            "{}{}: {}\n",
            turn.agent,
            at.unwrap_or_default(),
            plain(&turn.why)
        );
        let data = json!({
            "issue": key,
            "agent": turn.agent,
            "handoff": turn.handoff,
            "why": turn.why,
        });
        output.answer(&data, &text)
    }
}
