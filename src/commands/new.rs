use clap::Args;
use handoff::base::Moment;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::counted_as;
use handoff::ledger::Clock;
use handoff::model::View;
use handoff::templates::known;

use crate::context::Context;
use crate::context::worker::holder;
use crate::contracts::settings::Setting;
use crate::contracts::skeleton::{Format, Wanted, before_work};
use crate::environment::SystemClock;
use crate::failure::Failure;
use crate::output::Output;

/// Print the skeleton of a contract, filled in as far as possible
///
/// Values known from the ledger and the repository are filled in: the issue's
/// address, branch, pull request, counts from the diff, commits since the last
/// handoff. Values that only you know are marked `{{fill: …}}`; a contract that
/// still has such a mark is refused.
///
/// While you hold work, what depends on it is marked `{{fill by send: …}}`: leave
/// these marks, `send` and `check` fill them in.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff new --issue 123 --to implementer-agent --as prep-agent > next.xml
  git handoff new --issue 123 --from reviewer-agent --to fixer-agent \\
      --format json
  git handoff new --issue 123 --from closer-agent --to workflow-complete
  git handoff new --issue 123 --from prep-agent --to implementer-agent \\
      --set branch=issue-123 --set validation.build='4 passed'")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(long, value_name = "ISSUE")]
    issue: String,
    /// The agent that sends the contract; by default the acting agent
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// The agent that receives it
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// The contract's type, if the route has several
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The contract's format; by default the type's or the protocol's first
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The protocol; by default the issue's, or the ledger's first protocol with
    /// such a route
    #[arg(long, value_name = "NAME")]
    protocol: Option<AgentName>,
    /// Fill in a field, by its name or path; each adds an entry to a list
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<Setting>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let key: IssueKey = self.issue.parse()?;
        let repository = context.repository()?;
        let to = context.named(&repository, &self.to)?;
        let clock = SystemClock::from_environment()?;
        let from = match &self.from {
            Some(from) => context.named(&repository, from)?,
            None => context.acting_agent(&repository)?,
        };
        let tip = context.tip(&repository)?;
        output.carry(context.carried_at(&repository, &tip));
        let folder = tip.issue(&key)?;
        let issue = folder.issue()?;
        let wanted = Wanted {
            kind: self.kind.as_deref(),
            format: self.format,
            protocol: self.protocol.as_ref(),
            set: &self.set,
            opens: issue.is_none(),
            ..Wanted::new(&from, &to)
        };
        let rules = wanted.rules(&tip, &folder)?;
        let now = Moment::from(clock.author());
        let branch = self.set.iter().find_map(|setting| setting.of("branch"));
        let protocol = rules.protocol();
        let worker = context.worker(&repository)?;
        let by = holder(&from, worker.as_ref());
        let known = known(&repository, protocol, (&tip, &key), by, &to, (branch, now))?;
        let mut held = issue.iter().flat_map(|issue| issue.held_by(&from));
        let known = if held.next().is_some() {
            before_work(&known, protocol)
        } else {
            known
        };
        let made = wanted.write(&rules, &known)?;
        output.answer(&made)?;
        if made.left > 0 && made.format != Format::Xml {
            output.say("replace a mark and its quotes to enter a number, true or false");
        }
        output.say(&format!(
            "{} left to fill in; check the contract with: {}",
            counted_as(made.left, "value", [" is", "s are"]),
            output.command("git handoff check FILE")
        ));
        if made.by_send > 0 {
            output.say("`send` fills in what says {{fill by send: …}}");
        }
        if !made.names_issue {
            output.say(&format!(
                "the contract does not name its issue; send it with: {}",
                output.command(&format!("git handoff send FILE --issue {key}"))
            ));
        }
        Ok(())
    }
}
