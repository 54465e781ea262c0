//! The outcome of an event.

use handoff::base::ObjectId;
use handoff::base::finding::Finding;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::ledger::{Ledger, Session};
use handoff::model::DeliveryName;
use handoff::protocol::{Command, Permission};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The ledger and the delivery of an event.
pub struct EventContext<'a, 'r> {
    /// The ledger to write.
    pub ledger: &'a mut Ledger<'r>,
    /// The session of the steps.
    pub session: &'a Session,
    /// The delivery's name, which makes each step happen once.
    pub delivery: &'a DeliveryName,
    /// The permission of the event's author in the repository, from GitHub, if it was asked.
    pub permission: Option<Permission>,
    /// The issues that the pull request closes, from GitHub, if it was asked.
    pub closes: &'a [IssueKey],
    /// Whether GitHub was asked, and did not answer.
    pub unasked: bool,
    /// The newest commit of the event's pull request, if GitHub was asked.
    pub head: Option<&'a str>,
    /// The ledger's repository, as `owner/name`, if it has a remote.
    pub home: Option<&'a str>,
}

/// The outcome of an event.
#[derive(Debug, Default)]
pub struct Carried {
    /// The issues that the event is about.
    pub issues: Vec<IssueKey>,
    /// The steps, in order.
    pub did: Vec<Did>,
    /// The result of each command in the comment or the review, in order.
    pub commands: Vec<Commanded>,
    /// A contract for an agent to finish.
    pub draft: Option<Draft>,
    /// Why rules had no effect, as sentences.
    pub why: Vec<String>,
    /// The command that continues the work of a reopened issue.
    pub next: Option<String>,
}

/// One step.
#[derive(Debug)]
pub struct Did {
    /// The rule that named it.
    pub rule: String,
    /// `noted`, `sent`, `answered`, `approved`, `retried`, `reassigned`, `reopened`, `paused` or
    /// `cancelled`.
    pub what: &'static str,
    /// The handoff; for a step about the whole issue, the newest.
    pub id: HandoffId,
    /// The agent that acts.
    pub agent: AgentName,
    /// The facts that were noted.
    pub facts: Map<String, Value>,
    /// The commit; `None` if an earlier delivery made it.
    pub commit: Option<ObjectId>,
    /// Findings that did not prevent the step.
    pub warnings: Vec<Finding>,
}

/// The result of a command in a comment or a review.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "GithubCommand")]
pub struct Commanded {
    /// Its line, or lines for an answer.
    pub said: String,
    /// The command, unless it is unknown.
    pub command: Option<Command>,
    /// Whether it was executed, now or earlier.
    pub accepted: bool,
    /// What it did, or why it did nothing.
    pub sentence: String,
    /// What to write instead, if it was refused and there is an alternative.
    pub next: Option<String>,
}

/// A contract that an agent must finish.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Draft {
    /// Its contract type.
    pub contract_type: String,
    /// Its sender.
    pub from: AgentName,
    /// Its receiver.
    pub to: AgentName,
    /// Its format.
    pub format: &'static str,
    /// The document.
    pub text: String,
    /// The places left to fill in.
    pub missing: Vec<Left>,
    /// The faults of the event's values.
    pub findings: Vec<Finding>,
}

/// A place that only the agent can fill in.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Missing")]
pub struct Left {
    /// The place, as a JSON Pointer.
    pub path: String,
    /// The requested value.
    pub asked: String,
}

impl Carried {
    /// Returns whether an earlier delivery made every step.
    pub fn is_repeated(&self) -> bool {
        !self.did.is_empty() && self.did.iter().all(|did| did.commit.is_none())
    }

    pub(super) fn nothing(why: impl Into<String>) -> Self {
        Self {
            why: vec![why.into()],
            ..Self::default()
        }
    }
}
