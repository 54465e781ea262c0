//! What a new version of a protocol checks more than the one in force, and what this does to open
//! issues.

use std::collections::BTreeSet;

use handoff_base::Moment;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::IssueKey;
use handoff_model::view::needs::limit_to_send;
use handoff_model::{Issue, IssueStatus, layout};
use handoff_protocol::{AgentKind, Ends, Protocol, Route};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::LedgerError;
use super::snapshot::Snapshot;

/// Something that a new version of a protocol checks more strictly, or a lower limit.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedMore {
    /// Its name, such as `requirements.approved`, or the key of a setting.
    pub key: String,
    /// The limit before; null if there was none, or it is no number.
    pub before: Option<u64>,
    /// The limit now.
    pub now: Option<u64>,
}

impl CheckedMore {
    /// A key, with its value in both definitions if it is a limit.
    pub(super) fn new(key: String, [was, is]: [&Value; 2]) -> Self {
        let at = format!("/{}", key.replace('.', "/"));
        let number = |of: &Value| of.pointer(&at).and_then(Value::as_u64);
        let (before, now) = (number(was), number(is));
        Self { key, before, now }
    }
}

/// An open issue that is beyond a limit of a new version, and was not before.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LimitedIssue {
    /// The issue.
    pub issue: IssueKey,
    /// The limit.
    pub limit: String,
    /// Whether nobody can send anything in it any more.
    pub stranded: bool,
}

impl LimitedIssue {
    /// The finding about an issue in which nothing could be sent.
    pub(super) fn finding(&self) -> Finding {
        let Self { issue, limit, .. } = self;
        let text = format!("nothing could be sent in issue {issue}: {limit}");
        let path = layout::issue_file(issue);
        let finding = Finding::error(FindingCode::ProtocolOrphan, path, text);
        finding.fix(format!("end issue {issue} first, or raise the limit"))
    }
}

/// The open issues in which a limit of a new version refuses what the one in force accepts.
pub(super) fn limited(
    tip: &Snapshot<'_>,
    [was, is]: [&Protocol; 2],
    now: Moment,
) -> Result<Vec<LimitedIssue>, LedgerError> {
    let open = tip.open()?;
    let keys: BTreeSet<_> = open.iter().map(|entry| entry.id.issue().clone()).collect();
    let mut found = Vec::new();
    for issue in tip.states(&keys)? {
        let follows = issue.protocol.as_str() == is.name() && issue.status == IssueStatus::Open;
        if follows {
            found.extend(limit_of(&issue, [was, is], now));
        }
    }
    Ok(found)
}

fn limit_of(issue: &Issue, [was, is]: [&Protocol; 2], now: Moment) -> Option<LimitedIssue> {
    let agents = issue.open.iter().map(|open| &open.to);
    let sends = agents.flat_map(|agent| {
        let routes = is.routes_from(agent.as_str());
        let sends = routes.flat_map(|route| route.contracts.iter().map(move |kind| (route, kind)));
        sends.map(move |(route, kind)| (agent, route, kind))
    });
    let (mut limit, mut stranded) = (None, is.ends() == Ends::ClosingContract);
    for (agent, route, kind) in sends {
        let exceeds = |protocol| limit_to_send((protocol, issue), (agent, &route.to), kind, now);
        match exceeds(is) {
            Some(one) => {
                limit = limit.or_else(|| exceeds(was).is_none().then(|| one.to_string()));
            }
            None => stranded &= !goes_on(is, route),
        }
    }
    let (issue, limit) = (issue.issue.clone(), limit?);
    Some(LimitedIssue {
        issue,
        limit,
        stranded,
    })
}

/// Whether work goes on by this route: a report of what failed is none.
fn goes_on(protocol: &Protocol, route: &Route) -> bool {
    let kinds = [AgentKind::Specialist, AgentKind::End];
    let mut kinds = kinds.iter();
    kinds.any(|kind| protocol.is_kind(route.to.as_str(), *kind))
}
