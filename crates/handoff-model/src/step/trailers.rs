//! Encodes a step as trailers of its commit: the request with all its arguments, the actor and the
//! time.
//!
//! [`write()`] and [`recorded`] share one table, so that a step round-trips exactly. Every member
//! of a request has a trailer; derived values (transitions, attempt, times) have others, which
//! [`recorded`] ignores.

use handoff_protocol::Event;
use serde_json::{Map, Value, json};

use crate::record::UNSPECIFIED;
use crate::step::{Request, Step, StepEvent, Update};
use crate::trailers::{folded, json_line, trailers, unfolded};

/// The encoding of a member's value.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Text,
    Json,
}

use Form::{Json, Text};

/// A member's JSON Pointer, trailer and encoding.
type Member = (&'static str, &'static str, Form);

/// The members of a step besides its request.
const STEP: &[Member] = &[
    ("/by", "By", Text),
    ("/worker", "Worker", Text),
    ("/at", "At", Text),
    ("/traceparent", "Traceparent", Text),
    ("/usage", "Usage", Json),
    ("/delivery/id", "Delivery", Text),
    ("/delivery/part", "Delivery-Part", Text),
];

/// The member that holds the request.
const REQUESTED: &str = "/request";

const SEND: &[Member] = &[
    ("/answers", "Answers", Json),
    ("/replaces", "Replaces", Json),
    ("/token", "Token", Json),
    ("/allowed_secrets", "Allowed-Secrets", Json),
    ("/imported", "Imported", Json),
];

/// An event's arguments, except the texts in [`texts`].
const CHANGE: &[Member] = &[
    ("/failure/recoverable", "Recoverable", Json),
    ("/failure/details", "Failure-Details", Text),
    ("/failure/suggested_action", "Suggested-Action", Text),
    ("/failure/no_retry", "No-Retry", Json),
    ("/failure/run", "Run-Failure", Text),
    ("/context", "Failure-Context", Json),
    ("/token", "Token", Json),
    ("/said_at", "Said-At", Text),
    ("/lease", "Lease-Seconds", Json),
    ("/after", "After-Seconds", Json),
    ("/questions", "Questions", Json),
    ("/values", "Values", Json),
    ("/receiver", "Receiver", Text),
    ("/jitter", "Jitter", Json),
    ("/decision/0", "Decision", Text),
    ("/decision/1", "Rationale", Text),
    ("/allowed_secrets", "Allowed-Secrets", Json),
];

const DECIDE: &[Member] = &[("/action", "Decision", Text), ("/why", "Reason", Text)];

const ANNOTATE: &[Member] = &[
    ("/note", "Reason", Text),
    ("/facts", "Facts", Json),
    ("/approval/code", "Code", Json),
];

const ISSUE: &[Member] = &[
    ("/reason", "Reason", Text),
    ("/except", "Except", Json),
    ("/after", "After", Json),
    ("/facts", "Facts", Json),
    ("/assignee", "Assignee", Json),
    ("/said_at", "Said-At", Text),
];

const REFUSE: &[Member] = &[
    ("/kind", "Refusal", Text),
    ("/code", "Refusal-Code", Text),
    ("/why", "Reason", Text),
];

/// The texts of an event's arguments. The trailer `Reason` has the one that says most.
fn texts(event: Event) -> &'static [Member] {
    match event {
        Event::Fail => &[
            ("/failure/message", "Reason", Text),
            ("/reason", "Remark", Text),
            ("/progress", "Progress", Text),
        ],
        Event::Extend => &[("/progress", "Reason", Text), ("/reason", "Remark", Text)],
        _ => &[("/reason", "Reason", Text), ("/progress", "Progress", Text)],
    }
}

/// The trailer with the requested event, if the step's event is another one.
pub(crate) const REQUEST: &str = "Request";

/// The trailer of a note about the whole issue.
const SCOPE: (&str, &str) = ("Scope", "issue");

/// The event that a request asks for, which may differ from the step's event.
fn event(request: &Request) -> StepEvent {
    match request {
        Request::Send(_) => StepEvent::Send,
        Request::Update(update) => match update {
            Update::Change { event, .. } => StepEvent::Lifecycle(*event),
            Update::Decide { .. } => StepEvent::Decide,
            Update::Annotate { approval, .. } => match approval {
                None => StepEvent::Annotate,
                Some(approval) if approval.approved => StepEvent::Approve,
                Some(_) => StepEvent::Disapprove,
            },
            Update::GiveUp { .. } => StepEvent::GiveUp,
            Update::Reopen { .. } => StepEvent::Reopen,
            Update::Pause { .. } => StepEvent::Pause,
            Update::Set { .. } => StepEvent::Set,
            Update::Refuse { .. } => StepEvent::Refuse,
        },
    }
}

/// A trailer's name and value.
pub(crate) type Trailer = (&'static str, String);

/// The trailers of a step whose request resulted in this event.
pub(crate) fn write(step: &Step, led_to: StepEvent) -> Vec<Trailer> {
    let asked = event(&step.request);
    let mut found = Vec::new();
    if asked != led_to {
        found.push((REQUEST, asked.as_str().to_owned()));
    }
    let value = json!(step);
    let request = value.pointer(REQUESTED).and_then(Value::as_object);
    let request = request.and_then(|request| request.values().next());
    let members = request.unwrap_or(&Value::Null);
    match &step.request {
        Request::Send(_) => put(members, SEND, &mut found),
        Request::Update(update) => match update {
            Update::Change { event, .. } => {
                put(&members["arguments"], texts(*event), &mut found);
                put(&members["arguments"], CHANGE, &mut found);
            }
            Update::Decide { .. } => put(members, DECIDE, &mut found),
            Update::Annotate { handoff, .. } => {
                if handoff.is_none() {
                    found.push((SCOPE.0, SCOPE.1.to_owned()));
                }
                put(members, ANNOTATE, &mut found);
            }
            Update::Refuse { .. } => put(members, REFUSE, &mut found),
            Update::GiveUp { .. }
            | Update::Reopen { .. }
            | Update::Set { .. }
            | Update::Pause { .. } => {
                put(members, ISSUE, &mut found);
            }
        },
    }
    put(&value, STEP, &mut found);
    found
}

/// Adds trailers for the members of a value.
fn put(value: &Value, members: &[Member], found: &mut Vec<Trailer>) {
    for (at, name, form) in members {
        match value.pointer(at) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if *form == Text => {
                if !text.is_empty() {
                    found.push((name, folded(text).into_owned()));
                }
            }
            Some(value) => found.push((name, json_line(&value.to_string()).into_owned())),
        }
    }
}

/// Why a message does not contain a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStep {
    /// A trailer is missing.
    #[error("it has no trailer {0}")]
    Missing(&'static str),
    /// A trailer's value is invalid.
    #[error("its trailer {0} is not valid")]
    Invalid(String),
}

/// Parses the step in a commit message.
///
/// # Errors
/// [`NoStep`] if the trailers are not those of an issue's step.
pub fn recorded(message: &str) -> Result<Step, NoStep> {
    let trailers = trailers(message);
    let find = |name: &str| {
        let mut all = trailers.iter();
        all.find_map(|(known, value)| (*known == name).then_some(*value))
    };
    let value = find(REQUEST).or_else(|| find("Event"));
    let value = value.ok_or(NoStep::Missing("Event"))?;
    let asked = StepEvent::all().find(|event| event.as_str() == value);
    let asked = asked.ok_or_else(|| NoStep::Invalid("Event".to_owned()))?;
    let mut step = object(&find, &[STEP])?;
    let member = REQUESTED.trim_start_matches('/').to_owned();
    step.insert(member, requested(&find, asked)?);
    let step: Step =
        serde_json::from_value(step.into()).map_err(|_| NoStep::Invalid("Event".to_owned()))?;
    Ok(step.canonical())
}

/// The request that asks for this event.
fn requested<'m>(
    find: &impl Fn(&str) -> Option<&'m str>,
    asked: StepEvent,
) -> Result<Value, NoStep> {
    let number = || {
        let id = find("Handoff-Id").and_then(|id| id.rsplit_once('.'));
        let number = id.and_then(|(_, number)| number.parse::<u32>().ok());
        number.ok_or(NoStep::Missing("Handoff-Id"))
    };
    let (name, value) = match asked {
        StepEvent::Send => ("send", object(find, &[SEND])?.into()),
        StepEvent::Archive | StepEvent::Unarchive => {
            return Err(NoStep::Invalid("Event".to_owned()));
        }
        StepEvent::Lifecycle(event) => {
            let mut arguments = object(find, &[texts(event), CHANGE])?;
            if let Some(Value::Object(failure)) = arguments.get_mut("failure") {
                // The protocol determines the code of a failed run.
                let code = find("Failure-Code").filter(|_| !failure.contains_key("run"));
                let code = code.map_or_else(|| UNSPECIFIED.to_owned(), unfolded);
                failure.insert("code".to_owned(), code.into());
                failure.entry("message").or_insert_with(|| "".into());
            }
            let change = json!({"handoff": number()?, "event": event, "arguments": arguments});
            ("change", change)
        }
        StepEvent::Decide => {
            let mut decide = object(find, &[DECIDE])?;
            decide.insert("handoff".to_owned(), number()?.into());
            decide.entry("why").or_insert_with(|| "".into());
            ("decide", decide.into())
        }
        StepEvent::Annotate | StepEvent::Approve | StepEvent::Disapprove => {
            let mut note = object(find, &[ANNOTATE])?;
            note.entry("note").or_insert_with(|| "".into());
            if find(SCOPE.0).is_none() {
                note.insert("handoff".to_owned(), number()?.into());
            }
            if asked != StepEvent::Annotate {
                let approval = note.entry("approval").or_insert_with(|| json!({}));
                approval["approved"] = (asked == StepEvent::Approve).into();
            }
            ("annotate", note.into())
        }
        StepEvent::Refuse => ("refuse", object(find, &[REFUSE])?.into()),
        StepEvent::Pause => ("pause", issue(find)?),
        StepEvent::Set => ("set", issue(find)?),
        StepEvent::Reopen => ("reopen", issue(find)?),
        StepEvent::GiveUp => ("giveup", issue(find)?),
    };
    Ok(json!({ name: value }))
}

fn issue<'m>(find: &impl Fn(&str) -> Option<&'m str>) -> Result<Value, NoStep> {
    let mut update = object(find, &[ISSUE])?;
    update.entry("reason").or_insert_with(|| "".into());
    Ok(update.into())
}

/// The object that these trailers encode.
fn object<'m>(
    find: &impl Fn(&str) -> Option<&'m str>,
    tables: &[&[Member]],
) -> Result<Map<String, Value>, NoStep> {
    let mut object = Map::new();
    for (at, name, form) in tables.iter().copied().flatten() {
        let Some(value) = find(name) else { continue };
        let value = match form {
            Text => Value::String(unfolded(value)),
            Json => serde_json::from_str(value).map_err(|_| NoStep::Invalid((*name).to_owned()))?,
        };
        let (parent, member) = at.rsplit_once('/').unwrap_or_default();
        match parent.strip_prefix('/') {
            None => drop(object.insert(member.to_owned(), value)),
            Some(parent) => match member.parse::<usize>() {
                // The members of a pair come in order.
                Ok(_) => {
                    let pair = object.entry(parent).or_insert_with(|| json!([]));
                    if let Value::Array(pair) = pair {
                        pair.push(value);
                    }
                }
                Err(_) => {
                    let inner = object.entry(parent).or_insert_with(|| json!({}));
                    if let Value::Object(inner) = inner {
                        inner.insert(member.to_owned(), value);
                    }
                }
            },
        }
    }
    Ok(object)
}
