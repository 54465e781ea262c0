//! Facts of an issue, and how they are gathered from its contracts.

use std::collections::{BTreeMap, btree_map};
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::opinions::Opinions;

/// A fact about an issue.
#[derive(Clone, Debug)]
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
    /// The pointers into contracts, and their key in the rule.
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

    /// The contract types, and their key in the rule.
    pub fn types(&self) -> Option<(&'static str, &[String])> {
        match self {
            Self::Newest { of, .. } => Some(("newest/of", of)),
            Self::Count(list) => Some(("count", list)),
            Self::Last(_) | Self::Sum(_) | Self::Collect(_) | Self::Merge(_) => None,
        }
    }
}

/// The facts of a protocol.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    gathered: BTreeMap<String, Fact>,
    /// The opinions: facts that several parties report at the same time.
    pub opinions: Vec<Opinions>,
    /// The facts that an agent needs to start on a handoff, in the order in which `claim` prints
    /// them.
    pub briefing: Vec<String>,
}

impl Deref for Facts {
    type Target = BTreeMap<String, Fact>;

    fn deref(&self) -> &Self::Target {
        &self.gathered
    }
}

impl<'f> IntoIterator for &'f Facts {
    type Item = (&'f String, &'f Fact);
    type IntoIter = btree_map::Iter<'f, String, Fact>;

    fn into_iter(self) -> Self::IntoIter {
        self.gathered.iter()
    }
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut all, mut briefing) = (Self::default(), Vec::new());
        for (name, entry) in BTreeMap::<String, Entry>::deserialize(deserializer)? {
            briefing.extend(entry.briefing.map(|rank| (rank, name.clone())));
            all.opinions.extend(entry.opinions.map(|mut opinions| {
                opinions.fact.clone_from(&name);
                opinions
            }));
            all.gathered.extend(entry.fact.map(|fact| (name, fact)));
        }
        briefing.sort();
        all.briefing = briefing.into_iter().map(|(_, name)| name).collect();
        Ok(all)
    }
}

/// The stored parts of a fact: its rule, its opinions, its place in the briefing.
#[derive(Deserialize)]
#[serde(try_from = "StoredFact")]
struct Entry {
    fact: Option<Fact>,
    opinions: Option<Opinions>,
    briefing: Option<u32>,
}

/// A fact as it is stored: it has one of the first six members, unless only events and notes state it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Fact")]
pub(super) struct StoredFact {
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
    /// Whether each open issue needs it for itself, such as a port: sharing warns. With `last`
    /// only.
    exclusive: bool,
    /// Its place among the facts that `claim` prints before the contract, from 1.
    briefing: Option<u32>,
    /// How it is decided, if several have an opinion, such as reviewers.
    opinions: Option<Opinions>,
}

/// The pointers of a fact that only the newest contract states.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Newest {
    /// The contract types.
    of: Vec<String>,
    /// The pointers.
    at: Vec<String>,
}

impl TryFrom<StoredFact> for Entry {
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
        let is_noted = !exclusive && (stored.briefing.is_some() || stored.opinions.is_some());
        let fact = match (rules.next(), rules.next()) {
            (Some(rule), None) => Some(Fact { rule, exclusive }),
            (None, _) if is_noted => None,
            _ => {
                return Err(
                    "it has one of `last`, `newest`, `sum`, `count`, `collect` and `merge`",
                );
            }
        };
        Ok(Self {
            fact,
            opinions: stored.opinions,
            briefing: stored.briefing,
        })
    }
}
