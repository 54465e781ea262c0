//! Whether an event still counts, given the facts noted so far.

use chrono::Utc;
use handoff_base::moment::rfc3339;
use handoff_model::{Issue, Record};
use handoff_protocol::EventKind;
use serde_json::{Map, Value, json};

use super::effects::Work;
use super::payload::Event;
use super::subject::{PULL_REQUEST, number_in};

/// The fact: `open` or `closed`, for the noted pull request.
const STATE: &str = "pr_state";

/// The fact: the newest commit of the branch.
const HEAD: &str = "head";

/// The facts by which later events are judged: since when an event's facts hold, and whether its
/// pull request is open.
pub(super) fn state_of(event: &Event) -> Map<String, Value> {
    let mut facts = Map::new();
    if let (Some(kind), Some(at)) = (event.kind(), event.noted_since()) {
        facts.insert(since(kind), json!(rfc3339(at)));
    }
    let state = event.text("/pull_request/state");
    if let Some(state @ ("open" | "closed")) = state {
        facts.insert(STATE.to_owned(), json!(state));
    }
    facts
}

/// The name of the fact: since when the facts of such an event hold.
fn since(kind: EventKind) -> String {
    format!("{}_at", kind.as_str())
}

fn noted<'i>(issue: &'i Issue, name: &str) -> Option<&'i Value> {
    let mut notes = issue.annotations.iter().rev();
    notes.find_map(|note| note.facts.get(name))
}

impl Work<'_, '_> {
    /// Why the event does not count for the issue, if it does not.
    pub(super) fn outdated(&self, issue: &Issue) -> Option<String> {
        if let Some(why) = self.of_another(issue) {
            return Some(why);
        }
        let kind = self.event.kind()?;
        let newest = noted(issue, &since(kind))?.as_str()?;
        let newest = chrono::DateTime::parse_from_rfc3339(newest).ok()?;
        let at = self.event.noted_since()?;
        (at.timestamp() < newest.timestamp()).then(|| {
            let (at, newest) = (rfc3339(at), rfc3339(newest.with_timezone(&Utc)));
            format!("it is older than what is already noted: {at} is before {newest}")
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
