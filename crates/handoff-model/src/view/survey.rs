//! Summaries of issues and handoffs. They borrow their texts, so that a survey of a whole ledger
//! copies little.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::decision::needed;
use crate::record::{
    Awaiting, Evidence, Issue, IssueStatus, Question, Record, Spending, Spent, TraceParent,
    Transition, Usage, Verdict,
};
use handoff_base::Moment;
use handoff_base::ids::{AgentName, AgentRef, HandoffId, IssueKey};
use handoff_base::text::one_line;
use handoff_protocol::{Action, Event, State};
use serde::{Deserialize, Serialize};

/// A summary of an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueSurvey<'a> {
    /// Its key.
    pub key: IssueKey,
    /// Its title.
    pub title: &'a str,
    /// The protocol it is bound to.
    pub protocol: AgentName,
    /// Whether it is open.
    pub status: IssueStatus,
    /// When its first contract was sent.
    pub opened_at: Moment,
    /// When it was opened or last reopened: its deadline counts from then.
    pub counts_since: Moment,
    /// When its last step was made.
    pub updated_at: Moment,
    /// When it was completed, if it is.
    pub completed_at: Option<Moment>,
    /// Its pause, during which no work is handed out, if any.
    #[serde(borrow)]
    pub paused: Option<PauseSurvey<'a>>,
    /// The number of commits that wrote to it.
    pub steps: u32,
    /// How often it was reopened.
    pub reopened: u32,
    /// The number of its handoffs when it was last reopened: limits count from there.
    pub counts_after: u32,
    /// Why it was reopened last, if it was.
    pub why_reopened: Option<String>,
    /// The handoffs that count as rounds, the oldest first.
    #[serde(borrow)]
    pub rounds: Vec<RoundSurvey<'a>>,
    /// Completed handoffs without a successor.
    pub unfollowed: Vec<u32>,
    /// Ended handoffs, with the agent that each awaits.
    pub awaiting: Vec<(u32, AgentName)>,
    /// Decisions about its handoffs, the oldest first.
    pub decisions: Vec<DecisionSurvey>,
    /// The number of findings of its reviews.
    pub findings: u32,
    /// The number of findings that are not settled.
    pub unsettled: u32,
    /// What agents have spent in it, if its protocol has budgets.
    #[serde(with = "spending")]
    pub spent: Spending,
    /// Its handoffs, the oldest first.
    #[serde(borrow)]
    pub handoffs: Vec<HandoffSurvey<'a>>,
}

/// A pause of an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseSurvey<'a> {
    /// When it was paused.
    pub at: Moment,
    /// The agent that paused it.
    pub by: AgentName,
    /// Why.
    pub reason: &'a str,
    /// The agents that may continue.
    pub except: Vec<AgentName>,
}

/// A handoff that counts as a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundSurvey<'a> {
    /// The name of the protocol's limit.
    pub name: &'a str,
    /// The handoff's number.
    pub number: u32,
}

/// A decision about a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionSurvey {
    /// When it was made.
    pub at: Moment,
    /// The handoff's number.
    pub number: u32,
    /// The action to take.
    pub action: Action,
}

/// A summary of a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffSurvey<'a> {
    /// Its number in its issue, from 1.
    pub number: u32,
    /// The contract's type.
    pub contract_type: &'a str,
    /// The sender.
    #[serde(borrow)]
    pub from: AgentRef<'a>,
    /// The current receiver, after reassignments.
    #[serde(borrow)]
    pub to: AgentRef<'a>,
    /// The original receiver.
    #[serde(borrow)]
    pub sent_to: AgentRef<'a>,
    /// The receiver that its contract names, if another agent decides first.
    #[serde(borrow)]
    pub intended: Option<AgentRef<'a>>,
    /// Its state.
    pub state: State,
    /// Its priority, in the protocol's words.
    #[serde(borrow)]
    pub priority: Option<&'a str>,
    /// The status of its contract.
    #[serde(borrow)]
    pub status: Option<&'a str>,
    /// One line about it.
    pub summary: &'a str,
    /// The number of the handoff that its sender held.
    pub follows: Option<u32>,
    /// The number of the request that it answers.
    pub answers: Option<u32>,
    /// The number of the failed handoff whose contract it corrects.
    pub replaces: Option<u32>,
    /// The task that it is about.
    #[serde(borrow)]
    pub task: Option<&'a str>,
    /// The numbers of the handoffs that must be completed before it can be claimed.
    pub waits_for: Vec<u32>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// When it can be claimed again, while it waits for another attempt.
    pub not_before: Option<Moment>,
    /// When the holder's lease ends, or when it must be claimed.
    pub expires_at: Option<Moment>,
    /// The length of that lease, in seconds.
    pub lease_seconds: Option<u64>,
    /// The number of contradicted statements.
    pub contradicted: u32,
    /// The number of role violations of its sender.
    pub violations: u32,
    /// The usage of work on it, by claim and model.
    #[serde(borrow)]
    pub usage: Vec<UsageSurvey<'a>>,
    /// Every transition, the oldest first.
    #[serde(borrow)]
    pub changes: Vec<ChangeSurvey<'a>>,
}

/// The usage of a claim, by model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSurvey<'a> {
    /// When it was last reported.
    pub at: Moment,
    /// The agent.
    #[serde(borrow)]
    pub by: AgentRef<'a>,
    /// The number of the claim; 0 for work without one.
    pub token: u32,
    /// The provider of the model; empty if not reported.
    pub provider: &'a str,
    /// The model; empty if not reported.
    pub model: &'a str,
    /// The usage.
    pub spent: Spent,
}

/// A summary of a transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSurvey<'a> {
    /// When it happened.
    pub at: Moment,
    /// The agent that caused it.
    #[serde(borrow)]
    pub by: AgentRef<'a>,
    /// The event; `None` for the sending that started the handoff.
    pub event: Option<Event>,
    /// The state after.
    pub to: State,
    /// The new receiver, if it changed.
    #[serde(borrow)]
    pub receiver: Option<AgentRef<'a>>,
    /// The code of the failure, if it failed.
    #[serde(borrow)]
    pub failure: Option<&'a str>,
    /// The failure, the question or the reason, in one line.
    pub reason: Option<Cow<'a, str>>,
    /// The failing tool's report.
    #[serde(borrow)]
    pub details: Option<&'a str>,
    /// The keys that a blocked agent needs an answer to.
    pub keys: Vec<String>,
    /// When the lease or the time to be claimed ran out, if recorded.
    pub ran_out_at: Option<Moment>,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
}

impl<'a> IssueSurvey<'a> {
    /// Summarizes an issue and its records, sorted from the oldest.
    pub fn of(issue: &'a Issue, records: &'a [Record]) -> Self {
        let decisions = issue.decisions.iter().map(|decision| DecisionSurvey {
            at: decision.at,
            number: decision.id.number(),
            action: decision.action,
        });
        let rounds = issue.counted.iter().flat_map(|counted| {
            let number = counted.number;
            let named = counted.rounds.iter().map(String::as_str);
            named.map(move |name| RoundSurvey { name, number })
        });
        let pair = |one: &Awaiting| (one.id.number(), one.agent.clone());
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            key: issue.issue.clone(),
            title: &issue.title,
            protocol: issue.protocol.clone(),
            status: issue.status,
            opened_at: issue.opened_at,
            counts_since: issue.counts_since(),
            updated_at: issue.updated_at,
            completed_at: issue.completed_at,
            paused: issue.paused.as_ref().map(|paused| PauseSurvey {
                at: paused.at,
                by: paused.by.clone(),
                reason: &paused.reason,
                except: paused.except.to_vec(),
            }),
            steps: issue.steps,
            reopened: u32::try_from(issue.reopened.len()).unwrap_or(u32::MAX),
            counts_after: issue.reopened.last().map_or(0, |again| again.handoffs),
            why_reopened: issue.why_reopened(),
            rounds: rounds.collect(),
            unfollowed: issue.unfollowed.iter().map(HandoffId::number).collect(),
            awaiting: issue.awaiting.iter().map(pair).collect(),
            decisions: decisions.collect(),
            findings: count(issue.findings.len()),
            unsettled: count(issue.unsettled().count()),
            spent: issue.spent.clone(),
            handoffs: records.iter().map(HandoffSurvey::of).collect(),
        }
    }

    /// The id of one of its handoffs.
    pub fn id(&self, handoff: &HandoffSurvey<'_>) -> HandoffId {
        HandoffId::new(self.key.clone(), handoff.number)
    }

    /// Whether a pause holds an agent's work back.
    pub fn holds_back(&self, agent: AgentRef<'_>) -> bool {
        let paused = self.paused.as_ref();
        paused.is_some_and(|paused| paused.except.iter().all(|one| one.borrowed() != agent))
    }

    /// Whether anything in it may still need attention: it is open, has an open handoff, or awaits
    /// an agent.
    pub fn is_active(&self) -> bool {
        let is_over = |handoff: &HandoffSurvey<'_>| handoff.state.is_terminal();
        self.status == IssueStatus::Open
            || !self.awaiting.is_empty()
            || !self.handoffs.iter().all(is_over)
    }

    /// How many rounds of each kind it had, by name.
    pub fn rounds_by_name(&self) -> BTreeMap<&'a str, u64> {
        let mut rounds = BTreeMap::new();
        for round in &self.rounds {
            *rounds.entry(round.name).or_default() += 1;
        }
        rounds
    }

    /// The latest time in it.
    pub fn newest(&self) -> Moment {
        let paused = self.paused.as_ref().map(|paused| paused.at);
        let own = [self.completed_at, paused].into_iter().flatten();
        let decisions = self.decisions.iter().map(|decision| decision.at);
        let handoffs = self.handoffs.iter().flat_map(|handoff| {
            let changes = handoff.changes.iter();
            let times = changes.flat_map(|change| [Some(change.at), change.ran_out_at]);
            let usage = handoff.usage.iter().map(|usage| Some(usage.at));
            let waits = [handoff.not_before, handoff.expires_at];
            times.chain(usage).chain(waits).flatten()
        });
        own.chain(decisions)
            .chain(handoffs)
            .fold(self.updated_at, Moment::max)
    }

    /// A handoff by its number.
    pub fn handoff(&self, number: u32) -> Option<&HandoffSurvey<'a>> {
        let found = self.handoffs.binary_search_by_key(&number, |h| h.number);
        self.handoffs.get(found.ok()?)
    }
}

impl<'a> HandoffSurvey<'a> {
    /// Summarizes a record.
    pub fn of(record: &'a Record) -> Self {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let contradicted = |e: &&Evidence| e.result == Verdict::Contradicted;
        // The name of the contract's file contains the first receiver.
        let sent_to = || {
            let (stem, _) = record.contract.file.rsplit_once('.')?;
            let start = format!("{:04}-{}-to-", record.id.number(), record.from);
            AgentRef::new(stem.strip_prefix(&start)?).ok()
        };
        Self {
            number: record.id.number(),
            contract_type: &record.contract_type,
            from: record.from.borrowed(),
            to: record.to.borrowed(),
            sent_to: sent_to().unwrap_or_else(|| record.to.borrowed()),
            intended: record.intended.as_ref().map(AgentName::borrowed),
            state: record.state,
            priority: record.priority.as_deref(),
            status: record.status.as_deref(),
            summary: &record.summary,
            follows: record.follows.as_ref().map(HandoffId::number),
            answers: record.answers.as_ref().map(HandoffId::number),
            replaces: record.replaces.as_ref().map(HandoffId::number),
            task: record.task.as_ref().map(|task| task.id.as_str()),
            waits_for: record.waits_for.iter().map(HandoffId::number).collect(),
            attempt: record.attempt,
            not_before: record.not_before,
            expires_at: record.expires_at(),
            lease_seconds: record.lease.as_ref().and_then(|lease| lease.seconds),
            contradicted: count(record.evidence.iter().filter(contradicted).count()),
            violations: count(record.violations.len()),
            usage: record.usage.iter().flat_map(UsageSurvey::of).collect(),
            changes: record.transitions.iter().map(ChangeSurvey::of).collect(),
        }
    }

    /// When it was sent.
    pub fn sent_at(&self) -> Option<Moment> {
        self.changes.first().map(|change| change.at)
    }

    /// Whether it is a note, which is never claimed.
    pub fn is_note(&self) -> bool {
        let first = self.changes.first();
        first.is_some_and(|change| change.to.is_terminal())
    }
}

impl<'a> UsageSurvey<'a> {
    fn of(usage: &'a Usage) -> impl Iterator<Item = Self> {
        usage.models.iter().map(|model| Self {
            at: usage.at,
            by: usage.by.borrowed(),
            token: usage.token,
            provider: model.provider.as_deref().unwrap_or_default(),
            model: model.model.as_deref().unwrap_or_default(),
            spent: Spent::of(std::slice::from_ref(model)),
        })
    }
}

impl<'a> ChangeSurvey<'a> {
    fn of(transition: &'a Transition) -> Self {
        let failure = transition.failure.as_ref();
        let reason = transition.why().map(Cow::Borrowed);
        let reason = reason.or_else(|| transition.answer_text().map(Cow::Owned));
        let reason = reason.and_then(first_line);
        Self {
            at: transition.at,
            by: transition.by.borrowed(),
            event: transition.event,
            to: transition.to,
            receiver: transition.receiver.as_ref().map(AgentName::borrowed),
            failure: failure.map(|failure| failure.code.as_str()),
            keys: needed(&transition.questions),
            ran_out_at: transition.ran_out_at,
            reason: match asked(&transition.questions) {
                Some(asked) if transition.reason.is_none() => Some(asked.into()),
                Some(asked) => reason.map(|reason| format!("{reason} ({asked})").into()),
                None => reason,
            },
            details: failure.and_then(|failure| failure.details.as_deref()),
            traceparent: transition.traceparent,
        }
    }
}

/// The types and purposes of the values that are asked for; `None` if only keys are given.
fn asked(questions: &[Question]) -> Option<String> {
    let told = |one: &Question| one.kind.is_some() || one.description.is_some();
    let one = |one: &Question| {
        let optional = one.optional.then_some("optional");
        let more = [one.kind.as_deref(), optional, one.description.as_deref()];
        let more: Vec<&str> = more.into_iter().flatten().collect();
        let colon = if more.is_empty() { "" } else { ": " };
        one_line(&format!("{}{colon}{}", one.key, more.join(", ")))
    };
    let all = || questions.iter().map(one).collect::<Vec<_>>().join("; ");
    questions.iter().any(told).then(all)
}

/// The first line of a text; `None` if it is empty.
fn first_line(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    match text {
        Cow::Borrowed(text) => text.lines().next().map(Cow::Borrowed),
        Cow::Owned(text) => text.lines().next().map(|line| Cow::Owned(line.to_owned())),
    }
}

/// Serializes spending for binary formats, which can't leave out fields as the stored form does.
mod spending {
    use std::collections::BTreeMap;

    use crate::record::spending::AgentSpending;
    use crate::record::{Spending, Spent};
    use handoff_base::ids::{AgentName, HandoffId};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        all: &Spending,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(all.iter().map(|(agent, of)| (agent, &of.ended, &of.held)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Spending, D::Error> {
        type Fields = (AgentName, Spent, BTreeMap<HandoffId, Spent>);
        let all = Vec::<Fields>::deserialize(from)?.into_iter();
        Ok(all
            .map(|(agent, ended, held)| (agent, AgentSpending { ended, held }))
            .collect())
    }
}
