use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::environment::SystemClock;
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::contract::FILL;
use crate::git::to_second;
use crate::ids::{AgentName, IssueKey};
use crate::ledger::{Clock, IssueFolder, LedgerError, Rules, Snapshot, View};
use crate::protocol::{ContractType, Protocol};
use crate::templates::{known, skeleton, usual_format, written};

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
    /// The contract's format; by default the type's or the protocol's first
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The protocol; by default the issue's, or the first of the ledger's that
    /// has such a route
    #[arg(long, value_name = "NAME")]
    protocol: Option<AgentName>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// XML
    Xml,
    /// JSON
    Json,
    /// A Markdown message
    Md,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Md => "md",
        }
    }

    /// The first of the formats of the type that was asked for, or of the
    /// protocol's.
    fn first(protocol: &Protocol, kind: Option<&str>) -> Self {
        let kind = kind.and_then(|name| protocol.contract_type(name));
        let usual = usual_format(protocol, kind);
        let mut all = [Self::Xml, Self::Json, Self::Md].into_iter();
        all.find(|format| format.name() == usual)
            .unwrap_or(Self::Json)
    }

    /// Says whether a type can be written so. A message can hold any contract
    /// that is JSON.
    fn fits(self, protocol: &Protocol, kind: &ContractType) -> bool {
        let has = |name: &str| {
            kind.has_format(name) && protocol.definition().formats.iter().any(|f| f == name)
        };
        has(self.name())
            || self == Self::Md && protocol.definition().formats.iter().any(|f| f == "md")
    }
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
        let rules = self.rules(&tip, &folder, &from, &to)?;
        let format = self
            .format
            .unwrap_or_else(|| Format::first(rules.protocol(), self.kind.as_deref()));
        let kind = self.contract_type(&rules, format, &from, &to)?;
        let protocol = rules.protocol();
        let now = to_second(clock.author());
        let known = known(&repository, protocol, &folder, &from, &to, now)?;
        let value = skeleton(&rules, kind, &known)?;
        let text = written(&rules, kind, &value, format.name(), (&from, &to))?;
        let left = text.matches(FILL).count();
        let data = json!({
            "contract_type": kind.name,
            "format": format.name(),
            "text": text,
            "left_to_fill": left,
        });
        output.answer(&data, &text)?;
        if left > 0 && format != Format::Xml {
            output.say("a number, true or false takes the place of a mark and its quotes");
        }
        output.say(&format!(
            "{left} places are left to fill; check it with: git handoff check FILE"
        ));
        let issue = rules.protocol().field(kind, |f| &f.issue);
        if issue.is_none_or(|pointer| value.pointer(pointer).is_none()) {
            output.say(&format!(
                "it does not name its issue; send it with: git handoff send FILE --issue {key}"
            ));
        }
        Ok(())
    }

    /// The protocol that was named, the issue's, or the first in which a
    /// contract can go this way.
    fn rules<'r>(
        &self,
        tip: &Snapshot<'r>,
        folder: &IssueFolder<'_>,
        from: &AgentName,
        to: &AgentName,
    ) -> Result<Rules<'r>, Failure> {
        let bound = folder.issue()?.map(|issue| issue.protocol);
        if let Some(name) = self.protocol.clone().or(bound) {
            if tip.rules_id(name.as_str())?.is_none() {
                let (name, known) = (name.to_string(), tip.protocols()?);
                return Err(LedgerError::NoProtocol { name, known }.into());
            }
            return Ok(tip.rules(name.as_str())?);
        }
        for name in tip.protocols()? {
            let rules = tip.rules(&name)?;
            if !rules
                .protocol()
                .types_between(from.as_str(), to.as_str())
                .is_empty()
            {
                return Ok(rules);
            }
        }
        Ok(tip.default_rules()?)
    }

    /// The contract type of the route, or the one that was asked for.
    fn contract_type<'a>(
        &self,
        rules: &'a Rules<'_>,
        format: Format,
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
        let all = protocol.types_between(from.as_str(), to.as_str());
        let fitting = all.iter().filter(|kind| format.fits(protocol, kind));
        let mut names: Vec<&str> = fitting.map(|kind| kind.name.as_str()).collect();
        // A message that is only sections is asked for by its type.
        if self.kind.is_none() && names.len() > 1 {
            let json = |name: &&str| {
                protocol
                    .contract_type(name)
                    .is_some_and(|k| k.has_format("json"))
            };
            names.retain(json);
        }
        // So is a note, where something else goes this way.
        if self.kind.is_none() && names.len() > 1 {
            let note = |name: &&str| protocol.contract_type(name).is_some_and(|k| k.note);
            if !names.iter().all(note) {
                names.retain(|name| !note(name));
            }
        }
        let wanted = match (&self.kind, &names[..]) {
            (_, []) if !all.is_empty() => {
                let formats = protocol.definition().formats.join(", ");
                let text = format!(
                    "no contract from {from} to {to} is written as {}",
                    format.name()
                );
                return Err(
                    Failure::usage(text).hint(format!("the protocol's formats are: {formats}"))
                );
            }
            (_, []) => {
                let receivers = protocol.receivers(from.as_str());
                let targets: Vec<&str> = receivers.iter().map(|to| to.as_str()).collect();
                let forbidden = protocol.forbidden(from.as_str(), to.as_str());
                let why = forbidden.map(|f| format!(": {}", f.reason));
                let text = format!(
                    "protocol {} has no route from {from} to {to}{}",
                    protocol.name(),
                    why.unwrap_or_default()
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
