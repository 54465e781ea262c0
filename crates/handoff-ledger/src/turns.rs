//! Turns: handoffs that move the same base are claimed one after another (`limits.turns` of a
//! protocol). An agent's queue respects them, and a manual claim warns.

use std::cell::OnceCell;
use std::rc::Rc;

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_model::open_entry::{Stamp, Standing};
use handoff_model::{Issue, Record, View};
use handoff_protocol::{Definition, Turns as Rule};

use super::base_branch::base_branch;
use super::error::LedgerError;
use super::snapshot::Snapshot;

/// How long an issue keeps its turn in a protocol without leases, in seconds.
const KEPT: u64 = 4 * 60 * 60;

/// The turns of an agent's work, read when needed.
pub(crate) struct Turns<'a, 'r> {
    tip: &'a Snapshot<'r>,
    agent: AgentName,
    now: Moment,
    taken: OnceCell<Vec<Taken>>,
}

/// A turn that is taken.
struct Taken {
    base: Option<String>,
    id: HandoffId,
    /// Whether the handoff is held; otherwise its issue keeps the turn.
    is_held: bool,
}

/// The handoff that comes before this one in the order of merges, if its protocol has such an
/// order.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn turn_before(
    tip: &Snapshot<'_>,
    record: &Record,
    now: Moment,
) -> Result<Option<HandoffId>, LedgerError> {
    Turns::new(tip, &record.to, now).before(&record.id, record.protocol.as_str())
}

impl<'a, 'r> Turns<'a, 'r> {
    pub(crate) fn new(tip: &'a Snapshot<'r>, agent: &AgentName, now: Moment) -> Self {
        Self {
            tip,
            agent: agent.clone(),
            now,
            taken: OnceCell::new(),
        }
    }

    /// The handoff whose turn it is instead, if it is not this one's.
    pub(crate) fn before(
        &self,
        id: &HandoffId,
        protocol: &str,
    ) -> Result<Option<HandoffId>, LedgerError> {
        let rules = self.tip.rules(protocol)?;
        let definition = rules.protocol().definition();
        if self.rule(definition).is_none() {
            return Ok(None);
        }
        if self.taken.get().is_none() {
            let read = self.read()?;
            self.taken.get_or_init(|| read);
        }
        let taken = self.taken.get().map_or(&[][..], Vec::as_slice);
        if taken.is_empty() {
            return Ok(None);
        }
        let base = self.base_of(id.issue(), definition)?;
        let same = || taken.iter().filter(|one| one.base == base && one.id != *id);
        let keeps = same().any(|one| !one.is_held && one.id.issue() == id.issue())
            || taken.iter().any(|one| one.id == *id);
        let other = same().find(|one| one.is_held || !keeps && one.id.issue() != id.issue());
        Ok(other.map(|one| one.id.clone()))
    }

    /// Whether two handoffs are merged into the same base.
    pub(crate) fn is_same_base(
        &self,
        one: &HandoffId,
        other: &HandoffId,
        protocol: &str,
    ) -> Result<bool, LedgerError> {
        let rules = self.tip.rules(protocol)?;
        let definition = rules.protocol().definition();
        let is_ruled = self.rule(definition).is_some();
        Ok(is_ruled
            && self.base_of(one.issue(), definition)? == self.base_of(other.issue(), definition)?)
    }

    fn rule<'d>(&self, definition: &'d Definition) -> Option<&'d Rule> {
        let rule = definition.limits.as_ref()?.turns.as_ref();
        rule.filter(|rule| rule.agent == self.agent)
    }

    fn base_of(
        &self,
        key: &IssueKey,
        definition: &Definition,
    ) -> Result<Option<String>, LedgerError> {
        let issue = self.tip.issue(key)?.shared_issue()?;
        let issue = issue.as_deref().map(|issue| (issue, definition));
        Ok(base_branch(self.tip.repository(), issue, None, None))
    }

    /// Reads who has a turn: the agent's held handoffs, and the issues that keep theirs. Entries'
    /// names tell which issues to read.
    fn read(&self) -> Result<Vec<Taken>, LedgerError> {
        let (mut taken, now) = (Vec::new(), Stamp::of(self.now));
        for agent in self.tip.agents_in(handoff_model::layout::OPEN)? {
            for entry in self.tip.open_with(&agent)?.from("") {
                let (entry, _) = entry?;
                let goes_on = entry.standing == Standing::Held || entry.standing.is_pending();
                if !goes_on || entry.due.as_ref().is_some_and(|due| *due <= now) {
                    continue;
                }
                let rules = self.tip.rules(&entry.protocol)?;
                let definition = rules.protocol().definition();
                let Some(rule) = self.rule(definition) else {
                    continue;
                };
                let is_held = agent == self.agent && entry.standing == Standing::Held;
                if !is_held && !self.keeps(rule, definition, &entry.id, &entry.sent, &agent)? {
                    continue;
                }
                taken.push(Taken {
                    base: self.base_of(entry.id.issue(), definition)?,
                    id: entry.id,
                    is_held,
                });
            }
        }
        Ok(taken)
    }

    /// Whether the issue of an open handoff keeps its turn: it began a round that keeps it, and the
    /// agent has not completed a handoff of it since.
    fn keeps(
        &self,
        rule: &Rule,
        definition: &Definition,
        id: &HandoffId,
        sent: &Stamp,
        with: &AgentName,
    ) -> Result<bool, LedgerError> {
        let Some(round) = &rule.kept_through else {
            return Ok(false);
        };
        let lease = definition
            .limits
            .as_ref()
            .and_then(|limits| limits.lease_seconds);
        let since = chrono::TimeDelta::seconds(i64::try_from(lease.unwrap_or(KEPT)).unwrap_or(0));
        if *sent < Stamp::of(self.now - since) {
            return Ok(false);
        }
        let folder = self.tip.issue(id.issue())?;
        let issue: Option<Rc<Issue>> = folder.shared_issue()?;
        let begun = issue.iter().flat_map(|issue| issue.counted.iter().rev());
        let begun = begun.filter(|one| !one.attempt && one.rounds.contains(round));
        let Some(begun) = begun.map(|one| one.number).next() else {
            return Ok(false);
        };
        for number in begun + 1..id.number() {
            let done = folder.shared_record(number)?;
            if done.is_some_and(|done| done.is_completed_by(&self.agent)) {
                return Ok(false);
            }
        }
        Ok(!self.tip.holds_back(id.issue(), with)?)
    }
}
