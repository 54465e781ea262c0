//! One step as data: what has to be known to plan it, and the step that a request becomes.

use handoff_base::ids::AgentName;
use handoff_base::{Edit, Moment};

use crate::delivery::Delivery;
use crate::message::Change;
use crate::record::{Issue, Record};
use crate::refusal::Refusal;
use crate::traceparent::TraceParent;

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
