//! Sums of money.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sum of money in units of its currency, exact to a billionth below nine million; a JSON number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Amount(u64);

/// A number that is not a sum of money: negative, not finite, or above 18 billion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sum of money is a number from 0 to 18 billion")]
pub struct NoAmount;

/// Billionths per unit.
const UNIT: f64 = 1e9;

impl TryFrom<f64> for Amount {
    type Error = NoAmount;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked, and a billionth is as exact as it gets"
    )]
    fn try_from(number: f64) -> Result<Self, NoAmount> {
        // Every sum that `plus` returns must parse again: the largest is 18 billion units.
        if (0.0..=f64::from(Self(u64::MAX))).contains(&number) {
            Ok(Self((number * UNIT).round() as u64))
        } else {
            Err(NoAmount)
        }
    }
}

impl From<Amount> for f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "below nine million units every billionth is exact"
    )]
    fn from(amount: Amount) -> Self {
        amount.0 as f64 / UNIT
    }
}

impl Amount {
    /// The sum of two amounts, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The amount in billionths.
    pub fn billionths(self) -> u64 {
        self.0
    }

    /// An amount from billionths.
    pub fn from_billionths(billionths: u64) -> Self {
        Self(billionths)
    }

    /// The difference of two amounts, saturating at zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::fmt::Display for Amount {
    /// Shows two decimals; for amounts below a hundredth, as many as needed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// A hundredth, in billionths.
        const HUNDREDTH: u64 = 10_000_000;
        let number = f64::from(*self);
        if self.0.is_multiple_of(HUNDREDTH) || self.0 >= HUNDREDTH {
            write!(f, "{number:.2}")
        } else {
            write!(f, "{number}")
        }
    }
}

/// A currency's three letters by ISO 4217, such as `USD`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Currency(String);

/// A text that does not name a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a currency is three capital letters, such as USD")]
pub struct NoCurrency;

impl TryFrom<String> for Currency {
    type Error = NoCurrency;

    fn try_from(text: String) -> Result<Self, NoCurrency> {
        let is_right = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        is_right.then_some(Self(text)).ok_or(NoCurrency)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.0
    }
}

impl Currency {
    /// The three letters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Amount, Currency};

    #[test]
    fn a_sum_is_stored_as_it_was_given() {
        for text in [
            "0.0",
            "0.0780315",
            "12.5",
            "999999.999999999",
            "1e-9",
            "18000000000.0",
        ] {
            let amount: Amount = serde_json::from_str(text).unwrap();
            let again = serde_json::to_string(&amount).unwrap();
            assert_eq!(serde_json::from_str::<Amount>(&again).unwrap(), amount);
            assert_eq!(f64::from(amount), text.parse::<f64>().unwrap());
        }
        for refused in ["-0.1", "1.85e10", "\"1\"", "null"] {
            assert!(
                serde_json::from_str::<Amount>(refused).is_err(),
                "{refused}"
            );
        }
        // The maximum, too, must survive storing and parsing.
        let largest = Amount::from_billionths(u64::MAX).plus(Amount::from_billionths(1));
        let stored = serde_json::to_string(&largest).unwrap();
        assert_eq!(serde_json::from_str::<Amount>(&stored).unwrap(), largest);
        let shown = |number: f64| Amount::try_from(number).unwrap().to_string();
        assert_eq!(
            [shown(0.0), shown(3.5), shown(0.25)],
            ["0.00", "3.50", "0.25"]
        );
        assert_eq!(shown(0.0042), "0.0042");
    }

    #[test]
    fn a_currency_is_three_letters() {
        let read = |text: &str| Currency::try_from(text.to_owned()).is_ok();
        assert!(read("EUR"));
        for refused in ["", "usd", "US", "USDT", "U$D"] {
            assert!(!read(refused), "{refused}");
        }
    }
}
