//! Whether an event's author has the permission for a rule's effect.
//!
//! An `author_association` proves little: GitHub computes it without regard to who asks, so that a
//! private member of an organization is a `CONTRIBUTOR`, and a `MEMBER` may lack write permission.

use handoff::base::text::word;
use handoff::ledger::LedgerError;
use handoff::model::{Annotation, Delivery, Issue, Update};
use handoff::protocol::{EventKind, EventRule, Permission};
use serde_json::Map;

use super::effects::Work;
use super::payload::Event;
use super::values::says;

/// The association of the repository's owner, who has every permission.
const OWNER: &str = "OWNER";

/// The name of the step that notes an unproven permission.
pub(super) const UNPROVEN: &str = "unproven";

/// Why an author has no permission.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotEntitled {
    /// The author is unknown, or is known to lack the permission.
    Denied(String),
    /// GitHub was not asked for the permission.
    Unproven(String),
}

impl Event {
    /// The place of the comment or the review in the payload.
    fn written(&self) -> &'static str {
        match self.kind() {
            Some(EventKind::PullRequestReview) => "/review",
            _ => "/comment",
        }
    }

    /// A text of the comment or the review: `/body`, `/html_url`, …
    pub(super) fn of_written(&self, place: &str) -> Option<&str> {
        self.text(&format!("{}{place}", self.written()))
    }

    /// The name of the comment or the review: `comment-17`.
    pub fn said_in(&self) -> Option<String> {
        let id = self.number(&format!("{}/id", self.written()))?;
        Some(match self.kind()? {
            EventKind::IssueComment => format!("comment-{id}"),
            EventKind::PullRequestReview => format!("review-{id}"),
            _ => return None,
        })
    }

    /// Whether a program wrote or edited the comment or the review.
    pub(super) fn is_by_program(&self) -> bool {
        let app = self.payload().pointer("/comment/performed_via_github_app");
        let login = self.of_written("/user/login").unwrap_or_default();
        self.of_written("/user/type") == Some("Bot")
            || self.text("/sender/type") == Some("Bot")
            || login.ends_with("[bot]")
            || app.is_some_and(|app| !app.is_null())
    }

    /// The login of the author of the comment or the review.
    pub fn author(&self) -> Option<String> {
        self.of_written("/user/login").and_then(says)
    }
}

/// An issue's notes about commands without effect whose permission is still unproven.
pub fn unproven(issue: &Issue) -> impl Iterator<Item = &Annotation> {
    let is_unproven = |part: &str| part.ends_with(UNPROVEN);
    issue.annotations.iter().filter(move |note| {
        let Some(event) = &note.event else {
            return false;
        };
        let own = || issue.deliveries.iter().filter(|known| known.id == *event);
        own().any(|known| is_unproven(known.part.as_str()))
            && own().all(|known| is_unproven(known.part.as_str()))
    })
}

impl Work<'_, '_, '_> {
    /// Whether the event's author has this permission; `what` names its use.
    pub(super) fn entitled(&self, needed: Permission, what: &str) -> Result<(), NotEntitled> {
        let denied = |why: String| Err(NotEntitled::Denied(why));
        let Some(login) = self.event.author() else {
            return denied(format!(
                "its author is not named, and only known people may {what}"
            ));
        };
        let needs = match needed {
            Permission::None | Permission::Read => "read",
            Permission::Triage => "sort issues of",
            Permission::Write => "write to",
            Permission::Maintain => "maintain",
            Permission::Admin => "administer",
        };
        match self.context.permission {
            Some(has) if has >= needed => Ok(()),
            Some(_) => denied(format!(
                "{login} may not {needs} the repository, which it takes to {what}"
            )),
            None if self.event.of_written("/author_association") == Some(OWNER) => Ok(()),
            None => Err(NotEntitled::Unproven(format!(
                "nothing proves that {login} may {needs} the repository, which it takes to {what}: `--permission` passes what GitHub says"
            ))),
        }
    }

    /// Records that a rule had no effect because of a permission. An unproven one is also noted on
    /// the issue, once per event, for a person to look at.
    pub(super) fn refuse(&mut self, rule: &EventRule, why: NotEntitled) -> Result<(), LedgerError> {
        let why = match why {
            NotEntitled::Denied(why) => {
                self.not(rule, why);
                return Ok(());
            }
            NotEntitled::Unproven(why) => why,
        };
        let is_noted = self.carried.why.iter().any(|said| said.ends_with(&why));
        self.not(rule, why);
        let Some(issue) = self.issue()?.filter(|_| !is_noted) else {
            return Ok(());
        };
        // If an earlier run of this delivery proved the permission, its step is there.
        let mut known = issue.deliveries.iter();
        if known.any(|known| {
            known.id == *self.context.delivery && !known.part.as_str().ends_with(UNPROVEN)
        }) {
            return Ok(());
        }
        let delivery = self.part(rule, UNPROVEN)?;
        self.note_unproven(rule, delivery)
    }

    /// Notes on the issue that a command has no effect while its permission is unproven.
    pub(super) fn note_unproven(
        &mut self,
        rule: &EventRule,
        delivery: Delivery,
    ) -> Result<(), LedgerError> {
        let what = match self.event.kind() {
            Some(EventKind::PullRequestReview) => "A review",
            _ => "A comment",
        };
        let login = self.event.author().map(|login| word(&login).into_owned());
        let place = self.event.of_written("/html_url").and_then(says);
        let place = place.map(|place| format!(", {place}"));
        let note = format!(
            "{what} by {} has no effect, for their permission is unproven{}",
            login.unwrap_or_default(),
            place.unwrap_or_default()
        );
        if self.had(rule, "noted", &delivery)? {
            return Ok(());
        }
        let session = self.context.session.delivering(delivery);
        let annotate = Update::Annotate {
            handoff: None,
            note,
            facts: Map::new(),
            approval: None,
        };
        let ledger = &mut self.context.ledger;
        let done = ledger.update(&session, &rule.agent, &self.key, &annotate);
        self.took(rule, "noted", Map::new(), done)
    }
}
