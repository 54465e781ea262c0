//! One step as data: the input for planning it, and the step that a request becomes.

use std::rc::Rc;

use handoff_base::ids::{AgentName, WorkerId};
use handoff_base::{Edit, Moment};
use handoff_protocol::Protocol;

use crate::advice::decides;
use crate::delivery::Delivery;
use crate::message::Change;
use crate::record::{Issue, Record};
use crate::refusal::Refusal;
use crate::spending::DaySpending;
use crate::traceparent::TraceParent;
use crate::usage::ModelUsage;

/// The agent that makes a request, and when.
pub struct Actor<'a> {
    /// The agent.
    pub name: &'a AgentName,
    /// The worker that acts as the agent; `None` if no worker makes the step, as when a lease
    /// expired.
    pub worker: Option<&'a WorkerId>,
    /// The time of the step.
    pub at: Moment,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
    /// What the work that it ends or reports on took so far; empty if nothing is reported.
    pub usage: &'a [ModelUsage],
    /// The outside event that it carries out.
    pub delivery: Option<&'a Delivery>,
}

/// Read access to the issue of a step. `E` is the error of reading.
pub trait View<E> {
    /// The issue, if it was opened.
    ///
    /// # Errors
    /// When it can't be read.
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, E>;

    /// A handoff's record, if there is one with this number.
    ///
    /// # Errors
    /// When it can't be read.
    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, E>;

    /// The issue as a value of its own.
    ///
    /// # Errors
    /// When it can't be read.
    fn issue(&self) -> Result<Option<Issue>, E> {
        Ok(self.shared_issue()?.map(Rc::unwrap_or_clone))
    }

    /// A handoff's record as a value of its own.
    ///
    /// # Errors
    /// When it can't be read.
    fn record(&self, number: u32) -> Result<Option<Record>, E> {
        Ok(self.shared_record(number)?.map(Rc::unwrap_or_clone))
    }

    /// The handoffs whose contracts have exactly these bytes, the newest first.
    ///
    /// # Errors
    /// When the folder can't be read.
    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, E>;

    /// What was spent on the claims that began on a day, if anything was.
    ///
    /// # Errors
    /// When the file can't be read.
    fn spent_on(&self, day: &str) -> Result<Option<DaySpending>, E>;

    /// A handoff's contract, byte for byte.
    ///
    /// # Errors
    /// When it is missing or can't be read.
    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, E>;
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The handoff that the request was about.
    pub record: Record,
    /// The issue afterwards.
    pub issue: Issue,
    /// Every handoff that changed, in the order of the trailers.
    pub changes: Vec<Change>,
    /// The agents that the handoff's receiver may hand on to, with the contract's type if there are
    /// several. A plan leaves it empty ([`Receipt::advised`]).
    pub onward: Vec<(AgentName, Option<String>)>,
    /// The agent that decides what happens to the handoff if it can't go on. A plan leaves it empty.
    pub lead: Option<AgentName>,
    /// Whether the ledger already had this, so that nothing was written.
    pub repeated: bool,
}

impl Receipt {
    /// Adds what the protocol says about how the work goes on: only whoever made the request needs it.
    #[must_use]
    pub fn advised(mut self, protocol: &Protocol) -> Self {
        let Record {
            from,
            to,
            contract_type,
            ..
        } = &self.record;
        self.onward = protocol.onward(to.as_str(), Some((from, contract_type.as_str())));
        self.lead = Some(decides(protocol, &self.issue, &self.record));
        self
    }
}

/// Each path with its edit.
pub type FileChanges = Vec<(String, Edit)>;

/// A step that is ready to be written.
#[derive(Debug)]
pub struct Step {
    /// What it changes.
    pub files: FileChanges,
    /// The commit's message.
    pub message: String,
    /// The outcome it leads to.
    pub receipt: Receipt,
    /// The time of the issue's previous step, if there is one.
    pub previous: Option<Moment>,
}

/// The plan for a request.
#[derive(Debug)]
pub enum Planned {
    /// A commit.
    Write(Box<Step>),
    /// Nothing: the ledger already has it.
    Repeat(Box<Receipt>),
}

/// Why a request was not planned.
#[derive(Debug)]
pub enum Stop<E> {
    /// It was refused by the protocol, the state or another agent's earlier step.
    Refused(Refusal),
    /// The issue can't be read.
    Unreadable(E),
}

impl<E, R: Into<Refusal>> From<R> for Stop<E> {
    fn from(refusal: R) -> Self {
        Self::Refused(refusal.into())
    }
}
