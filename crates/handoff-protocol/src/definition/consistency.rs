//! Rules that compare places of a contract with each other and with facts of its issue.

use std::collections::BTreeMap;

use handoff_base::pointer::escaped_part;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract_type::Words;
use super::evidence::Policy;
use crate::term::Term;

/// A comparison of two terms. A rule applies where both have a value.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Both are equal: a text or a number, or lists with the same items in the same order.
    Same(Term, Term),
    /// The first number is not greater than the second.
    AtMost(Term, Term),
    /// Each item of the first list is in the second.
    SubsetOf(Term, Term),
    /// Both lists have the same items, in any order.
    EqualSets(Term, Term),
    /// No item of the first list comes before one that it depends on. The second term is an object:
    /// the items that each item depends on.
    OrderedBy(Term, Term),
    /// The first term is a duration in words, such as `2 days 4 hours`, and the second one a number
    /// of seconds: they differ by less than the smallest unit that the words name.
    Lasts(Term, Term),
    /// No item of the first list is in the second.
    Distinct(Term, Term),
}

impl Comparison {
    /// The two terms.
    pub fn terms(&self) -> [&Term; 2] {
        match self {
            Self::Same(a, b)
            | Self::AtMost(a, b)
            | Self::SubsetOf(a, b)
            | Self::EqualSets(a, b)
            | Self::OrderedBy(a, b)
            | Self::Lasts(a, b)
            | Self::Distinct(a, b) => [a, b],
        }
    }

    /// The comparison's name in `protocol.json`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Same(..) => "same",
            Self::AtMost(..) => "at_most",
            Self::SubsetOf(..) => "subset_of",
            Self::EqualSets(..) => "equal_sets",
            Self::OrderedBy(..) => "ordered_by",
            Self::Lasts(..) => "lasts",
            Self::Distinct(..) => "distinct",
        }
    }
}

/// A rule that contracts of a protocol must obey.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyRule {
    /// Its unique name: up to 64 lower-case letters, digits and `-`.
    pub name: String,
    /// The contract types that it applies to; by default all with the places.
    #[serde(default)]
    pub of: Vec<String>,
    /// Fields that a contract must have: pointer, and a text, texts, or `*` for any.
    #[serde(default)]
    pub when: BTreeMap<String, Words>,
    /// The comparison, with its two [terms](protocols.md#terms).
    pub compare: Comparison,
    /// What breaking it does: `enforce` (the default) refuses, `warn` records, `off` compares
    /// nothing.
    #[serde(default = "enforce")]
    pub policy: Policy,
}

fn enforce() -> Policy {
    Policy::Enforce
}

impl ConsistencyRule {
    /// Whether the rule needs only the contract.
    pub fn is_own(&self) -> bool {
        self.compare.terms().iter().all(|term| term.is_own())
    }

    /// The places in the contract that the rule reads, each up to its first `*`.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.placed().map(|(_, place)| place)
    }

    /// The same, each with where the rule names it.
    pub fn placed(&self) -> impl Iterator<Item = (String, &str)> {
        let compare = self.compare.as_str();
        let terms = self.compare.terms().into_iter().enumerate();
        let compared = terms
            .filter_map(move |(i, term)| Some((format!("compare/{compare}/{i}"), term.place()?)));
        let when = self.when.keys();
        let when = when.map(|at| (format!("when/{}", escaped_part(at)), at.as_str()));
        let places = compared.chain(when);
        places.map(|(key, at)| (key, at.split_once("/*").map_or(at, |(list, _)| list)))
    }
}
