//! Attention: what needs whom, since when, why, and the command to run.
//!
//! This is the one place that decides it. A handoff is judged from its summary alone, so that the
//! tip's entries and a survey of the whole ledger give the same; every view that shows what needs
//! somebody takes it from here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::TimeDelta;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::word;
use handoff_base::{Moment, ObjectId};
use handoff_model::{IssueStatus, Record, View, decider, person};
use handoff_protocol::{
    AgentKind, Event, LEAD, Need, PERSON, Protocol, RECEIVER, SENDER, State, Style,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::LedgerError;
use crate::snapshot::{IssueFolder, Listed, Snapshot};
use crate::survey::{ChangeSurvey, HandoffSurvey, IssueSurvey, Issues, Survey};

/// How long a handoff may stay unclaimed if its protocol has no leases.
const PATIENCE: TimeDelta = TimeDelta::days(1);

/// The longest time before its end in which a lease is about to end, in seconds; of a short lease,
/// the last tenth.
pub(crate) const ENDING: i64 = 600;

/// The failure code of an agent that violated its role, which is told of it too.
const ROLE_VIOLATION: &str = "ROLE_VIOLATION";

/// The protocols in force, by name.
pub type Protocols = BTreeMap<AgentName, Protocol>;

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

/// Something that needs somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Attention {
    /// Its issue.
    pub issue: IssueKey,
    /// The issue's title.
    pub title: String,
    /// Its handoff.
    pub id: HandoffId,
    /// Why it needs somebody.
    pub need: Need,
    /// The agent that has the handoff, or had it.
    pub with: AgentName,
    /// The agent whose turn it is.
    pub turn: AgentName,
    /// Every agent that is told, the one whose turn it is first.
    pub told: Vec<AgentName>,
    /// Since when.
    pub since: Moment,
    /// What went wrong, what is asked, the reason that was given, or what it is about.
    pub why: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The next command.
    pub next: String,
}

impl Attention {
    /// Whether an agent is told of it.
    pub fn is_told(&self, agent: &AgentName) -> bool {
        self.told.contains(agent)
    }
}

/// Everything that needs somebody: the most urgent first, then the oldest.
pub fn of_survey(survey: &Survey, protocols: &Protocols, now: Moment) -> Vec<Attention> {
    let mut found = Vec::new();
    for issue in survey.issues.active() {
        if let Some(protocol) = protocols.get(issue.protocol) {
            found.extend(of_issue(&issue, protocol, now));
        }
    }
    sorted(found)
}

/// What needs somebody in one issue, in the order of its handoffs.
pub fn of_issue(issue: &IssueSurvey<'_>, protocol: &Protocol, now: Moment) -> Vec<Attention> {
    let judge = |handoff: &HandoffSurvey<'_>, awaited: Option<&AgentName>, takes_nothing: bool| {
        let handoff = Judged {
            id: issue.id(handoff),
            title: issue.title,
            handoff,
            awaited,
            takes_nothing,
            protocol,
            now,
        };
        handoff.attention(|number| Some(issue.handoff(number)?.state))
    };
    let mut found = Vec::new();
    let going = |agent: &&AgentName| !issue.holds_back(agent);
    for handoff in &issue.handoffs {
        let about = |(number, _): &&(u32, &AgentName)| *number == handoff.number;
        if issue.status == IssueStatus::Open {
            let awaited = issue.awaiting.iter().find(about).map(|(_, agent)| *agent);
            if going(&awaited.unwrap_or(handoff.to)) {
                found.extend(judge(handoff, awaited, false));
            }
        }
        let to_tell = issue.to_tell.iter().filter(about).map(|(_, agent)| *agent);
        for agent in to_tell.filter(going) {
            found.extend(judge(handoff, Some(agent), true));
        }
    }
    found
}

/// What needs somebody in an issue at the tip, the most urgent first.
///
/// # Errors
/// [`LedgerError`] if a record can't be read.
pub fn of_folder(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    now: Moment,
) -> Result<Vec<Attention>, LedgerError> {
    let survey = folder.survey()?;
    let issues = survey.iter().flat_map(Issues::iter);
    let found = issues.flat_map(|issue| of_issue(&issue, protocol, now));
    Ok(sorted(found.collect()))
}

/// What a handoff at the tip needs, if it needs somebody and no pause holds it back. `awaited` is the agent that it awaits, or
/// that has yet to be told of it, if it ended.
///
/// # Errors
/// [`LedgerError`] if a handoff that it waits for can't be read.
pub fn of_record(
    tip: &Snapshot<'_>,
    record: &Record,
    awaited: Option<&AgentName>,
    protocol: &Protocol,
    now: Moment,
) -> Result<Option<Attention>, LedgerError> {
    if tip.holds_back(record.id.issue(), awaited.unwrap_or(&record.to))? {
        return Ok(None);
    }
    let mut before = BTreeMap::new();
    if record.state == State::Pending && !record.waits_for.is_empty() {
        let folder = tip.issue(record.id.issue())?;
        for id in &record.waits_for {
            let waited = folder.record(id.number())?;
            before.extend(waited.map(|waited| (id.number(), waited.state)));
        }
    }
    let judged = Judged {
        id: record.id.clone(),
        title: &record.title,
        handoff: &HandoffSurvey::of(record),
        awaited,
        takes_nothing: takes_nothing(tip, record, awaited)?,
        protocol,
        now,
    };
    Ok(judged.attention(|number| before.get(&number).copied()))
}

/// Whether an ended handoff takes nothing more of the agent that its entry names.
fn takes_nothing(
    tip: &Snapshot<'_>,
    record: &Record,
    awaited: Option<&AgentName>,
) -> Result<bool, LedgerError> {
    let may = record.state == State::Cancelled || record.answers.is_some();
    let Some(agent) = awaited.filter(|_| may) else {
        return Ok(false);
    };
    let issue = tip.issue(record.id.issue())?.issue()?;
    let mut to_tell = issue.iter().flat_map(|issue| &issue.to_tell);
    Ok(to_tell.any(|one| one.id == record.id && one.agent == *agent))
}

/// Everything at the tip that needs somebody, and the open handoffs: the most urgent first, then
/// the oldest.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn of_tip(
    tip: &Snapshot<'_>,
    open: &[Record],
    protocols: &Protocols,
    now: Moment,
) -> Result<Vec<Attention>, LedgerError> {
    let mut found = Vec::new();
    let mut judge = |record: &Record, awaited: Option<&AgentName>| -> Result<(), LedgerError> {
        if let Some(protocol) = protocols.get(&record.protocol) {
            found.extend(of_record(tip, record, awaited, protocol, now)?);
        }
        Ok(())
    };
    for record in open {
        judge(record, None)?;
    }
    for entry in tip.awaiting()? {
        judge(&tip.open_record(&entry)?, Some(&entry.to))?;
    }
    Ok(sorted(found))
}

/// What is open and what needs somebody, for whoever looks again and again: a record that did not
/// change is not read again.
#[derive(Default)]
pub struct Watched {
    records: HashMap<ObjectId, Arc<Record>>,
}

/// What is open at a tip, and what needs somebody.
#[derive(Default)]
pub struct Standing {
    /// The open handoffs.
    pub open: Vec<Arc<Record>>,
    /// What needs somebody, with its handoff.
    pub needs: Vec<(Attention, Arc<Record>)>,
    /// When a lease or a pause ends next, which changes it without a step.
    pub until: Option<Moment>,
}

impl Watched {
    /// Reads the tip. If it `is_stopped` meanwhile, the result is not complete.
    ///
    /// # Errors
    /// [`LedgerError`] if something can't be read.
    pub fn look(
        &mut self,
        tip: &Snapshot<'_>,
        protocols: &Protocols,
        now: Moment,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Standing, LedgerError> {
        let before = std::mem::take(&mut self.records);
        let mut read = |listed: Vec<Listed>| -> Result<Vec<(Listed, Arc<Record>)>, LedgerError> {
            let mut records = Vec::with_capacity(listed.len());
            for listed in listed {
                let known = before.get(&listed.content());
                let record = match known {
                    Some(record) => Arc::clone(record),
                    None if is_stopped() => break,
                    None => Arc::new(tip.open_record(&listed)?),
                };
                self.records.insert(listed.content(), Arc::clone(&record));
                records.push((listed, record));
            }
            Ok(records)
        };
        let (open, awaiting) = (read(tip.open()?)?, read(tip.awaiting()?)?);
        let mut needs = Vec::new();
        let all = open.iter().map(|(_, record)| (record, None));
        let ended = awaiting
            .iter()
            .map(|(entry, record)| (record, Some(&entry.to)));
        for (record, awaited) in all.chain(ended) {
            if let Some(protocol) = protocols.get(&record.protocol) {
                let found = of_record(tip, record, awaited, protocol, now)?;
                needs.extend(found.map(|found| (found, Arc::clone(record))));
            }
        }
        let ends = open.iter().filter_map(|(_, record)| {
            let waits = record.waits_until(now);
            record.expires_at().filter(|end| *end > now).or(waits)
        });
        let until = ends.min();
        let open = open.into_iter().map(|(_, record)| record).collect();
        Ok(Standing { open, needs, until })
    }
}

pub(crate) fn sorted(mut found: Vec<Attention>) -> Vec<Attention> {
    found.sort_by(|a, b| (a.need, a.since, &a.id).cmp(&(b.need, b.since, &b.id)));
    found
}

/// Whether an agent may be told of handoffs that are neither with it nor await it.
pub fn hears_of_others(protocol: &Protocol, agent: &AgentName) -> bool {
    let kinds = [AgentKind::Orchestrator, AgentKind::Human];
    let named = |told: &Vec<String>| {
        let mut parties = told.iter();
        parties.any(|party| party == SENDER || party == agent.as_str())
    };
    let definition = protocol.definition();
    definition.style == Style::Call
        || protocol.lead().is_none()
        || kinds
            .into_iter()
            .any(|kind| protocol.is_kind(agent.as_str(), kind))
        || person(protocol) == Some(agent)
        || definition.attention.values().any(named)
}

/// A handoff that is judged.
struct Judged<'a> {
    id: HandoffId,
    title: &'a str,
    handoff: &'a HandoffSurvey<'a>,
    awaited: Option<&'a AgentName>,
    /// Whether the agent has only to be told of it.
    takes_nothing: bool,
    protocol: &'a Protocol,
    now: Moment,
}

/// Why and since when a handoff needs somebody.
type Found = (Need, Moment);

impl Judged<'_> {
    /// What the handoff needs. `state` looks up a handoff of the issue by its number.
    fn attention(&self, state: impl Fn(u32) -> Option<State>) -> Option<Attention> {
        let handoff = self.handoff;
        let last = last(handoff)?;
        let (need, since) = self.need(last, state)?;
        let told = self.told(need, last);
        let turn = told.first()?.clone();
        let reason = last.reason.as_ref().filter(|_| {
            !matches!(
                need,
                Need::LeaseEnding | Need::LeaseRanOut | Need::Unclaimed
            )
        });
        Some(Attention {
            issue: self.id.issue().clone(),
            title: self.title.to_owned(),
            need,
            with: handoff.to.clone(),
            since,
            why: reason
                .map_or(handoff.summary, |reason| &**reason)
                .to_owned(),
            attempt: handoff.attempt,
            next: self.command(need, &turn),
            turn,
            told,
            id: self.id.clone(),
        })
    }

    fn need(&self, last: &ChangeSurvey<'_>, state: impl Fn(u32) -> Option<State>) -> Option<Found> {
        let handoff = self.handoff;
        Some(match (handoff.state, self.awaited) {
            (State::Dead, _) => (Need::Dead, last.at),
            (State::Failed, _) => {
                let since = last.ran_out_at.map_or(last.at, |end| end.min(last.at));
                (Need::Failed, since)
            }
            (State::Blocked, _) => (Need::Blocked, last.at),
            (State::InProgress, _) => {
                let end = handoff.expires_at?;
                if end <= self.now {
                    (Need::LeaseRanOut, end)
                } else {
                    (
                        Need::LeaseEnding,
                        ending(handoff).filter(|at| *at <= self.now)?,
                    )
                }
            }
            (State::Pending, _) => return self.pending(last, state),
            (State::Rejected, Some(_)) => (Need::Rejected, last.at),
            (State::Cancelled, Some(_)) => (Need::Cancelled, last.at),
            (State::Completed, Some(_)) if handoff.answers.is_some() => (Need::Answered, last.at),
            (State::Completed, Some(_)) => (Need::NotHandedOn, last.at),
            (State::Rejected | State::Cancelled | State::Completed, None) => return None,
        })
    }

    fn pending(
        &self,
        last: &ChangeSurvey<'_>,
        state: impl Fn(u32) -> Option<State>,
    ) -> Option<Found> {
        let waits = self.handoff.waits_for.iter().filter_map(|n| state(*n));
        let waits: Vec<State> = waits.filter(|state| *state != State::Completed).collect();
        let in_vain =
            |state: &State| matches!(state, State::Dead | State::Rejected | State::Cancelled);
        if waits.iter().any(in_vain) {
            return Some((Need::Stranded, last.at));
        }
        if last.event == Some(Event::Answer) {
            return Some((Need::Answered, last.at));
        }
        if let Some(end) = self.handoff.expires_at {
            return (end <= self.now).then_some((Need::Unclaimed, end));
        }
        let late = unclaimed_at(self.handoff, self.protocol)?;
        let is_late = waits.is_empty() && late <= self.now;
        is_late.then_some((Need::Unclaimed, ready_at(self.handoff, last)))
    }

    /// Everyone who is told, the agent whose turn it is first.
    fn told(&self, need: Need, last: &ChangeSurvey<'_>) -> Vec<AgentName> {
        if let Some(agent) = self.awaited.filter(|_| self.takes_nothing) {
            return vec![agent.clone()];
        }
        let own = self.protocol.definition().attention.get(&need);
        let lead = decider(self.protocol, self.handoff.from);
        let party = |party: &str| match party {
            SENDER => Some(self.handoff.from.clone()),
            RECEIVER => Some(self.handoff.to.clone()),
            LEAD => Some(lead.clone()),
            PERSON => Some(person(self.protocol).unwrap_or(lead).clone()),
            agent => agent.parse().ok(),
        };
        let mut told: Vec<AgentName> = match own {
            Some(own) => own.iter().filter_map(|word| party(word)).collect(),
            // What was not claimed in its time fails; it can't be claimed any more.
            None if need == Need::Unclaimed && self.handoff.expires_at.is_some() => {
                vec![lead.clone(), self.handoff.to.clone()]
            }
            None => {
                // What ended awaits this agent in the place of its sender or receiver.
                let ended = |word: &&&str| self.awaited.is_none() || **word == LEAD;
                let usual = need.told().iter().filter(ended);
                let usual = usual.filter_map(|word| party(word));
                self.awaited.cloned().into_iter().chain(usual).collect()
            }
        };
        if need == Need::Failed && last.failure == Some(ROLE_VIOLATION) {
            told.push(self.handoff.to.clone());
        }
        let mut seen = Vec::new();
        told.retain(|agent| {
            let is_new = !seen.contains(agent);
            seen.push(agent.clone());
            is_new
        });
        told
    }

    /// The command for the contract that most likely follows from what the receiver completed: to
    /// the first agent that does not just step in, with the contract type if it must be named.
    fn onward(&self) -> String {
        let (handoff, issue) = (self.handoff, self.id.issue());
        let from = &handoff.to;
        let request = (handoff.from, handoff.contract_type);
        let mut onward = self.protocol.onward(from.as_str(), Some(request));
        onward.sort_by_key(|(to, _)| self.protocol.steps_in(to));
        let Some((to, kind)) = onward.into_iter().next() else {
            return format!("git handoff next {issue}");
        };
        let option = kind.map(|kind| format!(" --type {}", word(&kind)));
        let option = option.unwrap_or_default();
        format!("git handoff new --issue {issue} --from {from} --to {to}{option}")
    }

    /// The command that comes next for the agent whose turn it is.
    fn command(&self, need: Need, turn: &AgentName) -> String {
        let (id, issue) = (&self.id, self.id.issue());
        if self.takes_nothing {
            return format!("git handoff annotate {id} --as {turn} --note seen");
        }
        match need {
            Need::Dead | Need::Failed | Need::Stranded | Need::Blocked => {
                format!("git handoff next {issue}")
            }
            Need::LeaseRanOut => "git handoff reap".to_owned(),
            Need::Unclaimed if self.handoff.expires_at.is_some() => "git handoff reap".to_owned(),
            Need::LeaseEnding => format!("git handoff extend {id} --as {turn}"),
            Need::Unclaimed => format!("git handoff claim {id} --as {}", self.handoff.to),
            Need::Answered if self.handoff.state == State::Pending => {
                format!("git handoff claim {id} --as {}", self.handoff.to)
            }
            Need::Answered => format!("git handoff show {id}"),
            Need::Rejected | Need::Cancelled => {
                let from = &self.handoff.from;
                format!(
                    "git handoff new --issue {issue} --from {from} --to {}",
                    self.handoff.to
                )
            }
            Need::NotHandedOn => self.onward(),
        }
    }
}

/// The newest change. Running out of attempts is part of the failure before it.
fn last<'a>(handoff: &'a HandoffSurvey<'a>) -> Option<&'a ChangeSurvey<'a>> {
    let mut newest = handoff.changes.iter().rev();
    newest.find(|change| change.event != Some(Event::Exhaust))
}

/// When a lease is about to end.
fn ending(handoff: &HandoffSurvey<'_>) -> Option<Moment> {
    let length = i64::try_from(handoff.lease_seconds?).ok()?;
    let before = TimeDelta::try_seconds((length / 10).min(ENDING))?;
    handoff.expires_at?.checked_sub_signed(before)
}

/// When a handoff that can be claimed has stayed unclaimed for too long: longer than a lease.
fn unclaimed_at(handoff: &HandoffSurvey<'_>, protocol: &Protocol) -> Option<Moment> {
    // A person runs no loop that claims.
    if protocol.is_kind(handoff.to.as_str(), AgentKind::Human) {
        return Some(ready_at(handoff, last(handoff)?));
    }
    ready_at(handoff, last(handoff)?).checked_add_signed(patience(protocol))
}

fn ready_at(handoff: &HandoffSurvey<'_>, last: &ChangeSurvey<'_>) -> Moment {
    handoff.not_before.map_or(last.at, |at| at.max(last.at))
}

/// How long a handoff of a protocol may stay unclaimed.
pub(crate) fn patience(protocol: &Protocol) -> TimeDelta {
    let leases = protocol.definition().leases.as_ref();
    let seconds = leases.and_then(|leases| i64::try_from(leases.seconds).ok());
    let lease = seconds.and_then(TimeDelta::try_seconds);
    lease.unwrap_or(PATIENCE)
}
