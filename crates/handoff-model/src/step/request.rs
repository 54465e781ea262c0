//! Requests to the ledger: the same types for commands, imports, steps that a `sync` replays, and
//! the audit.

use std::fmt;

use handoff_base::ids::{AgentName, IssueKey, WorkerId};
use handoff_base::{Code, Moment};
use handoff_contract::Allowance;
use handoff_macros::skip_serializing_none;
use handoff_protocol::{Action, Event, OnRecord, Policy};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::contract::Contract;
use crate::record::{
    Approval, Artifact, Delivery, DeliveryName, Failure, FailureContext, ImportSource, ModelUsage,
    Question, TraceParent, UNSPECIFIED,
};

/// A step of an issue: a request with its actor and its time. The caller creates it, the planner
/// plans it, its commit records it, and exports contain it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The agent.
    pub by: AgentName,
    /// The worker that acts as the agent; `None` if there is none, as when a lease expired.
    pub worker: Option<WorkerId>,
    /// The time of the step.
    pub at: Moment,
    /// The trace context.
    pub traceparent: Option<TraceParent>,
    /// The usage so far of the work that the step ends or reports on; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<ModelUsage>,
    /// The outside event behind it.
    pub delivery: Option<Delivery>,
    /// What is requested.
    pub request: Request,
}

impl Step {
    /// The id of the outside event behind it.
    pub fn event_id(&self) -> Option<DeliveryName> {
        self.delivery.as_ref().map(|delivery| delivery.id.clone())
    }
}

/// The request in an issue. It is stored as an object with one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Sends a contract, which the commit adds.
    Send(SendOptions),
    /// Changes existing work.
    #[serde(untagged)]
    Update(Update),
}

/// A checked contract, with the data that was gathered for it.
pub struct SendRequest<'a> {
    /// The contract.
    pub contract: &'a Contract,
    /// The tip of the code branch.
    pub code: Option<&'a Code>,
    /// The delivered files as they are now.
    pub artifacts: &'a [Artifact],
    /// The policy for contradicted statements, if the protocol sets none.
    pub policy: Policy,
}

/// The options of sending a contract.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SendOptions {
    /// The number of the answered request, if given.
    pub answers: Option<u32>,
    /// The number of the failed handoff whose contract it corrects.
    pub replaces: Option<u32>,
    /// The token of the sender's claim, if given.
    pub token: Option<u32>,
    /// The allowed matches of secret patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_secrets: Vec<Allowance>,
    /// Its source, if it was imported.
    pub imported: Option<ImportSource>,
}

impl SendOptions {
    /// The options of an imported contract.
    pub fn imported(source: &ImportSource) -> Self {
        Self {
            imported: Some(source.clone()),
            ..Self::default()
        }
    }
}

impl Step {
    /// A step with only a request.
    pub fn new(by: AgentName, at: Moment, request: Request) -> Self {
        Self {
            by,
            worker: None,
            at,
            traceparent: None,
            usage: Vec::new(),
            delivery: None,
            request,
        }
    }

    /// The step in canonical form, as it is planned and recorded.
    pub fn canonical(&self) -> Self {
        let mut own = self.clone();
        if let Request::Update(Update::Change {
            event, arguments, ..
        }) = &mut own.request
        {
            arguments.keep_those_of(*event);
        }
        own
    }
}

impl Request {
    /// The request, unless it sends a contract.
    pub fn update(&self) -> Option<&Update> {
        match self {
            Self::Send(_) => None,
            Self::Update(update) => Some(update),
        }
    }

    /// The options, if it sends a contract.
    pub fn options(&self) -> &SendOptions {
        static NONE: SendOptions = SendOptions {
            answers: None,
            replaces: None,
            token: None,
            allowed_secrets: Vec::new(),
            imported: None,
        };
        match self {
            Self::Send(options) => options,
            Self::Update(_) => &NONE,
        }
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestVisitor)
    }
}

/// Parses the request's only member by its name, so that errors are about that member; refuses a
/// second one.
struct RequestVisitor;

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = Request;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one member, the request")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Request, M::Error> {
        let Some(name) = map.next_key::<String>()? else {
            return Err(M::Error::invalid_length(0, &self));
        };
        if name == "send" {
            return map.next_value().map(Request::Send);
        }
        let name = Some(name);
        let rest = MapAccessDeserializer::new(NamedMember { name, map });
        Update::deserialize(rest).map(Request::Update)
    }
}

/// A map access whose first key was already read.
struct NamedMember<M> {
    name: Option<String>,
    map: M,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for NamedMember<M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        match self.name.take() {
            Some(name) => seed.deserialize(name.into_deserializer()).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A request without a contract. Exports store it under the variant's name.
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
        #[serde(default)]
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
    /// Adds a note, which may correct the record.
    Annotate {
        /// The number of the handoff in the issue; `None` if the note is about the whole issue.
        handoff: Option<u32>,
        /// The note.
        note: String,
        /// The facts that it states, by placeholder name.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        facts: Map<String, Value>,
        /// A person's approval or disapproval of the handoff.
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
        /// When it was said, if elsewhere and earlier.
        said_at: Option<Moment>,
    },
    /// Pauses an issue: no work is handed out until it is reopened.
    Pause {
        /// Why.
        reason: String,
        /// The agents that may continue.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        except: Vec<AgentName>,
        /// When it was said, if elsewhere and earlier.
        said_at: Option<Moment>,
    },
    /// Sets a field that orders the queue, or a link between issues.
    Set {
        /// The facts, by name.
        facts: Map<String, Value>,
        /// Why.
        reason: String,
        /// The issues that it comes after from now on, if that changes.
        #[serde(default)]
        after: Option<Vec<IssueKey>>,
        /// The number of a handoff, and the agent that it is given to.
        assignee: Option<(u32, AgentName)>,
    },
    /// Records that a contract of the agent was refused.
    Refuse {
        /// Its kind, by the protocol.
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
    /// Where the context of the failure is kept, or the work that is given back.
    pub context: Option<FailureContext>,
    /// The token of the caller's claim.
    pub token: Option<u32>,
    /// When it was said, if elsewhere and earlier.
    pub said_at: Option<Moment>,
    /// The length of the lease in seconds, if not the default.
    pub lease: Option<u64>,
    /// The progress made.
    pub progress: Option<String>,
    /// How long a released handoff is withheld from the queue, in seconds.
    pub after: Option<u64>,
    /// The questions of an agent that is blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The answers, by the questions' keys.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The agent that takes the handoff over.
    pub receiver: Option<AgentName>,
    /// The random part of a retry's delay, in thousandths, if the protocol uses jitter.
    pub jitter: Option<u32>,
    /// The decision that causes the event, with its reason.
    pub decision: Option<(Action, String)>,
    /// Allowed matches of secret patterns; those that occur are recorded.
    #[serde(skip)]
    pub allow: Vec<Allowance>,
    /// The allowed matches that occur, with their places.
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

    /// A note about the issue as a whole.
    pub fn note(note: String) -> Self {
        Self::Annotate {
            handoff: None,
            note,
            facts: Map::new(),
            approval: None,
        }
    }

    /// The number of its handoff; `None` if it is about the whole issue.
    pub fn handoff(&self) -> Option<u32> {
        match self {
            Self::Change { handoff, .. } | Self::Decide { handoff, .. } => Some(*handoff),
            Self::Annotate { handoff, .. } => *handoff,
            Self::Set { assignee, .. } => assignee.as_ref().map(|(handoff, _)| *handoff),
            Self::GiveUp { .. }
            | Self::Reopen { .. }
            | Self::Pause { .. }
            | Self::Refuse { .. } => None,
        }
    }

    /// The same request for a handoff with another number, if it is about a handoff.
    #[must_use]
    pub fn renumbered(mut self, number: u32) -> Self {
        match &mut self {
            Self::Change { handoff, .. } | Self::Decide { handoff, .. } => *handoff = number,
            Self::Annotate { handoff, .. } => *handoff = handoff.map(|_| number),
            Self::Set { assignee, .. } => {
                if let Some((handoff, _)) = assignee {
                    *handoff = number;
                }
            }
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

    /// All texts by the user; each must be non-blank and at most `MAX_TEXT` bytes.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Change { arguments, .. } => arguments.texts(),
            Self::Annotate {
                note,
                approval: Some(_),
                ..
            } if note.is_empty() => Vec::new(),
            // A usage report needs no note.
            Self::Annotate { note, facts, .. } if note.is_empty() && facts.is_empty() => Vec::new(),
            Self::Decide { why: text, .. }
            | Self::Annotate { note: text, .. }
            | Self::GiveUp { reason: text }
            | Self::Reopen { reason: text, .. }
            | Self::Set { reason: text, .. }
            | Self::Pause { reason: text, .. } => vec![text],
            Self::Refuse { code, why, .. } => vec![code, why],
        }
    }

    /// The content to screen for secrets: the request's members or, for an event, those of its
    /// arguments.
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
    /// Arguments with only a reason.
    pub fn because(reason: &str) -> Self {
        Self {
            reason: Some(reason.to_owned()),
            ..Self::default()
        }
    }

    /// Keeps only the arguments that an event uses: imports and handmade commits may have others.
    fn keep_those_of(&mut self, event: Event) {
        // Everything about an expiry follows from the record.
        if event == Event::Expire {
            *self = Self::default();
        }
        self.allow.clear();
        if event != Event::Fail {
            self.failure = None;
        }
        if !matches!(event, Event::Fail | Event::Release) {
            self.context = None;
        }
        // The protocol determines the code of a failed run.
        if let Some(failure) = self
            .failure
            .as_mut()
            .filter(|failure| failure.run.is_some())
        {
            UNSPECIFIED.clone_into(&mut failure.code);
        }
        if event != Event::Retry {
            self.jitter = None;
        }
        if !event.is_claim() && event != Event::Extend {
            self.lease = None;
        }
        if !matches!(event, Event::Extend | Event::Release) {
            self.progress = None;
        }
        if event != Event::Release {
            self.after = None;
        }
        if event != Event::Block {
            self.questions.clear();
        }
        if event != Event::Answer {
            self.values.clear();
        }
        if event != Event::Reassign {
            self.receiver = None;
        }
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

    use super::{Request, Update};

    #[test]
    fn a_request_is_one_member_with_each_of_its_own_once() {
        let read = |text: &str| serde_json::from_str::<Request>(text).is_ok();
        assert!(read(r#"{"send": {"answers": 3}}"#));
        assert!(read(r#"{"reopen": {"reason": "reverted"}}"#));
        assert!(read(r#"{"change": {"handoff": 1, "event": "claim"}}"#));
        for text in [
            "{}",
            "[]",
            r#"{"reopen": {"reason": "a"}, "reopen": {"reason": "b"}}"#,
            r#"{"reopen": {"reason": "a"}, "send": {}}"#,
            r#"{"reopen": {"reason": "a", "reason": "b"}}"#,
            r#"{"reopen": {"reason": "a", "why": "b"}}"#,
            r#"{"forget": {"reason": "a"}}"#,
        ] {
            assert!(!read(text), "{text}");
        }
    }

    #[test]
    fn the_stored_form_of_an_update_stays() {
        let change = json!({"change": {"handoff": 2, "event": "fail", "arguments": {
            "failure": {"code": "BuildError", "message": "it fails", "recoverable": true},
        }}});
        let decide = json!({"decide": {"handoff": 3, "action": "retry", "why": "it may succeed"}});
        let note = json!({"annotate": {"note": "merged by hand", "facts": {"pull_request": 7}}});
        let reopen = json!({"reopen": {"reason": "reverted"}});
        let give_up = json!({"giveup": {"reason": "no longer needed"}});
        let at = "2026-03-02T09:00:00Z";
        let pause = json!({"pause": {"reason": "closed", "except": ["closer"], "said_at": at}});
        for stored in [change, decide, note, reopen, give_up, pause] {
            let update: Update = from_value(stored.clone()).unwrap();
            assert_eq!(to_value(&update).unwrap(), stored);
            let number = update.handoff();
            assert_eq!(update.renumbered(9).handoff(), number.map(|_| 9));
        }
        let unknown = json!({"reopen": {"reason": "reverted", "why": "twice"}});
        assert!(from_value::<Update>(unknown).is_err());
    }
}
