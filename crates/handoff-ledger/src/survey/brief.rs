//! The parts of the stored files that a survey keeps. Everything else is skipped while parsing:
//! reading all of it takes twice as long.

use std::borrow::Cow;

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Moment, moment};
use handoff_model::record::answer_text;
use handoff_model::stored::VERSION;
use handoff_model::{IssueStatus, StoredError, TraceParent, Verdict};
use handoff_protocol::{Action, Event, State};
use serde::Deserialize;
use serde::de::{Error, IgnoredAny};
use serde_json::{Map, Value};

use super::types::{ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, RoundSurvey};

/// The parts of `issue.json` that a survey keeps.
#[derive(Deserialize)]
struct Issue<'a> {
    version: u32,
    issue: IssueKey,
    title: String,
    protocol: AgentName,
    status: IssueStatus,
    #[serde(with = "moment")]
    opened_at: Moment,
    #[serde(with = "moment")]
    updated_at: Moment,
    #[serde(default, with = "moment::optional")]
    completed_at: Option<Moment>,
    steps: u32,
    #[serde(default)]
    reopened: Vec<Reopening>,
    #[serde(default)]
    counted: Vec<Counted>,
    #[serde(default, borrow)]
    unfollowed: Vec<Number<'a>>,
    #[serde(default, borrow)]
    awaiting: Vec<Awaiting<'a>>,
    #[serde(default, borrow)]
    to_tell: Vec<Awaiting<'a>>,
    #[serde(default, borrow)]
    decisions: Vec<Decision<'a>>,
}

#[derive(Deserialize)]
struct Reopening {
    handoffs: u32,
}

#[derive(Deserialize)]
struct Awaiting<'a> {
    #[serde(borrow)]
    id: Number<'a>,
    agent: AgentName,
}

#[derive(Deserialize)]
struct Counted {
    number: u32,
    #[serde(default)]
    rounds: Vec<String>,
}

#[derive(Deserialize)]
struct Decision<'a> {
    #[serde(with = "moment")]
    at: Moment,
    #[serde(borrow)]
    id: Number<'a>,
    action: Action,
}

/// The id of a handoff in the same issue.
#[derive(Deserialize)]
struct Number<'a>(#[serde(borrow)] Cow<'a, str>);

impl Number<'_> {
    fn number(&self) -> Option<u32> {
        let id: HandoffId = self.0.parse().ok()?;
        Some(id.number())
    }
}

fn numbers(ids: &[Number<'_>]) -> Vec<u32> {
    ids.iter().filter_map(Number::number).collect()
}

/// The parts of `NNNN.json` that a survey keeps.
#[derive(Deserialize)]
struct Record<'a> {
    version: u32,
    #[serde(borrow)]
    id: Number<'a>,
    contract_type: String,
    from: AgentName,
    to: AgentName,
    state: State,
    priority: Option<String>,
    status: Option<String>,
    summary: String,
    #[serde(borrow)]
    contract: Contract<'a>,
    intended: Option<AgentName>,
    #[serde(borrow)]
    follows: Option<Number<'a>>,
    #[serde(borrow)]
    answers: Option<Number<'a>>,
    #[serde(borrow)]
    replaces: Option<Number<'a>>,
    task: Option<Task>,
    #[serde(default, borrow)]
    waits_for: Vec<Number<'a>>,
    #[serde(default)]
    evidence: Vec<Evidence>,
    #[serde(default)]
    violations: Vec<IgnoredAny>,
    attempt: u32,
    #[serde(default, with = "moment::optional")]
    not_before: Option<Moment>,
    #[serde(default, with = "moment::optional")]
    acknowledge_by: Option<Moment>,
    lease: Option<Lease>,
    #[serde(borrow)]
    transitions: Vec<Transition<'a>>,
}

#[derive(Deserialize)]
struct Contract<'a> {
    #[serde(borrow)]
    file: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Task {
    id: String,
}

#[derive(Deserialize)]
struct Evidence {
    result: Verdict,
}

#[derive(Deserialize)]
struct Lease {
    seconds: Option<u64>,
    #[serde(default, with = "moment::optional")]
    expires_at: Option<Moment>,
}

#[derive(Deserialize)]
struct Transition<'a> {
    #[serde(with = "moment")]
    at: Moment,
    by: AgentName,
    event: Option<Event>,
    to: State,
    receiver: Option<AgentName>,
    #[serde(default, with = "moment::optional")]
    ran_out_at: Option<Moment>,
    #[serde(borrow)]
    failure: Option<Failure<'a>>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    questions: Vec<Question<'a>>,
    #[serde(default)]
    values: Map<String, Value>,
    traceparent: Option<TraceParent>,
}

#[derive(Deserialize)]
struct Failure<'a> {
    code: String,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
}

/// Reads `issue.json`, without the handoffs.
pub(super) fn issue(bytes: &[u8]) -> Result<IssueSurvey, StoredError> {
    let issue: Issue<'_> = serde_json::from_slice(bytes).map_err(StoredError::Form)?;
    check(issue.version)?;
    let decisions = issue.decisions.iter().filter_map(|decision| {
        Some(DecisionSurvey {
            at: decision.at,
            number: decision.id.number()?,
            action: decision.action,
        })
    });
    let rounds = issue.counted.into_iter().flat_map(|counted| {
        let number = counted.number;
        let named = counted.rounds.into_iter();
        named.map(move |name| RoundSurvey { name, number })
    });
    let pairs = |all: Vec<Awaiting<'_>>| {
        let all = all.into_iter();
        let pairs = all.filter_map(|one| Some((one.id.number()?, one.agent)));
        pairs.collect()
    };
    Ok(IssueSurvey {
        key: issue.issue,
        title: issue.title,
        protocol: issue.protocol,
        status: issue.status,
        opened_at: issue.opened_at,
        updated_at: issue.updated_at,
        completed_at: issue.completed_at,
        steps: issue.steps,
        reopened: u32::try_from(issue.reopened.len()).unwrap_or(u32::MAX),
        counts_after: issue.reopened.last().map_or(0, |again| again.handoffs),
        rounds: rounds.collect(),
        unfollowed: numbers(&issue.unfollowed),
        awaiting: pairs(issue.awaiting),
        to_tell: pairs(issue.to_tell),
        decisions: decisions.collect(),
        handoffs: Vec::new(),
    })
}

pub(super) fn handoff(bytes: &[u8]) -> Result<HandoffSurvey, StoredError> {
    let record: Record<'_> = serde_json::from_slice(bytes).map_err(StoredError::Form)?;
    check(record.version)?;
    let number = record.id.number();
    let number = number.ok_or_else(|| StoredError::Form(Error::custom("its id is none")))?;
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    // The contract's file name contains its first receiver.
    let sent_to = || {
        let (stem, _) = record.contract.file.rsplit_once('.')?;
        let start = format!("{number:04}-{}-to-", record.from);
        stem.strip_prefix(&start)?.parse().ok()
    };
    let contradicted = |e: &&Evidence| e.result == Verdict::Contradicted;
    Ok(HandoffSurvey {
        number,
        sent_to: sent_to().unwrap_or_else(|| record.to.clone()),
        intended: record.intended,
        contract_type: record.contract_type,
        from: record.from,
        to: record.to,
        state: record.state,
        priority: record.priority,
        status: record.status,
        summary: record.summary,
        follows: record.follows.as_ref().and_then(Number::number),
        answers: record.answers.as_ref().and_then(Number::number),
        replaces: record.replaces.as_ref().and_then(Number::number),
        task: record.task.map(|task| task.id),
        waits_for: numbers(&record.waits_for),
        attempt: record.attempt,
        not_before: record.not_before,
        lease_seconds: record.lease.as_ref().and_then(|lease| lease.seconds),
        // At most one of them is stored.
        expires_at: match record.lease {
            Some(lease) => lease.expires_at,
            None => record.acknowledge_by,
        },
        contradicted: count(record.evidence.iter().filter(contradicted).count()),
        violations: count(record.violations.len()),
        changes: record.transitions.into_iter().map(change).collect(),
    })
}

fn change(transition: Transition<'_>) -> ChangeSurvey {
    let question = transition.questions.into_iter().next();
    let (failure, message) = match transition.failure {
        Some(failure) => (Some(failure.code), Some(failure.message)),
        None => (None, None),
    };
    let reason = message.or(transition.reason);
    let asked = question.map(|question| question.description.unwrap_or(question.key));
    let answer = || answer_text(&transition.values).map(Cow::Owned);
    let reason = reason.or(asked).or_else(answer);
    ChangeSurvey {
        at: transition.at,
        by: transition.by,
        event: transition.event,
        to: transition.to,
        receiver: transition.receiver,
        failure,
        reason: reason.and_then(|text| Some(text.lines().next()?.to_owned())),
        ran_out_at: transition.ran_out_at,
        traceparent: transition.traceparent,
    }
}

fn check(version: u32) -> Result<(), StoredError> {
    match version {
        VERSION => Ok(()),
        version => Err(StoredError::Version { version }),
    }
}
