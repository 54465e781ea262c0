//! The plan for a request: a commit, or the receipt of an earlier one.

use handoff_base::ids::AgentName;
use handoff_base::{Edit, Moment};

use crate::contract::evidence::{Demanded, unfit};
use crate::layout;
use crate::record::{self, Evidence, Issue, Record, open_path};
use crate::refusal::{ContractRefusal, Refusal};
use crate::step::Change;

/// The result of a request.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The handoff that the request was about.
    pub record: Record,
    /// The issue afterwards.
    pub issue: Issue,
    /// Every handoff that changed, in the order of the trailers.
    pub changes: Vec<Change>,
    /// The agents to which the receiver may hand on, with the contract's type if there are several.
    /// Empty in a plan ([`Receipt::advised`]).
    pub onward: Vec<(AgentName, Option<String>)>,
    /// The contract's type, if sending such a contract again must name it. Empty in a plan.
    pub again: Option<String>,
    /// Whether a retry is not the usual consequence of a failure: only a person may grant it, or
    /// the rules demand something else. Unset in a plan.
    pub needs_decision: bool,
    /// The agent that decides about the handoff if it is stuck. Empty in a plan.
    pub lead: Option<AgentName>,
    /// Whether the ledger already had this step, so that nothing was written.
    pub repeated: bool,
}

/// Each path with its edit.
pub type FileChanges = Vec<(String, Edit)>;

/// A step that is ready to be written.
#[derive(Debug)]
pub struct PlannedStep {
    /// Its file changes.
    pub files: FileChanges,
    /// The commit's message.
    pub message: String,
    /// The resulting receipt.
    pub receipt: Receipt,
    /// The time of the issue's previous step, if there is one.
    pub previous: Option<Moment>,
    /// The evidence checks that its contract requires.
    pub demanded: Demanded,
    /// The handoffs that its contract starts, besides the receipt's.
    pub begun: Vec<Record>,
}

impl PlannedStep {
    /// Records the results of the required checks.
    ///
    /// # Errors
    /// [`ContractRefusal::Evidence`] if they do not match the requirements, or contradict the
    /// contract.
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
    /// Nothing to write: the ledger already has the step.
    Repeat(Box<Receipt>),
}

/// Why a request has no plan.
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
