//! How an issue or a ledger stands, gathered once for all that is told of it.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Moment, ObjectId};
use handoff_git::Repository;
use handoff_insight::alerts::Firing;
use handoff_insight::attention::{Stuck, idle, of_issue};
use handoff_insight::graph;
use handoff_insight::graph::Graph;
use handoff_ledger::{IssueSurvey, LedgerError, Snapshot, required};
use handoff_model::{Answered, Record, Refusal, View, needs_attention, turn};
use handoff_protocol::{Action, State};

/// What should happen next in an issue.
#[derive(Clone, Debug)]
pub struct Next {
    /// What.
    pub action: Action,
    /// Whose turn it is.
    pub agent: AgentName,
    /// The handoff that it is about.
    pub id: Option<HandoffId>,
    /// Why.
    pub why: String,
}

/// How an issue stands.
#[derive(Debug)]
pub struct Issue {
    /// The ledger's commit that says so.
    pub commit: ObjectId,
    /// The issue.
    pub issue: handoff_model::Issue,
    /// The same in brief.
    pub survey: IssueSurvey,
    /// Its handoffs, the oldest first.
    pub records: Vec<Record>,
    /// What needs attention in it.
    pub stuck: Vec<Stuck>,
    /// What should happen next; none, where nothing has to.
    pub next: Option<Next>,
    /// What a merge requires of it, or what was asked for.
    pub gate: Vec<Answered>,
    /// What happened in it.
    pub graph: Graph,
    /// When that was so.
    pub now: Moment,
}

impl Issue {
    /// Reads how an issue stands, and whether it shows these requirements, of this code:
    /// those of a merge, where none is named. None, where the ledger does not have it.
    ///
    /// # Errors
    /// [`LedgerError`] when a requirement is not known, or the ledger can't be read.
    pub fn read(
        repository: &Repository,
        tip: &Snapshot<'_>,
        key: &IssueKey,
        (wanted, head): (&[String], Option<ObjectId>),
        now: Moment,
    ) -> Result<Option<Self>, LedgerError> {
        let folder = tip.issue(key)?;
        let (Some(issue), Some(survey)) = (folder.issue()?, folder.survey()?) else {
            return Ok(None);
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        let stuck = of_issue(&survey, protocol, now);
        let next = match needs_attention(protocol, &folder, &issue, now)? {
            Some((advice, _)) => Some(Next {
                action: advice.action,
                agent: advice.agent,
                id: Some(advice.id),
                why: advice.why,
            }),
            None => turn(protocol, &issue, None, &[]).map(|turn| Next {
                action: Action::Advance,
                agent: turn.agent,
                id: turn.handoff,
                why: turn.why,
            }),
        };
        // Where nothing is open, it is the turn of whoever has to send.
        let next = next.or_else(|| {
            let idle = idle(&survey, protocol)?;
            Some(Next {
                action: Action::Advance,
                agent: idle.turn?,
                id: None,
                why: idle.need.title().to_owned(),
            })
        });
        Ok(Some(Self {
            commit: tip.commit(),
            records: folder.records()?,
            gate: required(repository, &folder, &rules, wanted, head)?,
            graph: graph::issue_graph(&survey, protocol, now),
            issue,
            survey,
            stuck,
            next,
            now,
        }))
    }

    /// The same, of an issue that has to be there.
    ///
    /// # Errors
    /// [`Refusal::NoIssue`], and as [`Issue::read`].
    pub fn known(
        repository: &Repository,
        tip: &Snapshot<'_>,
        key: &IssueKey,
        asked: (&[String], Option<ObjectId>),
        now: Moment,
    ) -> Result<Self, LedgerError> {
        let found = Self::read(repository, tip, key, asked, now)?;
        let none = || Refusal::NoIssue { issue: key.clone() };
        found.ok_or_else(|| none().into())
    }

    /// The agents with whom something is open, each once.
    pub fn holders(&self) -> impl Iterator<Item = &AgentName> {
        let open = &self.issue.open;
        let first = |(at, agent): &(usize, &AgentName)| open[..*at].iter().all(|o| o.to != **agent);
        let all = open.iter().map(|open| &open.to).enumerate();
        all.filter(first).map(|(_, agent)| agent)
    }

    /// Says whether it shows everything that is required.
    pub fn passes(&self) -> bool {
        self.gate.iter().all(|one| one.met)
    }
}

/// How a ledger stands.
#[derive(Debug)]
pub struct Ledger {
    /// Its branch.
    pub branch: String,
    /// Its commit.
    pub commit: ObjectId,
    /// The protocol that new issues follow.
    pub protocol: String,
    /// How many issues it has, and how many of them are completed.
    pub issues: (usize, usize),
    /// Its open handoffs.
    pub open: Vec<Record>,
    /// How many of them are in which state.
    pub counts: Vec<(State, usize)>,
    /// What needs attention.
    pub stuck: Vec<Stuck>,
    /// Thresholds that are crossed.
    pub firing: Vec<Firing>,
}
