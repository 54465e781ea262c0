//! Metrics: how much was handed over, with what outcome, how long it took, and who waited for whom.
//!
//! [`Metrics::of`] counts once over a [`Survey`]; nothing is kept between runs. Refused contracts
//! and audits are not in the ledger: they are [`Local`] to this clone.

mod distribution;
mod tally;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use distribution::{BUCKETS, Distribution};
pub(crate) use distribution::{average, rank, seconds};
pub use tally::{Figures, IssueFigures};

use super::times;
use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_ledger::attention::{Attention, Protocols, of_survey};
use handoff_ledger::{Audited, HandoffSurvey, IssueSurvey, RefusedContract, Survey};
use handoff_model::IssueStatus;
use handoff_protocol::Need;
use handoff_protocol::Protocol;
use tally::{Counts, Tally};

/// What only this clone knows.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// The contracts refused in this clone.
    pub refused: Vec<RefusedContract>,
    /// How many offline steps were refused and await a decision.
    pub rejected_steps: usize,
    /// The result of the last audit, if there was one.
    pub audited: Option<Audited>,
}

/// How rows are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// By the agent that has the handoffs.
    Agent,
    /// By sender and original receiver.
    Route,
    /// By contract type.
    Type,
    /// By protocol.
    Protocol,
    /// By issue.
    Issue,
}

impl By {
    /// Every grouping.
    pub const ALL: [Self; 5] = [
        Self::Agent,
        Self::Route,
        Self::Type,
        Self::Protocol,
        Self::Issue,
    ];

    /// Its name on the command line and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Route => "route",
            Self::Type => "type",
            Self::Protocol => "protocol",
            Self::Issue => "issue",
        }
    }

    /// Whether each issue belongs to one group.
    fn has_issues(self) -> bool {
        matches!(self, Self::Protocol | Self::Issue)
    }

    fn of_handoff(self, issue: &IssueSurvey, handoff: &HandoffSurvey) -> String {
        match self {
            Self::Agent => handoff.to.to_string(),
            Self::Route => route(&handoff.from, &handoff.sent_to),
            Self::Type => handoff.contract_type.clone(),
            Self::Protocol => issue.protocol.to_string(),
            Self::Issue => issue.key.to_string(),
        }
    }

    /// The group of a refused contract, if that is known; its sender if grouped by agent.
    fn of_refused(self, refused: &RefusedContract) -> Option<String> {
        match self {
            Self::Agent => refused.from.as_ref().map(ToString::to_string),
            Self::Route => Some(route(refused.from.as_ref()?, refused.to.as_ref()?)),
            Self::Type => refused.contract_type.clone(),
            Self::Protocol => refused.protocol.as_ref().map(ToString::to_string),
            Self::Issue => refused.issue.as_ref().map(ToString::to_string),
        }
    }
}

fn route(from: &AgentName, to: &AgentName) -> String {
    format!("{from} → {to}")
}

/// The figures of one group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FigureGroup")]
pub struct Group {
    /// The protocol.
    pub(crate) protocol: AgentName,
    /// The agent, route, contract type, protocol or issue that it is.
    pub name: String,
    /// Its figures.
    pub figures: Figures,
}

/// How one agent's handoffs spent their time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentFigures {
    /// The protocol.
    pub(crate) protocol: AgentName,
    /// The agent.
    pub agent: AgentName,
    /// How many handoffs are with it now.
    pub open: u64,
    /// How long handoffs waited for it.
    pub waiting_seconds: i64,
    /// How long it worked on them.
    pub working_seconds: i64,
    /// How long it waited for answers.
    pub blocked_seconds: i64,
    /// How long handoffs that it failed made no progress.
    pub failed_seconds: i64,
}

/// How often a loop of work was repeated.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RoundFigures {
    /// The protocol.
    pub(crate) protocol: AgentName,
    /// What goes round, as the protocol's limits name it.
    pub name: String,
    /// How many issues it can happen in.
    pub(crate) issues: usize,
    /// How often it happened in an issue, on average; null if there is none.
    pub average: Option<f64>,
    /// How often it happened in one issue, at most.
    pub most: u64,
    /// How often the protocol allows it.
    pub limit: u32,
}

/// All metrics of a ledger.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Metrics {
    /// All figures.
    pub figures: Figures,
    /// By protocol.
    #[serde(skip)]
    pub(crate) protocols: Vec<Group>,
    /// Each group; empty without `--by`.
    pub groups: Vec<Group>,
    /// Each agent of each protocol: where the time went.
    pub agents: Vec<AgentFigures>,
    /// How often each of a protocol's `limits.rounds` happened.
    pub rounds: Vec<RoundFigures>,
    /// What the last `verify` in this clone found; null if it was never run.
    pub corruption: Option<Audited>,
    /// Offline steps that were refused and wait for a decision.
    pub rejected_steps: usize,
    /// What needs attention now.
    pub stuck: Vec<Attention>,
    /// How much of that there is in each protocol, by why.
    #[serde(skip)]
    pub(crate) stuck_in: BTreeMap<AgentName, BTreeMap<Need, usize>>,
}

impl Metrics {
    /// Counts what was sent at or after `since`, and its outcome so far. An issue counts if it is
    /// open, or was completed since then.
    pub fn of(
        survey: &Survey,
        protocols: &Protocols,
        local: &Local,
        since: Option<Moment>,
        by: Option<By>,
        now: Moment,
    ) -> Self {
        let mut count = Count {
            by,
            since,
            now,
            total: Tally::default(),
            by_protocol: Tallies::default(),
            groups: Tallies::default(),
            agents: BTreeMap::new(),
            rounds: Rounds::default(),
        };
        for issue in &survey.issues {
            count.add_issue(issue, protocols.get(&issue.protocol));
        }
        for refused in &local.refused {
            count.add_refused(refused);
        }
        // A protocol in force is listed before it has a handoff.
        for name in protocols.keys() {
            count.by_protocol.of(name, name.as_str());
        }
        let stuck = of_survey(survey, protocols, now);
        let mut stuck_in: BTreeMap<AgentName, BTreeMap<Need, usize>> = protocols
            .keys()
            .map(|name| (name.clone(), BTreeMap::new()))
            .collect();
        for one in &stuck {
            if let Some(issue) = survey.issue(&one.issue) {
                let needs = stuck_in.entry(issue.protocol.clone()).or_default();
                *needs.entry(one.need).or_default() += 1;
            }
        }
        let agents = count.agents.into_iter();
        let agents = agents.map(|((protocol, agent), (open, times))| AgentFigures {
            protocol: protocol.clone(),
            agent: agent.clone(),
            open,
            waiting_seconds: times.waiting.num_seconds(),
            working_seconds: times.working.num_seconds(),
            blocked_seconds: times.blocked.num_seconds(),
            failed_seconds: times.failed.num_seconds(),
        });
        Self {
            figures: count.total.figures(true),
            protocols: count.by_protocol.groups(true),
            groups: count.groups.groups(by.is_some_and(By::has_issues)),
            agents: agents.collect(),
            rounds: count.rounds.figures(protocols),
            corruption: local.audited.clone(),
            rejected_steps: local.rejected_steps,
            stuck,
            stuck_in,
        }
    }
}

/// A count in progress.
struct Count<'s> {
    by: Option<By>,
    since: Option<Moment>,
    now: Moment,
    total: Tally,
    by_protocol: Tallies,
    groups: Tallies,
    /// By protocol and agent: how many handoffs it has now, and how its handoffs spent their time.
    agents: BTreeMap<(&'s AgentName, &'s AgentName), (u64, times::Times)>,
    rounds: Rounds<'s>,
}

impl<'s> Count<'s> {
    fn is_in(&self, at: Option<Moment>) -> bool {
        self.since
            .is_none_or(|since| at.is_some_and(|at| at >= since))
    }

    fn add_issue(&mut self, issue: &'s IssueSurvey, rules: Option<&Protocol>) {
        for (handoff, events) in issue.handoffs.iter().zip(&Tally::events(issue, rules)) {
            if self.is_in(handoff.sent_at()) {
                self.add_handoff(issue, handoff, events);
            }
        }
        let ended = issue.completed_at.unwrap_or(issue.updated_at);
        if issue.status != IssueStatus::Open && !self.is_in(Some(ended)) {
            return;
        }
        let protocol = &issue.protocol;
        self.total.add_issue(issue);
        let by_protocol = self.by_protocol.of(protocol, protocol.as_str());
        by_protocol.add_issue(issue);
        if let Some(by) = self.by.filter(|by| by.has_issues()) {
            let name = match by {
                By::Issue => issue.key.as_str(),
                _ => protocol.as_str(),
            };
            self.groups.of(protocol, name).add_issue(issue);
        }
        self.rounds.add(issue);
    }

    fn add_handoff(&mut self, issue: &'s IssueSurvey, handoff: &'s HandoffSurvey, events: &Counts) {
        let protocol = &issue.protocol;
        let mut spent = times::Times::default();
        for spell in times::spells(handoff) {
            spent.add(&spell, self.now);
            if !handoff.is_note() {
                let (_, times) = self.agents.entry((protocol, spell.agent)).or_default();
                times.add(&spell, self.now);
            }
        }
        let add = |tally: &mut Tally| tally.add(handoff, events, &spent);
        add(&mut self.total);
        add(self.by_protocol.of(protocol, protocol.as_str()));
        if let Some(by) = self.by {
            add(self.groups.of(protocol, &by.of_handoff(issue, handoff)));
        }
        if !handoff.state.is_terminal() {
            let (open, _) = self.agents.entry((protocol, &handoff.to)).or_default();
            *open += 1;
        }
    }

    fn add_refused(&mut self, refused: &RefusedContract) {
        if !self.is_in(Some(refused.at)) {
            return;
        }
        self.total.add_refused(refused);
        let Some(protocol) = &refused.protocol else {
            return;
        };
        let by_protocol = self.by_protocol.of(protocol, protocol.as_str());
        by_protocol.add_refused(refused);
        if let Some(name) = self.by.and_then(|by| by.of_refused(refused)) {
            self.groups.of(protocol, &name).add_refused(refused);
        }
    }
}

/// A tally for each group.
#[derive(Default)]
struct Tallies(BTreeMap<AgentName, BTreeMap<String, Tally>>);

impl Tallies {
    fn of(&mut self, protocol: &AgentName, name: &str) -> &mut Tally {
        // Most groups already exist: the key is cloned only if not.
        if !self.0.contains_key(protocol) {
            self.0.insert(protocol.clone(), BTreeMap::new());
        }
        let groups = self.0.entry(protocol.clone()).or_default();
        groups.entry(name.to_owned()).or_default()
    }

    fn groups(self, has_issues: bool) -> Vec<Group> {
        let mut found = Vec::new();
        for (protocol, groups) in self.0 {
            found.extend(groups.into_iter().map(|(name, tally)| Group {
                protocol: protocol.clone(),
                name,
                figures: tally.figures(has_issues),
            }));
        }
        found
    }
}

/// The rounds in the issues of each protocol.
#[derive(Default)]
struct Rounds<'s> {
    issues: BTreeMap<&'s AgentName, usize>,
    /// By protocol and name: the sum, and the most in one issue.
    found: BTreeMap<(&'s AgentName, &'s str), (u64, u64)>,
}

impl<'s> Rounds<'s> {
    fn add(&mut self, issue: &'s IssueSurvey) {
        *self.issues.entry(&issue.protocol).or_default() += 1;
        let mut own: BTreeMap<&str, u64> = BTreeMap::new();
        for round in &issue.rounds {
            *own.entry(&round.name).or_default() += 1;
        }
        for (name, count) in own {
            let (all, most) = self.found.entry((&issue.protocol, name)).or_default();
            (*all, *most) = (*all + count, count.max(*most));
        }
    }

    fn figures(&self, protocols: &Protocols) -> Vec<RoundFigures> {
        let mut figures = Vec::new();
        for (&protocol, &issues) in &self.issues {
            let rules = protocols.get(protocol);
            let limits = rules.and_then(|rules| rules.definition().limits.as_ref());
            for (name, round) in limits.iter().flat_map(|limits| &limits.rounds) {
                let found = self.found.get(&(protocol, name.as_str()));
                let (all, most) = found.copied().unwrap_or_default();
                figures.push(RoundFigures {
                    protocol: protocol.clone(),
                    name: name.clone(),
                    issues,
                    average: average(i64::try_from(all).unwrap_or(i64::MAX), issues),
                    most,
                    limit: round.most,
                });
            }
        }
        figures
    }
}
