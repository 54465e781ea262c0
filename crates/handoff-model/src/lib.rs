//! The meaning of a ledger: its records, the requests to it, and the steps that follow.
//!
//! Everything here is pure: no Git, no files, no clock. [`record`] is the stored form; [`intake`]
//! takes a contract through the pipeline; [`request`] is what a caller asks for and [`step`] what
//! it becomes; [`planner`] decides on that step or refuses it ([`Refusal`]). It reads through
//! [`View`] and [`Schemas`]. [`layout`] has the paths, [`message`] the commit messages,
//! [`evidence`] the claims to check, [`screening`] the search for secrets.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod advice;
pub mod branches;
pub mod contract;
pub mod gate_policy;
pub mod handoff;
pub mod layout;
pub mod planner;
pub mod protocol_check;
pub mod record;
pub mod refusal;
pub mod requirement;
pub mod setting;
pub mod step;
mod template_check;
pub mod trailers;
pub mod turn;
pub mod value;
pub mod waiting;
pub mod weaker;

pub use advice::{Advice, Choice, choices, decider, needs_attention, person};
pub use branches::{BranchContext, BranchPatterns, BranchRefusal, branch_for_agents};
pub use contract::evidence::{EvidenceFault, ReportError, Reports};
pub use contract::{
    Contract, Opened, Review, Schemas, first_match, is_contract_of, review, review_imported,
};
pub use contract::{artifacts, evidence, intake, semantic};
pub use gate_policy::{Exemption, GatePolicy};
pub use handoff::Handoff;
pub use layout::{issue_folder, record_file};
pub use planner::plan;
pub use protocol_check::{NO_CLAIMS, ProtocolFiles, check_protocol};
pub use record::failure::{
    Attachment, FailureFile, Host, Manifest as SnapshotManifest, Mark, Merge, SnapshotFile, Stand,
    Summary,
};
pub use record::spending::AgentSpending;
pub use record::usage::read_usage;
pub use record::{
    Annotation, AnswerGiven, Approval, ArchivedIssue, Artifact, Awaiting, BudgetSpent, Claimable,
    ContractFile, Contradiction, Counted, DaySpending, Decision, Delivered, Delivery, DeliveryName,
    Evidence, Expected, Failure, FailureContext, FindingState, GivenUp, ImportSource, Issue,
    IssueStatus, KnownFact, Lease, Left, MAX_TEXT, Manifest, ModelUsage, NoDeliveryName,
    NoTraceParent, NotApplicable, NotArchivable, OpenEntry, OpenHandoff, Opinion, Paused, Progress,
    Question, Record, RefusedContract, Reopening, ReportFile, Resumed, ReviewFinding, Spending,
    Spent, StoredError, Task, TaskName, TraceParent, Transition, UNSPECIFIED, Usage, Verdict, View,
};
pub use record::{archive, claim_queue, failure, not_applicable, open_entry, spending, usage};
pub use refusal::{
    ClaimEnd, ContractRefusal, Holding, LeaseRefusal, Limit, LimitReached, LookupRefusal,
    QueueRefusal, Refusal, RequestRefusal, RetryRefusal, RoleRefusal, StateRefusal,
};
pub use requirement::{Answered, JudgedCode, Remedy, Said, required};
pub use setting::{Assignment, SETTINGS, Setting, SettingError};
pub use step::answers::read as read_answer;
pub use step::screening::{self, Unscreened};
pub use step::{
    Actor, Asked, Change, EventArgs, FileChanges, Maker, NoStep, Planned, PlannedStep, Receipt,
    Request, SendOptions, SendRequest, Step, StepEvent, Stop, Update, archive_message,
    archived_before, recorded, unarchive_message,
};
pub use trailers::trailers;
pub use turn::{Turn, turn};
pub use waiting::{Outcome, WaitStatus, overdue_text};
