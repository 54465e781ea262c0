use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::ledger::{OtherProtocol, Snapshot};
use handoff::model::{Paused, View};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::filter::Filter;
use crate::args::remote::AskArgs;
use crate::context::fresh::{Fresh, Reading};
use crate::context::{Context, fresh};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output};
use crate::render::pauses_text;
use crate::render::rows::{self, ListedHandoff};
use crate::view::Look;

/// List handoffs, open and closed
///
/// Reads the ledger's newest state, not its history; asks its remote first. All filters must match. Archived issues are
/// listed with --archived, or by --issue.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff list --issue 123
  git handoff list --agent fixer-agent --state failed --state blocked
  git handoff list --type error --since 2026-03-01
  git handoff list --where 'title~csv and state=pending and priority!=high'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,
    /// Those of archived issues too
    #[arg(long)]
    archived: bool,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    asks: AskArgs,
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
    /// whether the remote was asked first; null if the ledger has no remote
    fresh: Option<Fresh>,
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

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let Reading { tip, fresh, .. } = context.fresh(&repository, self.asks.offline, output)?;
        let query = self.filter.query(&tip)?;
        let mut records = Vec::new();
        if let Some(issue) = &self.filter.issue {
            let key: IssueKey = issue.parse()?;
            let folder = tip.issue(&key)?;
            if folder.issue()?.is_none() {
                return Err(handoff::model::Refusal::no_issue(&key).into());
            }
            records = folder.records()?;
        } else if query.is_of_open() {
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
        query.retain(&tip, &mut records)?;
        records.sort_by(|a, b| (a.sent_at(), &a.id).cmp(&(b.sent_at(), &b.id)));
        let page = self.page.cut(&mut records, |r| r.id.to_string(), output)?;
        let handoffs = ListedHandoff::all(records, now()?);
        let paused = tip.paused_among(handoffs.iter().map(|h| h.record().id.issue()))?;
        let is_one_issue = self.filter.issue.is_some();
        let other_protocols = others(&tip, &handoffs)?;
        let view = ListView {
            handoffs,
            other_protocols,
            paused,
            page,
            fresh,
            is_one_issue,
        };
        output.answer(&view)?;
        fresh::say(view.fresh.as_ref(), output);
        Ok(())
    }
}
