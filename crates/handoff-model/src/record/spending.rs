//! Spending under a protocol with budgets, and what is left.
//!
//! Each step updates these sums from the handoffs that it changes, so that a claim reads one file
//! of its issue and one of the day, however long the history is.

use std::collections::BTreeMap;

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint::Hint;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::text::grouped;
use handoff_base::{Amount, Currency, Moment, hint};
use handoff_protocol::{Budget, BudgetUnit, Definition, Event, Per};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::stored_form::stored;
use crate::record::usage::BEYOND;
use crate::record::{Lease, ModelUsage, NoUsage, Record, Spent, Usage, VERSION};

/// An agent's spending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpending {
    /// On claims that ended; attempts count from a claim's start.
    pub ended: Spent,
    /// So far on each current claim, by handoff.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<HandoffId, Spent>,
}

/// Spending by agent.
pub type Spending = BTreeMap<AgentName, AgentSpending>;

/// `spent/YYYY-MM-DD.json`: the spending on claims that began on a day (UTC).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DaySpending {
    /// The version of the stored form: 4.
    pub version: u32,
    /// Spending by protocol and agent.
    pub protocols: BTreeMap<AgentName, Spending>,
}

impl Default for DaySpending {
    fn default() -> Self {
        Self {
            version: VERSION,
            protocols: BTreeMap::new(),
        }
    }
}

stored!(DaySpending);

impl Record {
    /// The reported usage of one of the claims.
    pub fn spent(&self, token: u32, by: &AgentName) -> Spent {
        let own = |usage: &&Usage| usage.token == token && usage.by == *by;
        let own = self.usage.iter().filter(own);
        own.fold(Spent::default(), |mut sum, usage| {
            sum.add(&Spent::of(&usage.models));
            sum
        })
    }

    /// The total reported usage.
    pub fn all_spent(&self) -> Spent {
        self.usage.iter().fold(Spent::default(), |mut sum, usage| {
            sum.add(&Spent::of(&usage.models));
            sum
        })
    }

    /// When this claim was made.
    pub(crate) fn claimed_at(&self, token: u32) -> Option<Moment> {
        let claims = self
            .transitions
            .iter()
            .filter(|t| t.event.is_some_and(Event::is_claim));
        let index = usize::try_from(token).ok()?.checked_sub(1)?;
        claims.map(|t| t.at).nth(index)
    }

    /// The usage report that a step added to this record, or changed in it.
    pub fn usage_since<'a>(&'a self, before: Option<&Self>) -> Option<&'a Usage> {
        let known = |usage: &Usage| before.is_some_and(|before| before.usage.contains(usage));
        self.usage.iter().find(|usage| !known(usage))
    }
}

/// The day of a moment, in UTC: `2026-11-25`.
pub fn day(at: Moment) -> String {
    at.format("%Y-%m-%d").to_string()
}

/// A change of an agent's spending.
pub(crate) struct Movement {
    pub(crate) agent: AgentName,
    /// When the claim began.
    pub(crate) since: Moment,
    id: HandoffId,
    kind: Kind,
}

enum Kind {
    /// The claim began.
    Begin,
    /// The usage reported so far, while the claim lasts.
    Report(Spent),
    /// The claim ended with this usage.
    End { spent: Spent, released: bool },
    /// A report after the claim's end: `now` replaces `before`.
    Late { now: Spent, before: Spent },
}

impl Movement {
    /// Whether it ends a claim that these sums contain.
    pub(crate) fn ends_in(&self, spending: &Spending) -> bool {
        let own = spending.get(&self.agent);
        matches!(self.kind, Kind::End { .. })
            && own.is_some_and(|own| own.held.contains_key(&self.id))
    }

    /// Adds it to the sums.
    pub(crate) fn book(&self, spending: &mut Spending) {
        let own = spending.entry(self.agent.clone()).or_default();
        match &self.kind {
            Kind::Begin => {
                own.ended.attempts = own.ended.attempts.saturating_add(1);
                own.held.insert(self.id.clone(), Spent::default());
            }
            Kind::Report(spent) => {
                own.held.insert(self.id.clone(), spent.clone());
            }
            Kind::End { spent, released } => {
                let was_counted = own.held.remove(&self.id).is_some();
                own.ended.add(spent);
                // A claim that was given back does not count as an attempt.
                if *released && was_counted {
                    own.ended.attempts = own.ended.attempts.saturating_sub(1);
                }
            }
            Kind::Late { now, before } => {
                own.ended.subtract(before);
                own.ended.add(now);
            }
        }
    }
}

/// The changes of spending that follow from a change of a handoff.
pub(crate) fn movements(before: Option<&Record>, after: &Record, at: Moment) -> Vec<Movement> {
    let (was, is) = (before.and_then(|r| r.lease.as_ref()), after.lease.as_ref());
    let goes_on = was.zip(is).is_some_and(|(was, is)| was.token == is.token);
    let movement = |agent: &AgentName, since, kind| Movement {
        agent: agent.clone(),
        since,
        id: after.id.clone(),
        kind,
    };
    let of = |lease: &Lease, kind| movement(&lease.holder, lease.since, kind);
    let mut found = Vec::new();
    if let Some(was) = was.filter(|_| !goes_on) {
        let end = was.expires_at.unwrap_or(at).min(at);
        let mut spent = after.spent(was.token, &was.holder);
        spent.seconds = u64::try_from((end - was.since).num_seconds()).unwrap_or(0);
        let last = after.latest().and_then(|last| last.event);
        let released = last == Some(Event::Release);
        found.push(of(was, Kind::End { spent, released }));
    }
    if let Some(is) = is.filter(|_| !goes_on) {
        found.push(of(is, Kind::Begin));
    }
    let Some(usage) = after.usage_since(before) else {
        return found;
    };
    let (token, by) = (usage.token, &usage.by);
    let now = after.spent(token, by);
    let is_of = |lease: &Lease| lease.token == token && lease.holder == *by;
    match (is, was) {
        (Some(is), _) if is_of(is) => found.push(of(is, Kind::Report(now))),
        (_, Some(was)) if is_of(was) => {}
        _ => {
            let before = before
                .map(|before| before.spent(token, by))
                .unwrap_or_default();
            let since = after.claimed_at(usage.token).unwrap_or(usage.at);
            found.push(movement(&usage.by, since, Kind::Late { now, before }));
        }
    }
    found
}

/// What is left of a budget's limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    /// The budget's name.
    pub budget: String,
    /// The scope: `run`, `issue` or `day`.
    pub per: Per,
    /// The only agent whose claims count; null if all count.
    pub agent: Option<AgentName>,
    /// The unit: `cost`, `tokens`, `attempts` or `seconds`.
    pub unit: BudgetUnit,
    /// The currency of a cost; null otherwise.
    pub currency: Option<Currency>,
    /// The limit.
    pub most: Quantity,
    /// The amount spent, including the shares of other current claims.
    pub spent: Quantity,
    /// What is left.
    pub left: Quantity,
}

/// A count, or a sum of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantity {
    /// Tokens, claims or seconds.
    Count(u64),
    /// Money.
    Money(Amount),
}

impl Left {
    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        matches!(self.left, Quantity::Count(0)) || self.left == Quantity::Money(Amount::default())
    }

    fn amount(&self, quantity: Quantity) -> String {
        let currency = self.currency.as_ref();
        match (quantity, self.unit) {
            (Quantity::Money(cost), _) => {
                currency.map_or(cost.to_string(), |currency| format!("{cost} {currency}"))
            }
            (Quantity::Count(count), BudgetUnit::Seconds) => format!("{} s", grouped(count)),
            (Quantity::Count(count), unit) => format!("{} {}", grouped(count), unit.as_str()),
        }
    }

    /// Its scope: `per issue by fixer-agent (budget fixes)`.
    fn scope(&self) -> String {
        let agent = self.agent.as_ref().map(|agent| format!(" by {agent}"));
        let (per, agent) = (self.per.as_str(), agent.unwrap_or_default());
        format!("per {per}{agent} (budget {})", self.budget)
    }

    /// What is left, in words: `3.20 USD of 5.00 USD left per issue (budget team)`.
    pub fn text(&self) -> String {
        let (left, most) = (self.amount(self.left), self.amount(self.most));
        format!("{left} of {most} left {}", self.scope())
    }
}

impl std::fmt::Display for Left {
    /// What is spent, in words: `5.10 USD of 5.00 USD per issue (budget team)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (spent, most) = (self.amount(self.spent), self.amount(self.most));
        write!(f, "{spent} of {most} {}", self.scope())
    }
}

/// The spending in an issue and on a day.
#[derive(Clone, Copy)]
pub struct SpentSoFar<'a> {
    /// In the issue.
    pub issue: &'a Spending,
    /// On the day under the protocol.
    pub day: Option<&'a Spending>,
}

/// One limit of a budget.
#[derive(Clone, Copy)]
struct BudgetLimit<'d> {
    name: &'d str,
    budget: &'d Budget,
    unit: BudgetUnit,
}

fn limits(definition: &Definition) -> impl Iterator<Item = BudgetLimit<'_>> {
    let budgets = definition.budgets().iter();
    budgets.flat_map(|(name, budget)| {
        budget
            .limited()
            .map(move |unit| BudgetLimit { name, budget, unit })
    })
}

impl BudgetLimit<'_> {
    /// The limit; money is in billionths.
    fn most(&self) -> u64 {
        match self.unit {
            BudgetUnit::Cost => self.budget.cost.map_or(0, Amount::billionths),
            BudgetUnit::Tokens => self.budget.tokens.unwrap_or(0),
            BudgetUnit::Attempts => self.budget.attempts.unwrap_or(0),
            BudgetUnit::Seconds => self.budget.seconds.unwrap_or(0),
        }
    }

    /// The part of the sum that this limit counts; money is in billionths.
    fn of(&self, spent: &Spent) -> u64 {
        match self.unit {
            BudgetUnit::Cost => {
                let currency = self.budget.currency.as_ref();
                let cost = currency.and_then(|currency| spent.cost.get(currency));
                cost.map_or(0, |cost| cost.billionths())
            }
            BudgetUnit::Tokens => spent.tokens(),
            BudgetUnit::Attempts => spent.attempts,
            BudgetUnit::Seconds => spent.seconds,
        }
    }

    fn quantity(&self, number: u64) -> Quantity {
        match self.unit {
            BudgetUnit::Cost => Quantity::Money(Amount::from_billionths(number)),
            _ => Quantity::Count(number),
        }
    }

    /// What a current claim of this agent may still use up: its budget per run, or zero without
    /// one.
    fn share(&self, definition: &Definition, agent: &AgentName) -> u64 {
        let runs = limits(definition).filter(|run| {
            run.budget.per == Per::Run
                && run.budget.counts(agent)
                && run.unit == self.unit
                && run.budget.currency == self.budget.currency
        });
        runs.map(|run| run.most()).min().unwrap_or(0)
    }

    /// The spending of ended claims, plus what current ones, except `own`, have spent or may use
    /// up.
    fn spent(&self, definition: &Definition, spending: &Spending, own: Option<&HandoffId>) -> u64 {
        let counted = spending
            .iter()
            .filter(|(agent, _)| self.budget.counts(agent));
        let sums = counted.map(|(agent, spent)| {
            let share = self.share(definition, agent);
            let others = spent.held.iter().filter(|(id, _)| Some(*id) != own);
            let held = others.map(|(_, so_far)| self.of(so_far).max(share));
            held.fold(self.of(&spent.ended), u64::saturating_add)
        });
        sums.fold(0, u64::saturating_add)
    }
}

/// What is left of a protocol's budgets for an agent's claim of this handoff, by budget name. Its
/// own current claim counts only for budgets per run.
pub fn left(
    definition: &Definition,
    (agent, id): (&AgentName, &HandoffId),
    so_far: SpentSoFar<'_>,
) -> Vec<Left> {
    left_beside(definition, (agent, id), so_far, Some(id))
}

/// Like [`left`], but without the claim of `own` instead.
fn left_beside(
    definition: &Definition,
    (agent, id): (&AgentName, &HandoffId),
    so_far: SpentSoFar<'_>,
    own: Option<&HandoffId>,
) -> Vec<Left> {
    let none = Spending::new();
    let found = limits(definition).filter(|limit| limit.budget.counts(agent));
    let found = found.map(|limit| {
        let budget = limit.budget;
        let spent = match budget.per {
            Per::Run => {
                let run = so_far.issue.get(agent).and_then(|own| own.held.get(id));
                run.map_or(0, |run| limit.of(run))
            }
            Per::Issue => limit.spent(definition, so_far.issue, own),
            Per::Day => limit.spent(definition, so_far.day.unwrap_or(&none), own),
        };
        let most = limit.most();
        Left {
            budget: limit.name.to_owned(),
            per: budget.per,
            agent: budget.agent.clone(),
            unit: limit.unit,
            currency: budget
                .currency
                .clone()
                .filter(|_| limit.unit == BudgetUnit::Cost),
            most: limit.quantity(most),
            spent: limit.quantity(spent),
            left: limit.quantity(most.saturating_sub(spent)),
        }
    });
    found.collect()
}

/// A budget leaves nothing for a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} cannot be claimed: {left} is spent or claimed")]
pub struct BudgetSpent {
    /// The handoff.
    pub id: HandoffId,
    /// The protocol.
    pub protocol: AgentName,
    /// The budget and what is spent.
    pub left: Box<Left>,
}

impl Explained for BudgetSpent {
    fn explanation(&self) -> Explanation {
        let Self { id, protocol, left } = self;
        let wait = match left.per {
            Per::Day => "claim it again tomorrow (UTC), or ",
            Per::Run | Per::Issue => "",
        };
        ErrorCode::BudgetSpent.hint(Hint::from(wait).and(hint!(
            "ask a person to raise the budget (`git handoff protocol set {} limits.budgets.{}.{} N`) or to end the issue; `git handoff status {}` shows what it cost",
            protocol,
            left.unit.as_str(),
            left.budget,
            id.issue()
        )))
    }
}

/// Refuses a claim for which a budget has nothing left. Budgets per run do not refuse it; they
/// limit it later. A claim that it takes over still counts.
///
/// # Errors
/// [`BudgetSpent`].
pub fn ensure_left(
    definition: &Definition,
    (agent, id): (&AgentName, &HandoffId),
    so_far: SpentSoFar<'_>,
) -> Result<(), BudgetSpent> {
    let mut left = left_beside(definition, (agent, id), so_far, None).into_iter();
    match left.find(|left| left.per != Per::Run && left.is_spent()) {
        None => Ok(()),
        Some(left) => Err(BudgetSpent {
            id: id.clone(),
            protocol: definition.name.clone(),
            left: Box::new(left),
        }),
    }
}

/// Refuses a usage report far above a budget: one absurd figure would block everybody else.
///
/// # Errors
/// [`NoUsage::Beyond`].
pub(crate) fn ensure_believable(
    definition: &Definition,
    agent: &AgentName,
    models: &[ModelUsage],
) -> Result<(), NoUsage> {
    let spent = Spent::of(models);
    let mut counted = limits(definition).filter(|limit| limit.budget.counts(agent));
    let beyond = counted.find(|limit| limit.of(&spent) > limit.most().saturating_mul(BEYOND));
    beyond.map_or(Ok(()), |limit| {
        let shown = |number: u64| match (limit.quantity(number), &limit.budget.currency) {
            (Quantity::Money(cost), Some(currency)) => format!("{cost} {currency}"),
            _ => format!("{} {}", grouped(number), limit.unit.as_str()),
        };
        Err(NoUsage::Beyond {
            said: shown(limit.of(&spent)),
            most: shown(limit.most()),
            budget: limit.name.to_owned(),
        })
    })
}

/// The largest spent share of the budgets per issue or per day, in thousandths; `None` without such
/// a budget.
pub fn used(definition: &Definition, per: Per, spending: &Spending) -> Option<u64> {
    let own = limits(definition).filter(|limit| limit.budget.per == per);
    let parts = own.map(|limit| {
        let counted = spending
            .iter()
            .filter(|(agent, _)| limit.budget.counts(agent));
        let sums = counted.map(|(_, spent)| {
            let held = spent.held.values().map(|so_far| limit.of(so_far));
            held.fold(limit.of(&spent.ended), u64::saturating_add)
        });
        let spent = u128::from(sums.fold(0, u64::saturating_add));
        let part = spent * 1000 / u128::from(limit.most().max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    });
    parts.max()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    /// A built-in protocol with these budgets.
    fn definition(budgets: &Value) -> Definition {
        let shipped = include_bytes!("../../../../templates/issue-to-pr/protocol.json");
        let mut definition: Value = serde_json::from_slice(shipped).unwrap();
        definition["limits"]["budgets"] = budgets.clone();
        serde_json::from_value(definition).unwrap()
    }

    /// Random claims, at most eight at the same time, each using up its share.
    struct Simulation {
        definition: Definition,
        issues: Vec<Spending>,
        days: Vec<Spending>,
        held: Vec<(AgentName, HandoffId, usize, u64)>,
        seed: u64,
        claims: u64,
    }

    impl Simulation {
        fn draw(&mut self, below: u64) -> u64 {
            self.seed ^= self.seed << 13;
            self.seed ^= self.seed >> 7;
            self.seed ^= self.seed << 17;
            self.seed % below
        }

        fn book(&mut self, agent: &AgentName, id: &HandoffId, day: usize, kind: Kind) {
            let movement = Movement {
                agent: agent.clone(),
                since: Moment::default(),
                id: id.clone(),
                kind,
            };
            let issue: usize = id.issue().as_str().parse().unwrap();
            movement.book(&mut self.issues[issue - 1]);
            movement.book(&mut self.days[day]);
        }

        /// Claims work in an issue, if its budgets have anything left.
        fn claim(&mut self, day: usize) {
            let issue = self.draw(self.issues.len() as u64);
            let agent: AgentName = ["prep-agent", "implementer-agent"]
                [usize::from(self.draw(2) == 1)]
            .parse()
            .unwrap();
            let number = u32::try_from(self.claims + 1).unwrap();
            let id = HandoffId::new((issue + 1).to_string().parse().unwrap(), number);
            let so_far = SpentSoFar {
                issue: &self.issues[usize::try_from(issue).unwrap()],
                day: Some(&self.days[day]),
            };
            let definition = &self.definition;
            if ensure_left(definition, (&agent, &id), so_far).is_err() {
                return;
            }
            let share = left(definition, (&agent, &id), so_far).into_iter();
            let share = share.filter_map(|left| match left.left {
                Quantity::Money(amount) => Some(amount.billionths()),
                Quantity::Count(_) => None,
            });
            let share = share.min().unwrap();
            self.book(&agent, &id, day, Kind::Begin);
            self.held.push((agent, id, day, share));
            self.claims += 1;
        }

        fn end(&mut self) {
            let at = self.draw(self.held.len() as u64);
            let (agent, id, day, share) = self.held.swap_remove(usize::try_from(at).unwrap());
            let cost = if self.draw(3) == 0 {
                share
            } else {
                self.draw(share + 1)
            };
            let currency = Currency::try_from("USD".to_owned()).unwrap();
            let cost = BTreeMap::from([(currency, Amount::from_billionths(cost))]);
            let spent = Spent {
                cost,
                ..Spent::default()
            };
            self.book(
                &agent,
                &id,
                day,
                Kind::End {
                    spent,
                    released: false,
                },
            );
        }

        /// The spending in the most expensive issue and on the most expensive day.
        fn dearest(&self) -> [u64; 2] {
            [&self.issues, &self.days].map(|all| {
                let cost = |spent: &Spent| spent.cost.values().map(|c| c.billionths()).sum::<u64>();
                let sums = all
                    .iter()
                    .map(|s| s.values().map(|own| cost(&own.ended)).sum());
                sums.max().unwrap_or(0)
            })
        }
    }

    #[test]
    fn ten_thousand_claims_spend_no_more_than_the_budgets() {
        const DOLLAR: u64 = 1_000_000_000;
        let mut simulation = Simulation {
            definition: definition(&json!({
                "run": {"per": "run", "cost": 2, "currency": "USD"},
                "issue": {"per": "issue", "cost": 60, "currency": "USD"},
                "day": {"per": "day", "cost": 100, "currency": "USD"},
            })),
            issues: vec![Spending::new(); 400],
            days: vec![Spending::new(); 400],
            held: Vec::new(),
            seed: 0x5eed,
            claims: 0,
        };
        let mut refused = 0;
        for step in 0..200_000 {
            let day = step / 500;
            let before = simulation.claims;
            if simulation.held.len() < 8 && simulation.draw(2) == 0 {
                simulation.claim(day);
                refused += u64::from(simulation.claims == before);
            } else if !simulation.held.is_empty() {
                simulation.end();
            }
        }
        while !simulation.held.is_empty() {
            simulation.end();
        }
        let [issue, day] = simulation.dearest();
        assert!(
            simulation.claims >= 10_000 && refused > 1000,
            "{} {refused}",
            simulation.claims
        );
        // The budget is used to the last share, but not exceeded.
        assert!((58 * DOLLAR..=60 * DOLLAR).contains(&issue), "{issue}");
        assert!((98 * DOLLAR..=100 * DOLLAR).contains(&day), "{day}");
    }
}
