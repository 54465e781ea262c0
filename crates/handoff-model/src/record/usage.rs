//! Usage: what work cost, as agents report it, and sums of it.
//!
//! A report has the totals of one claim so far. So a later report replaces it, and repeating it
//! changes nothing.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_base::text::{grouped, quoted};
use handoff_base::{Amount, Currency, Moment};
use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of models in a report.
pub const MOST_MODELS: usize = 20;

/// The maximum length of a model's or provider's name, in characters.
const LONGEST_NAME: usize = 100;

/// A report of more than this multiple of a budget is refused.
pub const BEYOND: u64 = 1000;

/// The upper limit of a cost in a report.
const MOST_COST: u64 = 1_000_000_000;

/// The upper limit of a count in a report.
const MOST: u64 = 1_000_000_000_000_000;

/// The usage of one model. Each member is optional.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelUsage {
    /// The provider of the model: `anthropic`.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Input tokens, including cached ones.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Input tokens that came from a cache.
    pub cached_tokens: Option<u64>,
    /// The cost, in `currency`.
    pub cost: Option<Amount>,
    /// The currency of `cost`, such as `USD`.
    pub currency: Option<Currency>,
    /// The number of model calls.
    pub turns: Option<u64>,
    /// The total duration of the work, in seconds.
    pub wall_seconds: Option<u64>,
    /// The part of it during which the model or a tool worked, in seconds.
    pub working_seconds: Option<u64>,
}

/// The usage of a claim so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// When it was last reported.
    pub at: Moment,
    /// The agent.
    pub by: AgentName,
    /// The attempt.
    pub attempt: u32,
    /// The number of the claim; 0 if the agent sent the handoff's contract without holding another.
    pub token: u32,
    /// The usage by model.
    pub models: Vec<ModelUsage>,
}

/// Why a text is not a report of usage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoUsage {
    /// It can't be parsed.
    #[error("{0}")]
    Form(String),
    /// It lists no model, or too many.
    #[error("it lists {0} models, not 1 to {MOST_MODELS}")]
    Models(usize),
    /// An entry has no figures.
    #[error("it has none of input_tokens, output_tokens, cost, turns and wall_seconds")]
    Empty,
    /// A name is too long, or not one word.
    #[error("{} is not a name of 1 to {LONGEST_NAME} letters, digits and punctuation", quoted(.0))]
    Name(String),
    /// A count is too large.
    #[error("{0} is {1}, more than {MOST}")]
    Count(&'static str, u64),
    /// A cost is too large.
    #[error("cost is {0}, and a report has less than {MOST_COST}")]
    Cost(Amount),
    /// Its author did not do the work.
    #[error("usage of a handoff is reported by its receiver")]
    NotIts,
    /// It has less than the previous report.
    #[error("it says less than was reported before, and a report has the totals so far")]
    Less,
    /// It is far beyond a budget.
    #[error("it says {said}, more than {BEYOND} times the {most} of budget {budget}")]
    Beyond {
        /// The reported value, with its unit.
        said: String,
        /// The budget's value.
        most: String,
        /// The budget.
        budget: String,
    },
    /// A cost without its currency, or the other way round.
    #[error("cost and currency are given together")]
    Currency,
    /// It has more cached input tokens than input tokens.
    #[error("cached_tokens is more than input_tokens, which includes them")]
    Cached,
}

/// Parses a report: an object, or a list with one for each model.
///
/// # Errors
/// [`NoUsage`].
pub fn read_usage(json: &[u8]) -> Result<Vec<ModelUsage>, NoUsage> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Many(Vec<serde_json::Value>),
        One(serde_json::Value),
    }
    let form = |error: serde_json::Error| {
        let text = error.to_string().replace("u64", "a whole number");
        let text = text.replace("expected ident", "it is not JSON");
        NoUsage::Form(text.replace("f64", "a number"))
    };
    let entries = match serde_json::from_slice(bare(json)).map_err(form)? {
        Form::Many(entries) => entries,
        Form::One(entry) => vec![entry],
    };
    let entries = entries.into_iter().map(serde_json::from_value);
    let models: Vec<ModelUsage> = entries.collect::<Result<_, _>>().map_err(form)?;
    ensure_usage(&models)?;
    Ok(models)
}

/// Strips what models and editors add around JSON: a byte order mark, a Markdown fence.
fn bare(json: &[u8]) -> &[u8] {
    let json = json
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(json)
        .trim_ascii();
    let inside = json.strip_prefix(b"```").and_then(|rest| {
        let line = rest.iter().position(|byte| *byte == b'\n')?;
        rest[line..].strip_suffix(b"```")
    });
    inside.unwrap_or(json)
}

/// Validates a report.
///
/// # Errors
/// [`NoUsage`].
pub fn ensure_usage(models: &[ModelUsage]) -> Result<(), NoUsage> {
    if !(1..=MOST_MODELS).contains(&models.len()) {
        return Err(NoUsage::Models(models.len()));
    }
    for usage in models {
        let counts = usage.counts();
        if usage.cost.is_none() && counts.iter().all(|(_, count)| count.is_none()) {
            return Err(NoUsage::Empty);
        }
        for name in [&usage.provider, &usage.model].into_iter().flatten() {
            let is_word = name.chars().all(|c| c.is_ascii_graphic());
            if name.is_empty() || name.len() > LONGEST_NAME || !is_word {
                return Err(NoUsage::Name(name.clone()));
            }
        }
        let large = counts
            .iter()
            .find(|(_, count)| count.is_some_and(|count| count > MOST));
        if let Some((name, Some(count))) = large {
            return Err(NoUsage::Count(name, *count));
        }
        let most = MOST_COST * 1_000_000_000;
        if let Some(cost) = usage.cost.filter(|cost| cost.billionths() >= most) {
            return Err(NoUsage::Cost(cost));
        }
        if usage.cost.is_some() != usage.currency.is_some() {
            return Err(NoUsage::Currency);
        }
        if usage.cached_tokens > Some(usage.input_tokens.unwrap_or(0)) {
            return Err(NoUsage::Cached);
        }
    }
    Ok(())
}

impl ModelUsage {
    fn counts(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("input_tokens", self.input_tokens),
            ("output_tokens", self.output_tokens),
            ("cached_tokens", self.cached_tokens),
            ("turns", self.turns),
            ("wall_seconds", self.wall_seconds),
            ("working_seconds", self.working_seconds),
        ]
    }
}

/// A sum of usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spent {
    /// Claims that were not given back.
    pub attempts: u64,
    /// The seconds for which the work was held.
    pub seconds: u64,
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

impl Spent {
    /// The sum of a report.
    pub fn of(models: &[ModelUsage]) -> Self {
        let mut spent = Self::default();
        for usage in models {
            let add =
                |sum: &mut u64, more: Option<u64>| *sum = sum.saturating_add(more.unwrap_or(0));
            add(&mut spent.input_tokens, usage.input_tokens);
            add(&mut spent.output_tokens, usage.output_tokens);
            add(&mut spent.cached_tokens, usage.cached_tokens);
            add(&mut spent.turns, usage.turns);
            if let (Some(cost), Some(currency)) = (usage.cost, &usage.currency) {
                let sum = spent.cost.entry(currency.clone()).or_default();
                *sum = sum.plus(cost);
            }
        }
        spent
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.each(other, u64::saturating_add);
        for (currency, cost) in &other.cost {
            let sum = self.cost.entry(currency.clone()).or_default();
            *sum = sum.plus(*cost);
        }
    }

    /// Subtracts a part of the sum.
    pub fn subtract(&mut self, part: &Self) {
        self.each(part, u64::saturating_sub);
        for (currency, cost) in &part.cost {
            if let Some(sum) = self.cost.get_mut(currency) {
                *sum = sum.minus(*cost);
            }
        }
        self.cost.retain(|_, sum| *sum != Amount::default());
    }

    fn each(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.attempts, other.attempts),
            (&mut self.seconds, other.seconds),
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cached_tokens, other.cached_tokens),
            (&mut self.turns, other.turns),
        ];
        for (sum, more) in pairs {
            *sum = with(*sum, more);
        }
    }

    /// Input plus output tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// In words: `0.42 USD, 12,000 tokens`; `None` if no usage was reported.
    pub fn text(&self) -> Option<String> {
        let costs = self
            .cost
            .iter()
            .map(|(currency, cost)| format!("{cost} {currency}"));
        let tokens = Some(self.tokens()).filter(|tokens| *tokens > 0);
        let tokens = tokens.map(|tokens| format!("{} tokens", grouped(tokens)));
        let parts: Vec<String> = costs.chain(tokens).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{NoUsage, Spent, read_usage};

    #[test]
    fn a_report_is_an_object_or_a_list() {
        let one = br#"{"model": "m", "input_tokens": 10, "cached_tokens": 4, "output_tokens": 2}"#;
        assert_eq!(Spent::of(&read_usage(one).unwrap()).tokens(), 12);
        let two = br#"[{"cost": 0.1, "currency": "USD"}, {"cost": 0.2, "currency": "USD"},
                       {"cost": 1, "currency": "EUR", "output_tokens": 5}]"#;
        let spent = Spent::of(&read_usage(two).unwrap());
        assert_eq!(spent.text().unwrap(), "1.00 EUR, 0.30 USD, 5 tokens");
    }

    #[test]
    fn what_no_record_may_hold_is_refused() {
        let refused = |text: &str| read_usage(text.as_bytes()).unwrap_err();
        assert_eq!(refused("[]"), NoUsage::Models(0));
        assert_eq!(refused(r#"{"model": "m"}"#), NoUsage::Empty);
        assert_eq!(refused(r#"{"cost": 1}"#), NoUsage::Currency);
        assert_eq!(
            refused(r#"{"turns": 1, "currency": "USD"}"#),
            NoUsage::Currency
        );
        assert_eq!(
            refused(r#"{"output_tokens": 1, "cached_tokens": 1}"#),
            NoUsage::Cached
        );
        assert!(matches!(
            refused(r#"{"turns": 1, "model": "a b"}"#),
            NoUsage::Name(_)
        ));
        assert!(matches!(
            refused(r#"{"turns": 9999999999999999}"#),
            NoUsage::Count("turns", _)
        ));
        for form in [
            "",
            "1",
            "{\"turns\": -1}",
            "{\"turn\": 1}",
            r#"{"cost": -1, "currency": "USD"}"#,
        ] {
            assert!(matches!(refused(form), NoUsage::Form(_)), "{form}");
        }
    }

    #[test]
    fn a_sum_without_its_part_is_the_rest() {
        let report = read_usage(br#"{"turns": 2, "cost": 3, "currency": "USD"}"#).unwrap();
        let mut sum = Spent::of(&report);
        sum.add(&Spent::of(&report));
        sum.subtract(&Spent::of(&report));
        assert_eq!(sum, Spent::of(&report));
        sum.subtract(&Spent::of(&report));
        assert_eq!(sum, Spent::default());
    }
}
