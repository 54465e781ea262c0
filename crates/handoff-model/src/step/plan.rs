//! The plan for a request: the commit that it becomes, or the receipt of an earlier one.

use handoff_base::ids::AgentName;
use handoff_base::{Edit, Moment};

use crate::contract::evidence::{Demanded, unfit};
use crate::layout;
use crate::record::{self, Evidence, Issue, Record, open_path};
use crate::refusal::{ContractRefusal, Refusal};
use crate::step::Change;

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
    /// The contract's type, if it must be named to send such a contract again. A plan leaves it empty.
    pub again: Option<String>,
    /// Whether another attempt is not what usually follows a failure: only a person gives one, or the
    /// protocol's rules say something else. A plan leaves it unset.
    pub needs_decision: bool,
    /// The agent that decides what happens to the handoff if it can't go on. A plan leaves it empty.
    pub lead: Option<AgentName>,
    /// Whether the ledger already had this, so that nothing was written.
    pub repeated: bool,
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
