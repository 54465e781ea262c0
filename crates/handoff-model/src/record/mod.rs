//! The stored types: the manifest, issues, handoffs, and their parts.
//!
//! `stored_form` reads and writes files. The types here represent files, or follow from files
//! alone: they know nothing of contracts, requests or steps.

mod access;
mod annotation;
pub mod archive;
pub mod claim_queue;
mod contradiction;
mod delivery;
mod evidence;
mod facts;
pub mod failure;
mod handoff;
mod issue;
mod manifest;
pub mod not_applicable;
pub mod open_entry;
mod opinions;
mod pause;
mod review_finding;
pub mod spending;
mod stored_form;
mod traceparent;
mod transition;
pub mod usage;

pub use access::View;
pub use annotation::{Annotation, Approval};
pub use archive::{ArchivedIssue, NotArchivable};
pub use claim_queue::Claimable;
pub use contradiction::Contradiction;
pub use delivery::{Delivered, Delivery, DeliveryName, NoDeliveryName};
pub use evidence::{Evidence, ReportFile, Verdict};
pub use facts::{KnownFact, Told, Witness, words_of};
pub(crate) use handoff::violation;
pub use handoff::{
    Artifact, ContractFile, Expected, ImportSource, Lease, MAX_TEXT, Progress, Record, TaskName,
    lasts,
};
pub use issue::{
    AnswerGiven, Awaiting, Counted, Decision, GivenUp, Issue, IssueStatus, OpenHandoff,
    RefusedContract, Reopening, Task,
};
pub use manifest::{Halt, HaltEnd, HaltScope, Manifest, Scar};
pub use not_applicable::NotApplicable;
pub use open_entry::{OpenEntry, open_path};
pub use opinions::Opinion;
pub use pause::{Paused, Resumed};
pub use review_finding::{FindingState, ReviewFinding};
pub use spending::{BudgetSpent, DaySpending, Left, Spending};
pub use stored_form::{Stored, StoredError, VERSION, read, write};
pub use traceparent::{NoTraceParent, TraceParent};
pub use transition::{Failure, FailureContext, Question, Transition, UNSPECIFIED, answer_text};
pub(crate) use transition::{NOT_ACKNOWLEDGED, ROLE_VIOLATION, TIMED_OUT};
pub use usage::{ModelUsage, NoUsage, Spent, Usage};
