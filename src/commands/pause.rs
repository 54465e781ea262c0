use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::{Moment, ObjectId};
use handoff::ledger::HaltChange;
use handoff::model::view::commands::RESUMED;
use handoff::model::{Halt, HaltScope, Issue, Update};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::text::{self, Reason};
use crate::commands::each::{Where, each, issues};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::render::receipt::ReceiptView;
use crate::view::Look;

/// Hand nobody the work of an issue, of an agent, of a protocol, or any, until it is resumed
///
/// Nothing of it can be claimed, no agent is told of it, and no time to claim runs out. Whoever holds work can finish and hand it on; what it
/// sends waits. `git handoff resume` ends the pause. An orchestrator and a person can pause; the sender of the first handoff its issue.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff pause 123 --as orchestrator --reason 'closed on GitHub'
  git handoff pause 123 --as orchestrator --reason 'code freeze' \\
      --except validator-agent,closer-agent
  git handoff pause --all --as orchestrator --reason 'the provider is down'
  git handoff pause --agent fixer-agent --now --as orchestrator \\
      --reason 'it loops'")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE", required_unless_present_any = ["all", "of_agent", "protocol", "query"], conflicts_with_all = ["all", "of_agent", "protocol", "now", "query"])]
    issue: Option<String>,
    #[command(flatten)]
    which: Where,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Also end what workers run, and give its work back; not of a single issue
    #[arg(long)]
    now: bool,
    /// Agents that go on all the same
    #[arg(
        long,
        value_name = "AGENT,…",
        value_delimiter = ',',
        conflicts_with_all = ["all", "of_agent", "protocol"]
    )]
    except: Vec<String>,
    #[command(flatten)]
    why: Reason,
}

// No doc comment: it would become the help of the commands.
#[derive(Args)]
pub(super) struct ScopeArgs {
    /// All work
    #[arg(long, conflicts_with_all = ["of_agent", "protocol"])]
    all: bool,
    /// Work of this agent
    #[arg(long = "agent", id = "of_agent", value_name = "AGENT")]
    agent: Option<String>,
    /// Work of this protocol
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<AgentName>,
}

/// The pauses of more than single issues.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pauses")]
pub(crate) struct PausesView {
    /// what is paused now, the oldest first
    paused: Vec<Halt>,
    /// the commit that was written; null if nothing changed
    commit: Option<ObjectId>,
    #[serde(skip)]
    said: String,
}

impl Answer for PausesView {
    fn text(&self, _: &Look) -> String {
        self.said.clone()
    }
}

impl ScopeArgs {
    /// Pauses or resumes an agent, a protocol or all work.
    pub(super) fn change(
        &self,
        context: &Context,
        (pauses, reason): (Option<bool>, &str),
        output: &mut Output,
    ) -> Result<(), Failure> {
        let repository = context.repository()?;
        let agent = self.agent.as_deref();
        let scope = HaltScope {
            agent: agent
                .map(|name| context.named(&repository, name))
                .transpose()?,
            protocol: self.protocol.clone(),
        };
        let change = HaltChange {
            by: context.acting_agent(&repository)?,
            at: Moment::default(),
            scope,
            reason: text::kept(reason)?,
            pauses,
        };
        let (mut ledger, session) = context.writer(&repository, output)?;
        let commit = ledger.halt(&session, &change)?;
        output.follow(&ledger);
        let paused = ledger.tip()?.manifest().paused.clone();
        let (scope, by) = (&change.scope, &change.by);
        let done = match (pauses, commit) {
            (Some(false), Some(_)) => {
                "is paused: no work can be claimed; what is held can be finished"
            }
            (Some(true), Some(_)) => {
                "is paused: no work can be claimed; what workers run is given back"
            }
            (Some(_), None) => "was paused already, for this reason; nothing was written",
            (None, Some(_)) => "is handed out again",
            (None, None) => "was resumed already; nothing was written",
        };
        let mut said = format!("{scope} {done}\n");
        said.extend(commit.map(|commit| format!("  commit {}\n", commit.short())));
        let others = paused.iter().filter(|halt| halt.scope != *scope);
        said.extend(others.map(|halt| format!("{halt}\n")));
        output.answer(&PausesView {
            paused,
            commit,
            said,
        })?;
        if pauses.is_some() {
            let command = scope.resume(by);
            output.say(&format!("to resume it: {}", output.command(&command)));
        }
        Ok(())
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        if let Some(query) = &self.which.query {
            let repository = context.repository()?;
            let pause = Update::Pause {
                reason: text::kept(&self.why.reason)?,
                except: context.all_named(&repository, &self.except)?,
                said_at: None,
            };
            return each(context, output, |tip, _| {
                let keys = issues(tip, query)?.into_iter();
                Ok(keys
                    .map(|key| (format!("issue {key}"), key, Ok(pause.clone())))
                    .collect())
            });
        }
        let Some(issue) = &self.issue else {
            let pause = (Some(self.now), self.why.reason.as_str());
            return self.scope.change(context, pause, output);
        };
        let issue: IssueKey = issue.parse()?;
        let repository = context.repository()?;
        let pause = Update::Pause {
            reason: text::kept(&self.why.reason)?,
            except: context.all_named(&repository, &self.except)?,
            said_at: None,
        };
        let agent = context.acting_agent(&repository)?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let before = ledger.tip()?.paused(&issue)?;
        let done = ledger.update(&session, &agent, &issue, &pause)?;
        output.follow(&ledger);
        let text = match done.commit {
            Some(commit) => {
                let order = before.iter().filter(|before| !before.after.is_empty());
                let order = order.map(|before| format!("it was {before}; that ends\n"));
                let order: String = order.collect();
                paused_text(&done.receipt.issue)
                    + &order
                    + &format!("  commit {}\n", commit.short())
            }
            None => {
                format!("issue {issue} is paused for this reason already; nothing was written\n")
            }
        };
        let mut receipt = ReceiptView::new(&done, output)?.with_text(text);
        if let Some(paused) = &done.receipt.issue.paused {
            receipt = receipt.held_back(&paused.resume(&issue, RESUMED), output);
        }
        output.answer(&receipt)?;
        receipt.say_next(output);
        Ok(())
    }
}

/// The effect of a pause: who is exempt, and who may only finish.
fn paused_text(issue: &Issue) -> String {
    let key = &issue.issue;
    let except = issue.paused.iter().flat_map(|paused| &paused.except);
    let except: Vec<&str> = except.map(AgentName::as_str).collect();
    let but = match &except[..] {
        [] => String::new(),
        except => format!(", except {}", except.join(", ")),
    };
    format!("issue {key} is paused: its work can't be claimed{but}\n")
}
