//! What several say about one fact: the workflows of a commit, the reviewers of a pull request.
//!
//! Each note with an [`Opinions::by`] is an opinion. The newest of each counts, by the time that the
//! note itself gives (`pull_request_review_at`), since events arrive in any order; and one of those
//! that count decides what the fact is.

use handoff_base::Moment;
use handoff_protocol::{Definition, EventKind, HEAD, Opinions, PULL_REQUEST};
use serde_json::Value;

use crate::record::{Annotation, Issue};

/// One opinion that counts.
#[derive(Clone, Copy, Debug)]
pub struct Opinion<'i> {
    /// What it is about, and how it counts.
    pub rules: &'i Opinions,
    /// Whose it is.
    pub by: &'i str,
    /// The opinion.
    pub value: &'i str,
    /// The note that has it.
    pub note: &'i Annotation,
}

impl<'i> Opinion<'i> {
    /// Reads the opinion in a note, if it has one.
    pub fn of(rules: &'i Opinions, note: &'i Annotation) -> Option<Self> {
        let text = |name: &str| note.facts.get(name)?.as_str();
        Some(Self {
            rules,
            by: text(&rules.by)?,
            value: text(&rules.fact)?,
            note,
        })
    }

    /// The commit that it is about, if only that of the newest counts.
    pub fn commit(&self) -> Option<&'i str> {
        self.note.facts.get(self.rules.commit.as_ref()?)?.as_str()
    }

    /// The time from which it holds.
    pub fn since(&self) -> Moment {
        self.note.said_at().unwrap_or(self.note.at)
    }

    /// Whether it asks for something, so that it is told as a finding.
    pub fn asks(&self) -> bool {
        self.rules.asks.iter().any(|value| value == self.value)
    }

    /// Whether it takes back what the same one said.
    pub fn withdraws(&self) -> bool {
        self.rules.withdraws.iter().any(|value| value == self.value)
    }

    /// Whether it comes before another one of the same, however late it arrives.
    pub fn is_older_than(&self, other: &Opinion<'_>) -> bool {
        // GitHub's times have seconds; what was taken back stays so.
        let (own, others) = (self.since().timestamp(), other.since().timestamp());
        own < others || own == others && other.withdraws() && !self.withdraws()
    }

    /// What tells of it: a workflow and a status of one name are not the same one.
    fn told_by(&self) -> Option<EventKind> {
        let mut kinds = EventKind::ALL.into_iter();
        kinds.find(|kind| self.note.facts.contains_key(&kind.since_fact()))
    }

    /// Whether another one is of the same one, on the same commit.
    fn is_like(&self, other: &Opinion<'_>) -> bool {
        self.by == other.by && self.told_by() == other.told_by() && is_same_commit(self, other)
    }

    /// How much it weighs in the decision.
    fn weight(&self) -> u8 {
        let agrees = self.rules.agrees.iter().any(|value| value == self.value);
        match () {
            () if self.asks() => 3,
            () if self.withdraws() => 0,
            () if agrees => 1,
            () => 2,
        }
    }
}

impl Issue {
    /// The opinions on a fact that count, the oldest first.
    pub fn opinions<'i>(&'i self, rules: &'i Opinions) -> Vec<Opinion<'i>> {
        let notes = self.annotations.iter();
        let notes = notes.filter(|note| self.is_current(note));
        let mut found: Vec<Opinion<'_>> = Vec::new();
        for new in notes.filter_map(|note| Opinion::of(rules, note)) {
            match found.iter().position(|one| one.is_like(&new)) {
                Some(at) if new.is_older_than(&found[at]) => continue,
                Some(at) => drop(found.remove(at)),
                None => {}
            }
            found.push(new);
        }
        if rules.commit.is_some() {
            let head = self.annotations.iter().rev();
            let head = head
                .filter_map(|note| note.facts.get(HEAD)?.as_str())
                .next();
            let newest = || found.iter().max_by_key(|one| one.since())?.commit();
            if let Some(commit) = head.or_else(newest) {
                let is_of = |one: &Opinion<'_>| {
                    one.commit()
                        .is_some_and(|of| of.eq_ignore_ascii_case(commit))
                };
                found.retain(is_of);
            }
        }
        // Those on a pull request before this one are over with it.
        let mut numbers = self.annotations.iter().rev().filter_map(pull_request);
        if let Some(number) = numbers.next().filter(|_| rules.commit.is_none()) {
            found.retain(|one| pull_request(one.note).is_none_or(|of| of == number));
        }
        if !rules.required.is_empty() {
            found.retain(|one| rules.required.iter().any(|by| by == one.by));
        }
        found
    }

    /// The newest opinion of the same one, on the same commit.
    pub fn opinion_like<'i>(&'i self, own: &Opinion<'i>) -> Option<Opinion<'i>> {
        let notes = self
            .annotations
            .iter()
            .filter_map(|note| Opinion::of(own.rules, note));
        let same = notes.filter(|one| one.is_like(own));
        same.reduce(|known, new| {
            if new.is_older_than(&known) {
                known
            } else {
                new
            }
        })
    }

    /// The opinion that decides what a fact is, if it is decided.
    pub(crate) fn decided<'i>(&'i self, rules: &'i Opinions) -> Option<Opinion<'i>> {
        let found = self.opinions(rules);
        let has = |by: &String| found.iter().any(|one| one.by == *by);
        let asks = found.iter().any(Opinion::asks);
        // One that asks for something need not wait for the others.
        if !asks && !rules.required.iter().all(has) {
            return None;
        }
        found.into_iter().max_by_key(Opinion::weight)
    }

    /// A fact on which several have an opinion: the value in the note that decides. `None` if it is
    /// no such fact, or nobody has an opinion on it.
    pub(crate) fn opinion<'i>(
        &'i self,
        definition: &'i Definition,
        name: &str,
    ) -> Option<Option<(&'i Value, &'i Annotation)>> {
        let rules = definition
            .facts
            .opinions
            .iter()
            .find(|rules| rules.covers(name))?;
        let mut notes = self.annotations.iter();
        notes.find(|note| Opinion::of(rules, note).is_some())?;
        let decided = self.decided(rules);
        Some(decided.and_then(|one| Some((one.note.facts.get(name)?, one.note))))
    }
}

/// The number of the pull request that a note names, as JSON.
fn pull_request(note: &Annotation) -> Option<&Value> {
    note.facts.get(PULL_REQUEST)
}

/// Whether two opinions are about the same commit, or it does not matter.
fn is_same_commit(one: &Opinion<'_>, other: &Opinion<'_>) -> bool {
    match (one.commit(), other.commit()) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (one, other) => one == other,
    }
}
