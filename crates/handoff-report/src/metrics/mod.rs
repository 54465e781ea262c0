//! Metrics: how much was handed over, with what outcome, and how long it took and waited.
//!
//! [`Metrics::of`] counts once over a [`Survey`]; nothing is kept between runs. Refused contracts
//! and audits are not in the ledger: they are [`Local`] to this clone.

mod distribution;
mod tally;
mod usage;

use handoff::base::words;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use distribution::{BUCKETS, Distribution};
pub(crate) use distribution::{average, seconds};
pub use tally::{Figures, IssueFigures};
pub use usage::{UsageFigures, UsageSum, sums};

use handoff::base::Moment;
use handoff::base::ids::{AgentName, AgentRef};
use handoff::ledger::attention::{Attention, Protocols};
use handoff::ledger::{Audited, HandoffSurvey, IssueSurvey, RefusedContract, Survey};
use handoff::model::IssueStatus;
use handoff::protocol::Need;
use handoff::protocol::Protocol;
use handoff_graph::times;
use tally::{Counts, Tally};
use usage::UsageTally;

/// What is known only in this clone, not in the ledger.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// The contracts refused in this clone.
    pub refused: Vec<RefusedContract>,
    /// How many offline steps were refused and await a decision.
    pub rejected_steps: usize,
    /// The result of the last audit, if there was one.
    pub audited: Option<Audited>,
}

words! {
    /// How rows are grouped.
    pub enum By {
        /// By the agent that has the handoffs.
        Agent = "agent",
        /// By sender and original receiver.
        Route = "route",
        /// By contract type.
        Type = "type",
        /// By protocol.
        Protocol = "protocol",
        /// By issue.
        Issue = "issue",
    }
}

impl By {
    /// Whether each issue is in one group only.
    fn has_issues(self) -> bool {
        matches!(self, Self::Protocol | Self::Issue)
    }

    fn of_handoff(self, issue: &IssueSurvey<'_>, handoff: &HandoffSurvey<'_>) -> String {
        match self {
            Self::Agent => handoff.to.to_string(),
            Self::Route => route(handoff.from, handoff.sent_to),
            Self::Type => handoff.contract_type.to_owned(),
            Self::Protocol => issue.protocol.to_string(),
            Self::Issue => issue.key.to_string(),
        }
    }

    /// The group of a refused contract, if known; grouped by agent, that of its sender.
    fn of_refused(self, refused: &RefusedContract) -> Option<String> {
        match self {
            Self::Agent => refused.from.as_ref().map(ToString::to_string),
            Self::Route => Some(route(
                refused.from.as_ref()?.borrowed(),
                refused.to.as_ref()?.borrowed(),
            )),
            Self::Type => refused.contract_type.clone(),
            Self::Protocol => refused.protocol.as_ref().map(ToString::to_string),
            Self::Issue => refused.issue.as_ref().map(ToString::to_string),
        }
    }
}

fn route(from: AgentRef<'_>, to: AgentRef<'_>) -> String {
    format!("{from} → {to}")
}

/// The figures of one group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FigureGroup")]
pub struct Group {
    /// The protocol.
    pub(crate) protocol: AgentName,
    /// The name of the agent, route, contract type, protocol or issue.
    pub name: String,
    /// Its figures.
    pub figures: Figures,
}

/// How much time an agent's handoffs spent in which state.
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
    /// How long handoffs that it failed waited for a decision.
    pub failed_seconds: i64,
}

/// How often a round of `limits.rounds` was made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RoundFigures {
    /// The protocol.
    pub(crate) protocol: AgentName,
    /// The round's name in the protocol's `limits.rounds`.
    pub name: String,
    /// In how many issues it can occur.
    pub(crate) issues: usize,
    /// The average number of rounds per issue; null without issues.
    pub average: Option<f64>,
    /// The most rounds in one issue.
    pub most: u64,
    /// The protocol's limit.
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
    /// Time spent, by agent and protocol.
    pub agents: Vec<AgentFigures>,
    /// Usage, by agent, model and day.
    pub usage: Vec<UsageFigures>,
    /// The rounds, by protocol and name.
    pub rounds: Vec<RoundFigures>,
    /// What the last `verify` in this clone found; null if it was never run.
    pub corruption: Option<Audited>,
    /// Offline steps that were refused and wait for a decision.
    pub rejected_steps: usize,
    /// What needs attention now.
    pub stuck: Vec<Attention>,
    /// The number of needs in each protocol, by kind.
    #[serde(skip)]
    pub(crate) stuck_in: BTreeMap<AgentName, BTreeMap<Need, usize>>,
}

impl Metrics {
    /// Counts the handoffs sent at or after `since`, with their outcomes so far, and the issues
    /// that are open or were completed since. `stuck` is the attention of the same survey.
    pub fn of(
        (survey, stuck): (&Survey, Vec<Attention>),
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
            refused: Tally::default(),
            protocols: BTreeMap::new(),
            groups: Tallies::default(),
        };
        // A protocol in force is listed even before it has a handoff.
        for name in protocols.keys() {
            count.protocols.entry(name.clone()).or_default().is_counted = true;
        }
        for issue in survey.issues.iter() {
            count.add_issue(&issue, protocols.get(&issue.protocol));
        }
        for refused in &local.refused {
            count.add_refused(refused);
        }
        let mut stuck_in: BTreeMap<AgentName, BTreeMap<Need, usize>> = protocols
            .keys()
            .map(|name| (name.clone(), BTreeMap::new()))
            .collect();
        for one in &stuck {
            if let Some(protocol) = survey.issues.get(&one.issue).map(|issue| issue.protocol) {
                let needs = stuck_in.entry(protocol.clone()).or_default();
                *needs.entry(one.need).or_default() += 1;
            }
        }
        let (mut by_protocol, mut agents, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
        let mut usage = Vec::new();
        let mut all = count.refused;
        for (name, mut of) in count.protocols.into_iter().filter(|(_, of)| of.is_counted) {
            let spent = |(agent, at): (AgentName, usize)| of.spent[at].of(&name, agent);
            agents.extend(of.agents.into_iter().map(spent));
            rounds.extend(of.rounds.figures(&name, protocols.get(&name)));
            usage.extend(of.usage.figures(&name));
            by_protocol.push(Group {
                name: name.to_string(),
                protocol: name,
                figures: of.tally.figures(true),
            });
            all.add_all(&of.tally);
        }
        Self {
            figures: all.figures(true),
            protocols: by_protocol,
            groups: count.groups.groups(by.is_some_and(By::has_issues)),
            agents,
            usage,
            rounds,
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
    /// Refused contracts whose protocol is not known.
    refused: Tally,
    protocols: BTreeMap<AgentName, OfProtocol<'s>>,
    groups: Tallies,
}

/// The counts of one protocol.
#[derive(Default)]
struct OfProtocol<'s> {
    /// Whether it is in force, or anything was counted.
    is_counted: bool,
    tally: Tally,
    /// Each agent's index in `spent`.
    agents: BTreeMap<AgentName, usize>,
    spent: Vec<Spent>,
    usage: UsageTally,
    rounds: Rounds<'s>,
}

impl OfProtocol<'_> {
    /// Counts a handoff with these events and periods; returns the time spent in each state.
    fn add_handoff(
        &mut self,
        handoff: &HandoffSurvey<'_>,
        events: &Counts,
        (spells, now): (&[times::Spell<'_>], Moment),
    ) -> times::Times {
        self.is_counted = true;
        self.usage.add(handoff);
        let mut spent = times::Times::default();
        for spell in spells {
            let own = times::Times::of(spell, now);
            spent.add_all(&own);
            if !handoff.is_note() {
                self.spent_by(spell.agent).times.add_all(&own);
            }
        }
        self.tally.add(handoff, events, &spent);
        if !handoff.state.is_terminal() {
            self.spent_by(handoff.to).open += 1;
        }
        spent
    }

    fn spent_by(&mut self, agent: AgentRef<'_>) -> &mut Spent {
        let known = self.agents.get(agent.as_str()).copied();
        let at = known.unwrap_or_else(|| {
            let at = self.spent.len();
            self.agents.insert(agent.to_name(), at);
            self.spent.push(Spent::default());
            at
        });
        &mut self.spent[at]
    }
}

/// An agent's open handoffs, and the time its handoffs spent in each state.
#[derive(Default)]
struct Spent {
    open: u64,
    times: times::Times,
}

impl Spent {
    fn of(&self, protocol: &AgentName, agent: AgentName) -> AgentFigures {
        AgentFigures {
            protocol: protocol.clone(),
            agent,
            open: self.open,
            waiting_seconds: self.times.waiting.num_seconds(),
            working_seconds: self.times.working.num_seconds(),
            blocked_seconds: self.times.blocked.num_seconds(),
            failed_seconds: self.times.failed.num_seconds(),
        }
    }
}

impl<'s> Count<'s> {
    fn is_in(&self, at: Option<Moment>) -> bool {
        self.since
            .is_none_or(|since| at.is_some_and(|at| at >= since))
    }

    fn add_issue(&mut self, issue: &IssueSurvey<'s>, rules: Option<&Protocol>) {
        let mut of = self.protocols.remove(&issue.protocol).unwrap_or_default();
        let counts = Tally::events(issue, rules);
        let mut spells = Vec::new();
        for (handoff, events) in issue.handoffs.iter().zip(&counts) {
            if self.is_in(handoff.sent_at()) {
                times::find_spells(handoff, &mut spells);
                let spent = of.add_handoff(handoff, events, (&spells, self.now));
                if let Some(by) = self.by {
                    let group = self
                        .groups
                        .of(&issue.protocol, &by.of_handoff(issue, handoff));
                    group.add(handoff, events, &spent);
                }
            }
        }
        let ended = issue.completed_at.unwrap_or(issue.updated_at);
        if issue.status == IssueStatus::Open || self.is_in(Some(ended)) {
            of.is_counted = true;
            of.tally.add_issue(issue);
            of.rounds.add(issue);
            if let Some(by) = self.by.filter(|by| by.has_issues()) {
                let name = match by {
                    By::Issue => issue.key.as_str(),
                    _ => issue.protocol.as_str(),
                };
                self.groups.of(&issue.protocol, name).add_issue(issue);
            }
        }
        self.protocols.insert(issue.protocol.clone(), of);
    }

    fn add_refused(&mut self, refused: &'s RefusedContract) {
        if !self.is_in(Some(refused.at)) {
            return;
        }
        let Some(protocol) = &refused.protocol else {
            self.refused.add_refused(refused);
            return;
        };
        let of = self.protocols.entry(protocol.clone()).or_default();
        of.is_counted = true;
        of.tally.add_refused(refused);
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
        // Most groups already exist: clone the key only for a new one.
        if !self.0.contains_key(protocol) {
            self.0.insert(protocol.clone(), BTreeMap::new());
        }
        let groups = self.0.entry(protocol.clone()).or_default();
        groups.entry(name.to_owned()).or_default()
    }

    fn groups(self, has_issues: bool) -> Vec<Group> {
        let mut found = Vec::new();
        for (protocol, groups) in self.0 {
            found.extend(groups.into_iter().map(|(name, mut tally)| Group {
                protocol: protocol.clone(),
                name,
                figures: tally.figures(has_issues),
            }));
        }
        found
    }
}

/// The rounds in the issues of a protocol.
#[derive(Default)]
struct Rounds<'s> {
    issues: usize,
    /// By name: the total, and the maximum in one issue.
    found: BTreeMap<&'s str, (u64, u64)>,
}

impl<'s> Rounds<'s> {
    fn add(&mut self, issue: &IssueSurvey<'s>) {
        self.issues += 1;
        for (name, count) in issue.rounds_by_name() {
            let (all, most) = self.found.entry(name).or_default();
            (*all, *most) = (*all + count, count.max(*most));
        }
    }

    fn figures(&self, protocol: &AgentName, rules: Option<&Protocol>) -> Vec<RoundFigures> {
        let limits = rules.filter(|_| self.issues > 0);
        let limits = limits.and_then(|rules| rules.definition().limits.as_ref());
        let limits = limits.iter().flat_map(|limits| &limits.rounds);
        let figures = limits.map(|(name, round)| {
            let (all, most) = self.found.get(name.as_str()).copied().unwrap_or_default();
            RoundFigures {
                protocol: protocol.clone(),
                name: name.clone(),
                issues: self.issues,
                average: average(i64::try_from(all).unwrap_or(i64::MAX), self.issues),
                most,
                limit: round.most,
            }
        });
        figures.collect()
    }
}
