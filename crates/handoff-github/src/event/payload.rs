//! One event, as GitHub delivers it.

use handoff::base::{Moment, hexadecimal};
use handoff::model::{DeliveryName, NoDeliveryName};
use handoff::protocol::EventKind;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// GitHub's limit for a payload, in bytes.
pub const MAX_PAYLOAD: usize = 25 * 1024 * 1024;

/// Members of payloads; each payload has at least one.
const ENVELOPE: [&str; 8] = [
    "action",
    "enterprise",
    "installation",
    "organization",
    "repository",
    "schedule",
    "sender",
    "workflow",
];

/// An event as GitHub delivers it.
#[derive(Clone)]
pub struct Event {
    name: String,
    kind: Option<EventKind>,
    action: Option<String>,
    payload: Value,
    digest: String,
}

/// Why an event is invalid.
#[derive(Debug, thiserror::Error)]
pub enum NoEvent {
    /// Not an event's name.
    #[error("{shown} is not the name of an event, such as pull_request")]
    Name {
        /// The name, escaped for display.
        shown: String,
    },
    /// Above GitHub's limit.
    #[error("it has more than {MAX_PAYLOAD} bytes, and no payload of an event has")]
    TooLarge,
    /// Not JSON.
    #[error("it is not JSON")]
    Json(#[source] serde_json::Error),
    /// JSON without the members of a payload.
    #[error("it is not the payload of an event: it has none of {}", ENVELOPE.join(", "))]
    Other,
}

/// The origin of an event that is not from the repository itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    /// Another repository.
    Other,
    /// A repository that was deleted or is not named.
    Unknown,
}

impl Event {
    /// Parses an event, from its name and its payload.
    ///
    /// # Errors
    /// [`NoEvent`] if one of them is invalid.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, NoEvent> {
        let is_word = |text: &str| {
            let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            (1..=64).contains(&text.len()) && text.bytes().all(fits)
        };
        if !is_word(name) {
            let shown = handoff::base::text::quoted(name);
            return Err(NoEvent::Name { shown });
        }
        if bytes.len() > MAX_PAYLOAD {
            return Err(NoEvent::TooLarge);
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let payload: Value = serde_json::from_slice(bytes).map_err(NoEvent::Json)?;
        if !ENVELOPE.iter().any(|key| payload.get(key).is_some()) {
            return Err(NoEvent::Other);
        }
        let action = payload.get("action").and_then(Value::as_str);
        let digest = Sha256::new()
            .chain_update(name)
            .chain_update([0])
            .chain_update(bytes)
            .finalize();
        Ok(Self {
            name: name.to_owned(),
            kind: EventKind::of(name),
            action: action.filter(|a| is_word(a)).map(str::to_owned),
            digest: hexadecimal(&digest),
            payload,
        })
    }

    /// Returns the name, such as `pull_request`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind, if rules can match it.
    pub fn kind(&self) -> Option<EventKind> {
        self.kind
    }

    /// Returns the action, such as `opened`, if the payload names one.
    pub fn action(&self) -> Option<&str> {
        self.action.as_deref()
    }

    pub(super) fn payload(&self) -> &Value {
        &self.payload
    }

    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.payload.pointer(pointer)?.as_str()
    }

    pub(super) fn number(&self, pointer: &str) -> Option<u64> {
        self.payload.pointer(pointer)?.as_u64()
    }

    pub(super) fn time(&self, pointer: &str) -> Option<Moment> {
        self.text(pointer)?.parse().ok()
    }

    /// The time of the reported change, if the payload has it.
    pub(super) fn happened_at(&self) -> Option<Moment> {
        let places: &[&str] = match self.kind? {
            EventKind::Issues if self.action() == Some("closed") => {
                &["/issue/closed_at", "/issue/updated_at"]
            }
            EventKind::Issues => &["/issue/updated_at"],
            EventKind::IssueComment if self.action() == Some("edited") => &["/comment/updated_at"],
            EventKind::IssueComment => &["/comment/created_at"],
            EventKind::PullRequest => &["/pull_request/updated_at"],
            EventKind::PullRequestReview => &["/review/submitted_at"],
            EventKind::WorkflowRun => &["/workflow_run/updated_at"],
            EventKind::CheckSuite => &["/check_suite/updated_at"],
            EventKind::Status => &["/updated_at", "/created_at"],
        };
        places.iter().find_map(|place| self.time(place))
    }

    /// The time from which its facts are valid. For a run that is its start: of two runs, the later
    /// one may end first.
    pub(super) fn noted_since(&self) -> Option<Moment> {
        match self.kind? {
            EventKind::WorkflowRun => {
                let mut places = ["run_started_at", "created_at", "updated_at"].iter();
                places.find_map(|place| self.time(&format!("/workflow_run/{place}")))
            }
            _ => self.happened_at(),
        }
    }

    /// The checked commit, if the event is about checks.
    pub(super) fn checked_commit(&self) -> Option<&str> {
        match self.kind? {
            EventKind::WorkflowRun => self.text("/workflow_run/head_sha"),
            EventKind::CheckSuite => self.text("/check_suite/head_sha"),
            EventKind::Status => self.text("/sha"),
            _ => None,
        }
    }

    /// The event's repository, and the newest commit of the pull request if it is from the same
    /// repository.
    pub fn own_head(&self) -> Option<(&str, &str)> {
        let name = self.text("/repository/full_name")?;
        let is_own = self.text("/pull_request/head/repo/full_name") == Some(name);
        let head = self.text("/pull_request/head/sha").filter(|_| is_own)?;
        Some((name, head))
    }

    /// The branch that a pull request was merged into and the default branch, if they differ.
    pub(super) fn merged_elsewhere(&self) -> Option<(&str, &str)> {
        let merged = self.payload.pointer("/pull_request/merged")?.as_bool()?;
        let own = self.text("/pull_request/base/repo/default_branch");
        let default = own.or_else(|| self.text("/repository/default_branch"))?;
        let base = self.text("/pull_request/base/ref")?;
        let ends = self.kind == Some(EventKind::PullRequest) && self.action() == Some("closed");
        (ends && merged && base != default).then_some((base, default))
    }

    /// Returns the delivery that the payload itself names: the completed run and its attempt, since
    /// each attempt is an event of its own.
    pub fn own_delivery(&self) -> Option<DeliveryName> {
        let name = match self.kind? {
            EventKind::WorkflowRun => {
                let id = self.number("/workflow_run/id")?;
                let attempt = self.number("/workflow_run/run_attempt").unwrap_or(1);
                format!("workflow-run-{id}-{attempt}")
            }
            EventKind::CheckSuite => {
                let id = self.number("/check_suite/id")?;
                let at = self.time("/check_suite/updated_at")?.timestamp();
                format!("check-suite-{id}-{at}")
            }
            EventKind::Status => format!("status-{}", self.number("/id")?),
            _ => return None,
        };
        let action = self.action().unwrap_or_default().replace('_', "-");
        format!("{name}-{action}")
            .trim_end_matches('-')
            .parse()
            .ok()
    }

    /// Returns a delivery name that is derived from the bytes.
    ///
    /// # Errors
    /// Never in practice: a digest is a valid name.
    pub fn digest_delivery(&self) -> Result<DeliveryName, NoDeliveryName> {
        format!("sha256-{}", &self.digest[..40]).parse()
    }

    /// Returns whether it is from another or a deleted repository.
    pub(crate) fn is_from_fork(&self) -> bool {
        self.fork().is_some()
    }

    /// Returns the payload's value at a JSON Pointer.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.payload.pointer(pointer)
    }

    /// Updates the payload's `issue`, `pull_request` or `review` by what GitHub says of it now.
    pub fn update(&mut self, what: &str, now: Value) {
        if let Some(Value::Object(known)) = self.payload.get_mut(what)
            && let Value::Object(now) = now
        {
            known.extend(now);
        }
    }

    /// The event as `reopened`, if by it an open issue came from another repository: one that was here before is back.
    pub(super) fn as_returned(&self) -> Option<Self> {
        let is_back = self.kind == Some(EventKind::Issues)
            && self.action() == Some("opened")
            && self.text("/issue/state") == Some("open")
            && self.came_from_elsewhere();
        is_back.then(|| Self {
            action: Some("reopened".to_owned()),
            ..self.clone()
        })
    }

    pub(super) fn came_from_elsewhere(&self) -> bool {
        let old = self.payload.pointer("/changes/old_issue");
        old.is_some_and(Value::is_object)
    }

    /// The issue's current state, if a later event has undone what this one did.
    pub(super) fn undone(&self) -> Option<&str> {
        let state = self
            .text("/issue/state")
            .filter(|_| self.kind == Some(EventKind::Issues))?;
        matches!(
            (self.action()?, state),
            ("closed", "open") | ("reopened", "closed")
        )
        .then_some(state)
    }

    /// The event's origin, if that is another repository: such an event proves nothing about
    /// branches of this one.
    pub(super) fn fork(&self) -> Option<Fork> {
        let base = self.payload.pointer("/repository");
        let (head, base) = match self.kind? {
            EventKind::PullRequest | EventKind::PullRequestReview => {
                let own = self.payload.pointer("/pull_request/base/repo");
                (
                    self.payload.pointer("/pull_request/head/repo"),
                    own.or(base),
                )
            }
            EventKind::WorkflowRun => (self.payload.pointer("/workflow_run/head_repository"), base),
            EventKind::CheckSuite => {
                let of = |side: &str| format!("/check_suite/pull_requests/0/{side}/repo");
                let head = self.payload.pointer(&of("head"));
                // Without a pull request, the branch is in this repository.
                let own = self.payload.pointer(&of("base"));
                (head.or(base), own.or(base))
            }
            // A status is set in the repository itself.
            EventKind::Issues | EventKind::IssueComment | EventKind::Status => return None,
        };
        let id = |repository: Option<&Value>| {
            let id = repository?.get("id")?.as_u64();
            id.map(|id| id.to_string())
        };
        let name = |repository: Option<&Value>| {
            let name = repository?.get("full_name")?.as_str();
            name.map(str::to_ascii_lowercase)
        };
        let same = match (id(head), id(base)) {
            (Some(head), Some(base)) => Some(head == base),
            _ => name(head).zip(name(base)).map(|(head, base)| head == base),
        };
        match same {
            Some(true) => None,
            Some(false) => Some(Fork::Other),
            None => Some(Fork::Unknown),
        }
    }
}
