//! Whether an event still counts, given the facts noted so far.

use handoff_base::moment::rfc3339;
use handoff_base::{Moment, to_millisecond};
use handoff_model::{Annotation, Issue, Opinion, Record};
use handoff_protocol::{CHANGED_BY, EventKind, HEAD, Opinions};
use serde_json::{Map, Value, json};

use super::effects::Work;
use super::payload::Event;
use super::subject::{PULL_REQUEST, number_in};
use super::values::facts;

/// The fact: `open` or `closed`, for the noted pull request.
const STATE: &str = "pr_state";

/// The facts by which later events are judged: since when an event's facts hold, and whether its
/// pull request is open; and who changed an issue.
pub(super) fn state_of(event: &Event) -> Map<String, Value> {
    let mut facts = Map::new();
    if let (Some(kind), Some(at)) = (event.kind(), event.noted_since()) {
        facts.insert(kind.since_fact(), json!(rfc3339(at)));
    }
    let state = event.text("/pull_request/state");
    if let Some(state @ ("open" | "closed")) = state {
        facts.insert(STATE.to_owned(), json!(state));
    }
    if let (Some(EventKind::Issues), Some(login)) = (event.kind(), event.text("/sender/login")) {
        facts.insert(CHANGED_BY.to_owned(), json!(login));
    }
    facts
}

pub(super) fn noted<'i>(issue: &'i Issue, name: &str) -> Option<&'i Value> {
    let mut notes = issue.annotations.iter().rev();
    notes.find_map(|note| note.facts.get(name))
}

impl Work<'_, '_, '_> {
    /// Why the event does not count for the issue, if it does not.
    pub(super) fn outdated(&self, issue: &Issue) -> Option<String> {
        if let Some(why) = self.of_another(issue) {
            return Some(why);
        }
        let kind = self.event.kind()?;
        let at = self.event.noted_since()?;
        let older = |newest: Moment| {
            let (at, newest) = (rfc3339(at), rfc3339(newest));
            format!("it is older than what is already noted: {at} is before {newest}")
        };
        if let Some(note) = self.opinion(kind) {
            // What others say is no newer word of the same one.
            let mut all = self.rules.protocol().definition().opinions.iter();
            return all.find_map(|rules| {
                let own = Opinion::of(rules, &note)?;
                let known = issue.opinion_like(&own)?;
                let is_older = own.is_older_than(&known);
                is_older.then(|| {
                    if known.withdraws() {
                        format!("{} took it back already", known.by)
                    } else {
                        older(known.since())
                    }
                })
            });
        }
        let newest = noted(issue, &kind.since_fact())?.as_str()?;
        let newest = newest.parse::<Moment>().ok()?;
        (at.timestamp() < newest.timestamp()).then(|| older(newest))
    }

    /// The note with the opinion that the event has, by the rules of the protocol, if it has one.
    fn opinion(&self, kind: EventKind) -> Option<Annotation> {
        let definition = self.rules.protocol().definition();
        let action = self.event.action();
        let mut rules = definition.event_rules().iter().filter(|rule| {
            let gives = |opinions: &Opinions| rule.facts.contains_key(&opinions.by);
            definition.opinions.iter().any(gives)
                && rule.is_about(kind, action)
                && rule.unmet(self.event.payload()).is_none()
        });
        let rule = rules.next()?;
        let mut facts = facts(rule, self.event);
        facts.extend(state_of(self.event));
        Some(Annotation {
            at: to_millisecond(self.context.session.clock.author()),
            by: rule.agent.clone(),
            id: None,
            note: String::new(),
            event: None,
            facts,
            approval: None,
            worker: None,
        })
    }

    /// Why the event's pull request does not count: the issue has another, which is open.
    fn of_another(&self, issue: &Issue) -> Option<String> {
        let number = self.pull_request?;
        let told = issue.facts.get(PULL_REQUEST).and_then(number_in);
        let known = noted(issue, PULL_REQUEST).and_then(number_in);
        let known_or_told = known.or(told)?;
        let state = noted(issue, STATE).and_then(Value::as_str);
        let closed = known.is_some() && state != Some("open");
        if closed || known_or_told == number || told == Some(number) {
            return None;
        }
        Some(format!(
            "issue {} has pull request {known_or_told}, which is open: what is said of {number} does not count until that is closed",
            issue.issue
        ))
    }

    /// Why a review does not apply to what its agent was sent: it is older, or about other commits.
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
