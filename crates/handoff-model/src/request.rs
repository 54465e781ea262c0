//! What a caller asks the ledger to do: the one type for a command, an import, a step that is
//! made again after a `sync`, and the audit.

use handoff_base::ids::AgentName;
use handoff_base::{Code, Moment};
use handoff_contract::Allowance;
use handoff_protocol::{Action, Event, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::evidence::Evidence;
use crate::intake::Contract;
use crate::record::{Artifact, Failure, FailureContext, Question};

/// Longest text that a step may carry beside its contract, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;

/// What a caller asks the ledger to do in an issue.
#[derive(Clone, Copy)]
pub enum Request<'a> {
    /// Hands work on, by a contract.
    Send(SendRequest<'a>),
    /// Changes what is known of work that was handed on.
    Update(&'a Update),
}

/// A contract that passed the pipeline, and what was gathered for it.
#[derive(Clone, Copy)]
pub struct SendRequest<'a> {
    /// The contract.
    pub contract: &'a Contract,
    /// The tip of the code branch.
    pub code: Option<&'a Code>,
    /// The files that the contract delivers, as they are.
    pub artifacts: &'a [Artifact],
    /// What was found of its claims; none where they were not checked yet, and
    /// the plan is one to learn from, not to be written.
    pub evidence: Option<&'a [Evidence]>,
    /// What becomes of contradicted claims where the protocol does not say.
    pub policy: Policy,
    /// The number of the request that it answers, if given.
    pub answers: Option<u32>,
    /// The claim that its sender acts under, if given.
    pub token: Option<u32>,
}

/// A request that needs no contract. Its stored form, in an export, is a member with
/// the variant's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Update {
    /// Changes the state of one handoff.
    Change {
        /// Its number in the issue.
        handoff: u32,
        /// What happens to it.
        event: Event,
        /// What comes with the event.
        #[serde(default, alias = "told")]
        arguments: Box<EventArgs>,
    },
    /// Records what was decided about a handoff, which stays as it is.
    Decide {
        /// Its number in the issue.
        handoff: u32,
        /// What is to be done.
        action: Action,
        /// Why.
        why: String,
    },
    /// Adds a note that corrects what was recorded.
    Annotate {
        /// The number of the handoff in the issue; none, where the note is about all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff: Option<u32>,
        /// The note.
        note: String,
        /// What it says as values, by the names that skeletons have for them.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        facts: Map<String, Value>,
    },
    /// Opens a completed issue again.
    Reopen {
        /// Why.
        reason: String,
    },
}

/// What comes with an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventArgs {
    /// Why, or the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Where the context of the failure is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<FailureContext>,
    /// The claim that the caller acts under; not kept.
    #[serde(skip)]
    pub token: Option<u32>,
    /// When it was said, where that was elsewhere and before; not kept.
    #[serde(skip)]
    pub said_at: Option<Moment>,
    /// How long a claim holds, in seconds, if not as long as the protocol says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
    /// How far the work is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The questions of an agent that is blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The answers, by the questions' keys.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The agent that is to do it from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<AgentName>,
    /// How much of the delay before another attempt to take, in thousandths,
    /// where the protocol wants a random part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<u32>,
    /// The decision that this carries out, and its rationale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<(Action, String)>,
    /// What it may hold although it looks like a secret.
    #[serde(skip)]
    pub allow: Vec<Allowance>,
    /// What of that it does hold, where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_secrets: Vec<Allowance>,
}

impl Update {
    /// An event of one handoff.
    pub fn change(handoff: u32, event: Event, arguments: EventArgs) -> Self {
        Self::Change {
            handoff,
            event,
            arguments: Box::new(arguments),
        }
    }

    /// The number of the handoff that it is about; none, where that is the whole issue.
    pub fn handoff(&self) -> Option<u32> {
        match self {
            Self::Change { handoff, .. } | Self::Decide { handoff, .. } => Some(*handoff),
            Self::Annotate { handoff, .. } => *handoff,
            Self::Reopen { .. } => None,
        }
    }

    /// The same about the handoff with another number, where it is about one.
    #[must_use]
    pub fn renumbered(mut self, number: u32) -> Self {
        match &mut self {
            Self::Change { handoff, .. } | Self::Decide { handoff, .. } => *handoff = number,
            Self::Annotate { handoff, .. } => *handoff = handoff.map(|_| number),
            Self::Reopen { .. } => {}
        }
        self
    }

    /// The event, where it changes a handoff's state.
    pub fn event(&self) -> Option<Event> {
        match self {
            Self::Change { event, .. } => Some(*event),
            _ => None,
        }
    }

    /// Every text that somebody wrote: none may be blank, or longer than [`MAX_TEXT`].
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Change { arguments, .. } => arguments.texts(),
            Self::Decide { why: text, .. }
            | Self::Annotate { note: text, .. }
            | Self::Reopen { reason: text } => vec![text],
        }
    }

    /// What is screened for secrets: its members, and of a change those of its arguments.
    pub(crate) fn content(&self) -> Value {
        match self {
            Self::Change { arguments, .. } => json!(arguments),
            other => match json!(other) {
                Value::Object(tagged) => tagged.into_values().next().unwrap_or_default(),
                value => value,
            },
        }
    }
}

impl EventArgs {
    fn texts(&self) -> Vec<&str> {
        let failure = self.failure.iter().flat_map(|failure| {
            let optional = [&failure.details, &failure.suggested_action];
            [&failure.code, &failure.message]
                .into_iter()
                .chain(optional.into_iter().flatten())
        });
        let why = self.decision.iter().map(|(_, why)| why);
        let texts = self.reason.iter().chain(failure);
        let texts = texts.chain(&self.progress).chain(why);
        texts.map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{from_value, json, to_value};

    use super::Update;

    #[test]
    fn the_stored_form_of_an_update_stays() {
        let change = |arguments: &str| {
            json!({"change": {"handoff": 2, "event": "fail", arguments: {
                "failure": {"code": "BuildError", "message": "it fails", "recoverable": true},
            }}})
        };
        let decide = json!({"decide": {"handoff": 3, "action": "retry", "why": "it may succeed"}});
        let note = json!({"annotate": {"note": "merged by hand", "facts": {"pull_request": 7}}});
        let reopen = json!({"reopen": {"reason": "reverted"}});
        for stored in [change("arguments"), decide, note, reopen] {
            let update: Update = from_value(stored.clone()).unwrap();
            assert_eq!(to_value(&update).unwrap(), stored);
            let number = update.handoff();
            assert_eq!(update.renumbered(9).handoff(), number.map(|_| 9));
        }
        let earlier: Update = from_value(change("told")).unwrap();
        assert_eq!(to_value(&earlier).unwrap(), change("arguments"));
        let unknown = json!({"reopen": {"reason": "reverted", "why": "twice"}});
        assert!(from_value::<Update>(unknown).is_err());
    }
}
