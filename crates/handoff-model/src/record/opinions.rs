//! Opinions: several parties report on one fact, such as the workflows of a commit or the reviewers
//! of a pull request.
//!
//! Each note with the fact [`Opinions::by`] is an opinion. Only the newest of each party counts, by
//! the time that the note states (`pull_request_review_at`), because events may arrive in any
//! order. One of those that count decides the fact.

use handoff_base::Moment;
use handoff_protocol::{Definition, EventKind, HEAD, Opinions, PULL_REQUEST};
use serde_json::Value;

use crate::record::{Annotation, Issue};

/// An opinion that counts.
#[derive(Clone, Copy, Debug)]
pub struct Opinion<'i> {
    /// The rules for opinions on the fact.
    pub rules: &'i Opinions,
    /// The party whose opinion it is.
    pub by: &'i str,
    /// The opinion.
    pub value: &'i str,
    /// The note that states it.
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

    /// The commit that it is about, if only opinions on the newest commit count.
    pub fn commit(&self) -> Option<&'i str> {
        self.note.facts.get(self.rules.commit.as_ref()?)?.as_str()
    }

    /// The time from which it holds.
    pub fn since(&self) -> Moment {
        self.note.said_at().unwrap_or(self.note.at)
    }

    /// Whether it asks for something, so that it is shown like a finding.
    pub fn asks(&self) -> bool {
        self.rules.asks.iter().any(|value| value == self.value)
    }

    /// Whether it takes back the party's earlier opinion.
    pub fn withdraws(&self) -> bool {
        self.rules.withdraws.iter().any(|value| value == self.value)
    }

    /// Whether it is older than another one of the same party, whichever arrived first.
    pub fn is_older_than(&self, other: &Opinion<'_>) -> bool {
        // GitHub's times are in whole seconds. If two are equal, a withdrawal counts as the newer.
        let (own, others) = (self.since().timestamp(), other.since().timestamp());
        own < others || own == others && other.withdraws() && !self.withdraws()
    }

    /// The kind of its event: a workflow and a status with the same name are different parties.
    fn told_by(&self) -> Option<EventKind> {
        let mut kinds = EventKind::ALL.into_iter();
        kinds.find(|kind| self.note.facts.contains_key(&kind.since_fact()))
    }

    /// Whether another one is by the same party on the same commit.
    fn is_like(&self, other: &Opinion<'_>) -> bool {
        self.by == other.by && self.told_by() == other.told_by() && is_same_commit(self, other)
    }

    /// Its precedence when opinions decide a fact.
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
        // Opinions on earlier pull requests of the issue no longer count.
        let mut numbers = self.annotations.iter().rev().filter_map(pull_request);
        if let Some(number) = numbers.next().filter(|_| rules.commit.is_none()) {
            found.retain(|one| pull_request(one.note).is_none_or(|of| of == number));
        }
        if !rules.required.is_empty() {
            found.retain(|one| rules.required.iter().any(|by| by == one.by));
        }
        found
    }

    /// The newest opinion of the same party on the same commit.
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

    /// The opinion that decides a fact, if it is decided.
    pub(crate) fn decided<'i>(&'i self, rules: &'i Opinions) -> Option<Opinion<'i>> {
        let found = self.opinions(rules);
        let has = |by: &String| found.iter().any(|one| one.by == *by);
        let asks = found.iter().any(Opinion::asks);
        // An opinion that asks for something decides at once; without one, every required party must
        // have reported.
        if !asks && !rules.required.iter().all(has) {
            return None;
        }
        found.into_iter().max_by_key(Opinion::weight)
    }

    /// The value of a fact in the note that decides it, with the note. The outer `None`: there are
    /// no opinions on the fact. The inner one: they have not decided it yet.
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

/// The number of a note's pull request, as JSON.
fn pull_request(note: &Annotation) -> Option<&Value> {
    note.facts.get(PULL_REQUEST)
}

/// Whether two opinions are on the same commit, or neither is on one.
fn is_same_commit(one: &Opinion<'_>, other: &Opinion<'_>) -> bool {
    match (one.commit(), other.commit()) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (one, other) => one == other,
    }
}
