use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::environment::SystemClock;
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::contract::{FILL, write_json, write_xml};
use crate::git::to_second;
use crate::ids::{AgentName, IssueKey};
use crate::ledger::{Clock, Rules, Schemas};
use crate::protocol::ContractType;
use crate::templates::{fill, known};

/// Print a contract's skeleton, filled with what is known
///
/// What the ledger and the repository know is filled in: the issue's address,
/// branch, pull request, counts from the diff, commits since the last handoff.
/// What only you can know is marked `{{fill: …}}`, and a contract with a mark
/// left in it is refused.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff new --issue 123 --from prep-agent --to implementer-agent > contract.xml
  git handoff new --issue 123 --from reviewer-agent --to fixer-agent --format json
  git handoff new --issue 123 --from closer-agent --to workflow-complete")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(long, value_name = "ISSUE")]
    issue: String,
    /// The agent that hands over; by default the acting agent
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// The agent that takes over
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// The contract's type, where the route has several
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The contract's format
    #[arg(long, value_name = "FORMAT", default_value = "xml")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// XML
    Xml,
    /// JSON
    Json,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let key: IssueKey = self.issue.parse()?;
        let to: AgentName = self.to.parse()?;
        let repository = context.repository()?;
        let clock = SystemClock::from_environment()?;
        let from = match &self.from {
            Some(from) => from.parse()?,
            None => context.acting_agent(&repository)?,
        };
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let folder = tip.issue(&key)?;
        let rules = tip.default_rules()?;
        let kind = self.contract_type(&rules, &from, &to)?;
        let template: Value =
            serde_json::from_slice(&rules.bytes(&kind.template)?).map_err(|e| {
                let text = format!("{} is not JSON: {e}", kind.template);
                Failure::new(exit::INTEGRITY, "template_broken", text)
            })?;
        let known = known(&repository, &folder, &from, to_second(clock.author()))?;
        let value = fill(&template, &known);
        let text = match self.format {
            Format::Json => write_json(&value),
            Format::Xml => {
                let schema = rules.schema(kind)?;
                write_xml(&value, schema.shape(), &kind.root)
            }
        };
        let left = text.matches(FILL).count();
        let data = json!({
            "contract_type": kind.name,
            "format": if self.format == Format::Xml { "xml" } else { "json" },
            "text": text,
            "left_to_fill": left,
        });
        output.answer(&data, &text)?;
        if left > 0 && self.format == Format::Json {
            output.say("a number, true or false takes the place of a mark and its quotes");
        }
        output.say(&format!(
            "{left} places are left to fill; check it with: git handoff check FILE"
        ));
        Ok(())
    }

    /// The contract type of the route, or the one that was asked for.
    fn contract_type<'a>(
        &self,
        rules: &'a Rules<'_>,
        from: &AgentName,
        to: &AgentName,
    ) -> Result<&'a ContractType, Failure> {
        let protocol = rules.protocol();
        for name in [from, to] {
            if protocol.agent(name.as_str()).is_none() {
                let agents: Vec<&str> = protocol
                    .definition()
                    .agents
                    .iter()
                    .map(|a| a.id.as_str())
                    .collect();
                let text = format!("{name} is not an agent of protocol {}", protocol.name());
                return Err(Failure::new(exit::PROTOCOL, "unknown_agent", text)
                    .hint(format!("agents are: {}", agents.join(", "))));
            }
        }
        let mut names: Vec<&str> = protocol
            .routes(from.as_str(), to.as_str())
            .flat_map(|route| route.contracts.iter().map(String::as_str))
            .collect();
        names.dedup();
        let wanted = match (&self.kind, &names[..]) {
            (_, []) => {
                let receivers = protocol.receivers(from.as_str());
                let targets: Vec<&str> = receivers.iter().map(|to| to.as_str()).collect();
                let text = format!(
                    "protocol {} has no route from {from} to {to}",
                    protocol.name()
                );
                let hint = if targets.is_empty() {
                    format!("{from} hands nothing on; see `git handoff inbox --as {from}`")
                } else {
                    format!("{from} may send to: {}", targets.join(", "))
                };
                return Err(Failure::new(exit::PROTOCOL, "route_refused", text).hint(hint));
            }
            (None, [only]) => only,
            (Some(kind), _) if names.contains(&kind.as_str()) => kind.as_str(),
            (given, _) => {
                let text = match given {
                    Some(kind) => format!("no contract of type {kind} goes from {from} to {to}"),
                    None => format!("several types of contract go from {from} to {to}"),
                };
                return Err(Failure::usage(text)
                    .hint(format!("say which with --type: {}", names.join(", "))));
            }
        };
        protocol
            .contract_type(wanted)
            .ok_or_else(|| Failure::usage("no such contract type"))
    }
}
