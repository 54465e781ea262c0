//! One step as data: who asked for what and when, and the commit that it becomes.

use handoff_base::ids::{AgentName, WorkerId};
use handoff_base::{Edit, Moment};
use handoff_contract::Allowance;
use handoff_protocol::Protocol;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::advice::decides;
use crate::contract::evidence::{Demanded, unfit};
use crate::layout;
use crate::message::Change;
use crate::record::{
    self, Delivery, Evidence, ImportSource, Issue, ModelUsage, Record, TraceParent, open_path,
};
use crate::refusal::{ContractRefusal, Refusal};
use crate::request::Update;

/// The agent that makes a request, and when.
#[derive(Serialize)]
pub struct Actor<'a> {
    /// The agent.
    #[serde(rename = "by")]
    pub name: &'a AgentName,
    /// The worker that acts as the agent; `None` if no worker makes the step, as when a lease
    /// expired.
    pub worker: Option<&'a WorkerId>,
    /// The time of the step.
    pub at: Moment,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
    /// What the work that it ends or reports on took so far; empty if nothing is reported.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub usage: &'a [ModelUsage],
    /// The outside event that it carries out.
    pub delivery: Option<&'a Delivery>,
}

/// An owned [`Actor`], as a step's commit names it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maker {
    /// The agent.
    pub by: AgentName,
    /// The worker that acted as the agent.
    pub worker: Option<WorkerId>,
    /// The time of the step.
    pub at: Moment,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
    /// What the work took, as far as it was reported with the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<ModelUsage>,
    /// The outside event that it carried out.
    pub delivery: Option<Delivery>,
}

impl Maker {
    /// The actor of its step.
    pub fn actor(&self) -> Actor<'_> {
        Actor {
            name: &self.by,
            worker: self.worker.as_ref(),
            at: self.at,
            traceparent: self.traceparent,
            usage: &self.usage,
            delivery: self.delivery.as_ref(),
        }
    }
}

/// A step as its commit has it: what was asked, by whom and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who asked, and when.
    pub maker: Maker,
    /// What was asked.
    pub request: Asked,
}

/// What a step asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To send the contract that the commit adds.
    Send(SendOptions),
    /// Anything else.
    Update(Update),
}

/// How a contract was sent.
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
pub struct PlannedStep {
    /// What it changes.
    pub files: FileChanges,
    /// The commit's message.
    pub message: String,
    /// The outcome it leads to.
    pub receipt: Receipt,
    /// The time of the issue's previous step, if there is one.
    pub previous: Option<Moment>,
    /// The checks of its contract against the repository that it is not written without.
    pub demanded: Demanded,
    /// The handoffs that its contract begins besides the receipt's.
    pub begun: Vec<Record>,
}

impl PlannedStep {
    /// Records the results of the checks that the step demands.
    ///
    /// # Errors
    /// [`ContractRefusal::Evidence`] if they are not what it demands, or contradict the contract.
    pub fn prove(&mut self, evidence: Vec<Evidence>) -> Result<(), Refusal> {
        if let Some(fault) = unfit(&self.demanded, &evidence) {
            let issue = self.receipt.issue.issue.clone();
            return Err(ContractRefusal::Evidence { issue, fault }.into());
        }
        if evidence.is_empty() {
            return Ok(());
        }
        for record in self.begun.iter_mut().chain([&mut self.receipt.record]) {
            record.evidence.clone_from(&evidence);
            let stored = record::write(record);
            let (file, open) = (layout::record_file(&record.id), open_path(record));
            let held = |path: &String| *path == file || Some(path) == open.as_ref();
            for (_, edit) in self.files.iter_mut().filter(|(path, _)| held(path)) {
                *edit = Edit::Bytes(stored.clone());
            }
        }
        Ok(())
    }
}

/// The plan for a request.
#[derive(Debug)]
pub enum Planned {
    /// A commit.
    Write(Box<PlannedStep>),
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
