//! Usage: tokens and money, as agents reported them.

use std::collections::BTreeMap;

use handoff::base::ids::AgentName;
use handoff::base::{Amount, Currency};
use handoff::ledger::{HandoffSurvey, UsageSurvey};
use handoff::model::{Spent, spending};
use schemars::JsonSchema;
use serde::Serialize;

/// Tokens and money.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsageSum {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that came from a cache.
    pub cached_tokens: u64,
    /// Model calls.
    pub turns: u64,
    /// Cost, by currency.
    pub cost: BTreeMap<Currency, Amount>,
}

impl From<&Spent> for UsageSum {
    fn from(spent: &Spent) -> Self {
        Self {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cached_tokens: spent.cached_tokens,
            turns: spent.turns,
            cost: spent.cost.clone(),
        }
    }
}

/// The usage of an agent, by model and day.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UsageFigures {
    /// The protocol.
    pub protocol: AgentName,
    /// The agent.
    pub agent: AgentName,
    /// The provider of the model; empty if not reported.
    pub provider: String,
    /// The model; empty if not reported.
    pub model: String,
    /// The day of the last report of a claim, in UTC: `2026-11-25`.
    pub day: String,
    /// The usage.
    #[serde(flatten)]
    pub sum: UsageSum,
}

/// An agent, the provider and the name of a model, and a day.
type Key = (AgentName, String, String, String);

/// The usage reported under a protocol.
#[derive(Debug, Default)]
pub(super) struct UsageTally(BTreeMap<Key, Spent>);

impl UsageTally {
    pub(super) fn add(&mut self, handoff: &HandoffSurvey<'_>) {
        for usage in &handoff.usage {
            let UsageSurvey {
                at,
                by,
                provider,
                model,
                ..
            } = usage;
            let model = ((*provider).to_owned(), (*model).to_owned());
            let key = (by.to_name(), model.0, model.1, spending::day(*at));
            self.0.entry(key).or_default().add(&usage.spent);
        }
    }

    pub(super) fn figures(&self, protocol: &AgentName) -> impl Iterator<Item = UsageFigures> {
        self.0
            .iter()
            .map(|((agent, provider, model, day), spent)| UsageFigures {
                protocol: protocol.clone(),
                agent: agent.clone(),
                provider: provider.clone(),
                model: model.clone(),
                day: day.clone(),
                sum: spent.into(),
            })
    }
}

/// Sums figures by key, in the order of the keys.
pub fn sums<'f, K: Ord>(
    figures: impl IntoIterator<Item = &'f UsageFigures>,
    key: impl Fn(&'f UsageFigures) -> K,
) -> BTreeMap<K, UsageSum> {
    let mut sums: BTreeMap<K, UsageSum> = BTreeMap::new();
    for one in figures {
        sums.entry(key(one)).or_default().add(&one.sum);
    }
    sums
}

impl UsageSum {
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cached_tokens, other.cached_tokens),
            (&mut self.turns, other.turns),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
        for (currency, cost) in &other.cost {
            let sum = self.cost.entry(currency.clone()).or_default();
            *sum = sum.plus(*cost);
        }
    }
}
