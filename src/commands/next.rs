use clap::Args;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::text::{plain, quoted};
use handoff_insight::attention::{Stuck, idle};
use handoff_ledger::IssueSurvey;
use handoff_model::{Advice, Issue, Record, Refusal, View, issue_folder, needs_attention, turn};
use handoff_protocol::{Action, Protocol};
use serde_json::{Value, json};

use crate::context::Context;
use crate::environment::{drawn, now};
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use crate::render;
use crate::render::advice::{commands, questions_text};

/// Show what should happen next in an issue, and why
///
/// Handoffs that need attention come first: if one failed, is blocked or its
/// lease ran out, the protocol's rules choose whether to ask, retry, reassign it
/// to another agent, continue with what there is, skip it, do it by hand, let a
/// person decide, or end it. With --apply, the action is carried out and recorded
/// with its rationale.
///
/// If nothing needs attention, the answer is whose turn it is. If several agents
/// could act, the protocol's rules for the state of the task decide; if it has
/// none, the agent in the lower phase goes first and the others yield.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff next 123
  git handoff next 123 --apply --as orchestrator
  git handoff next environment --task 12 \\
      --between task-orchestrator,execution-guardian")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE")]
    issue: String,
    /// Carry out the action, and record why
    #[arg(long, conflicts_with_all = ["task", "between"])]
    apply: bool,
    /// The task that they act on
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The agents that could act; by default those that have an open handoff
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
        let writer = if self.apply {
            context.writer(&repository, output)?
        } else {
            context.writer_apart(&repository, output)?
        };
        let (mut ledger, session) = writer;
        let tip = ledger.tip()?;
        let folder = tip.issue(&key)?;
        let issue = folder.issue()?;
        let issue = issue.ok_or_else(|| Refusal::no_issue(&key))?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        let asks_for_turn = self.task.is_some() || !self.between.is_empty();
        let stands = if asks_for_turn {
            None
        } else {
            needs_attention(protocol, &folder, &issue, now()?)?
        };
        let Some((advice, record)) = stands else {
            let survey = folder.survey()?;
            return self.turn(&issue, survey.as_ref(), protocol, output);
        };
        let mut text = text(&advice, &record);
        let mut data = data(&advice, &record);
        if self.apply {
            let agent = context.acting_agent(&repository)?;
            let update = advice.update(drawn());
            let done = ledger.update(&session, &agent, advice.id.issue(), &update)?;
            output.follow(&ledger);
            text += &render::done_text(&done);
            data["applied"] = render::done_json(&done);
            output.answer(&data, &text)?;
            render::say_next(&done, output);
            return Ok(());
        }
        output.answer(&data, &text)?;
        for (i, command) in commands(&advice, &record).iter().enumerate() {
            let label = if i == 0 { "next:" } else { "  or:" };
            output.say(&format!("{label} {command}"));
        }
        Ok(())
    }

    /// Reports whose turn it is, if nothing needs attention.
    fn turn(
        &self,
        issue: &Issue,
        survey: Option<&IssueSurvey>,
        protocol: &Protocol,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let key = &issue.issue;
        for agent in &self.between {
            if protocol.agent(agent.as_str()).is_none() {
                return Err(Refusal::unknown_agent(agent, protocol).into());
            }
        }
        if let Some(task) = &self.task
            && !issue.tasks.iter().any(|t| t.id == *task)
        {
            let text = format!("issue {key} has no task {}", quoted(task));
            return Err(Failure::new(ErrorCode::NoTask, text)
                .hint(format!("`git handoff status {key}` lists its tasks")));
        }
        if self.apply {
            let text = format!("nothing in issue {key} needs attention: its agents can continue");
            return Err(Failure::new(ErrorCode::NothingToDecide, text)
                .hint(format!("`git handoff next {key}` shows whose turn it is")));
        }
        let turn = turn(protocol, issue, self.task.as_deref(), &self.between);
        let Some(turn) = turn else {
            if let Some(idle) = survey.and_then(|survey| idle(survey, protocol)) {
                return answer_idle(&idle, output);
            }
            let text = format!("nothing is open in issue {key}\n");
            let data = json!({
                "issue": key, "action": null, "agent": null, "handoff": null,
                "why": "nothing is open",
            });
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
            "action": Action::Advance,
            "agent": turn.agent,
            "handoff": turn.handoff,
            "why": turn.why,
        });
        output.answer(&data, &text)
    }
}

/// Reports whose turn it is to send, if nothing is open but something has to follow.
fn answer_idle(idle: &Stuck, output: &mut Output) -> Result<(), Failure> {
    let title = idle.need.title();
    let why = match idle.why.as_str() {
        "" => title.to_owned(),
        why => format!("{title}: {why}"),
    };
    let turn = idle.turn.as_ref().map(|turn| format!("{turn}: "));
    let text = format!("{}{}\n", turn.unwrap_or_default(), plain(&why));
    let data = json!({
        "issue": idle.issue,
        "action": idle.turn.as_ref().map(|_| Action::Advance),
        "agent": idle.turn,
        "handoff": null,
        "why": why,
        "commands": [idle.next],
    });
    output.answer(&data, &text)?;
    output.say(&format!("next: {}", idle.next));
    Ok(())
}

/// Paths in the ledger's tree about a handoff: its contract, and the context of its
/// newest failure.
fn kept(record: &Record) -> Vec<String> {
    let folder = issue_folder(record.id.issue());
    let newest = record.transitions.iter().rev();
    let failure = newest.filter_map(|t| t.context.as_ref()).next();
    [&record.contract.file]
        .into_iter()
        .chain(failure.map(|context| &context.folder))
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

fn text(advice: &Advice, record: &Record) -> String {
    let to = advice.to.as_ref().map(|to| format!(" to {to}"));
    let mut text = format!(
        "{}{}: {}\n",
        advice.action.as_str(),
        to.unwrap_or_default(),
        plain(&advice.why)
    );
    text += &questions_text(&advice.questions);
    if let Some(instructions) = &advice.instructions {
        text += &format!("  {}\n", plain(instructions));
    }
    if matches!(advice.action, Action::FallBack | Action::Escalate) {
        let (from, to, attempt) = (&record.from, &record.to, record.attempt);
        text += &format!("  sent from {from} to {to}, attempt {attempt}; see in the ledger:\n");
        for path in kept(record) {
            text += &format!("    {path}\n");
        }
    }
    text
}

fn data(advice: &Advice, record: &Record) -> Value {
    json!({
        "issue": advice.id.issue(),
        "action": advice.action,
        "agent": advice.agent,
        "handoff": advice.id,
        "to": advice.to,
        "why": advice.why,
        "questions": advice.questions,
        "instructions": advice.instructions,
        "kept": kept(record),
        "commands": commands(advice, record),
    })
}
