//! Whether an event is newer than what the issue has noted.

use handoff::base::Moment;
use handoff::model::{Annotation, Issue, Opinion, Record};
use handoff::protocol::{
    CHANGED_BY, Definition, EventKind, EventRule, HEAD, Opinions, PULL_REQUEST, PULL_REQUEST_STATE,
    Protocol,
};
use serde_json::{Map, Value, json};

use super::effects::Work;
use super::payload::Event;
use super::repository::{REPOSITORY_ID, known_id};
use super::subject::number_in;
use super::values::{facts, is_nothing};

/// Facts for comparison with later events: the time from which the event's facts are valid, whether
/// its pull request is open (unless a newer note says that), and who changed the issue.
pub(super) fn state_of(event: &Event, known: Option<(&Issue, &Definition)>) -> Map<String, Value> {
    let issue = known.map(|(issue, _)| issue);
    let mut facts = Map::new();
    if let (Some(kind), Some(at)) = (event.kind(), event.noted_since()) {
        facts.insert(kind.since_fact(), json!(at.rfc3339()));
    }
    let state = event.text("/pull_request/state");
    let newest = issue
        .and_then(|issue| said_last(issue, |note| note.facts.contains_key(PULL_REQUEST_STATE)));
    let is_newer = newest
        .zip(event.noted_since())
        .is_none_or(|(newest, at)| at.timestamp() >= newest.timestamp());
    if let Some(state @ ("open" | "closed")) = state.filter(|_| is_newer) {
        facts.insert(PULL_REQUEST_STATE.to_owned(), json!(state));
    }
    if let (Some(EventKind::Issues), Some(login)) = (event.kind(), event.text("/sender/login")) {
        facts.insert(CHANGED_BY.to_owned(), json!(login));
    }
    if let Some(((issue, definition), id)) = known.zip(event.repository_id())
        && known_id(issue, definition).is_none()
    {
        facts.insert(REPOSITORY_ID.to_owned(), json!(id));
    }
    facts
}

pub(super) fn noted<'i>(issue: &'i Issue, name: &str) -> Option<&'i Value> {
    let mut notes = issue.annotations.iter().rev();
    notes.find_map(|note| note.facts.get(name))
}

/// The latest validity time among such notes.
pub(super) fn said_last(issue: &Issue, is_it: impl Fn(&Annotation) -> bool) -> Option<Moment> {
    let notes = issue.annotations.iter().filter(|note| is_it(note));
    notes.filter_map(Annotation::said_at).max()
}

fn older(at: Moment, newest: Moment) -> String {
    format!("it is older than what is already noted: {at} is before {newest}")
}

/// An event's facts, to compare with the noted ones.
pub(super) struct News<'e> {
    pub(super) event: &'e Event,
    pub(super) protocol: &'e Protocol,
    pub(super) pull_request: Option<u64>,
    /// The current time, for events without a time.
    pub(super) now: Moment,
}

impl News<'_> {
    /// Why the event is too old or not about the issue's pull request, if so.
    pub(super) fn outdated(&self, issue: &Issue) -> Option<String> {
        if let Some(why) = self.of_another(issue) {
            return Some(why);
        }
        let kind = self.event.kind()?;
        let at = self.event.noted_since()?;
        if let Some(note) = self.opinion(kind) {
            // Compare only with the same author's opinion: another author's does not replace it.
            let mut all = self.protocol.definition().facts.opinions.iter();
            return all.find_map(|rules| {
                let own = Opinion::of(rules, &note)?;
                let known = issue.opinion_like(&own)?;
                let is_older = own.is_older_than(&known);
                is_older.then(|| {
                    if known.withdraws() {
                        format!("{} took it back already", known.by)
                    } else {
                        older(at, known.since())
                    }
                })
            });
        }
        let fact = kind.since_fact();
        let newest = said_last(issue, |note| note.facts.contains_key(&fact))?;
        (at.timestamp() < newest.timestamp()).then(|| older(at, newest))
    }

    /// Drops facts of a rule that are older than the noted ones; returns the reason if none is
    /// left. A rule that notes only changes keeps or drops all of them: facts that stayed the same
    /// have no newer note.
    fn keep_newest(
        &self,
        issue: &Issue,
        rule: &EventRule,
        facts: &mut Map<String, Value>,
    ) -> Option<String> {
        let is_opinion = self
            .event
            .kind()
            .is_some_and(|kind| self.opinion(kind).is_some());
        if facts.is_empty() || is_opinion {
            if let Some(why) = self.outdated(issue) {
                return Some(why);
            }
        } else if let Some(why) = self.of_another(issue) {
            return Some(why);
        }
        let at = self.event.noted_since()?;
        if rule.only_changes
            && let Some(newest) = self.seen_last(issue, rule)
            && at.timestamp() < newest.timestamp()
        {
            return Some(older(at, newest));
        }
        let opinions = &self.protocol.definition().facts.opinions;
        let (before, mut newer) = (facts.len(), None);
        facts.retain(|name, value| {
            let newest = said_last(issue, |note| note.facts.contains_key(name));
            let newest = newest.filter(|newest| at.timestamp() < newest.timestamp());
            let stays = newest.is_none()
                || is_opinion && noted(issue, name) == Some(value)
                || opinions.iter().any(|rules| rules.covers(name));
            newer = newer.max(newest.filter(|_| !stays));
            stays
        });
        // If part of an opinion is outdated, so is the opinion.
        let is_over = facts.is_empty() || is_opinion && facts.len() < before;
        newer.filter(|_| is_over).map(|newest| older(at, newest))
    }

    /// The facts that a rule notes, or the reason why it notes nothing.
    pub(super) fn to_note(
        &self,
        issue: &Issue,
        rule: &EventRule,
        mut facts: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        if let Some(why) = self.keep_newest(issue, rule, &mut facts) {
            return Err(why);
        }
        if rule.only_changes {
            let definition = self.protocol.definition();
            facts.retain(|name, value| match issue.fact(definition, name) {
                Some(known) => known.value != value,
                // A missing value that was never noted is not a change.
                None => !rule
                    .facts
                    .get(name)
                    .is_some_and(|source| is_nothing(source, value)),
            });
            // If nothing has changed, a note without facts is still made: an older event that
            // arrives later is then recognized as outdated.
            if facts.is_empty() && self.event.noted_since() <= self.seen_last(issue, rule) {
                return Err("all that it would note is known".to_owned());
            }
        }
        let is_seen_only = facts.is_empty();
        if !rule.facts.is_empty() {
            let definition = self.protocol.definition();
            facts.extend(state_of(self.event, Some((issue, definition))));
        }
        if is_seen_only {
            facts.remove(CHANGED_BY);
        }
        Ok(facts)
    }

    /// The time of the newest event that a rule has noted.
    fn seen_last(&self, issue: &Issue, rule: &EventRule) -> Option<Moment> {
        let fact = self.event.kind()?.since_fact();
        said_last(issue, |note| {
            note.facts.contains_key(&fact) && rule.note.as_deref() == Some(&*note.note)
        })
    }

    /// The note with the event's opinion by the protocol's rules, if it has one.
    fn opinion(&self, kind: EventKind) -> Option<Annotation> {
        let definition = self.protocol.definition();
        let action = self.event.action();
        let mut rules = definition.event_rules().iter().filter(|rule| {
            let gives = |opinions: &Opinions| rule.facts.contains_key(&opinions.by);
            definition.facts.opinions.iter().any(gives)
                && rule.is_about(kind, action)
                && rule.unmet(self.event.payload()).is_none()
        });
        let rule = rules.next()?;
        let mut facts = facts(rule, self.event);
        facts.extend(state_of(self.event, None));
        Some(Annotation {
            at: self.now,
            by: rule.agent.clone(),
            id: None,
            note: String::new(),
            event: None,
            facts,
            approval: None,
            worker: None,
        })
    }

    /// Why the event's pull request does not count: the issue has another, open one.
    pub(super) fn of_another(&self, issue: &Issue) -> Option<String> {
        let number = self.pull_request?;
        let told = issue.facts.get(PULL_REQUEST).and_then(number_in);
        let known = noted(issue, PULL_REQUEST).and_then(number_in);
        let known_or_told = known.or(told)?;
        let state = noted(issue, PULL_REQUEST_STATE).and_then(Value::as_str);
        let closed = known.is_some() && state != Some("open");
        if closed || known_or_told == number || told == Some(number) {
            return None;
        }
        Some(format!(
            "issue {} has pull request {known_or_told}, which is open: facts of {number} are noted beside it, and don't count until that is closed",
            issue.issue
        ))
    }
}

impl Work<'_, '_, '_> {
    /// Why the event is too old or not about the issue's pull request, if so.
    pub(super) fn outdated(&self, issue: &Issue) -> Option<String> {
        let news = News {
            event: self.event,
            protocol: self.rules.protocol(),
            pull_request: self.pull_request,
            now: self.now(),
        };
        news.outdated(issue)
    }

    /// The time of a step, used for events without one.
    pub(super) fn now(&self) -> Moment {
        Moment::from(self.context.session.clock.author())
    }

    /// Why a review does not apply to the handoff that its agent holds: it is older, or about
    /// another commit.
    pub(super) fn misses(&self, issue: &Issue, held: &Record) -> Option<String> {
        if self.event.kind() != Some(EventKind::PullRequestReview) {
            return None;
        }
        let Some(said_at) = self.event.happened_at() else {
            return Some("the review does not say when it was submitted".to_owned());
        };
        if held
            .sent_at()
            .is_some_and(|sent_at| said_at.timestamp() < sent_at.timestamp())
        {
            return Some(format!(
                "the review was submitted before {} was sent",
                held.id
            ));
        }
        let head = noted(issue, HEAD).and_then(Value::as_str);
        let head = head.or_else(|| self.event.text("/pull_request/head/sha"));
        match (self.event.text("/review/commit_id"), head) {
            (Some(of), Some(head)) if of.eq_ignore_ascii_case(head) => None,
            _ => Some("the review is not of the branch's newest commit that is known".to_owned()),
        }
    }
}
