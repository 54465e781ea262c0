//! The ids of Git objects.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::quoted;

/// The length of an id in bytes.
const BYTES: usize = 20;

/// The id of a Git object: SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "String")]
pub struct ObjectId([u8; BYTES]);

/// A text that is not an object id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown} is not the id of an object, which has 40 hexadecimal digits")]
pub struct NoObjectId {
    /// The text, escaped for display.
    shown: String,
}

impl ObjectId {
    /// The id with these bytes.
    pub fn from_bytes(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// The first ten hexadecimal digits, for people.
    pub fn short(self) -> String {
        short_id(&self.to_string())
    }
}

/// The first ten characters of an id given as text, which need not be valid.
pub fn short_id(id: &str) -> String {
    id.chars().take(10).collect()
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 2 * BYTES];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let id: Self = text.parse().map_err(serde::de::Error::custom)?;
        // Stored ids have one form.
        if id.to_string() == text {
            Ok(id)
        } else {
            let shown = quoted(&text);
            Err(serde::de::Error::custom(NoObjectId { shown }))
        }
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value)]
}

impl FromStr for ObjectId {
    type Err = NoObjectId;

    fn from_str(text: &str) -> Result<Self, NoObjectId> {
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let parse = || {
            let (pairs, rest) = text.as_bytes().as_chunks::<2>();
            let mut id = [0; BYTES];
            if pairs.len() != BYTES || !rest.is_empty() {
                return None;
            }
            for (byte, [high, low]) in id.iter_mut().zip(pairs) {
                *byte = value(*high)? << 4 | value(*low)?;
            }
            Some(Self(id))
        };
        parse().ok_or_else(|| NoObjectId {
            shown: quoted(text),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let text = "0123456789abcdef0123456789abcdef01234567";
        let id: ObjectId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(id.short(), "0123456789");
        assert_eq!(text.to_uppercase().parse(), Ok(id));
        for bad in [
            "",
            "0123",
            &text[1..],
            &format!("{text}0"),
            &text.replace('a', "g"),
        ] {
            assert!(bad.parse::<ObjectId>().is_err(), "{bad}");
        }
    }
}
