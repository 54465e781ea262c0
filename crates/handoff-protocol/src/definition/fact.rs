//! What is known of an issue, and how it is gathered from its contracts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A fact about an issue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "StoredFact", into = "StoredFact")]
pub struct Fact {
    /// How it is gathered.
    pub rule: FactRule,
    /// Whether each open issue needs its value for itself.
    pub exclusive: bool,
}

/// How a fact about an issue is gathered from its contracts.
#[derive(Clone, Debug)]
pub enum FactRule {
    /// The value at the first of these pointers that the newest contract has.
    Last(Vec<String>),
    /// The value at the first of these pointers in the newest contract of these types; none if that
    /// contract has none.
    Newest {
        /// The contract types.
        of: Vec<String>,
        /// The pointers.
        at: Vec<String>,
    },
    /// The sum over all contracts of these pointers: a number counts as itself,
    /// an array as its length.
    Sum(Vec<String>),
    /// How many contracts of these types were sent.
    Count(Vec<String>),
    /// The items of the lists at these pointers, each once, in the order in
    /// which they came.
    Collect(Vec<String>),
    /// The members of the objects at these pointers; of several with one name, the newest.
    Merge(Vec<String>),
}

impl FactRule {
    /// Its pointers into contracts, and their place in the rule.
    pub fn pointers(&self) -> Option<(&'static str, &[String])> {
        match self {
            Self::Last(list) => Some(("last", list)),
            Self::Newest { at, .. } => Some(("newest/at", at)),
            Self::Sum(list) => Some(("sum", list)),
            Self::Collect(list) => Some(("collect", list)),
            Self::Merge(list) => Some(("merge", list)),
            Self::Count(_) => None,
        }
    }

    /// Its contract types, and their place in the rule.
    pub fn types(&self) -> Option<(&'static str, &[String])> {
        match self {
            Self::Newest { of, .. } => Some(("newest/of", of)),
            Self::Count(list) => Some(("count", list)),
            Self::Last(_) | Self::Sum(_) | Self::Collect(_) | Self::Merge(_) => None,
        }
    }
}

/// A fact as it is stored: it has one of the first six members.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Fact")]
pub struct StoredFact {
    /// The value at the first of these pointers that the newest contract has.
    last: Option<Vec<String>>,
    /// The same in the newest contract of these types, or none.
    newest: Option<Newest>,
    /// The sum over all contracts; a list counts as its length.
    sum: Option<Vec<String>>,
    /// How many contracts of these types were sent.
    count: Option<Vec<String>>,
    /// The items of the lists at these pointers, each once.
    collect: Option<Vec<String>>,
    /// The members of objects there; of one name, the newest.
    merge: Option<Vec<String>>,
    /// Whether each open issue needs it for itself, such as a port: a contract that gives its issue
    /// what another open issue has is accepted with a warning that names the other. With `last` only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    exclusive: bool,
}

/// Where a fact of the newest contract is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Newest {
    /// The contract types.
    of: Vec<String>,
    /// The pointers.
    at: Vec<String>,
}

impl TryFrom<StoredFact> for Fact {
    type Error = &'static str;

    fn try_from(stored: StoredFact) -> Result<Self, Self::Error> {
        let exclusive = stored.exclusive;
        let rules = [
            stored.last.map(FactRule::Last),
            stored
                .newest
                .map(|Newest { of, at }| FactRule::Newest { of, at }),
            stored.sum.map(FactRule::Sum),
            stored.count.map(FactRule::Count),
            stored.collect.map(FactRule::Collect),
            stored.merge.map(FactRule::Merge),
        ];
        let mut rules = rules.into_iter().flatten();
        match (rules.next(), rules.next()) {
            (Some(rule), None) => Ok(Self { rule, exclusive }),
            _ => Err("it has one of `last`, `newest`, `sum`, `count`, `collect` and `merge`"),
        }
    }
}

impl From<Fact> for StoredFact {
    fn from(Fact { rule, exclusive }: Fact) -> Self {
        let mut stored = Self {
            exclusive,
            ..Self::default()
        };
        match rule {
            FactRule::Last(list) => stored.last = Some(list),
            FactRule::Newest { of, at } => stored.newest = Some(Newest { of, at }),
            FactRule::Sum(list) => stored.sum = Some(list),
            FactRule::Count(list) => stored.count = Some(list),
            FactRule::Collect(list) => stored.collect = Some(list),
            FactRule::Merge(list) => stored.merge = Some(list),
        }
        stored
    }
}
