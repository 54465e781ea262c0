//! The meaning of a ledger: its records, the requests to it, and the steps that follow.
//!
//! Everything here is pure: no Git, no files, no clock. [`record`] is the stored form; [`intake`]
//! takes a contract through the pipeline; [`request`] is what a caller asks for and [`step`] what
//! it becomes; [`planner`] decides on that step or refuses it ([`Refusal`]). It reads through
//! [`View`] and [`Schemas`]. [`layout`] has the paths, [`message`] the commit messages,
//! [`evidence`] the claims to check, [`screening`] the search for secrets.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod advice;
pub mod annotation;
pub mod answers;
pub mod archive;
pub mod artifacts;
pub mod branches;
pub mod claim_queue;
pub mod consistency;
pub mod delivery;
pub mod evidence;
pub mod failure;
pub mod gate_policy;
pub mod handoff;
pub mod intake;
pub mod layout;
pub mod message;
pub mod not_applicable;
pub mod open_entry;
pub mod opinions;
pub mod planner;
pub mod protocol_check;
pub mod recognition;
pub mod record;
pub mod refusal;
pub mod request;
pub mod requirement;
pub mod schemas;
pub mod screening;
pub mod semantic;
pub mod setting;
pub mod spending;
pub mod step;
mod step_trailers;
pub mod stored;
mod template_check;
pub mod traceparent;
pub mod trailers;
pub mod turn;
pub mod usage;
pub mod value;
pub mod waiting;
pub mod weaker;

pub use advice::{Advice, Choice, choices, decider, needs_attention, person};
pub use annotation::{Annotation, Approval};
pub use answers::read as read_answer;
pub use archive::{ArchivedIssue, NotArchivable};
pub use branches::{BranchContext, BranchPatterns, BranchRefusal, branch_for_agents};
pub use claim_queue::Claimable;
pub use consistency::Contradiction;
pub use delivery::{Delivered, Delivery, DeliveryName, NoDeliveryName};
pub use evidence::{Evidence, EvidenceFault, ReportError, ReportFile, Reports, Verdict};
pub use failure::{
    Attachment, FailureFile, Host, Manifest as SnapshotManifest, Mark, Merge, SnapshotFile, Stand,
    Summary,
};
pub use gate_policy::{Exemption, GatePolicy};
pub use handoff::Handoff;
pub use intake::{Contract, Review, first_match, review, review_imported};
pub use layout::{issue_folder, record_file};
pub use message::{Change, StepEvent};
pub use open_entry::OpenEntry;
pub use opinions::Opinion;
pub use planner::{UNSPECIFIED, plan};
pub use protocol_check::{NO_CLAIMS, ProtocolFiles, check_protocol};
pub use recognition::is_contract_of;
pub use record::{
    AnswerGiven, Artifact, Awaiting, ContractFile, Counted, Decision, Expected, Failure,
    FailureContext, FindingState, GivenUp, ImportSource, Issue, IssueStatus, KnownFact, Lease,
    Manifest, OpenHandoff, Paused, Progress, Question, Record, RefusedContract, Reopening, Resumed,
    ReviewFinding, Task, TaskName, Transition,
};
pub use refusal::{
    BudgetSpent, ClaimEnd, ContractRefusal, Holding, LeaseRefusal, Limit, LimitReached,
    LookupRefusal, QueueRefusal, Refusal, RequestRefusal, RetryRefusal, RoleRefusal, StateRefusal,
};
pub use request::{EventArgs, MAX_TEXT, Request, SendRequest, Update};
pub use requirement::{Answered, JudgedCode, Remedy, Said, required};
pub use schemas::Schemas;
pub use screening::Unscreened;
pub use setting::{Assignment, SETTINGS, Setting, SettingError};
pub use spending::{DaySpending, Left, Spending};
pub use step::{
    Actor, Asked, FileChanges, Maker, Planned, PlannedStep, Receipt, SendOptions, Step, Stop, View,
};
pub use step_trailers::{NoStep, recorded};
pub use stored::StoredError;
pub use traceparent::{NoTraceParent, TraceParent};
pub use trailers::trailers;
pub use turn::{Turn, turn};
pub use usage::{ModelUsage, Spent, Usage, read_usage};
pub use waiting::{Outcome, WaitStatus, overdue_text};
