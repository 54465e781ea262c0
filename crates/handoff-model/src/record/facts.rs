//! Facts of an issue, stated by its contracts and notes.

use std::collections::BTreeSet;
use std::fmt;

use handoff_base::ids::AgentName;
use handoff_protocol::Definition;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::record::{Annotation, DeliveryName, Issue};

/// A fact of an issue.
#[derive(Clone, Copy, Debug)]
pub struct KnownFact<'i> {
    /// The value.
    pub value: &'i Value,
    /// The note that states it; `None` if contracts do.
    pub note: Option<&'i Annotation>,
}

/// The source of a fact; every view names it in these words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Witness {
    /// The issue's contracts.
    Contracts,
    /// An event outside the ledger, such as a review on GitHub.
    Event {
        /// The delivery that reported it.
        event: DeliveryName,
        /// The agent that noted it.
        by: AgentName,
    },
    /// A person's note.
    Person {
        /// The person.
        by: AgentName,
    },
    /// An agent's note.
    Agent {
        /// The agent.
        by: AgentName,
    },
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contracts => f.write_str("of contracts"),
            Self::Event { by, .. } => write!(f, "of an event, noted by {by}"),
            Self::Person { by } => write!(f, "noted by {by}, a person"),
            Self::Agent { by } => write!(f, "noted by {by}"),
        }
    }
}

/// Facts with a common source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Told {
    /// The source.
    pub source: Witness,
    /// The facts' names.
    pub facts: Vec<String>,
}

impl Told {
    /// The sources of these facts; those that contracts state are left out.
    pub fn of<'n>(
        facts: impl Iterator<Item = (&'n str, KnownFact<'n>)>,
        definition: &Definition,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (name, fact) in facts.filter(|(_, fact)| fact.note.is_some()) {
            let source = fact.source(definition);
            match all.iter_mut().find(|told| told.source == source) {
                Some(told) => told.facts.push(name.to_owned()),
                None => all.push(Self {
                    source,
                    facts: vec![name.to_owned()],
                }),
            }
        }
        all
    }

    /// A fact's label, with its source if that is not a contract.
    pub fn beside(all: &[Self], fact: &str, name: &str) -> String {
        let mut all = all.iter();
        let told = all.find(|told| told.facts.iter().any(|known| known == fact));
        told.map_or_else(|| name.to_owned(), |told| told.source.beside(name))
    }
}

impl Witness {
    /// A label with this source; contracts are not named.
    pub fn beside(&self, name: &str) -> String {
        match self {
            Self::Contracts => name.to_owned(),
            _ => format!("{name} ({self})"),
        }
    }
}

impl Annotation {
    /// The source of a note's facts.
    pub fn source(&self, definition: &Definition) -> Witness {
        let by = self.by.clone();
        if let Some(event) = self.event.clone() {
            return Witness::Event { event, by };
        }
        if definition.is_person(by.as_str()) {
            Witness::Person { by }
        } else {
            Witness::Agent { by }
        }
    }
}

impl KnownFact<'_> {
    /// The source of the fact.
    pub fn source(&self, definition: &Definition) -> Witness {
        self.note
            .map_or(Witness::Contracts, |note| note.source(definition))
    }
}

/// The words of a fact that may be a list: a text is split at commas.
pub fn words_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
        Value::Array(all) => all.iter().flat_map(words_of).collect(),
        other => vec![other.to_string()],
    }
}

impl Issue {
    /// A fact: the value in the deciding note, if there are opinions on it; else in the newest note
    /// since the last reopening; else in contracts. Notes outrank contracts because an event proves
    /// them, or they correct something with a reason.
    pub fn fact<'i>(&'i self, definition: &'i Definition, name: &str) -> Option<KnownFact<'i>> {
        if let Some(decided) = self.opinion(definition, name) {
            return decided.map(|(value, note)| KnownFact {
                value,
                note: Some(note),
            });
        }
        let mut notes = self.annotations.iter().rev();
        let note = notes.find_map(|note| {
            let value = note.facts.get(name)?;
            self.is_current(note).then_some((note, value))
        });
        match note {
            // A note without a value takes the fact back.
            Some((note, value)) => (!value.is_null()).then_some(KnownFact {
                value,
                note: Some(note),
            }),
            None => self
                .facts
                .get(name)
                .map(|value| KnownFact { value, note: None }),
        }
    }

    /// The values of all facts, by name.
    pub fn known(&self, definition: &Definition) -> Map<String, Value> {
        let facts = self.known_facts(definition);
        let facts = facts.map(|(name, fact)| (name.to_owned(), fact.value.clone()));
        facts.collect()
    }

    /// All facts, by name.
    pub fn known_facts<'i>(
        &'i self,
        definition: &'i Definition,
    ) -> impl Iterator<Item = (&'i str, KnownFact<'i>)> {
        let noted = self.annotations.iter().flat_map(|note| note.facts.keys());
        let names: BTreeSet<&str> = self.facts.keys().chain(noted).map(String::as_str).collect();
        let facts = names.into_iter();
        facts.filter_map(|name| Some((name, self.fact(definition, name)?)))
    }
}
