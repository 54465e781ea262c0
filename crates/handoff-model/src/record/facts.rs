//! What is known of an issue: the facts that its contracts and notes state.

use std::collections::BTreeSet;

use handoff_protocol::Definition;
use serde_json::{Map, Value};

use crate::record::{Annotation, Issue};

/// What is known of an issue under a name.
#[derive(Clone, Copy, Debug)]
pub struct KnownFact<'i> {
    /// The value.
    pub value: &'i Value,
    /// The note that states it; else the issue's contracts do.
    pub note: Option<&'i Annotation>,
}

impl Issue {
    /// A fact: what the newest note since the last reopening states, else what its contracts do.
    /// Notes outrank contracts: they are what events proved, or corrections with a reason. Where
    /// several have an opinion, it is that of the one that decides.
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
            Some((note, value)) => Some(KnownFact {
                value,
                note: Some(note),
            }),
            None => self
                .facts
                .get(name)
                .map(|value| KnownFact { value, note: None }),
        }
    }

    /// The value of every fact, by name.
    pub fn known(&self, definition: &Definition) -> Map<String, Value> {
        let facts = self.known_facts(definition);
        let facts = facts.map(|(name, fact)| (name.to_owned(), fact.value.clone()));
        facts.collect()
    }

    /// Every fact, by name.
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
