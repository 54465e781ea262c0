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
    /// The agents to which the receiver can hand on, each with the contract's type if it must be
    /// named. Empty until [`Receipt::advised`].
    pub onward: Vec<(AgentName, Option<String>)>,
    /// The type that must be named to send such a contract again, if it must. `None` until
    /// [`Receipt::advised`].
    pub again: Option<String>,
    /// The command that gives the approval which findings kept back that a person rejected. `None`
    /// until [`Receipt::advised`].
    pub approval: Option<String>,
    /// Whether a retry is not simply what follows a failure: only a person may grant it, or the
    /// rules demand something else. False until [`Receipt::advised`].
    pub needs_decision: bool,
    /// Whether its contract approves a merge that no contract reports, so that the merge is left.
    /// False until [`Receipt::advised`].
    pub approves_merge: bool,
    /// The agent that decides about the handoff if it gets stuck. `None` until
    /// [`Receipt::advised`].
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
    /// When the issue's previous step was made, if there was one.
    pub previous: Option<Moment>,
    /// The evidence checks that its contract requires.
    pub demanded: Demanded,
    /// The other handoffs that its contract starts, besides the receipt's.
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

/// Why there is no plan for a request.
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
