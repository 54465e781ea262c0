//! What a caller asks the ledger to do: one type for a command, an import, a step that a `sync`
//! makes again, and the audit.

use handoff_base::ids::AgentName;
use handoff_base::{Code, Moment};
use handoff_contract::Allowance;
use handoff_protocol::{Action, Event, OnRecord, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use crate::contract::Contract;
use crate::record::{
    Approval, Artifact, Failure, FailureContext, ImportSource, Question, UNSPECIFIED,
};

/// What a caller asks the ledger to do in an issue.
#[derive(Clone, Copy)]
pub enum Request<'a> {
    /// Hands work on with a contract.
    Send(SendRequest<'a>),
    /// Changes the state of existing work.
    Update(&'a Update),
}

/// A contract that passed the pipeline, with the data gathered for it.
#[derive(Clone, Copy)]
pub struct SendRequest<'a> {
    /// The contract.
    pub contract: &'a Contract,
    /// The tip of the code branch.
    pub code: Option<&'a Code>,
    /// The files that the contract delivers, in their current state.
    pub artifacts: &'a [Artifact],
    /// The policy for contradicted statements, unless the protocol sets one.
    pub policy: Policy,
    /// How it is sent.
    pub options: &'a SendOptions,
}

/// How a contract is sent.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SendOptions {
    /// The number of the request that it answers, if given.
    pub answers: Option<u32>,
    /// The number of the failed handoff whose contract it corrects.
    pub replaces: Option<u32>,
    /// The token of the claim that its sender acts under, if given.
    pub token: Option<u32>,
    /// The matches of secret patterns in it that are allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_secrets: Vec<Allowance>,
    /// Where it came from, if it was imported.
    pub imported: Option<ImportSource>,
}

impl SendOptions {
    /// For a contract that comes from elsewhere.
    pub fn imported(source: &ImportSource) -> Self {
        Self {
            imported: Some(source.clone()),
            ..Self::default()
        }
    }
}

impl SendRequest<'_> {
    /// How the contract is sent, with what its review found in it.
    pub(crate) fn reviewed_options(&self) -> SendOptions {
        SendOptions {
            allowed_secrets: self.contract.allowed_secrets.clone(),
            imported: self.contract.imported.clone(),
            ..self.options.clone()
        }
    }
}

/// A request without a contract. In an export, it is stored as a member with the variant's name.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Update {
    /// Changes the state of one handoff.
    Change {
        /// Its number in the issue.
        handoff: u32,
        /// The event.
        event: Event,
        /// The event's arguments.
        #[serde(default, alias = "told")]
        arguments: Box<EventArgs>,
    },
    /// Records a decision about a handoff without changing its state.
    Decide {
        /// Its number in the issue.
        handoff: u32,
        /// The action to take.
        action: Action,
        /// Why.
        why: String,
    },
    /// Adds a note that corrects what was recorded.
    Annotate {
        /// The number of the handoff in the issue; `None` if the note is about the whole issue.
        handoff: Option<u32>,
        /// The note.
        note: String,
        /// The facts that it states, by their names in skeletons.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        facts: Map<String, Value>,
        /// What a person decides about the handoff.
        approval: Option<Approval>,
    },
    /// Gives up an issue in which nothing is open.
    GiveUp {
        /// Why.
        reason: String,
    },
    /// Reopens a completed or cancelled issue, or resumes a paused one.
    Reopen {
        /// Why.
        reason: String,
        /// When that was said, if that was earlier and elsewhere.
        said_at: Option<Moment>,
    },
    /// Pauses an issue: nobody is handed its work until it is reopened.
    Pause {
        /// Why.
        reason: String,
        /// The agents that go on all the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        except: Vec<AgentName>,
        /// When that was said, if that was earlier and elsewhere.
        said_at: Option<Moment>,
    },
    /// Records that a contract of the agent was refused.
    Refuse {
        /// Which of the protocol's kinds it is.
        kind: OnRecord,
        /// The code of the refusal.
        code: String,
        /// Why, in one line.
        why: String,
    },
}

/// The arguments of an event.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventArgs {
    /// The reason, or the answer.
    pub reason: Option<String>,
    /// The failure, if there was one.
    pub failure: Option<Failure>,
    /// Where the context of the failure is kept.
    pub context: Option<FailureContext>,
    /// The token of the claim that the caller acts under.
    pub token: Option<u32>,
    /// When it was said, if that was earlier and elsewhere.
    pub said_at: Option<Moment>,
    /// The length of the lease in seconds, if not the protocol's.
    pub lease: Option<u64>,
    /// The progress made.
    pub progress: Option<String>,
    /// For how long what is given back is not offered, in seconds.
    pub after: Option<u64>,
    /// The questions of an agent that is blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The answers, by the questions' keys.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The agent that takes over from now on.
    pub receiver: Option<AgentName>,
    /// The part of the delay before another attempt, in thousandths, if the protocol wants a random
    /// part of it.
    pub jitter: Option<u32>,
    /// The decision that this carries out, and its rationale.
    pub decision: Option<(Action, String)>,
    /// Matches of secret patterns that are allowed; those that it contains are recorded.
    #[serde(skip)]
    pub allow: Vec<Allowance>,
    /// The allowed matches that it contains, and their places.
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

    /// The same update with the arguments that its event takes, as it is planned and recorded.
    pub fn canonical(&self) -> Self {
        match self {
            Self::Change {
                handoff,
                event,
                arguments,
            } => Self::change(*handoff, *event, arguments.of(*event)),
            other => other.clone(),
        }
    }

    /// The number of the handoff that it is about; `None` if it is about the whole issue.
    pub fn handoff(&self) -> Option<u32> {
        match self {
            Self::Change { handoff, .. } | Self::Decide { handoff, .. } => Some(*handoff),
            Self::Annotate { handoff, .. } => *handoff,
            Self::GiveUp { .. }
            | Self::Reopen { .. }
            | Self::Pause { .. }
            | Self::Refuse { .. } => None,
        }
    }

    /// The same update for the handoff with another number, if it is about one.
    #[must_use]
    pub fn renumbered(mut self, number: u32) -> Self {
        match &mut self {
            Self::Change { handoff, .. } | Self::Decide { handoff, .. } => *handoff = number,
            Self::Annotate { handoff, .. } => *handoff = handoff.map(|_| number),
            Self::GiveUp { .. }
            | Self::Reopen { .. }
            | Self::Pause { .. }
            | Self::Refuse { .. } => {}
        }
        self
    }

    /// The event, if it changes a handoff's state.
    pub fn event(&self) -> Option<Event> {
        match self {
            Self::Change { event, .. } => Some(*event),
            _ => None,
        }
    }

    /// Every text written by a user; none may be blank or longer than `MAX_TEXT`.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Change { arguments, .. } => arguments.texts(),
            Self::Annotate {
                note,
                approval: Some(_),
                ..
            } if note.is_empty() => Vec::new(),
            // It says what the work took.
            Self::Annotate { note, facts, .. } if note.is_empty() && facts.is_empty() => Vec::new(),
            Self::Decide { why: text, .. }
            | Self::Annotate { note: text, .. }
            | Self::GiveUp { reason: text }
            | Self::Reopen { reason: text, .. }
            | Self::Pause { reason: text, .. } => vec![text],
            Self::Refuse { code, why, .. } => vec![code, why],
        }
    }

    /// What is screened for secrets: its members, and for a change its arguments' members.
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
    /// Arguments with nothing but a reason.
    pub fn because(reason: &str) -> Self {
        Self {
            reason: Some(reason.to_owned()),
            ..Self::default()
        }
    }

    /// Those that an event takes: an import, or a commit that somebody made by hand, may have
    /// others.
    fn of(&self, event: Event) -> Self {
        // What ran out follows from the record.
        if event == Event::Expire {
            return Self::default();
        }
        let mut own = self.clone();
        own.allow.clear();
        if event != Event::Fail {
            own.failure = None;
        }
        // The protocol has the code of a run that failed.
        if let Some(failure) = own.failure.as_mut().filter(|failure| failure.run.is_some()) {
            UNSPECIFIED.clone_into(&mut failure.code);
        }
        if event != Event::Retry {
            own.jitter = None;
        }
        if event != Event::Fail {
            own.context = None;
        }
        if !event.is_claim() && event != Event::Extend {
            own.lease = None;
        }
        if !matches!(event, Event::Extend | Event::Release) {
            own.progress = None;
        }
        if event != Event::Release {
            own.after = None;
        }
        if event != Event::Block {
            own.questions.clear();
        }
        if event != Event::Answer {
            own.values.clear();
        }
        if event != Event::Reassign {
            own.receiver = None;
        }
        own
    }

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
        let give_up = json!({"giveup": {"reason": "no longer needed"}});
        let at = "2026-03-02T09:00:00Z";
        let pause = json!({"pause": {"reason": "closed", "except": ["closer"], "said_at": at}});
        for stored in [change("arguments"), decide, note, reopen, give_up, pause] {
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
