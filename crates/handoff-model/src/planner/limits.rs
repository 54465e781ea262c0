//! The protocol's limits on handoffs, and the handoffs that count towards them.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_protocol::{AgentKind, Fields, Limits, Protocol};
use serde_json::Value;

use crate::contract::Contract;
use crate::decision::person;
use crate::planner::Planner;
use crate::planner::tasks::lacks_task;
use crate::record::{Counted, Issue, Record};
use crate::refusal::{Limit, LimitReached};
use crate::value::scalar;

/// The maximum number of handoffs in an issue, whatever the protocol: each step rewrites the list
/// of the issue's folder, and the audit reads it.
const MOST_HANDOFFS: u32 = 10_000;

impl<E, V> Planner<'_, E, V> {
    /// Refuses a contract that exceeds a limit of the issue; otherwise counts it.
    pub(super) fn within_limits(
        &self,
        issue: &mut Issue,
        contract: &Contract,
        from: &AgentName,
        to: &AgentName,
        basis: Option<&Record>,
    ) -> Result<(), LimitReached> {
        if ends_work(self.protocol, to) {
            return Ok(());
        }
        if issue.handoffs >= MOST_HANDOFFS {
            return Err(LimitReached {
                issue: self.key.clone(),
                protocol: issue.protocol.clone(),
                limit: Box::new(Limit::Full {
                    most: MOST_HANDOFFS,
                }),
                basis: basis.map(|held| held.id.clone()),
            });
        }
        let Some(limits) = &self.protocol.definition().limits else {
            return Ok(());
        };
        let sending = Sending {
            protocol: self.protocol,
            issue,
            kind: &contract.kind,
            value: &contract.value,
            from,
            to,
            at: self.step.at,
        };
        let new = sending.counted(limits);
        if let Some(limit) = sending.reached(limits, &new) {
            return Err(LimitReached {
                issue: self.key.clone(),
                protocol: issue.protocol.clone(),
                limit: Box::new(limit),
                basis: basis.map(|held| held.id.clone()),
            });
        }
        if limits.count_all() || !new.rounds.is_empty() {
            issue.counted.push(new);
        }
        Ok(())
    }

    /// Refuses another event of a handoff that has had too many, because each step writes all its
    /// transitions again.
    pub(super) fn ensure_few_transitions(&self, record: &Record) -> Result<(), LimitReached> {
        const MOST: usize = 1_000;
        if record.transitions.len() < MOST {
            return Ok(());
        }
        Err(LimitReached {
            issue: self.key.clone(),
            protocol: record.protocol.clone(),
            limit: Box::new(Limit::Transitions {
                id: record.id.clone(),
                most: MOST,
            }),
            basis: None,
        })
    }

    /// Counts another attempt at a handoff towards its rounds.
    pub(super) fn count_attempt(&self, issue: &mut Issue, record: &Record) {
        let rounds = self.protocol.attempt_rounds(&record.contract_type);
        let rounds: Vec<String> = rounds.map(|(name, _)| name.clone()).collect();
        if !rounds.is_empty() {
            issue.counted.push(Counted {
                number: issue.handoffs,
                from: record.from.clone(),
                to: record.to.clone(),
                at: self.step.at,
                item: None,
                reason: None,
                rounds,
                attempt: true,
            });
        }
    }
}

/// Whether a contract to this agent ends the issue; no limit refuses such a contract.
fn ends_work(protocol: &Protocol, to: &AgentName) -> bool {
    protocol.is_kind(to.as_str(), AgentKind::End)
}

/// A contract to send, as limits see it.
pub struct Sending<'a> {
    /// The issue's protocol.
    pub protocol: &'a Protocol,
    /// The issue.
    pub issue: &'a Issue,
    /// The contract's type.
    pub kind: &'a str,
    /// The contract.
    pub value: &'a Value,
    /// Its sender.
    pub from: &'a AgentName,
    /// Its receiver.
    pub to: &'a AgentName,
    /// When it is sent.
    pub at: Moment,
}

impl Sending<'_> {
    /// The limit that the contract would exceed, if any; an answer or a note exceeds none.
    pub fn exceeds(&self) -> Option<Limit> {
        let limits = self.protocol.definition().limits.as_ref()?;
        let kind = self.protocol.contract_type(self.kind);
        if kind.is_some_and(|kind| !kind.travels()) {
            return None;
        }
        let limits = Some(limits).filter(|_| !ends_work(self.protocol, self.to))?;
        self.reached(limits, &self.counted(limits))
    }

    /// Whether the contract would be refused whatever its other content: it exceeds a limit, or its
    /// sender has no task to break down.
    pub fn is_hopeless(&self) -> bool {
        let kind = self.protocol.contract_type(self.kind);
        let lacks_task = |kind| lacks_task(self.issue, kind, self.from);
        kind.is_some_and(lacks_task) || self.exceeds().is_some()
    }

    /// What the limits count for this contract.
    fn counted(&self, limits: &Limits) -> Counted {
        let kind = self.protocol.contract_type(self.kind);
        let place = |field: fn(&Fields) -> &Option<String>| {
            kind.and_then(|kind| self.protocol.field(kind, field))
        };
        let parties = [
            (place(|fields| &fields.from), self.from),
            (place(|fields| &fields.to), self.to),
        ];
        // Whose turn it is gets judged before there is a contract.
        let party = |at: &str| {
            let party = parties.iter().find(|(place, _)| *place == Some(at));
            party.map(|(_, agent)| agent.to_string())
        };
        let known = |at: &str| self.value.pointer(at).and_then(scalar);
        let text = |at: &str| known(at).or_else(|| party(at));
        let item = limits.item.as_ref();
        let rounds = limits.rounds.iter().filter(|(_, round)| {
            round.contracts.iter().any(|kind| kind == self.kind) && round.fits(text)
        });
        Counted {
            number: self.issue.handoffs + 1,
            from: self.from.clone(),
            to: self.to.clone(),
            at: self.at,
            item: item.map(|item| text(&item.at).unwrap_or_else(|| item.otherwise.clone())),
            reason: limits.cycle.as_ref().and_then(|cycle| text(&cycle.reason)),
            rounds: rounds.map(|(name, _)| name.clone()).collect(),
            attempt: false,
        }
    }

    /// The people to whom an agent can send.
    fn people_for(&self, from: &AgentName) -> Vec<AgentName> {
        let receivers = self.protocol.receivers(from.as_str()).into_iter();
        let people = receivers.filter(|to| self.protocol.is_person(to.as_str()));
        people.cloned().collect()
    }

    /// The first limit that the contract would exceed.
    fn reached(&self, limits: &Limits, new: &Counted) -> Option<Limit> {
        let issue = self.issue;
        let since = issue.reopened.last().map_or(0, |r| r.handoffs);
        let before = issue.counted.iter().filter(|c| c.number > since);
        let before: Vec<&Counted> = before.filter(|c| !c.attempt).collect();
        let count = |fits: &dyn Fn(&Counted) -> bool| {
            let fitting = before.iter().filter(|c| fits(c)).count();
            u32::try_from(fitting).unwrap_or(u32::MAX)
        };
        let end = self.protocol.definition().deadline(issue.counts_since());
        if let Some(end) = end.filter(|end| *end <= self.at) {
            let person = person(self.protocol).cloned();
            return Some(Limit::Deadline { end, person });
        }
        // Sending to a person stays possible, so that somebody can decide.
        let is_for_agent = !self.protocol.is_person(new.to.as_str());
        let most = limits.handoffs.filter(|_| is_for_agent);
        if let Some(most) = most.filter(|&most| count(&|_| true) >= most) {
            let people = self.people_for(&new.from);
            return Some(Limit::Handoffs { most, people });
        }
        if let (Some(limit), Some(item)) = (&limits.item, &new.item)
            && is_for_agent
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
            let passed = (self.at - last.at).num_seconds();
            // After a jump of the clock, the wait is at most the interval.
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
