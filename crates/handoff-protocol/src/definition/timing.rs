//! How long work may take, and when it is retried.

use std::collections::BTreeMap;

use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::run_failure::{AnotherTry, RunFailure};

/// The longest time that a protocol, a contract or a command may set, in seconds: ten years. Dates
/// that are computed from it stay in range.
pub const LONGEST: u64 = 10 * 366 * 24 * 60 * 60;

/// The unit of a time in a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// A time in a contract.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeField {
    /// A JSON Pointer to a number.
    pub at: String,
    /// The unit of the number.
    pub unit: Unit,
}

impl TimeField {
    /// The time that a contract gives, in whole seconds, rounded up and limited to [`LONGEST`].
    pub fn read(&self, contract: &Value) -> Option<u64> {
        let number = contract.pointer(&self.at)?.as_f64()?;
        let seconds = match self.unit {
            Unit::Seconds => number,
            Unit::Milliseconds => number / 1000.0,
        };
        (seconds >= 0.0).then(|| whole(seconds))
    }
}

/// Seconds rounded up to a whole number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn whole(seconds: f64) -> u64 {
    // The clamp guarantees that the number fits.
    seconds.ceil().clamp(0.0, LONGEST as f64) as u64
}

/// How much of a delay is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Jitter {
    /// All of it: anything from zero to the whole delay.
    Full,
}

/// When failed work is retried, and what happens when no attempt is left.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// How many attempts may follow the first; by default any number; a contract's own precedes.
    pub max_retries: Option<u32>,
    /// The delay before each further attempt; the last applies to all later ones.
    pub delays_seconds: Vec<u64>,
    /// The delay before the second attempt, instead of a list; a contract's own precedes.
    pub initial_seconds: Option<u64>,
    /// The factor by which each delay grows; a contract's own precedes.
    pub multiplier: Option<Number>,
    /// The longest delay, in seconds.
    pub cap_seconds: Option<u64>,
    /// How much of a delay is random: `full` is all; by default none.
    pub jitter: Option<Jitter>,
    /// The codes of failures that another attempt cannot fix.
    pub never: Vec<String>,
    /// Whether another attempt helps, by the end of an agent's run, if not as usual.
    pub runs: BTreeMap<RunFailure, AnotherTry>,
    /// What a person does by hand in the end.
    pub manual: Option<String>,
}

/// The retry settings of a contract.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OwnRetry {
    /// The delay before the second attempt, in seconds.
    pub initial_seconds: Option<u64>,
    /// The factor by which each further delay grows.
    pub multiplier: Option<Number>,
}

impl Retry {
    /// Whether another attempt helps after a run that failed for this reason.
    pub fn another_try(&self, run: RunFailure) -> AnotherTry {
        let own = self.runs.get(&run).copied();
        own.unwrap_or_else(|| run.another_try())
    }

    /// The longest delay before a retry, in seconds. Retries count from 1; the contract's own
    /// settings take precedence.
    #[allow(clippy::cast_precision_loss)]
    pub fn delay(&self, own: &OwnRetry, retry: u32) -> u64 {
        let nth = usize::try_from(retry.saturating_sub(1)).unwrap_or(usize::MAX);
        let listed = self.delays_seconds.get(nth).or(self.delays_seconds.last());
        let seconds = match (own.initial_seconds, listed) {
            (None, Some(&listed)) => listed,
            (own_initial, _) => {
                let initial = own_initial.or(self.initial_seconds).unwrap_or(0);
                let multiplier = own.multiplier.as_ref().or(self.multiplier.as_ref());
                let multiplier = multiplier.and_then(Number::as_f64).unwrap_or(1.0);
                let power = i32::try_from(nth).unwrap_or(i32::MAX);
                // Zero times infinity is NaN, and means no delay.
                match initial as f64 * multiplier.powi(power) {
                    product if product.is_nan() => 0,
                    product => whole(product),
                }
            }
        };
        seconds.min(self.cap_seconds.unwrap_or(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::{LONGEST, OwnRetry, Retry, TimeField, Unit};

    fn retry(value: Value) -> Retry {
        serde_json::from_value(value).unwrap()
    }

    fn delays(retry: &Retry, own: &OwnRetry) -> Vec<u64> {
        (1..=6).map(|nth| retry.delay(own, nth)).collect()
    }

    #[test]
    fn delays_are_a_list_or_grow() {
        let none = OwnRetry::default();
        let listed = retry(json!({"delays_seconds": [1, 2, 5, 10]}));
        assert_eq!(delays(&listed, &none), [1, 2, 5, 10, 10, 10]);
        let grown = retry(json!({"initial_seconds": 30, "multiplier": 2.0}));
        assert_eq!(delays(&grown, &none), [30, 60, 120, 240, 480, 960]);
        let capped = retry(json!({"initial_seconds": 30, "multiplier": 2.0, "cap_seconds": 100}));
        assert_eq!(delays(&capped, &none), [30, 60, 100, 100, 100, 100]);
        let same = retry(json!({"initial_seconds": 7}));
        assert_eq!(delays(&same, &none), [7; 6]);
        assert_eq!(delays(&Retry::default(), &none), [0; 6]);
        let own = OwnRetry {
            initial_seconds: Some(3),
            multiplier: None,
        };
        assert_eq!(delays(&capped, &own), [3, 6, 12, 24, 48, 96]);
        assert_eq!(delays(&listed, &own), [3; 6]);
    }

    #[test]
    fn no_delay_overflows() {
        let huge = retry(json!({"initial_seconds": LONGEST, "multiplier": 1000.0}));
        let none = OwnRetry::default();
        assert_eq!(huge.delay(&none, u32::MAX), LONGEST);
        let nothing = retry(json!({"initial_seconds": 0, "multiplier": 1000.0}));
        assert_eq!(nothing.delay(&none, u32::MAX), 0);
    }

    #[test]
    fn times_in_contracts_are_whole_seconds() {
        let read = |unit, value: Value| {
            let field = TimeField {
                at: "/t".to_owned(),
                unit,
            };
            field.read(&json!({"t": value}))
        };
        assert_eq!(read(Unit::Seconds, json!(300)), Some(300));
        assert_eq!(read(Unit::Milliseconds, json!(30_000)), Some(30));
        assert_eq!(read(Unit::Milliseconds, json!(1)), Some(1));
        assert_eq!(read(Unit::Milliseconds, json!(1500.5)), Some(2));
        assert_eq!(read(Unit::Seconds, json!(1e300)), Some(LONGEST));
        assert_eq!(read(Unit::Seconds, json!(-1)), None);
        assert_eq!(read(Unit::Seconds, json!("300")), None);
    }
}
