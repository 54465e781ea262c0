//! What needs attention in a ledger: reads the records for the rules in `handoff-model`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::{Moment, ObjectId};
use handoff_model::spending::day;
use handoff_model::view::commands;
pub use handoff_model::view::needs::{
    Attention, NextTurn, deciding, hears_of_others, limit_to_send, of_issue,
};
use handoff_model::view::needs::{
    Judged, is_limited, may_take_nothing, may_wait_for_decision, next_turn, sorted,
};
use handoff_model::{DaySpending, Record, Spending, View};
use handoff_protocol::{Per, Protocol};

use crate::error::LedgerError;
use crate::snapshot::{IssueFolder, Listed, Snapshot};
use crate::survey::{HandoffSurvey, IssueSurvey, Issues, Survey};

/// The protocols in force, by name.
#[derive(Default)]
pub struct Protocols {
    by_name: BTreeMap<AgentName, Protocol>,
    /// What agents spent today, if a budget counts by the day.
    today: DaySpending,
}

impl Deref for Protocols {
    type Target = BTreeMap<AgentName, Protocol>;

    fn deref(&self) -> &Self::Target {
        &self.by_name
    }
}

impl Protocols {
    /// What was spent today under a protocol, if a budget counts by the day.
    pub fn spent_today(&self, protocol: &AgentName) -> Option<&Spending> {
        self.today.protocols.get(protocol)
    }

    /// Keeps only the protocols with these names.
    pub fn keep(&mut self, is_kept: impl Fn(&AgentName) -> bool) {
        self.by_name.retain(|name, _| is_kept(name));
    }
}

impl FromIterator<(AgentName, Protocol)> for Protocols {
    fn from_iter<T: IntoIterator<Item = (AgentName, Protocol)>>(all: T) -> Self {
        Self {
            by_name: all.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Reads the protocols in force, and what is spent of their budgets.
///
/// # Errors
/// [`LedgerError`] when one is missing or invalid.
pub fn protocols(tip: &Snapshot<'_>, now: Moment) -> Result<Protocols, LedgerError> {
    let mut found = Protocols::default();
    let mut spends = false;
    for name in tip.protocols()? {
        let protocol = tip.rules(&name)?.protocol().clone();
        spends |= has_day(&protocol);
        let name = protocol.definition().name.clone();
        found.by_name.insert(name, protocol);
    }
    if spends {
        found.today = tip.spent_on(&day(now))?;
    }
    Ok(found)
}

/// The command by which an agent that ran out of time goes on with its own handoff, if the
/// protocol allows it.
///
/// # Errors
/// [`LedgerError`] if the handoff's issue can't be read.
pub fn another_attempt(
    tip: &Snapshot<'_>,
    protocols: &[&Protocol],
    record: &Record,
    now: Moment,
) -> Result<Option<String>, LedgerError> {
    let mut protocols = protocols.iter();
    let protocol = protocols.find(|protocol| protocol.name() == record.protocol.as_str());
    let Some(protocol) = protocol.filter(|_| commands::is_late(record, now)) else {
        return Ok(None);
    };
    commands::another_attempt(protocol, &tip.issue(record.id.issue())?, record, now)
}

/// What was spent today under a protocol, if one of its budgets counts by the day.
///
/// # Errors
/// [`LedgerError`] if it can't be read.
pub fn spent_today(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    now: Moment,
) -> Result<Option<Spending>, LedgerError> {
    if !has_day(protocol) {
        return Ok(None);
    }
    let today = folder.spent_on(&day(now))?;
    Ok(today.and_then(|mut today| today.protocols.remove(&protocol.definition().name)))
}

fn has_day(protocol: &Protocol) -> bool {
    let mut budgets = protocol.definition().budgets().values();
    budgets.any(|budget| budget.per == Per::Day)
}

/// Everything that needs attention: the most urgent first, then the oldest.
///
/// # Errors
/// [`LedgerError`] if a handoff that is stuck can't be read.
pub fn of_survey(
    tip: &Snapshot<'_>,
    survey: &Survey,
    protocols: &Protocols,
    now: Moment,
) -> Result<Vec<Attention>, LedgerError> {
    let mut found = Vec::new();
    for mut issue in survey.issues.active() {
        if let Some(protocol) = protocols.get(&issue.protocol) {
            let today = protocols.spent_today(&issue.protocol);
            if issue.paused.is_some() && tip.paused(&issue.key)?.is_none() {
                issue.paused = None;
            }
            let decides = |number| deciding(&tip.issue(&issue.key)?, protocol, number, now);
            let pauses = (today, &tip.manifest().paused[..]);
            found.extend(of_issue(&issue, protocol, pauses, now, decides)?);
        }
    }
    Ok(sorted(found))
}

/// What needs attention in an issue at the tip, the most urgent first.
///
/// # Errors
/// [`LedgerError`] if a record can't be read.
pub fn of_folder(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    now: Moment,
) -> Result<Vec<Attention>, LedgerError> {
    let survey = folder.survey()?;
    let today = spent_today(folder, protocol, now)?;
    let halts = folder.halts()?;
    let mut found = Vec::new();
    for mut issue in survey.iter().flat_map(Issues::iter) {
        let current = folder.current_issue()?;
        if current.is_some_and(|current| current.paused.is_none()) {
            issue.paused = None;
        }
        let decides = |number| deciding(folder, protocol, number, now);
        let pauses = (today.as_ref(), &halts[..]);
        found.extend(of_issue(&issue, protocol, pauses, now, decides)?);
    }
    Ok(sorted(found))
}

/// What needs attention in an issue at the tip, and whose turn it is.
///
/// # Errors
/// [`LedgerError`] if a record can't be read.
pub fn turn_in(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    now: Moment,
) -> Result<(Vec<Attention>, Option<NextTurn>), LedgerError> {
    let needed = of_folder(folder, protocol, now)?;
    let next = match folder.current_issue()? {
        Some(issue) => next_turn(folder, &issue, protocol, &needed, now)?,
        None => None,
    };
    Ok((needed, next))
}

/// The attention that a handoff at the tip needs, if it needs any and no pause holds it back.
/// `awaited` is the agent that it awaits, or that has yet to be notified of its end.
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
    let (key, agent) = (record.id.issue(), awaited.unwrap_or(&record.to));
    // During a halt nothing can be claimed; what else is needed can be done.
    let is_handed_out = record.is_pending();
    if tip.is_paused_for(key, agent)? || is_handed_out && tip.holds_back(key, agent)? {
        return Ok(None);
    }
    let key = record.id.issue();
    let mut before = BTreeMap::new();
    if !record.waits_for.is_empty() {
        let folder = tip.issue(key)?;
        for id in &record.waits_for {
            let waited = folder.record(id.number())?;
            before.extend(waited.map(|waited| (id.number(), waited.state)));
        }
    }
    let (mut issue, mut today, mut decided_by) = (None, None, None);
    let handoff = HandoffSurvey::of(record);
    let waits_for_decision = may_wait_for_decision(protocol, &handoff, awaited, now);
    // Why completed work is to be sent on again is known of the issue.
    let is_done = awaited.is_some() && record.is_completed();
    if waits_for_decision || is_done || is_limited(protocol) {
        let folder = tip.issue(key)?;
        issue = folder.shared_issue()?;
        today = spent_today(&folder, protocol, now)?;
        if waits_for_decision {
            decided_by = deciding(&folder, protocol, record.id.number(), now)?;
        }
    }
    let issue = issue.as_ref().map(|issue| IssueSurvey::of(issue, &[]));
    let judged = Judged {
        id: record.id.clone(),
        title: &record.title,
        handoff: &handoff,
        issue: issue.as_ref(),
        today: today.as_ref(),
        awaited,
        takes_nothing: takes_nothing(tip, record, awaited)?,
        decides: decided_by,
        protocol,
        now,
    };
    Ok(judged.attention(|number| before.get(&number).copied()))
}

/// Whether an ended handoff requires nothing of the agent in its entry.
fn takes_nothing(
    tip: &Snapshot<'_>,
    record: &Record,
    awaited: Option<&AgentName>,
) -> Result<bool, LedgerError> {
    let Some(agent) = awaited.filter(|_| may_take_nothing(record)) else {
        return Ok(false);
    };
    let issue = tip.issue(record.id.issue())?.issue()?;
    let mut to_tell = issue.iter().flat_map(|issue| &issue.to_tell);
    Ok(to_tell.any(|one| one.id == record.id && one.agent == *agent))
}

/// Everything at the tip that needs attention, and the open handoffs: the most urgent first, then
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
    let awaiting = tip.awaiting()?;
    let awaits: HashSet<&HandoffId> = awaiting.iter().map(|entry| &entry.id).collect();
    let reads = |record: &&Record| {
        let is_limited = protocols.get(&record.protocol).is_some_and(is_limited);
        is_limited || record.state.is_stuck() || awaits.contains(&record.id)
    };
    let read = open.iter().filter(reads).map(|record| record.id.issue());
    tip.ensure_states(&read.cloned().collect())?;
    let mut found = Vec::new();
    let mut judge = |record: &Record, awaited: Option<&AgentName>| -> Result<(), LedgerError> {
        if let Some(protocol) = protocols.get(&record.protocol) {
            found.extend(of_record(tip, record, awaited, protocol, now)?);
            found.retain(|found| !found.takes_nothing);
        }
        Ok(())
    };
    for record in open.iter().filter(|one| !awaits.contains(&one.id)) {
        judge(record, None)?;
    }
    for entry in &awaiting {
        judge(&tip.open_record(entry)?, Some(&entry.to))?;
    }
    Ok(sorted(found))
}

/// A cache of open records, for reading a tip repeatedly.
#[derive(Default)]
pub struct Watched {
    records: HashMap<ObjectId, Arc<Record>>,
}

/// The state of a tip: the open handoffs and what needs attention.
#[derive(Default)]
pub struct Standing {
    /// The open handoffs.
    pub open: Vec<Arc<Record>>,
    /// What needs attention, each with its handoff.
    pub needs: Vec<(Attention, Arc<Record>)>,
    /// When a lease or a pause ends next, which changes the state without a step.
    pub until: Option<Moment>,
}

impl Watched {
    /// Reads the tip. The result is incomplete if `is_stopped` during the read.
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
        let awaits: HashSet<&HandoffId> = awaiting.iter().map(|(entry, _)| &entry.id).collect();
        let others = open.iter().filter(|(entry, _)| !awaits.contains(&entry.id));
        let others = others.map(|(_, record)| (record, None));
        let awaiting = awaiting
            .iter()
            .map(|(entry, record)| (record, Some(&entry.to)));
        for (record, awaited) in others.chain(awaiting) {
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
