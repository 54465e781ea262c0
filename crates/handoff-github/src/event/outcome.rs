//! What becomes of an event, as it is told.

use handoff_base::ObjectId;
use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_ledger::{Ledger, Session};
use handoff_model::DeliveryName;
use serde_json::{Map, Value};

/// Where the steps go, and for which delivery they are made.
pub struct EventContext<'a, 'r> {
    /// The ledger.
    pub ledger: &'a mut Ledger<'r>,
    /// Who runs the program, and when.
    pub session: &'a Session,
    /// The delivery of the event.
    pub delivery: &'a DeliveryName,
}

/// What became of an event.
#[derive(Debug, Default)]
pub struct Carried {
    /// The issue that it is about, if it is about one.
    pub issue: Option<IssueKey>,
    /// The steps, in their order.
    pub did: Vec<Did>,
    /// A contract that it begins, for an agent to finish.
    pub draft: Option<Draft>,
    /// Why something, or all of it, was not done: sentences.
    pub why: Vec<String>,
}

/// One step.
#[derive(Debug)]
pub struct Did {
    /// The rule that it follows from.
    pub rule: String,
    /// What it did: `noted`, `sent`, `answered`, `reopened` or `cancelled`.
    pub what: &'static str,
    /// The handoff that it is about; of the whole issue, the newest.
    pub id: HandoffId,
    /// The agent whose step it is.
    pub agent: AgentName,
    /// The facts that it noted.
    pub facts: Map<String, Value>,
    /// Its commit; none, where an earlier delivery has made it.
    pub commit: Option<ObjectId>,
    /// What was found and did not keep it from being done.
    pub warnings: Vec<Finding>,
}

/// A contract that an agent must finish.
#[derive(Debug)]
pub struct Draft {
    /// Its type.
    pub contract_type: String,
    /// Who sends it.
    pub from: AgentName,
    /// To whom.
    pub to: AgentName,
    /// Its format.
    pub format: &'static str,
    /// The document.
    pub text: String,
    /// What is left to fill in.
    pub missing: Vec<Left>,
    /// What is wrong with what the event says.
    pub findings: Vec<Finding>,
}

/// A place that only the agent can fill.
#[derive(Debug)]
pub struct Left {
    /// The place, as a JSON Pointer.
    pub path: String,
    /// What belongs there.
    pub asked: String,
}

impl Carried {
    /// Whether all that follows from the event was done by an earlier delivery.
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
