//! Summaries of issues and handoffs.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_model::{
    Awaiting, Evidence, Issue, IssueStatus, Record, TraceParent, Transition, Verdict,
};
use handoff_protocol::{Action, Event, State};
use serde::{Deserialize, Serialize};

/// A summary of an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueSurvey {
    /// Its key.
    pub key: IssueKey,
    /// Its title.
    pub title: String,
    /// The protocol it is bound to.
    pub protocol: AgentName,
    /// Whether it is open.
    pub status: IssueStatus,
    /// When its first contract was sent.
    #[serde(with = "milliseconds")]
    pub opened_at: Moment,
    /// When its last step was made.
    #[serde(with = "milliseconds")]
    pub updated_at: Moment,
    /// When it was completed, if it is.
    #[serde(with = "optional_milliseconds")]
    pub completed_at: Option<Moment>,
    /// The number of commits that wrote to it.
    pub steps: u32,
    /// How often it was reopened.
    pub reopened: u32,
    /// The number of handoffs it had when it was last reopened: limits count from there.
    pub counts_after: u32,
    /// The handoffs that count as rounds, the oldest first.
    pub rounds: Vec<RoundSurvey>,
    /// Completed handoffs that nothing was sent on from yet.
    pub unfollowed: Vec<u32>,
    /// Handoffs that ended and await somebody, and whom.
    pub awaiting: Vec<(u32, AgentName)>,
    /// Handoffs that ended and of which these agents have yet to be told.
    pub to_tell: Vec<(u32, AgentName)>,
    /// Decisions about its handoffs, the oldest first.
    pub decisions: Vec<DecisionSurvey>,
    /// Its handoffs, the oldest first.
    pub handoffs: Vec<HandoffSurvey>,
}

/// A handoff that counts as a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundSurvey {
    /// The name of the protocol's limit.
    pub name: String,
    /// The handoff's number.
    pub number: u32,
}

/// A decision about a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionSurvey {
    /// When it was made.
    #[serde(with = "milliseconds")]
    pub at: Moment,
    /// The handoff's number.
    pub number: u32,
    /// The action to take.
    pub action: Action,
}

/// A summary of a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffSurvey {
    /// Its number in its issue, from 1.
    pub number: u32,
    /// The contract's type.
    pub contract_type: String,
    /// The sender.
    pub from: AgentName,
    /// The current receiver, which a reassignment changes.
    pub to: AgentName,
    /// The receiver that it was sent to.
    pub sent_to: AgentName,
    /// The receiver that its contract names, if another agent decides first.
    pub intended: Option<AgentName>,
    /// Its state.
    pub state: State,
    /// Its priority, in the protocol's words.
    pub priority: Option<String>,
    /// The status of its contract.
    pub status: Option<String>,
    /// One line about it.
    pub summary: String,
    /// The number of the handoff that its sender held.
    pub follows: Option<u32>,
    /// The number of the request that it answers.
    pub answers: Option<u32>,
    /// The number of the failed handoff whose contract it corrects.
    pub replaces: Option<u32>,
    /// The task that it is about.
    pub task: Option<String>,
    /// The numbers of the handoffs that must be completed before it can be claimed.
    pub waits_for: Vec<u32>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// When it can be claimed again, while it waits for another attempt.
    #[serde(with = "optional_milliseconds")]
    pub not_before: Option<Moment>,
    /// When the holder's lease ends, or when it must be claimed.
    #[serde(with = "optional_milliseconds")]
    pub expires_at: Option<Moment>,
    /// The length of that lease, in seconds.
    pub lease_seconds: Option<u64>,
    /// The number of its contract's claims that the repository contradicts.
    pub contradicted: u32,
    /// The number of role violations of its sender.
    pub violations: u32,
    /// Every transition, the oldest first.
    pub changes: Vec<ChangeSurvey>,
}

/// A summary of a transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSurvey {
    /// When it happened.
    #[serde(with = "milliseconds")]
    pub at: Moment,
    /// The agent that caused it.
    pub by: AgentName,
    /// The event; `None` for the sending that started the handoff.
    pub event: Option<Event>,
    /// The state after.
    pub to: State,
    /// The agent that takes over from now on, if that changed.
    pub receiver: Option<AgentName>,
    /// The code of the failure, if it failed.
    pub failure: Option<String>,
    /// The failure, the question or the reason, in one line.
    pub reason: Option<String>,
    /// When the lease or the time to claim it ran out, if that was recorded.
    #[serde(with = "optional_milliseconds")]
    pub ran_out_at: Option<Moment>,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
}

impl IssueSurvey {
    /// Summarizes an issue and its records, which are sorted from the oldest.
    pub fn of(issue: &Issue, records: &[Record]) -> Self {
        let decisions = issue.decisions.iter().map(|decision| DecisionSurvey {
            at: decision.at,
            number: decision.id.number(),
            action: decision.action,
        });
        let rounds = issue.counted.iter().flat_map(|counted| {
            let number = counted.number;
            let named = counted.rounds.iter().cloned();
            named.map(move |name| RoundSurvey { name, number })
        });
        let pair = |one: &Awaiting| (one.id.number(), one.agent.clone());
        Self {
            key: issue.issue.clone(),
            title: issue.title.clone(),
            protocol: issue.protocol.clone(),
            status: issue.status,
            opened_at: issue.opened_at,
            updated_at: issue.updated_at,
            completed_at: issue.completed_at,
            steps: issue.steps,
            reopened: u32::try_from(issue.reopened.len()).unwrap_or(u32::MAX),
            counts_after: issue.reopened.last().map_or(0, |again| again.handoffs),
            rounds: rounds.collect(),
            unfollowed: issue.unfollowed.iter().map(HandoffId::number).collect(),
            awaiting: issue.awaiting.iter().map(pair).collect(),
            to_tell: issue.to_tell.iter().map(pair).collect(),
            decisions: decisions.collect(),
            handoffs: records.iter().map(HandoffSurvey::of).collect(),
        }
    }

    /// The id of one of its handoffs.
    pub fn id(&self, handoff: &HandoffSurvey) -> HandoffId {
        HandoffId::new(self.key.clone(), handoff.number)
    }

    /// A handoff by its number.
    pub fn handoff(&self, number: u32) -> Option<&HandoffSurvey> {
        let found = self.handoffs.binary_search_by_key(&number, |h| h.number);
        self.handoffs.get(found.ok()?)
    }
}

impl HandoffSurvey {
    /// Summarizes a record.
    pub fn of(record: &Record) -> Self {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let contradicted = |e: &&Evidence| e.result == Verdict::Contradicted;
        // The contract's file name contains its first receiver.
        let sent_to = || {
            let (stem, _) = record.contract.file.rsplit_once('.')?;
            let start = format!("{:04}-{}-to-", record.id.number(), record.from);
            stem.strip_prefix(&start)?.parse().ok()
        };
        Self {
            number: record.id.number(),
            contract_type: record.contract_type.clone(),
            from: record.from.clone(),
            to: record.to.clone(),
            sent_to: sent_to().unwrap_or_else(|| record.to.clone()),
            intended: record.intended.clone(),
            state: record.state,
            priority: record.priority.clone(),
            status: record.status.clone(),
            summary: record.summary.clone(),
            follows: record.follows.as_ref().map(HandoffId::number),
            answers: record.answers.as_ref().map(HandoffId::number),
            replaces: record.replaces.as_ref().map(HandoffId::number),
            task: record.task.as_ref().map(|task| task.id.clone()),
            waits_for: record.waits_for.iter().map(HandoffId::number).collect(),
            attempt: record.attempt,
            not_before: record.not_before,
            expires_at: record.expires_at(),
            lease_seconds: record.lease.as_ref().and_then(|lease| lease.seconds),
            contradicted: count(record.evidence.iter().filter(contradicted).count()),
            violations: count(record.violations.len()),
            changes: record.transitions.iter().map(ChangeSurvey::of).collect(),
        }
    }

    /// When it was sent.
    pub fn sent_at(&self) -> Option<Moment> {
        self.changes.first().map(|change| change.at)
    }

    /// Why it is in its state: the failure, the reason that was given, or the first question. `None`
    /// if work goes on or is done.
    pub fn reason(&self) -> Option<&str> {
        // Running out of attempts is part of the failure before it.
        let mut newest = self.changes.iter().rev();
        let last = newest.find(|change| change.event != Some(Event::Exhaust))?;
        last.reason.as_deref().filter(|_| self.state.is_stopped())
    }

    /// Whether it is a note, which nobody claims.
    pub fn is_note(&self) -> bool {
        let first = self.changes.first();
        first.is_some_and(|change| change.to.is_terminal())
    }
}

impl ChangeSurvey {
    fn of(transition: &Transition) -> Self {
        let failure = transition.failure.as_ref();
        let reason = transition.why().map(str::to_owned);
        let reason = reason.or_else(|| transition.answer_text());
        Self {
            at: transition.at,
            by: transition.by.clone(),
            event: transition.event,
            to: transition.to,
            receiver: transition.receiver.clone(),
            failure: failure.map(|failure| failure.code.clone()),
            ran_out_at: transition.ran_out_at,
            reason: reason.and_then(|text| Some(text.lines().next()?.to_owned())),
            traceparent: transition.traceparent,
        }
    }
}

/// Moments as milliseconds since 1970, which is their precision.
mod milliseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use handoff_base::Moment;

    pub(super) fn serialize<S: Serializer>(at: &Moment, s: S) -> Result<S::Ok, S::Error> {
        at.timestamp_millis().serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Moment, D::Error> {
        let at = Moment::from_timestamp_millis(i64::deserialize(d)?);
        at.ok_or_else(|| D::Error::custom("no moment"))
    }
}

mod optional_milliseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::milliseconds;
    use handoff_base::Moment;

    #[derive(Serialize, Deserialize)]
    struct Wrapped(#[serde(with = "milliseconds")] Moment);

    pub(super) fn serialize<S: Serializer>(at: &Option<Moment>, s: S) -> Result<S::Ok, S::Error> {
        at.map(Wrapped).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Moment>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(d)?.map(|w| w.0))
    }
}
