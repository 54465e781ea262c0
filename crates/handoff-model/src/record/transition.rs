//! A transition: one change of a handoff's state, with its details.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, WorkerId};
use handoff_contract::Allowance;
use handoff_macros::skip_serializing_none;
use handoff_protocol::{Event, RunFailure, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::TraceParent;
use crate::value::scalar;

/// The failure code when a lease runs out.
pub(crate) const TIMED_OUT: &str = "TIMEOUT";

/// The failure code when a handoff is not claimed in time.
pub(crate) const NOT_ACKNOWLEDGED: &str = "NOT_ACKNOWLEDGED";

/// The failure code of an agent that violated its role.
pub(crate) const ROLE_VIOLATION: &str = "ROLE_VIOLATION";

/// The failure code if none was given.
pub const UNSPECIFIED: &str = "FAILED";

/// Something that a blocked agent needs to know.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The key of the answer.
    pub key: String,
    /// The kind of value, in the words of the agent that asks.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What the answer is used for.
    pub description: Option<String>,
    /// Whether the work can continue without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A failure, as the failing agent reports it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// A short, stable code: `BuildError`.
    pub code: String,
    /// What happened, in one sentence.
    pub message: String,
    /// More about it.
    pub details: Option<String>,
    /// Whether another attempt may succeed.
    pub recoverable: bool,
    /// What to do about it.
    pub suggested_action: Option<String>,
    /// Whether the agent rules out another attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_retry: bool,
    /// How the agent's run ended, if that implied the code.
    pub run: Option<RunFailure>,
}

impl Failure {
    /// The code, with the run's end in brackets: `PROCESSING_ERROR (EXIT)`.
    pub fn named(&self) -> String {
        let run = self.run.map(|run| format!(" ({})", run.as_str()));
        format!("{}{}", self.code, run.unwrap_or_default())
    }
}

/// The recorded folder of the context of a failure, or of a claim that was given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureContext {
    /// The folder, relative to the issue's: `0002-failure/1`, or `0002-release/3` for the third claim.
    pub folder: String,
    /// The id of its tree object.
    pub tree: String,
    /// The number of files in it: attachments and those of a snapshot.
    pub files: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
}

/// One change of a handoff's state.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// When it happened.
    pub at: Moment,
    /// The agent that caused it.
    pub by: AgentName,
    /// The worker that caused it; `None` if none did, as when a lease expired.
    pub worker: Option<WorkerId>,
    /// `claim`, `take_over` (by another worker), `complete`, `fail`, `expire` (its lease expired, or
    /// nobody claimed it in time), `exhaust` (no attempt is left), `release` (given back),
    /// `block`, `answer`, `retry`, `reassign`, `redrive`, `reject` or `cancel`; `None` for the sending
    /// that started the handoff.
    pub event: Option<Event>,
    /// The state before; `None` for the first.
    pub from: Option<State>,
    /// The state after.
    pub to: State,
    /// The handoff whose step caused it.
    pub sent: Option<HandoffId>,
    /// The reason, or the answer.
    pub reason: Option<String>,
    /// The failure, if there was one.
    pub failure: Option<Failure>,
    /// When its lease or its time to be claimed ran out, if it expired.
    pub ran_out_at: Option<Moment>,
    /// Where the context of the failure is kept, or the work that was given back.
    pub context: Option<FailureContext>,
    /// The questions of the blocked agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The answers, by the questions' keys.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The agent that takes over from now on.
    pub receiver: Option<AgentName>,
    /// The random part of the delay before another attempt, in thousandths.
    pub jitter: Option<u32>,
    /// Allowed matches of secret patterns that came with it, and their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_secrets: Vec<Allowance>,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
}

impl Transition {
    /// A transition without further details.
    pub fn new(at: Moment, by: AgentName, to: State) -> Self {
        Self {
            at,
            by,
            worker: None,
            event: None,
            from: None,
            to,
            sent: None,
            reason: None,
            failure: None,
            ran_out_at: None,
            context: None,
            questions: Vec::new(),
            values: Map::new(),
            receiver: None,
            jitter: None,
            allowed_secrets: Vec::new(),
            traceparent: None,
        }
    }
}

impl Transition {
    /// The failure, the given reason, or the first question.
    pub fn why(&self) -> Option<&str> {
        let failure = self.failure.as_ref().map(|failure| &failure.message);
        let asked = || {
            let question = self.questions.first()?;
            question.description.as_ref().or(Some(&question.key))
        };
        let why = failure.or(self.reason.as_ref()).or_else(asked);
        why.map(String::as_str)
    }

    /// The context, if it contains saved work; that of a released claim always does.
    pub fn kept_work(&self) -> Option<&FailureContext> {
        let has_work = |c: &&FailureContext| c.files > 0 || self.event == Some(Event::Release);
        self.context.as_ref().filter(has_work)
    }

    /// The values of an answer in words: `port=8080, host=desk`.
    pub fn answer_text(&self) -> Option<String> {
        answer_text(&self.values)
    }
}

/// Values in words: `port=8080, host=desk`.
pub fn answer_text(values: &Map<String, Value>) -> Option<String> {
    let value = |value: &Value| scalar(value).unwrap_or_else(|| value.to_string());
    let pairs = values.iter().map(|(key, v)| format!("{key}={}", value(v)));
    let text = pairs.collect::<Vec<_>>().join(", ");
    Some(text).filter(|text| !text.is_empty())
}
