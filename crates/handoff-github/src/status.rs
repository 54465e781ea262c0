//! The status of an issue or a ledger, collected once for every renderer.

use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::{Moment, ObjectId};
use handoff::ledger::attention::{Attention, NextTurn, turn_in};
use handoff::ledger::{
    DEFAULT_BRANCH, GateRequest, IssueSurvey, Judgement, LedgerError, Snapshot, judge_any,
};
use handoff::model::{BranchContext, Record, Refusal, View, Witness, branch_for_agents};
use handoff::protocol::{BASE, Command, Effect, Level, Protocol, State};
use handoff_graph::Graph;
use serde_json::{Map, Value};

/// A crossed threshold of a protocol.
#[derive(Debug)]
pub struct Threshold {
    /// Its protocol.
    pub protocol: AgentName,
    /// Its name there.
    pub name: String,
    /// How severe it is.
    pub severity: Level,
    /// What to do.
    pub action: String,
}

/// The status of an issue.
#[derive(Debug)]
pub struct Issue {
    /// The commit of the ledger that was read.
    pub commit: ObjectId,
    /// The record of the issue.
    pub issue: handoff::model::Issue,
    /// Its facts, by name.
    pub known: Map<String, Value>,
    /// The source of each of its notes.
    pub witnesses: Vec<Witness>,
    /// Oldest first.
    pub records: Vec<Record>,
    /// What needs attention, and whose.
    pub stuck: Vec<Attention>,
    /// The next turn; `None` if nothing has to happen.
    pub next: Option<NextTurn>,
    /// Whether it meets the requirements of a merge.
    pub gate: Judgement,
    /// The commands that its protocol accepts in comments.
    pub commands: Vec<Command>,
    /// The steps, as a graph.
    pub graph: Graph,
    /// Whether agents may create its branch, as far as is known here: it is neither a base nor the
    /// ledger's, and is named after the issue.
    pub agents_write: bool,
    /// The time of reading.
    pub now: Moment,
}

impl Issue {
    /// The survey of this issue, from which metrics and graphs are computed.
    pub fn survey(&self) -> IssueSurvey<'_> {
        IssueSurvey::of(&self.issue, &self.records)
    }

    /// Reads the status of an issue, and whether it meets the gate's policy. `None` if the issue is
    /// not in the ledger.
    ///
    /// # Errors
    /// [`LedgerError`] if a requirement is unknown, or the ledger cannot be read.
    pub fn read(
        tip: &Snapshot<'_>,
        key: &IssueKey,
        request: &GateRequest,
        now: Moment,
    ) -> Result<Option<Self>, LedgerError> {
        let folder = tip.issue(key)?;
        let Some(issue) = folder.issue()? else {
            return Ok(None);
        };
        let records = folder.records()?;
        let survey = IssueSurvey::of(&issue, &records);
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        let (stuck, next) = turn_in(&folder, protocol, now)?;
        let known = issue.known(protocol.definition());
        let text = |name: &str| known.get(name).and_then(Value::as_str);
        let patterns = tip.branch_patterns()?;
        let context = BranchContext {
            issue: key,
            // The workflow may set another ledger branch.
            ledger_branch: DEFAULT_BRANCH,
            default_branch: None,
            base: text(BASE),
            patterns: &patterns,
            made_here: false,
        };
        let may_write = |branch: &str| branch_for_agents(branch, &context).is_ok();
        Ok(Some(Self {
            agents_write: text("branch").is_none_or(may_write),
            commit: tip.commit(),
            gate: judge_any(tip, &folder, &issue, &rules, request)?,
            commands: commands(protocol),
            graph: handoff_graph::issue_graph(&survey, protocol, now),
            known,
            witnesses: issue
                .annotations
                .iter()
                .map(|note| note.source(protocol.definition()))
                .collect(),
            records,
            issue,
            stuck,
            // The pause is told beside it.
            next: next.filter(|next| !next.is_paused),
            now,
        }))
    }

    /// Reads the status of an issue that must be in the ledger.
    ///
    /// # Errors
    /// [`Refusal::no_issue`], and the errors of [`Issue::read`].
    pub fn known(
        tip: &Snapshot<'_>,
        key: &IssueKey,
        request: &GateRequest,
        now: Moment,
    ) -> Result<Self, LedgerError> {
        let found = Self::read(tip, key, request, now)?;
        let none = || Refusal::no_issue(key);
        found.ok_or_else(|| none().into())
    }

    /// Lists the agents with an open handoff, without duplicates.
    pub fn holders(&self) -> impl Iterator<Item = &AgentName> {
        let open = &self.issue.open;
        let first = |(at, agent): &(usize, &AgentName)| open[..*at].iter().all(|o| o.to != **agent);
        let all = open.iter().map(|open| &open.to).enumerate();
        all.filter(first).map(|(_, agent)| agent)
    }
}

fn commands(protocol: &Protocol) -> Vec<Command> {
    let rules = protocol.definition().event_rules().iter();
    let effects = rules.filter_map(|rule| rule.effect.as_ref());
    effects.flat_map(Effect::commands).copied().collect()
}

/// The status of a ledger.
#[derive(Debug)]
pub struct Ledger {
    /// The name of its branch.
    pub branch: String,
    /// The commit that was read.
    pub commit: ObjectId,
    /// The protocol that new issues follow.
    pub protocol: String,
    /// The number of issues, and of completed ones.
    pub issues: (usize, usize),
    /// The open handoffs.
    pub open: Vec<Record>,
    /// The number of open handoffs in each state.
    pub counts: Vec<(State, usize)>,
    /// What needs attention, and whose.
    pub stuck: Vec<Attention>,
    /// The crossed thresholds.
    pub firing: Vec<Threshold>,
}
