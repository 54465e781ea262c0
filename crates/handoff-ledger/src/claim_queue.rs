//! An agent's queue: chooses the next handoff to claim.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use handoff_base::Moment;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_model::claim_queue::{Hindrance, hindrance, waited_for};
use handoff_model::open_entry::{Stamp, Standing};
use handoff_model::spending::{DaySpending, SpentSoFar, day, ensure_left};
use handoff_model::{BudgetSpent, Claimable, Halt, OpenEntry, Refusal, Spending, View};

use super::error::LedgerError;
use super::snapshot::{Listed, OpenFolder, Rules, Snapshot};
use super::turns::Turns;

/// Chooses among the handoffs that wait for an agent. The names of their entries have nearly all of
/// the information, and only the first of each kind are read.
///
/// # Errors
/// [`LedgerError`] if something can't be read, or if no active protocol knows the agent.
pub fn claimable(
    tip: &Snapshot<'_>,
    agent: &AgentName,
    now: Moment,
) -> Result<Claimable, LedgerError> {
    claimable_but(tip, agent, now, &BTreeSet::new())
}

/// The same, without the handoffs of these issues.
pub(super) fn claimable_but(
    tip: &Snapshot<'_>,
    agent: &AgentName,
    now: Moment,
    left_out: &BTreeSet<IssueKey>,
) -> Result<Claimable, LedgerError> {
    let agent = tip.receiver(agent)?;
    let mut choice = Choice {
        tip,
        open: tip.open_with(&agent)?,
        agent: agent.clone(),
        left_out,
        now,
        best: None,
        found: Claimable::default(),
        budgets: Budgets::new(tip, now),
        turns: Turns::new(tip, &agent, now),
    };
    choice.look_at_ready(Standing::Ready)?;
    choice.look_at_ready(Standing::Answered)?;
    choice.look_at_paused()?;
    choice.look_at_waiting()?;
    let mut found = choice.found;
    found.first = choice.best.map(|(_, entry)| entry.id);
    if found.first.is_none() {
        let is_his = |halt: &&Halt| halt.scope.agent.as_ref().is_none_or(|only| *only == agent);
        found.halt = tip.manifest().paused.iter().find(is_his).cloned();
    }
    if found == Claimable::default() {
        let mut known = Vec::new();
        for name in tip.protocols()? {
            known.push(tip.rules(&name)?);
        }
        let knows = |rules: &Rules<'_>| rules.protocol().agent(agent.as_str()).is_some();
        if let Some(first) = known.first().filter(|_| !known.iter().any(knows)) {
            return Err(Refusal::unknown_agent(&agent, first.protocol()).into());
        }
    }
    Ok(found)
}

struct Choice<'a, 'r> {
    tip: &'a Snapshot<'r>,
    agent: AgentName,
    open: OpenFolder<'r>,
    left_out: &'a BTreeSet<IssueKey>,
    now: Moment,
    /// The best so far, with its rank.
    best: Option<(usize, OpenEntry)>,
    found: Claimable,
    budgets: Budgets<'a, 'r>,
    turns: Turns<'a, 'r>,
}

impl Choice<'_, '_> {
    /// Offers the oldest claimable handoff of each protocol and priority.
    fn look_at_ready(&mut self, standing: Standing) -> Result<(), LedgerError> {
        let mut start = format!("{}.", standing.as_str());
        while let Some(group) = self.look_at_group(standing, &start)? {
            // Greater than any byte of a name.
            start = format!("{group}~");
        }
        Ok(())
    }

    /// Offers the oldest claimable handoff of the next group; returns that group.
    fn look_at_group(
        &mut self,
        standing: Standing,
        start: &str,
    ) -> Result<Option<String>, LedgerError> {
        let now = Stamp::of(self.now);
        let mut group = None;
        let mut oldest: Option<OpenEntry> = None;
        for entry in self.open.from(start) {
            let (entry, _) = entry?;
            let known = group.get_or_insert_with(|| entry.group());
            if entry.standing != standing || *known != entry.group() {
                break;
            }
            // Handoffs that were sent together are ordered by number.
            let older = oldest.as_ref();
            if older.is_some_and(|older| older.sent < entry.sent) {
                break;
            }
            if older.is_some_and(|older| older.id < entry.id)
                || self.holds_back(entry.id.issue())?
            {
                continue;
            }
            if entry.due.as_ref().is_some_and(|due| *due <= now) {
                self.found.late.get_or_insert(entry.id);
            } else if let Some(spent) = self.budgets.spent(&self.agent, &entry)? {
                self.found.spent.get_or_insert(spent);
            } else if has_turn(&self.turns, &mut self.found, &entry)? {
                oldest = Some(entry);
            }
        }
        if let Some(entry) = oldest {
            self.offer(entry)?;
        }
        let word = standing.as_str();
        Ok(group.filter(|group| group.split('.').next() == Some(word)))
    }

    fn holds_back(&self, issue: &IssueKey) -> Result<bool, LedgerError> {
        Ok(self.left_out.contains(issue) || self.tip.holds_back(issue, &self.agent)?)
    }

    fn look_at_paused(&mut self) -> Result<(), LedgerError> {
        for (entry, listed) in self.all(Standing::Paused)? {
            match hindrance(&self.tip.open_record(&listed)?, self.now) {
                None => match self.budgets.spent(&self.agent, &entry)? {
                    None if has_turn(&self.turns, &mut self.found, &entry)? => {
                        self.offer(entry)?;
                    }
                    None => {}
                    Some(spent) => {
                        self.found.spent.get_or_insert(spent);
                    }
                },
                Some(Hindrance::Late) => {
                    self.found.late.get_or_insert(entry.id);
                }
                Some(Hindrance::Later(at)) => {
                    let soonest = self.found.later.as_ref();
                    if soonest.is_none_or(|(soonest, _)| at < *soonest) {
                        self.found.later = Some((at, entry.id));
                    }
                }
                Some(Hindrance::Waits | Hindrance::Taken) => {}
            }
        }
        Ok(())
    }

    fn look_at_waiting(&mut self) -> Result<(), LedgerError> {
        let now = Stamp::of(self.now);
        for (entry, listed) in self.all(Standing::Waits)? {
            if entry.due.is_some_and(|due| due <= now) {
                self.found.late.get_or_insert(entry.id);
            } else if self.found.waits.is_none() {
                let record = self.tip.open_record(&listed)?;
                self.found.waits = waited_for(&record).map(|other| (entry.id, other.clone()));
            }
        }
        Ok(())
    }

    /// All with this standing that no pause holds back, the oldest first.
    fn all(&self, standing: Standing) -> Result<Vec<(OpenEntry, Listed)>, LedgerError> {
        let entries = self.open.from(&format!("{}.", standing.as_str()));
        let same = |entry: &Result<(OpenEntry, Listed), LedgerError>| {
            entry.as_ref().map_or(true, |(e, _)| e.standing == standing)
        };
        let all = entries.take_while(same).collect::<Result<Vec<_>, _>>()?;
        let mut going = Vec::with_capacity(all.len());
        for one in all {
            if !self.holds_back(one.0.id.issue())? {
                going.push(one);
            }
        }
        going.sort_by(|(a, _), (b, _)| (&a.sent, &a.id).cmp(&(&b.sent, &b.id)));
        Ok(going)
    }

    /// Keeps a handoff that can be claimed, if it is better than the best so far.
    fn offer(&mut self, entry: OpenEntry) -> Result<(), LedgerError> {
        let rank = entry.rank(self.tip.rules(&entry.protocol)?.protocol());
        let key = |rank, entry: &OpenEntry| (rank, entry.sent.clone(), entry.id.clone());
        let is_better = |(best, other): &(usize, OpenEntry)| key(rank, &entry) < key(*best, other);
        if self.best.as_ref().is_none_or(is_better) {
            self.best = Some((rank, entry));
        }
        Ok(())
    }
}

/// Whether it is first in line; otherwise notes the handoff before it.
fn has_turn(
    turns: &Turns<'_, '_>,
    found: &mut Claimable,
    entry: &OpenEntry,
) -> Result<bool, LedgerError> {
    let before = turns.before(&entry.id, &entry.protocol)?;
    let is_its = before.is_none();
    let turn = before.map(|before| (entry.id.clone(), before));
    found.turn = found.turn.take().or(turn);
    Ok(is_its)
}

/// The budgets of a ledger's protocols and their spending, read once each.
pub(crate) struct Budgets<'a, 'r> {
    tip: &'a Snapshot<'r>,
    now: Moment,
    today: OnceCell<DaySpending>,
    /// The protocols whose daily budget is spent; no issue is read for those.
    over: RefCell<BTreeMap<String, BudgetSpent>>,
}

impl<'a, 'r> Budgets<'a, 'r> {
    pub(crate) fn new(tip: &'a Snapshot<'r>, now: Moment) -> Self {
        Self {
            tip,
            now,
            today: OnceCell::new(),
            over: RefCell::default(),
        }
    }

    /// The exhausted budget that prevents an agent from claiming this handoff, if any.
    pub(crate) fn spent(
        &self,
        agent: &AgentName,
        entry: &OpenEntry,
    ) -> Result<Option<BudgetSpent>, LedgerError> {
        let rules = self.tip.rules(&entry.protocol)?;
        let definition = rules.protocol().definition();
        if definition.budgets().is_empty() {
            return Ok(None);
        }
        if let Some(spent) = self.over.borrow().get(&entry.protocol) {
            return Ok(Some(spent.clone()));
        }
        if self.today.get().is_none() {
            let read = self.tip.spent_on(&day(self.now))?;
            self.today.get_or_init(|| read);
        }
        let today = self.today.get().map(|today| &today.protocols);
        let day = today.and_then(|today| today.get(&definition.name));
        let none = Spending::new();
        let refused = |issue: &Spending| {
            let so_far = SpentSoFar { issue, day };
            ensure_left(definition, (agent, &entry.id), so_far).err()
        };
        if let Some(spent) = refused(&none) {
            let mut over = self.over.borrow_mut();
            over.insert(entry.protocol.clone(), spent.clone());
            return Ok(Some(spent));
        }
        let issue = self.tip.issue(entry.id.issue())?.shared_issue()?;
        Ok(issue.and_then(|issue| refused(&issue.spent)))
    }
}
