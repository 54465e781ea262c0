//! What needs attention now: whose turn it is, since when, and why.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_ledger::{HandoffSurvey, IssueSurvey, LedgerError, Snapshot, Survey};
use handoff_model::{IssueStatus, Record, decider};
use handoff_protocol::{AgentKind, Event, Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

/// How long a handoff may stay unclaimed if its protocol has no leases.
const PATIENCE: TimeDelta = TimeDelta::days(1);

/// The protocols in force, by name.
pub type Protocols = BTreeMap<AgentName, Protocol>;

/// Reads the protocols in force.
/// Reads the protocols in force.
///
/// # Errors
/// [`LedgerError`] when one is missing or invalid.
pub fn protocols(tip: &Snapshot<'_>) -> Result<Protocols, LedgerError> {
    let mut found = Protocols::new();
    for name in tip.protocols()? {
        let protocol = tip.rules(&name)?.protocol().clone();
        found.insert(protocol.definition().name.clone(), protocol);
    }
    Ok(found)
}

/// Why something needs attention, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// No attempt is left.
    Dead,
    /// It failed, and nobody has decided how to proceed.
    Failed,
    /// Its agent waits for an answer.
    Blocked,
    /// The lease ran out.
    LeaseRanOut,
    /// Nobody has claimed it for longer than a lease.
    Unclaimed,
    /// The issue is open without an open handoff.
    Idle,
}

impl Need {
    /// Every need, the most urgent first.
    pub const ALL: [Self; 6] = [
        Self::Dead,
        Self::Failed,
        Self::Blocked,
        Self::LeaseRanOut,
        Self::Unclaimed,
        Self::Idle,
    ];

    /// The need in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Dead => "no attempt left",
            Self::Failed => "failed",
            Self::Blocked => "waits for an answer",
            Self::LeaseRanOut => "lease ran out",
            Self::Unclaimed => "not taken up",
            Self::Idle => "nobody is working on it",
        }
    }
}

/// Something that needs attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stuck {
    /// Its issue.
    pub issue: IssueKey,
    /// Its handoff; null if no handoff of the issue is open.
    pub id: Option<HandoffId>,
    /// Why it needs someone; `idle`: the issue is open, and no handoff of it is.
    pub need: Need,
    /// The agent that has it; null if nobody does.
    pub with: Option<AgentName>,
    /// The agent whose turn it is.
    pub turn: Option<AgentName>,
    /// Since when.
    #[serde(serialize_with = "handoff_base::moment::serialize")]
    #[schemars(with = "Moment")]
    pub since: Moment,
    /// What went wrong, what is asked, or what it is about.
    pub why: String,
    /// The next command.
    pub next: String,
}

/// Everything that needs attention: the most urgent first, then the oldest.
pub fn attention(survey: &Survey, protocols: &Protocols, now: Moment) -> Vec<Stuck> {
    let mut found = Vec::new();
    for issue in &survey.issues {
        if let Some(protocol) = protocols.get(&issue.protocol) {
            found.extend(of_issue(issue, protocol, now));
        }
    }
    sorted(found)
}

/// What needs attention among the open handoffs, from their records alone: without issues that have
/// no open handoff.
pub fn of_open(records: &[Record], protocols: &Protocols, now: Moment) -> Vec<Stuck> {
    let stuck = records.iter().filter_map(|record| {
        let protocol = protocols.get(&record.protocol)?;
        let waits = !record.waits_for.is_empty();
        let handoff = HandoffSurvey::of(record);
        stuck(record.id.issue(), &handoff, waits, protocol, now)
    });
    sorted(stuck.collect())
}

fn sorted(mut found: Vec<Stuck>) -> Vec<Stuck> {
    found.sort_by_key(|stuck| (stuck.need, stuck.since));
    found
}

/// What needs attention in one issue, in the order of its handoffs.
pub fn of_issue(issue: &IssueSurvey, protocol: &Protocol, now: Moment) -> Vec<Stuck> {
    if issue.status != IssueStatus::Open {
        return Vec::new();
    }
    let open = issue.handoffs.iter().filter(|h| !h.state.is_terminal());
    let waits = |handoff: &HandoffSurvey| {
        let mut before = handoff.waits_for.iter().filter_map(|n| issue.handoff(*n));
        before.any(|before| before.state != State::Completed)
    };
    let stuck = open.filter_map(|h| stuck(&issue.key, h, waits(h), protocol, now));
    let mut found: Vec<Stuck> = stuck.collect();
    found.extend(idle(issue, protocol));
    found
}

/// Whether an issue is open without an open handoff and needs a successor. If the protocol has no
/// closing contract, only what was rejected or cancelled needs one.
pub(super) fn is_idle(issue: &IssueSurvey, protocol: &Protocol) -> bool {
    let mut agents = protocol.definition().agents.iter();
    let mut ends = || agents.any(|agent| agent.kind == AgentKind::End);
    let last = issue.handoffs.last();
    issue.status == IssueStatus::Open
        && issue.handoffs.iter().all(|h| h.state.is_terminal())
        && (ends() || last.is_some_and(|last| last.state != State::Completed))
}

/// Why a handoff needs attention, if it does. `waits` tells whether it waits for others.
fn stuck(
    issue: &IssueKey,
    handoff: &HandoffSurvey,
    waits: bool,
    protocol: &Protocol,
    now: Moment,
) -> Option<Stuck> {
    // Running out of attempts is part of the failure before it.
    let mut newest = handoff.changes.iter().rev();
    let last = newest.find(|change| change.event != Some(Event::Exhaust))?;
    let lead = decider(protocol, &handoff.from);
    let id = HandoffId::new(issue.clone(), handoff.number);
    let inspect = format!("git handoff next {issue}");
    let (need, turn, since, next) = match handoff.state {
        State::Dead => (
            Need::Dead,
            by_hand(protocol).unwrap_or(lead),
            last.at,
            inspect,
        ),
        State::Failed => {
            let since = last.ran_out_at.map_or(last.at, |end| end.min(last.at));
            (Need::Failed, lead, since, inspect)
        }
        State::Blocked => (Need::Blocked, lead, last.at, inspect),
        State::InProgress => {
            let end = handoff.expires_at.filter(|end| *end <= now)?;
            (Need::LeaseRanOut, lead, end, "git handoff reap".to_owned())
        }
        State::Pending => {
            let ready = handoff.not_before.map_or(last.at, |at| at.max(last.at));
            if now - ready < patience(protocol) || waits {
                return None;
            }
            let claim = format!("git handoff claim {id} --as {}", handoff.to);
            (Need::Unclaimed, &handoff.to, ready, claim)
        }
        State::Completed | State::Rejected | State::Cancelled => return None,
    };
    let reason = last.reason.as_ref().filter(|_| need < Need::LeaseRanOut);
    Some(Stuck {
        issue: issue.clone(),
        id: Some(id),
        need,
        with: Some(handoff.to.clone()),
        turn: Some(turn.clone()),
        since,
        why: reason.unwrap_or(&handoff.summary).clone(),
        next,
    })
}

/// The agent that steps in by hand, by a rule or by its kind.
fn by_hand(protocol: &Protocol) -> Option<&AgentName> {
    let definition = protocol.definition();
    let mut rules = definition.decisions.iter();
    let rule = rules.find(|rule| rule.when.state == Some(State::Dead));
    let mut agents = definition.agents.iter();
    let person = agents.find(|agent| agent.kind == AgentKind::Human);
    let named = rule.and_then(|rule| rule.to.as_ref());
    named.or(person.map(|person| &person.id))
}

/// How long a handoff of a protocol may stay unclaimed.
fn patience(protocol: &Protocol) -> TimeDelta {
    let leases = protocol.definition().leases.as_ref();
    let seconds = leases.and_then(|leases| i64::try_from(leases.seconds).ok());
    let lease = seconds.and_then(TimeDelta::try_seconds);
    lease.unwrap_or(PATIENCE)
}

/// An open issue without an open handoff that needs a successor; `None` if it is not one.
pub fn idle(issue: &IssueSurvey, protocol: &Protocol) -> Option<Stuck> {
    if !is_idle(issue, protocol) {
        return None;
    }
    let mut unfollowed = issue.unfollowed.iter().filter_map(|n| issue.handoff(*n));
    let last = unfollowed.next_back().or(issue.handoffs.last());
    let turn = last.map(|handoff| match handoff.state {
        State::Completed => handoff.to.clone(),
        // A rejected or cancelled handoff returns to its sender.
        _ => handoff.from.clone(),
    });
    let why = last.map(|last| format!("{} is {}: {}", issue.id(last), last.state, last.summary));
    let next = match &turn {
        Some(turn) => {
            let to = match protocol.receivers(turn.as_str())[..] {
                [only] => only.as_str(),
                // There are several; the reader fills one in.
                _ => "AGENT",
            };
            format!(
                "git handoff new --issue {} --from {turn} --to {to}",
                issue.key
            )
        }
        None => format!("git handoff status {}", issue.key),
    };
    Some(Stuck {
        issue: issue.key.clone(),
        id: None,
        need: Need::Idle,
        with: None,
        turn,
        since: issue.updated_at,
        why: why.unwrap_or_default(),
        next,
    })
}
