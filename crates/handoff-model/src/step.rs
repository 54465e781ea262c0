//! One step as data: what is asked for, what has to be known for it, and what it
//! comes to.

use handoff_base::ids::AgentName;
use handoff_base::{Code, Edit, Moment};
use handoff_contract::Allowance;
use handoff_protocol::{Action, Event, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::delivery::Delivery;
use crate::evidence::Evidence;
use crate::intake::Contract;
use crate::message::Change;
use crate::record::{Artifact, Failure, FailureContext, Issue, Question, Record};
use crate::refusal::Refusal;
use crate::traceparent::TraceParent;

/// Longest text that a step may carry beside its contract, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;

/// What an agent asks for.
pub enum Request<'a> {
    /// Hands work on.
    Send(SendRequest<'a>),
    /// Changes the state of one handoff.
    Change {
        /// Its number in the issue.
        number: u32,
        /// What happens to it.
        event: Event,
        /// What goes with it.
        told: Box<Told>,
    },
    /// Records what was decided about a handoff, which stays as it is.
    Decide {
        /// Its number in the issue.
        number: u32,
        /// What is to be done.
        action: Action,
        /// Why.
        why: String,
    },
    /// Adds a note that corrects what was recorded.
    Annotate {
        /// The number of the handoff that it is about; none, where it is about the
        /// whole issue.
        number: Option<u32>,
        /// What is so.
        note: String,
        /// What is known by it, by the names that skeletons have for it.
        facts: Map<String, Value>,
    },
    /// Opens a completed issue again.
    Reopen {
        /// Why.
        reason: String,
    },
}

/// A contract that passed the pipeline, and what was gathered for it.
#[derive(Clone, Copy)]
pub struct SendRequest<'a> {
    /// The contract.
    pub contract: &'a Contract,
    /// Where the code branch stands.
    pub code: Option<&'a Code>,
    /// The files that the contract delivers, as they are.
    pub artifacts: &'a [Artifact],
    /// What was found of its claims; none where they were not looked at yet, and
    /// the plan is one to learn from, not to be written.
    pub evidence: Option<&'a [Evidence]>,
    /// What becomes of contradicted claims where the protocol does not say.
    pub policy: Policy,
    /// The number of the request that it answers, where that is said.
    pub answers: Option<u32>,
    /// The claim that its sender acts under, where that is said.
    pub token: Option<u32>,
}

/// What goes with a change of state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Told {
    /// Why, or the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Where the context of the failure is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<FailureContext>,
    /// The claim that the holder acts under; not kept.
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
    /// What is asked, by whoever is blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// What is answered, by the question's key.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// The agent that is to do it from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<AgentName>,
    /// How much of the delay before another attempt to take, in thousandths,
    /// where the protocol wants a part of it that is drawn by lot.
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

/// Who asks, and when.
pub struct Actor<'a> {
    /// The agent.
    pub name: &'a AgentName,
    /// The time of the step.
    pub at: Moment,
    /// The trace that it is made in.
    pub traceparent: Option<TraceParent>,
    /// The event from outside that it carries out.
    pub delivery: Option<&'a Delivery>,
}

/// What a step needs to know of its issue. `E` is how reading can fail.
pub trait View<E> {
    /// The issue, if it was opened.
    ///
    /// # Errors
    /// When it can't be read.
    fn issue(&self) -> Result<Option<Issue>, E>;

    /// A handoff's record, if there is one with this number.
    ///
    /// # Errors
    /// When it can't be read.
    fn record(&self, number: u32) -> Result<Option<Record>, E>;

    /// The handoffs whose contracts have exactly these bytes, the newest first.
    ///
    /// # Errors
    /// When the folder can't be read.
    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, E>;
}

/// What became of a request.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The handoff that the request was about.
    pub record: Record,
    /// The issue after it.
    pub issue: Issue,
    /// Every handoff that changed, in the order of the trailers.
    pub changes: Vec<Change>,
    /// Whom the handoff's receiver may hand on to, with the contract's type where
    /// there are several to choose from.
    pub onward: Vec<(AgentName, Option<String>)>,
    /// Who decides about failures, if the protocol has such an agent.
    pub lead: Option<AgentName>,
    /// Whether the ledger held this already, so that nothing was written.
    pub repeated: bool,
}

/// Each path with what becomes of it.
pub type FileChanges = Vec<(String, Edit)>;

/// A step that is ready to be written.
#[derive(Debug)]
pub struct Step {
    /// What it changes.
    pub files: FileChanges,
    /// The commit's message.
    pub message: String,
    /// What it does.
    pub receipt: Receipt,
    /// When the issue's step before it was made, if there is one.
    pub previous: Option<Moment>,
}

/// What a request leads to.
#[derive(Debug)]
pub enum Planned {
    /// A commit.
    Write(Box<Step>),
    /// Nothing: the ledger holds it already.
    Repeat(Box<Receipt>),
}

/// Why a request leads to nothing.
#[derive(Debug)]
pub enum Stop<E> {
    /// The protocol, the state or someone else's earlier step refuses it.
    Refused(Refusal),
    /// The issue can't be read.
    Unreadable(E),
}

impl<E> From<Refusal> for Stop<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
