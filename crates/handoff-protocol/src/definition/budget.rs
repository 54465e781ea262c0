//! Budgets: what work under a protocol may cost.

use handoff_base::ids::AgentName;
use handoff_base::words;
use handoff_base::{Amount, Currency};
use schemars::JsonSchema;
use serde::Deserialize;

words! {
    /// The scope over which a budget is summed.
    pub enum Per {
        /// One claim, from when the work is claimed until its worker no longer holds it.
        Run = "run",
        /// All claims in an issue.
        Issue = "issue",
        /// All claims under the protocol that began on one day, in UTC.
        Day = "day",
    }
}

words! {
    /// The unit of a budget.
    pub enum BudgetUnit {
        /// Money that was reported.
        Cost = "cost",
        /// Input and output tokens that were reported.
        Tokens = "tokens",
        /// Claims that were not given back.
        Attempts = "attempts",
        /// The seconds for which the work was held.
        Seconds = "seconds",
    }
}

/// A budget: once as much is spent, nothing more is claimed. It has at least one of `cost`,
/// `tokens`, `attempts` and `seconds`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// One claim (`run`), an `issue`, or all claims of one `day` (UTC).
    pub per: Per,
    /// The only agent whose claims count; by default all together.
    pub agent: Option<AgentName>,
    /// The most money, as `--usage` reports it.
    pub cost: Option<Amount>,
    /// The currency of `cost`; costs in others do not count.
    pub currency: Option<Currency>,
    /// The most input and output tokens, as `--usage` reports them.
    pub tokens: Option<u64>,
    /// The most claims that are not given back.
    pub attempts: Option<u64>,
    /// The longest time for which work is held, added up.
    pub seconds: Option<u64>,
}

impl Budget {
    /// Whether the claims of this agent count.
    pub fn counts(&self, agent: &AgentName) -> bool {
        self.agent.as_ref().is_none_or(|own| own == agent)
    }

    /// The units that the budget limits.
    pub fn limited(&self) -> impl Iterator<Item = BudgetUnit> {
        let given = [
            (BudgetUnit::Cost, self.cost.is_some()),
            (BudgetUnit::Tokens, self.tokens.is_some()),
            (BudgetUnit::Attempts, self.attempts.is_some()),
            (BudgetUnit::Seconds, self.seconds.is_some()),
        ];
        given
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(of, _)| of)
    }
}
