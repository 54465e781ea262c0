//! Names and ids as types whose values are always valid.
//!
//! Constructors refuse text that could leave its folder or break a commit message or a path, so
//! later code need not check again. Serde uses the same constructors.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codes::ErrorCode;
use crate::explained::{Explained, Explanation};
use crate::text::{natural_order, quoted};

/// The longest issue key, agent name and worker id, in bytes.
pub const MAX_NAME: usize = 64;

/// Why a name or an id was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The name is empty.
    #[error("{kind} is empty")]
    Empty {
        /// The kind of name.
        kind: &'static str,
    },
    /// The name is longer than [`MAX_NAME`] bytes.
    #[error("{kind} has {length} bytes, and at most {MAX_NAME} are allowed")]
    TooLong {
        /// The kind of name.
        kind: &'static str,
        /// Its length in bytes.
        length: usize,
    },
    /// The name has a character outside the allowed set.
    #[error("{kind} {shown} may contain only {allowed}")]
    Character {
        /// The kind of name.
        kind: &'static str,
        /// The name, escaped for display.
        shown: String,
        /// The allowed set, in words.
        allowed: &'static str,
    },
    /// The text is not of the form `ISSUE.N`.
    #[error("{shown} is not a handoff id, which is ISSUE.N such as 123.4")]
    Form {
        /// The text, escaped for display.
        shown: String,
    },
}

impl Explained for IdError {
    fn explanation(&self) -> Explanation {
        ErrorCode::Usage.into()
    }
}

impl IdError {
    /// Relabels the error for another kind of name with the same rule.
    #[must_use]
    pub fn of(self, kind: &'static str) -> Self {
        match self {
            Self::Empty { .. } => Self::Empty { kind },
            Self::TooLong { length, .. } => Self::TooLong { kind, length },
            Self::Character { shown, allowed, .. } => Self::Character {
                kind,
                shown,
                allowed,
            },
            form @ Self::Form { .. } => form,
        }
    }
}

fn checked(
    kind: &'static str,
    allowed: &'static str,
    text: &str,
    first: impl Fn(u8) -> bool,
    rest: impl Fn(u8) -> bool,
) -> Result<(), IdError> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Err(IdError::Empty { kind });
    }
    if bytes.len() > MAX_NAME {
        return Err(IdError::TooLong {
            kind,
            length: bytes.len(),
        });
    }
    let is_bad = bytes.iter().fold(false, |bad, &b| bad | !rest(b));
    if is_bad || !first(bytes[0]) {
        return Err(IdError::Character {
            kind,
            shown: quoted(text),
            allowed,
        });
    }
    Ok(())
}

macro_rules! name_type {
    ($name:ident) => {
        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.to_owned().try_into()
            }
        }
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::check(&text)?;
                Ok(Self(text))
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

/// The key of an issue: `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`. Keys sort by their numbers, if any: 2 is
/// before 10.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct IssueKey(String);

name_type!(IssueKey);

impl Ord for IssueKey {
    fn cmp(&self, other: &Self) -> Ordering {
        natural_order(&self.0, &other.0)
    }
}

impl PartialOrd for IssueKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl IssueKey {
    fn check(text: &str) -> Result<(), IdError> {
        checked(
            "issue key",
            "letters, digits, `_` and `-`, the first a letter or digit",
            text,
            |b| b.is_ascii_alphanumeric(),
            |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-',
        )?;
        ensure_unreserved("issue key", text)
    }
}

/// Whether a file name is a device on Windows, whatever its extension.
pub fn is_reserved(name: &str) -> bool {
    let stem = name.split(['.', ' ']).next().unwrap_or_default();
    let consoles = ["CONIN$", "CONOUT$"];
    if consoles.iter().any(|name| name.eq_ignore_ascii_case(stem)) {
        return true;
    }
    let (kind, number) = stem.split_at_checked(3).unwrap_or_default();
    let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(kind));
    match number {
        "" => is(&["CON", "PRN", "AUX", "NUL"]),
        // Windows treats superscripts as digits.
        "¹" | "²" | "³" => is(&["COM", "LPT"]),
        number => number.len() == 1 && number < ":" && is(&["COM", "LPT"]),
    }
}

fn ensure_unreserved(kind: &'static str, text: &str) -> Result<(), IdError> {
    // Fast path: most names are longer, or numbers.
    if text.len() < 3 || text.as_bytes()[0].is_ascii_digit() || !is_reserved(text) {
        return Ok(());
    }
    Err(IdError::Character {
        kind,
        shown: quoted(text),
        allowed: "a name that is not one of Windows' devices, such as `NUL` or `COM1`",
    })
}

/// An agent's name: ASCII letters, digits, `.`, `_`, `-` and `@`, starting with a letter, a digit
/// or `@`, without two dots in a row (git refuses such names in paths and refs).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

name_type!(AgentName);

/// The bytes allowed in agents' names. Scanning a whole ledger checks a million names: without this
/// table and a branch-free loop, that takes a tenth of the time.
const IN_AGENT_NAME: [bool; 256] = {
    let mut known = [false; 256];
    let mut at = 0;
    while at < 128 {
        let b = at as u8;
        known[at] = b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'@');
        at += 1;
    }
    known
};

impl AgentName {
    fn check(text: &str) -> Result<(), IdError> {
        const ALLOWED: &str = "letters, digits, `.`, `_`, `-` and `@`, the first a letter, a digit or `@`, and no `..`";
        checked(
            "agent name",
            ALLOWED,
            text,
            |b| b.is_ascii_alphanumeric() || b == b'@',
            |b| IN_AGENT_NAME[usize::from(b)],
        )?;
        let has_dot = text.bytes().fold(false, |has, b| has | (b == b'.'));
        if has_dot && text.contains("..") {
            return Err(IdError::Character {
                kind: "agent name",
                shown: quoted(text),
                allowed: ALLOWED,
            });
        }
        ensure_unreserved("agent name", text)
    }
}

impl Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AgentName {
    /// Borrows the name.
    pub fn borrowed(&self) -> AgentRef<'_> {
        AgentRef(&self.0)
    }
}

/// A borrowed [`AgentName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct AgentRef<'a>(&'a str);

impl<'a> AgentRef<'a> {
    /// Checks a name.
    ///
    /// # Errors
    /// [`IdError`] if it is not a valid agent name.
    pub fn new(text: &'a str) -> Result<Self, IdError> {
        AgentName::check(text)?;
        Ok(Self(text))
    }

    /// The name as text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// An owned copy.
    pub fn to_name(self) -> AgentName {
        AgentName(self.0.to_owned())
    }
}

impl fmt::Display for AgentRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for AgentRef<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(<&str>::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// A handoff's id, `ISSUE.N`, with N counting from 1 in its issue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HandoffId {
    issue: IssueKey,
    number: u32,
}

/// A worker's id: the process, session or working tree that holds a lease. ASCII letters, digits,
/// `.`, `_`, `-`, `:`, `@` and `/`, starting with a letter or digit, so that it never needs quotes
/// in a shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct WorkerId(String);

name_type!(WorkerId);

impl WorkerId {
    fn check(text: &str) -> Result<(), IdError> {
        checked(
            "worker id",
            "letters, digits, `.`, `_`, `-`, `:`, `@` and `/`, the first a letter or digit",
            text,
            |b| b.is_ascii_alphanumeric(),
            |b| b.is_ascii_alphanumeric() || b"._-:@/".contains(&b),
        )
    }
}

impl HandoffId {
    /// Creates the id of an issue's handoff with this number, from 1.
    pub fn new(issue: IssueKey, number: u32) -> Self {
        Self { issue, number }
    }

    /// The issue it belongs to.
    pub fn issue(&self) -> &IssueKey {
        &self.issue
    }

    /// Its number in the issue, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl fmt::Display for HandoffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.issue, self.number)
    }
}

impl FromStr for HandoffId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let form = || IdError::Form {
            shown: quoted(text),
        };
        let (issue, number) = text.rsplit_once('.').ok_or_else(form)?;
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        if !digits || number.starts_with('0') {
            return Err(form());
        }
        Ok(Self {
            issue: issue.parse()?,
            number: number.parse().map_err(|_| form())?,
        })
    }
}

impl TryFrom<String> for HandoffId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<HandoffId> for String {
    fn from(id: HandoffId) -> Self {
        id.to_string()
    }
}

impl Serialize for HandoffId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_that_could_leave_their_folder_are_refused() {
        for bad in [
            "",
            "../x",
            "a/b",
            "-x",
            "a b",
            "a\nb",
            "a\u{1b}[31m",
            "é",
            ".x",
        ] {
            assert!(bad.parse::<IssueKey>().is_err(), "{bad:?}");
            assert!(bad.parse::<AgentName>().is_err(), "{bad:?}");
        }
        assert!("a".repeat(65).parse::<IssueKey>().is_err());
        assert!("a..b".parse::<AgentName>().is_err());
        assert!("@react-specialist".parse::<AgentName>().is_ok());
        assert!("003_1".parse::<IssueKey>().is_ok());
    }

    #[test]
    fn worker_ids_need_no_quotes() {
        for good in ["w", "host/tree:7@ci", "github-run-1234-2", "9.a_b"] {
            assert_eq!(good.parse::<WorkerId>().unwrap().as_str(), good);
        }
        let long = "a".repeat(65);
        for bad in [
            "", "a b", "-a", "/a", "a\n", "a'b", "a$b", "é", "a\u{1b}", &long,
        ] {
            assert!(bad.parse::<WorkerId>().is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<WorkerId>("\"a b\"").is_err());
    }

    #[test]
    fn handoff_ids_have_one_spelling() {
        let id: HandoffId = "a_b-9.12".parse().unwrap();
        assert_eq!((id.issue().as_str(), id.number()), ("a_b-9", 12));
        for bad in [
            "1",
            "1.",
            "1.0",
            "1.01",
            "1.-1",
            "1.x",
            ".1",
            "1.99999999999",
            "1.2.3",
        ] {
            assert!(bad.parse::<HandoffId>().is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<HandoffId>("\"../1.1\"").is_err());
    }
}
