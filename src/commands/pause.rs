use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::model::view::commands::{RESUMED, resume};
use handoff::model::{Issue, Update};

use crate::args::text::{self, Reason};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::receipt::ReceiptView;

/// Hand nobody the work of an issue until it is reopened
///
/// Nothing of it can be claimed, no agent is told of it, and no time runs out. Whoever holds work can finish and hand it on; what it
/// sends waits. `git handoff reopen ISSUE` ends the pause. An orchestrator, a person and the sender of the first handoff can pause.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff pause 123 --as orchestrator --reason 'closed on GitHub'
  git handoff pause 123 --as orchestrator --reason 'code freeze' \\
      --except validator-agent,closer-agent")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE")]
    issue: String,
    /// Agents that go on all the same
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',')]
    except: Vec<String>,
    #[command(flatten)]
    why: Reason,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let issue: IssueKey = self.issue.parse()?;
        let repository = context.repository()?;
        let pause = Update::Pause {
            reason: text::kept(&self.why.reason)?,
            except: context.all_named(&repository, &self.except)?,
            said_at: None,
        };
        let agent = context.acting_agent(&repository)?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let done = ledger.update(&session, &agent, &issue, &pause)?;
        output.follow(&ledger);
        let text = match done.commit {
            Some(commit) => {
                paused_text(&done.receipt.issue) + &format!("  commit {}\n", commit.short())
            }
            None => {
                format!("issue {issue} is paused for this reason already; nothing was written\n")
            }
        };
        let next = resume(&issue, &agent, RESUMED);
        let receipt = ReceiptView::new(&done, output)?.with_text(text);
        let receipt = receipt.with_next(&next, output);
        output.answer(&receipt)?;
        receipt.say_next(output);
        Ok(())
    }
}

/// What a pause leads to: who goes on, and who only finishes what it holds.
fn paused_text(issue: &Issue) -> String {
    let key = &issue.issue;
    let except = issue.paused.iter().flat_map(|paused| &paused.except);
    let except: Vec<&str> = except.map(AgentName::as_str).collect();
    let but = match &except[..] {
        [] => String::new(),
        except => format!(", except {}", except.join(", ")),
    };
    format!("issue {key} is paused: nobody is handed its work{but}\n")
}
