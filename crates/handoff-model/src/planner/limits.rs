//! The protocol's limits on handoffs, and what they count.

use handoff_base::ids::AgentName;
use handoff_protocol::{AgentKind, Limits};

use crate::contract::Contract;
use crate::planner::Planner;
use crate::record::{Counted, Issue, Record};
use crate::refusal::{Limit, LimitReached};
use crate::value::scalar;

impl<E, V> Planner<'_, E, V> {
    /// Refuses a contract that would exceed a limit of the issue, and counts it otherwise.
    pub(super) fn within_limits(
        &self,
        issue: &mut Issue,
        contract: &Contract,
        from: &AgentName,
        to: &AgentName,
        basis: Option<&Record>,
    ) -> Result<(), LimitReached> {
        let Some(limits) = &self.protocol.definition().limits else {
            return Ok(());
        };
        // A contract that ends the work never exceeds a limit.
        if self.protocol.is_kind(to.as_str(), AgentKind::End) {
            return Ok(());
        }
        let new = self.counted(limits, issue, contract, from, to);
        let reached = self.reached(limits, issue, &new);
        if let Some(limit) = reached {
            return Err(LimitReached {
                issue: self.key.clone(),
                limit: Box::new(limit),
                basis: basis.map(|held| held.id.clone()),
            });
        }
        if limits.count_all() || !new.rounds.is_empty() {
            issue.counted.push(new);
        }
        Ok(())
    }

    /// A contract as the limits count it.
    fn counted(
        &self,
        limits: &Limits,
        issue: &Issue,
        contract: &Contract,
        from: &AgentName,
        to: &AgentName,
    ) -> Counted {
        let text = |at: &str| contract.value.pointer(at).and_then(scalar);
        let item = limits.item.as_ref();
        let rounds = limits.rounds.iter().filter(|(_, round)| {
            let mut when = round.when.iter();
            round.contracts.contains(&contract.kind)
                && when.all(|(at, words)| text(at).is_some_and(|text| words.accept(&text)))
        });
        Counted {
            number: issue.handoffs + 1,
            from: from.clone(),
            to: to.clone(),
            at: self.actor.at,
            item: item.map(|item| text(&item.at).unwrap_or_else(|| item.otherwise.clone())),
            reason: limits.cycle.as_ref().and_then(|cycle| text(&cycle.reason)),
            rounds: rounds.map(|(name, _)| name.clone()).collect(),
        }
    }

    /// The people that an agent may hand on to.
    fn people_for(&self, from: &AgentName) -> Vec<AgentName> {
        let receivers = self.protocol.receivers(from.as_str()).into_iter();
        let people = receivers.filter(|to| self.protocol.is_kind(to.as_str(), AgentKind::Human));
        people.cloned().collect()
    }

    /// The first limit that one more contract would exceed.
    fn reached(&self, limits: &Limits, issue: &Issue, new: &Counted) -> Option<Limit> {
        let since = issue.reopened.last().map_or(0, |r| r.handoffs);
        let before: Vec<&Counted> = issue.counted.iter().filter(|c| c.number > since).collect();
        let count = |fits: &dyn Fn(&Counted) -> bool| {
            let fitting = before.iter().filter(|c| fits(c)).count();
            u32::try_from(fitting).unwrap_or(u32::MAX)
        };
        let end = self.protocol.definition().deadline(issue.counts_since());
        if let Some(end) = end.filter(|end| *end <= self.actor.at) {
            return Some(Limit::Deadline { end });
        }
        if let Some(most) = limits.handoffs.filter(|&most| count(&|_| true) >= most) {
            return Some(Limit::Handoffs { most });
        }
        // The way to a person stays open.
        if let (Some(limit), Some(item)) = (&limits.item, &new.item)
            && !self.protocol.is_kind(new.to.as_str(), AgentKind::Human)
            && count(&|c| c.item.as_ref() == Some(item)) >= limit.handoffs
        {
            let most = limit.handoffs;
            let item = item.clone();
            let people = self.people_for(&new.from);
            return Some(Limit::Item { item, most, people });
        }
        for name in &new.rounds {
            let most = limits.rounds.get(name).map_or(u32::MAX, |round| round.most);
            if issue.rounds(name) >= most {
                let name = name.clone();
                return Some(Limit::Rounds { name, most });
            }
        }
        let same_way = |c: &Counted| c.from == new.from && c.to == new.to;
        if let Some(cycle) = &limits.cycle {
            let among = usize::try_from(cycle.among).unwrap_or(usize::MAX);
            let newest = before.iter().rev().take(among);
            let alike = newest.filter(|c| same_way(c) && c.reason == new.reason);
            if u32::try_from(alike.count()).unwrap_or(u32::MAX) >= cycle.most {
                return Some(Limit::Cycle {
                    from: new.from.clone(),
                    to: new.to.clone(),
                    reason: new.reason.clone().unwrap_or_default(),
                    among: cycle.among,
                    most: cycle.most,
                });
            }
        }
        if let Some(seconds) = limits.cooldown_seconds
            && let Some(last) = before.iter().rev().find(|c| same_way(c))
        {
            let passed = (self.actor.at - last.at).num_seconds();
            // A clock that jumped is no reason to wait longer than that.
            if passed.unsigned_abs() < seconds {
                let left = seconds - passed.max(0).unsigned_abs();
                return Some(Limit::Cooldown {
                    from: new.from.clone(),
                    to: new.to.clone(),
                    seconds,
                    left,
                });
            }
        }
        None
    }
}
