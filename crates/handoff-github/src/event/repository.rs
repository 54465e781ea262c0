//! The repository of an event and of an issue, identified by GitHub's permanent number, since names
//! change.

use handoff::ledger::{LedgerError, Snapshot};
use handoff::model::{Annotation, Issue, View, Witness};
use handoff::protocol::{Definition, FactSource};
use serde_json::{Map, Value};

use super::payload::Event;
use super::staleness::said_last;
use super::values::says;

/// The fact with GitHub's number of the issue's repository, which is permanent.
pub(super) const REPOSITORY_ID: &str = "repository_id";

/// The maximum number of open issues that are read to find the ledger's repository.
const ASKED: usize = 20;

impl Event {
    pub(super) fn repository_id(&self) -> Option<u64> {
        self.number("/repository/id")
    }

    pub(super) fn repository_name(&self) -> Option<&str> {
        self.text("/repository/full_name")
    }
}

/// The number of an issue's repository, noted by an event or a person.
pub(super) fn known_id(issue: &Issue, definition: &Definition) -> Option<u64> {
    let mut notes = issue.annotations.iter().rev();
    let is_told = |note: &Annotation| {
        matches!(
            note.source(definition),
            Witness::Event { .. } | Witness::Person { .. }
        )
    };
    notes.find_map(|note| {
        let told = note.facts.get(REPOSITORY_ID)?;
        is_told(note).then(|| told.as_u64())?
    })
}

/// The URL of the issue's repository, from its page's URL: `https://github.com/owner/name`.
fn known_home<'i>(issue: &'i Issue, definition: &'i Definition) -> Option<&'i str> {
    let number = issue.issue.as_str();
    let number = number.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    let ending = format!("/issues/{number}");
    issue
        .known_facts(definition)
        .find_map(|(_, fact)| fact.value.as_str()?.strip_suffix(&*ending))
        .filter(|home| home.split('/').count() == 5)
}

/// `owner/name` from a URL.
fn name_in(home: &str) -> Option<&str> {
    let (start, _) = home.match_indices('/').nth_back(1)?;
    Some(&home[start + 1..])
}

/// Why an event is from another repository than the issue, if so. Without both numbers, names are
/// compared: the event's must be the issue's or, after a rename, the ledger's current one.
pub(super) fn of_another(
    event: &Event,
    (issue, definition): (&Issue, &Definition),
    home: Option<&str>,
) -> Option<String> {
    let name = event.repository_name()?;
    let known = known_home(issue, definition).and_then(name_in);
    let is_same = match known_id(issue, definition).zip(event.repository_id()) {
        Some((known, own)) => known == own,
        None => known.is_none_or(|known| {
            let is = |other: &str| other.eq_ignore_ascii_case(name);
            is(known) || home.is_some_and(is)
        }),
    };
    (!is_same).then(|| {
        let (name, key) = (says(name).unwrap_or_default(), &issue.issue);
        let known = known.and_then(says).map(|known| format!(", {known}"));
        let person = definition.people().next().map_or("PERSON", |name| name.as_str());
        let renamed = event.repository_id().map(|id| {
            format!(
                " If that was renamed or moved to {name}, a person says so: `git handoff annotate {key} --as {person} --note moved --fact {REPOSITORY_ID}={id}`."
            )
        });
        format!(
            "it is of repository {name}, and issue {key} of another one{}: nothing changes.{} A ledger of several names them in `github.repositories` of its protocol",
            known.unwrap_or_default(),
            renamed.unwrap_or_default()
        )
    })
}

/// Why an event that would open an issue is from another repository than the ledger's open issues.
pub(super) fn of_another_than_all(
    event: &Event,
    tip: &Snapshot<'_>,
    home: Option<&str>,
) -> Result<Option<String>, LedgerError> {
    let mut why = None;
    let mut seen = Vec::new();
    for entry in tip.open()? {
        let key = entry.id.issue();
        if seen.contains(key) {
            continue;
        }
        if seen.len() == ASKED {
            break;
        }
        seen.push(key.clone());
        let Some(issue) = tip.issue(key)?.issue()? else {
            continue;
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let definition = rules.protocol().definition();
        if known_id(&issue, definition).is_none() && known_home(&issue, definition).is_none() {
            continue;
        }
        match of_another(event, (&issue, definition), home) {
            Some(said) => why = why.or(Some(said)),
            None => return Ok(None),
        }
    }
    Ok(why)
}

/// The new URLs of an issue's facts after its repository was renamed or moved; empty otherwise.
pub(super) fn moved(
    event: &Event,
    (issue, definition): (&Issue, &Definition),
    noted: &Map<String, Value>,
) -> Map<String, Value> {
    let now = event.text("/repository/html_url").and_then(says);
    let known = known_home(issue, definition);
    let (Some(now), Some(known)) = (now, known) else {
        return Map::new();
    };
    let site = |home: &str| home.split('/').nth(2).map(str::to_ascii_lowercase);
    // A late event still has an old name.
    let newest = said_last(issue, |_| true);
    let is_late = event
        .noted_since()
        .is_some_and(|at| newest.is_some_and(|newest| at < newest));
    if is_late || site(known) != site(&now) || known.eq_ignore_ascii_case(&now) {
        return Map::new();
    }
    let facts = issue.known_facts(definition);
    let moved = facts.filter_map(|(name, fact)| {
        let rest = fact.value.as_str()?.strip_prefix(known)?;
        let is_here = rest.starts_with('/') && !noted.contains_key(name);
        let may = definition.source_of(name) != FactSource::Events;
        (is_here && may).then(|| (name.to_owned(), format!("{now}{rest}").into()))
    });
    moved.collect()
}
