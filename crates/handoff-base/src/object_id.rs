//! The ids of Git objects.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::quoted;

/// The object format (hash function) of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectFormat {
    /// SHA-1, which git has always used.
    Sha1,
    /// SHA-256, the default of Git 3.0.
    Sha256,
}

/// The length of the longest format's ids, in bytes.
const MOST_BYTES: usize = 32;

impl ObjectFormat {
    /// The length of an id in bytes; its text has twice as many digits.
    #[inline]
    pub const fn id_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => MOST_BYTES,
        }
    }

    /// The format with ids of this length, in bytes.
    #[inline]
    fn of_length(bytes: usize) -> Option<Self> {
        match bytes {
            20 => Some(Self::Sha1),
            MOST_BYTES => Some(Self::Sha256),
            _ => None,
        }
    }
}

/// The id of a Git object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "String")]
pub struct ObjectId {
    /// Padded with zeros.
    bytes: [u8; MOST_BYTES],
    format: ObjectFormat,
}

/// A text that is not an object id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown} is not the id of an object, which has 40 or 64 hexadecimal digits")]
pub struct NoObjectId {
    /// The text, escaped for display.
    shown: String,
}

impl ObjectId {
    /// The id with these bytes; `None` if no format has this length.
    #[inline]
    pub fn from_bytes(id: &[u8]) -> Option<Self> {
        let format = ObjectFormat::of_length(id.len())?;
        let mut bytes = [0; MOST_BYTES];
        bytes[..id.len()].copy_from_slice(id);
        Some(Self { bytes, format })
    }

    /// The null id: all zeros.
    pub const fn zero(format: ObjectFormat) -> Self {
        let bytes = [0; MOST_BYTES];
        Self { bytes, format }
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.format.id_bytes()]
    }

    /// The id's format.
    #[inline]
    pub fn format(self) -> ObjectFormat {
        self.format
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
        let mut digits = [0; 2 * MOST_BYTES];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.as_bytes()) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        let digits = &digits[..2 * self.format.id_bytes()];
        f.write_str(std::str::from_utf8(digits).map_err(|_| fmt::Error)?)
    }
}

impl Hash for ObjectId {
    /// Hashes only the id's bytes, which are a hash already.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.bytes);
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
        // Stored ids have a single canonical form.
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
            if !rest.is_empty() {
                return None;
            }
            let format = ObjectFormat::of_length(pairs.len())?;
            let mut bytes = [0; MOST_BYTES];
            for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
                *byte = value(*high)? << 4 | value(*low)?;
            }
            Some(Self { bytes, format })
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
        let short = "0123456789abcdef0123456789abcdef01234567";
        let long = format!("{short}89abcdef0123456789abcdef");
        for text in [short, &long] {
            let id: ObjectId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(id.short(), "0123456789");
            assert_eq!(ObjectId::from_bytes(id.as_bytes()), Some(id));
            assert_eq!(id.as_bytes().len(), id.format().id_bytes());
            assert_eq!(text.to_uppercase().parse(), Ok(id));
            for bad in [
                "",
                "0123",
                &text[1..],
                &format!("{text}0"),
                &format!("{text}00"),
                &text.replace('a', "g"),
            ] {
                assert!(bad.parse::<ObjectId>().is_err(), "{bad}");
            }
        }
    }

    #[test]
    fn an_id_is_not_a_longer_one_that_begins_like_it() {
        let short = ObjectId::zero(ObjectFormat::Sha1);
        let long = ObjectId::zero(ObjectFormat::Sha256);
        assert_ne!(short, long);
        assert!(long.to_string().starts_with(&short.to_string()));
    }
}
