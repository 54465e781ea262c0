//! Pull requests other than the issue's own: from forks, or competing ones. Their facts are noted
//! under separate names (`other_head`), so that they don't change the facts of the issue's own.

use handoff::ledger::LedgerError;
use handoff::model::{Annotation, Issue, Update};
use handoff::protocol::{EventKind, EventRule, HEAD, PULL_REQUEST, PULL_REQUEST_STATE};
use serde_json::{Map, json};

use super::carry::update_if;
use super::effects::Work;
use super::payload::Fork;
use super::repository::{REPOSITORY_ID, known_id};
use super::subject::number_in;
use super::values::{facts, says};

fn other(name: &str) -> String {
    format!("other_{name}")
}

/// A note about another pull request, with its facts under their usual names.
pub(super) fn usual(note: &Annotation) -> Annotation {
    let facts = note.facts.iter().map(|(name, value)| {
        let name = name.strip_prefix("other_").unwrap_or(name);
        (name.to_owned(), value.clone())
    });
    Annotation {
        facts: facts.collect(),
        ..note.clone()
    }
}

/// The number of the other pull request in an event's note; `None` for other notes.
pub(super) fn number(note: &Annotation) -> Option<u64> {
    note.event.as_ref()?;
    note.facts.get(&other(PULL_REQUEST)).and_then(number_in)
}

/// The notes about another pull request, newest first.
fn notes(issue: &Issue, of: u64) -> impl Iterator<Item = &Annotation> {
    let notes = issue.annotations.iter().rev();
    notes.filter(move |note| number(note) == Some(of))
}

fn text<'n>(note: &'n Annotation, name: &str) -> Option<&'n str> {
    note.facts.get(&other(name))?.as_str()
}

/// The newest commit of another pull request, and the time since which it is the newest, if known.
pub(super) fn head(issue: &Issue, of: u64) -> Option<(&str, Option<i64>)> {
    let head = notes(issue, of).find_map(|note| text(note, HEAD))?;
    let mut since = None;
    for note in notes(issue, of) {
        match text(note, HEAD) {
            Some(known) if known == head => {
                let at = text(note, &EventKind::PullRequest.since_fact());
                let at = at.and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
                since = at.map(|at| at.timestamp()).or(since);
            }
            Some(_) => break,
            None => {}
        }
    }
    Some((head, since))
}

/// The other pull request with this newest commit.
pub(super) fn number_at(issue: &Issue, commit: &str) -> Option<u64> {
    let numbers = issue.annotations.iter().rev().filter_map(number);
    { numbers }.find(|of| {
        let head = head(issue, *of);
        head.is_some_and(|(head, _)| head.eq_ignore_ascii_case(commit))
    })
}

impl Work<'_, '_, '_> {
    /// Notes the facts of an event about another pull request.
    pub(super) fn note_beside(&mut self, rule: &EventRule) -> Result<(), LedgerError> {
        let (Some(note), Some(kind)) = (&rule.note, self.event.kind()) else {
            return Ok(());
        };
        let from = match self.event.fork() {
            Some(Fork::Other) => ", from a fork",
            Some(Fork::Unknown) => ", whose repository is gone",
            None => "",
        };
        let delivery = self.part(rule, "note")?;
        if self.had(rule, "noted", &delivery)? {
            return Ok(());
        }
        if self.issue()?.is_none() {
            self.not(rule, "the ledger does not have this issue yet");
            return Ok(());
        }
        let event = self.event;
        let mut told = facts(rule, event);
        let state = event.text("/pull_request/state");
        told.extend(state.map(|state| (PULL_REQUEST_STATE.to_owned(), json!(state))));
        let at = event.noted_since();
        told.extend(at.map(|at| (kind.since_fact(), json!(at.rfc3339()))));
        let author = event.text("/pull_request/user/login").and_then(says);
        told.extend(author.map(|author| ("pr_author".to_owned(), json!(author))));
        let of_event = self.pull_request;
        let definition = self.rules.protocol().definition();
        let (mut noted, mut why) = (Map::new(), None);
        let decide = |issue: &Issue| {
            let at_commit = || number_at(issue, event.checked_commit()?);
            let Some(of) = of_event.or_else(at_commit) else {
                why = Some("its commit is of no pull request that is known".to_owned());
                return None;
            };
            let newest = notes(issue, of).find_map(|note| text(note, &kind.since_fact()));
            if kind == EventKind::PullRequest
                && let Some(newest) = newest.and_then(|newest| newest.parse().ok())
                && at.is_some_and(|at| at < newest)
            {
                why = Some("it is older than what is already noted".to_owned());
                return None;
            }
            told.insert(PULL_REQUEST.to_owned(), json!(of));
            noted = told
                .iter()
                .map(|(name, value)| (other(name), value.clone()))
                .collect();
            let id = event.repository_id();
            if let Some(id) = id.filter(|_| known_id(issue, definition).is_none()) {
                noted.insert(REPOSITORY_ID.to_owned(), json!(id));
            }
            Some(Update::Annotate {
                handoff: None,
                note: format!("{note} (beside the issue's own: {of}{from})"),
                facts: noted.clone(),
                approval: None,
            })
        };
        let session = self.context.session.delivering(delivery);
        let ledger = &mut self.context.ledger;
        let done = update_if(ledger, &session, &rule.agent, &self.key, decide);
        self.took_note(rule, noted, done, why)
    }

    /// Whether an event is about another pull request.
    pub(super) fn is_beside(&self, issue: &Issue) -> bool {
        let of = self.pull_request;
        self.event.fork().is_some()
            || of.is_some_and(|of| head(issue, of).is_some()) && !self.is_own(issue)
    }

    /// Whether an opinion is about another pull request than the issue's own, even an unknown one.
    pub(super) fn is_said_beside(&self, issue: &Issue) -> bool {
        let is_other = own(issue).is_some_and(|own| self.pull_request.is_some_and(|of| of != own));
        is_other || self.is_beside(issue)
    }

    fn is_own(&self, issue: &Issue) -> bool {
        own(issue).is_some_and(|own| self.pull_request == Some(own))
    }
}

/// The number of the issue's own pull request.
fn own(issue: &Issue) -> Option<u64> {
    let mut notes = issue.annotations.iter().rev();
    let newest = notes.find_map(|note| note.facts.get(PULL_REQUEST).and_then(number_in));
    newest.or_else(|| issue.facts.get(PULL_REQUEST).and_then(number_in))
}
