use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use handoff::base::Moment;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::quoted;
use handoff::ledger::{OtherProtocol, Snapshot};
use handoff::model::{Paused, Record, View};
use handoff::protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::moment;
use crate::args::page::{Page, PageArgs};
use crate::context::{Context, ensure_agent};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::render::pauses_text;
use crate::render::rows::{self, ListedHandoff};
use crate::view::Look;

/// List handoffs, open and closed
///
/// Reads the ledger's newest state, not its history. All filters must match. Archived issues are
/// listed with --archived, or by --issue.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff list --issue 123
  git handoff list --agent fixer-agent --state failed --state blocked
  git handoff list --type error --since 2026-03-01")]
pub(crate) struct Arguments {
    /// Only handoffs of this issue
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    /// Only handoffs sent by or to this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only handoffs in this state; can be repeated
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<State>,
    /// Only handoffs with a contract of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only handoffs sent since then: 2026-03-04T05:06:07Z, a date, or how long ago: 7d
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    since: Option<Moment>,
    /// Those of archived issues too
    #[arg(long)]
    archived: bool,
    /// Only handoffs sent before this time
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    until: Option<Moment>,
    #[command(flatten)]
    page: PageArgs,
}

/// The handoffs that meet every condition.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "List")]
pub(crate) struct ListView {
    /// those that meet every condition, the oldest first
    handoffs: Vec<ListedHandoff>,
    /// their protocols other than the ledger's default one
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_protocols: Vec<OtherProtocol>,
    /// the pauses of those of their issues that are paused
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    paused: BTreeMap<IssueKey, Paused>,
    #[serde(flatten)]
    page: Page,
    #[serde(skip)]
    is_one_issue: bool,
}

impl Answer for ListView {
    fn text(&self, look: &Look) -> String {
        let records = self.handoffs.iter().map(ListedHandoff::record);
        let table = match self.handoffs[..] {
            [] => return "no handoff matches\n".to_owned(),
            _ if self.is_one_issue => rows::issue_table(records, look),
            _ => rows::table(records, look),
        };
        let other = |other: &OtherProtocol| {
            let records = self.handoffs.iter().map(ListedHandoff::record);
            let own = records.filter(|record| record.protocol == other.protocol);
            let issues: BTreeSet<&str> = own.map(|record| record.id.issue().as_str()).collect();
            let issues = issues.into_iter().collect::<Vec<_>>().join(", ");
            format!("{other}; issues: {issues}\n")
        };
        table
            + &pauses_text(&self.paused)
            + &self.other_protocols.iter().map(other).collect::<String>()
            + self.page.text()
    }
}

/// The protocols of handoffs other than the default one.
fn others(tip: &Snapshot<'_>, handoffs: &[ListedHandoff]) -> Result<Vec<OtherProtocol>, Failure> {
    let names: BTreeSet<&AgentName> = handoffs.iter().map(|h| &h.record().protocol).collect();
    let others = names.into_iter().map(|name| tip.other_protocol(name));
    Ok(others
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?)
}

fn state(text: &str) -> Result<State, String> {
    let named = |s: &State| s.as_str() == text;
    State::ALL.into_iter().find(named).ok_or_else(|| {
        let names: Vec<&str> = State::ALL.iter().map(|s| s.as_str()).collect();
        format!("states are: {}", names.join(", "))
    })
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let tip = context.tip(&repository)?;
        let mut records = Vec::new();
        let only_open = !self.state.is_empty() && self.state.iter().all(|s| !s.is_terminal());
        if let Some(issue) = &self.issue {
            let key: IssueKey = issue.parse()?;
            let folder = tip.issue(&key)?;
            if folder.issue()?.is_none() {
                return Err(handoff::model::Refusal::no_issue(&key).into());
            }
            records = folder.records()?;
        } else if only_open {
            for entry in tip.open()? {
                records.push(tip.open_record(&entry)?);
            }
        } else {
            for key in tip.issues()? {
                records.extend(tip.issue(&key)?.records()?);
            }
            if self.archived {
                for issue in tip.all_archived()? {
                    records.extend(tip.issue(&issue.issue)?.records()?);
                }
            }
        }
        let agent = self.agent.as_deref();
        let agent = agent.map(|name| context.named(&repository, name));
        let agent = agent.transpose()?;
        records.retain(|record| self.wants(record, agent.as_ref()));
        if records.is_empty() {
            self.know(&tip, agent.as_ref())?;
        }
        records.sort_by(|a, b| (a.sent_at(), &a.id).cmp(&(b.sent_at(), &b.id)));
        let page = self.page.cut(&mut records, |r| r.id.to_string(), output)?;
        let handoffs = ListedHandoff::all(records, now()?);
        let paused = tip.paused_among(handoffs.iter().map(|h| h.record().id.issue()))?;
        let is_one_issue = self.issue.is_some();
        let other_protocols = others(&tip, &handoffs)?;
        output.answer(&ListView {
            handoffs,
            other_protocols,
            paused,
            page,
            is_one_issue,
        })
    }

    /// Refuses an agent or a type that no protocol here has, instead of finding
    /// nothing.
    fn know(&self, tip: &Snapshot<'_>, agent: Option<&AgentName>) -> Result<(), Failure> {
        if let Some(agent) = agent {
            ensure_agent(tip, agent.as_str())?;
        }
        let mut types = Vec::new();
        for name in tip.protocols()? {
            let rules = tip.rules(&name)?;
            let contracts = rules.protocol().definition().contracts.iter();
            types.extend(contracts.map(|c| c.name.clone()));
        }
        if let Some(kind) = self.kind.as_ref().filter(|k| !types.contains(k)) {
            let text = format!("no protocol here has a contract type {}", quoted(kind));
            return Err(Failure::usage(text).hint(format!("types are: {}", types.join(", "))));
        }
        Ok(())
    }

    fn wants(&self, record: &Record, agent: Option<&AgentName>) -> bool {
        let has = |name: &AgentName| record.from == *name || record.to == *name;
        (self.state.is_empty() || self.state.contains(&record.state))
            && agent.is_none_or(has)
            && self
                .kind
                .as_ref()
                .is_none_or(|kind| *kind == record.contract_type)
            && self
                .since
                .is_none_or(|at| record.sent_at().is_some_and(|sent| sent >= at))
            && self
                .until
                .is_none_or(|at| record.sent_at().is_some_and(|sent| sent < at))
    }
}
