//! The budgets of a claim.

use std::time::Duration;

use handoff::base::{Amount, Moment};
use handoff::model::usage::BEYOND;
use handoff::model::{ModelUsage, Spent};
use serde_json::Value;

use super::usage::{self, UsageSoFar};

/// The limits of one claim, from the answer of `claim`.
#[derive(Debug, Default)]
pub(super) struct Share {
    limits: Vec<Limit>,
    /// The time of the claim.
    since: Option<Moment>,
}

#[derive(Debug)]
struct Limit {
    budget: String,
    per: String,
    unit: String,
    currency: Option<String>,
    most: f64,
}

impl Share {
    /// Reads the budgets from the answer of a claim. A budget per run starts at its maximum again:
    /// the claim's own usage is counted anew.
    pub(super) fn of(claimed: &Value) -> Self {
        let budgets = claimed["budget"].as_array().into_iter().flatten();
        let limits = budgets.filter_map(|budget| {
            let text = |name: &str| budget[name].as_str().map(str::to_owned);
            let per = text("per")?;
            let most = if per == "run" { "most" } else { "left" };
            Some(Limit {
                budget: text("budget")?,
                unit: text("unit")?,
                currency: text("currency"),
                most: budget[most].as_f64()?,
                per,
            })
        });
        let since = claimed["record"]["lease"]["since"].as_str();
        Self {
            limits: limits.collect(),
            since: since.and_then(|since| since.parse().ok()),
        }
    }

    /// The time for which the handoff may still be held: all runs of a claim share it.
    pub(super) fn time(&self, now: Moment) -> Option<Duration> {
        let all = self.seconds()?;
        let held = self.since.map(|since| (now - since).to_std());
        Some(all.saturating_sub(held.and_then(Result::ok).unwrap_or_default()))
    }

    fn seconds(&self) -> Option<Duration> {
        let seconds = self.limits.iter().filter(|limit| limit.unit == "seconds");
        let seconds = seconds.map(|limit| limit.most).reduce(f64::min)?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Whether tokens or money are limited.
    pub(super) fn is_measured(&self) -> bool {
        self.limits.iter().any(Limit::is_measured)
    }

    /// The rest of a currency's budget, if it is limited.
    pub(super) fn cost_left(&self, currency: &str) -> Option<f64> {
        let of_currency = |limit: &&Limit| limit.currency.as_deref() == Some(currency);
        let limits = self.limits.iter().filter(of_currency);
        limits.map(|limit| limit.most).reduce(f64::min)
    }

    /// The usage to record for an ended run. If its report is unreadable or implausible, the whole
    /// remaining budget.
    pub(super) fn recorded(&self, used: UsageSoFar) -> UsageSoFar {
        let spent = Spent::of(&used.usage);
        #[expect(clippy::cast_precision_loss, reason = "a small constant")]
        let most = BEYOND as f64;
        let is_beyond = |limit: &Limit| limit.amount(&spent) > limit.most * most;
        let beyond = self
            .limits
            .iter()
            .any(|one| one.is_measured() && is_beyond(one));
        let why = beyond.then(|| format!("more than {BEYOND} times what is left"));
        let Some(why) = used.unreadable.or(why) else {
            return UsageSoFar {
                unreadable: None,
                ..used
            };
        };
        let known = if beyond { &[][..] } else { &used.usage };
        UsageSoFar {
            usage: usage::combine(&self.all(), known),
            unreadable: Some(why),
        }
    }

    /// The whole remaining budget of tokens and of each currency.
    fn all(&self) -> Vec<ModelUsage> {
        let measured = self.limits.iter().filter(|limit| limit.is_measured());
        let mut all: Vec<ModelUsage> = Vec::new();
        for limit in measured {
            let currency = limit.currency.clone().and_then(|name| name.try_into().ok());
            if all.iter().any(|known| known.currency == currency) {
                continue;
            }
            let same = self
                .limits
                .iter()
                .filter(|one| one.is_measured() && one.currency == limit.currency);
            let least = same.map(|one| one.most).fold(f64::MAX, f64::min);
            let cost = Amount::try_from(least).ok().filter(|_| currency.is_some());
            let tokens = format!("{least:.0}").parse().ok();
            all.push(ModelUsage {
                output_tokens: tokens.filter(|_| currency.is_none()),
                currency: currency.filter(|_| cost.is_some()),
                cost,
                ..ModelUsage::default()
            });
        }
        all
    }

    /// The limit that is exceeded most, in words; `None` if none is. An unreadable report counts as
    /// the whole remaining budget.
    pub(super) fn exceeded_by(&self, used: impl FnOnce() -> UsageSoFar) -> Option<String> {
        if !self.is_measured() {
            return None;
        }
        let used = used();
        if let Some(why) = used.unreadable {
            return Some(format!(
                "its usage report can't be read, so the rest of the budget counts as used: {why}"
            ));
        }
        let spent = Spent::of(&used.usage);
        let reached = |limit: &&Limit| limit.is_measured() && limit.amount(&spent) >= limit.most;
        let part = |limit: &Limit| limit.amount(&spent) / limit.most;
        let reached = self.limits.iter().filter(reached);
        let limit = reached.max_by(|one, other| part(one).total_cmp(&part(other)))?;
        let (used, most) = (limit.amount(&spent), limit.most);
        let unit = limit.currency.as_ref().unwrap_or(&limit.unit);
        let Limit { budget, per, .. } = limit;
        Some(format!(
            "it used {used} of {most} {unit} that were left per {per} (budget {budget})"
        ))
    }
}

impl Limit {
    fn is_measured(&self) -> bool {
        ["cost", "tokens"].contains(&self.unit.as_str())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts are far below what a float has exactly"
    )]
    fn amount(&self, spent: &Spent) -> f64 {
        let of_currency = |own: &str| {
            let cost = spent
                .cost
                .iter()
                .find(|(currency, _)| currency.as_str() == own);
            cost.map_or(0.0, |(_, cost)| f64::from(*cost))
        };
        match &self.currency {
            Some(currency) => of_currency(currency),
            None => spent.tokens() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use handoff::model::read_usage;
    use serde_json::json;

    use super::{Share, UsageSoFar};

    #[test]
    fn a_run_ends_at_the_first_limit_that_it_reaches() {
        let limit = |budget, per, unit, currency, most, left| json!({"budget": budget, "per": per, "unit": unit, "currency": currency, "most": most, "left": left});
        let share = Share::of(
            &json!({"record": {"lease": {"since": "2026-05-01T10:00:00Z"}}, "budget": [
                limit("run", "run", "cost", Some("USD"), 2.0, 1.5),
                limit("day", "day", "tokens", None, 1000.0, 400.0),
                limit("day", "day", "attempts", None, 3.0, 2.0),
                limit("time", "issue", "seconds", None, 600.0, 90.0),
            ]}),
        );
        let seconds = |text: &str| {
            let now = text.parse().unwrap_or_default();
            share.time(now).map(|time| time.as_secs())
        };
        assert_eq!(seconds("2026-05-01T10:00:00Z"), Some(90));
        assert_eq!(
            seconds("2026-05-01T10:01:00Z"),
            Some(30),
            "of the whole claim"
        );
        assert_eq!(seconds("2026-05-01T11:00:00Z"), Some(0));
        let used = |json: &str| {
            let usage = read_usage(json.as_bytes()).unwrap_or_default();
            share.exceeded_by(|| UsageSoFar {
                usage,
                unreadable: None,
            })
        };
        assert_eq!(
            used(r#"{"cost": 1.9, "currency": "USD", "output_tokens": 399}"#),
            None
        );
        assert_eq!(used(r#"{"cost": 9, "currency": "EUR"}"#), None);
        let told = used(r#"{"cost": 2.25, "currency": "USD"}"#);
        assert_eq!(
            told.as_deref(),
            Some("it used 2.25 of 2 USD that were left per run (budget run)")
        );
        let told = used(r#"{"output_tokens": 400}"#);
        assert_eq!(
            told.as_deref(),
            Some("it used 400 of 400 tokens that were left per day (budget day)")
        );
        let unreadable = share.exceeded_by(|| UsageSoFar {
            usage: Vec::new(),
            unreadable: Some("a cost below 0".to_owned()),
        });
        assert!(unreadable.is_some_and(|told| told.ends_with("counts as used: a cost below 0")));
        assert_eq!(share.cost_left("USD"), Some(2.0));
        let none = Share::of(&json!({"budget": []}));
        assert!(!none.is_measured() && none.seconds().is_none());
    }
}
