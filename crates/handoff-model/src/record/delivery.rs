//! Outside events behind steps: each effect is applied once.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a delivery, or of one of its effects.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct DeliveryName(String);

/// Why a text is not a [`DeliveryName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a delivery's name has 1 to {LONGEST} letters, digits and `-`, a letter or digit first")]
pub struct NoDeliveryName;

/// The maximum length of a name, in bytes.
const LONGEST: usize = 80;

impl DeliveryName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeliveryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for DeliveryName {
    type Err = NoDeliveryName;

    fn from_str(text: &str) -> Result<Self, NoDeliveryName> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        let right = text.len() <= LONGEST
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(fits);
        if right {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoDeliveryName)
        }
    }
}

impl TryFrom<String> for DeliveryName {
    type Error = NoDeliveryName;

    fn try_from(text: String) -> Result<Self, NoDeliveryName> {
        text.parse()
    }
}

impl From<DeliveryName> for String {
    fn from(name: DeliveryName) -> Self {
        name.0
    }
}

/// The effect of an outside event that a step applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// The sender's name for the delivery; a redelivery has the same name.
    pub id: DeliveryName,
    /// The effect, for events with several.
    pub part: DeliveryName,
}

/// An effect of an event that was applied to an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivered {
    /// The delivery of the event.
    pub id: DeliveryName,
    /// The effect.
    pub part: DeliveryName,
    /// The number of the step's handoff; for a step about the whole issue, of the newest handoff at
    /// that time.
    pub handoff: u32,
}

impl Delivered {
    /// Whether it is this effect.
    pub fn is(&self, delivery: &Delivery) -> bool {
        self.id == delivery.id && self.part == delivery.part
    }
}

#[cfg(test)]
mod tests {
    use crate::record::DeliveryName;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in [
            "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            "run-1",
            &"x".repeat(80),
        ] {
            assert_eq!(
                name.parse::<DeliveryName>().map(String::from).as_deref(),
                Ok(name)
            );
        }
        for none in ["", "-x", "a b", "a\n", "é", "a_b", &"x".repeat(81)] {
            assert!(none.parse::<DeliveryName>().is_err(), "{none:?}");
        }
    }
}
