//! The semantics of a ledger: records, requests, and the steps that follow from them.
//!
//! Everything is pure: no Git, no files, no clock. The layers, each using only those before it:
//!
//! - [`layout`], [`value`], [`mod@trailers`], [`branches`]: paths, values, trailers and branches, as text;
//! - [`record`]: the stored types, and read access to them ([`View`]);
//! - [`rules`]: files with rules; [`contract`]: from a document to a checked [`Contract`];
//! - [`refusal`]: why a step is refused ([`Refusal`]);
//! - [`step`]: requests, and the commits that they become;
//! - [`decision`]: what should happen next, by the protocol's rules;
//! - [`planner`]: turns a request into a step, or refuses it;
//! - [`view`]: what is shown to people and programs.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod branches;
pub mod contract;
pub mod decision;
pub mod layout;
pub mod planner;
pub mod record;
pub mod refusal;
pub mod rules;
pub mod step;
pub mod trailers;
pub mod value;
pub mod view;

pub use branches::{BranchContext, BranchPatterns, BranchRefusal, branch_for_agents};
pub use contract::evidence::{EvidenceFault, ReportError, Reports};
pub use contract::{
    Contract, Opened, Review, Schemas, first_match, is_contract_of, review, review_imported,
};
pub use contract::{artifacts, evidence, intake, semantic};
pub use decision::{
    Advice, Answered, Choice, JudgedCode, Remedy, Said, acts_as_person, another_attempt,
    answer as answer_command, approve_command, decider, disapproval, kept_apart, note_fact,
    note_own_fact, person, required, said_by_worker, send_again, sent_in_vain, state_at,
};
pub use layout::{issue_folder, kept_option, record_file};
pub use planner::{may_give_up, plan};
pub use record::failure::{
    Attachment, FailureFile, Host, Manifest as SnapshotManifest, Mark, Merge, SnapshotFile, Stand,
    Summary,
};
pub use record::spending::AgentSpending;
pub use record::usage::read_usage;
pub use record::{
    Annotation, AnswerGiven, Approval, ArchivedIssue, Artifact, Awaiting, BudgetSpent, Claimable,
    ContractFile, Contradiction, Counted, DaySpending, Decision, Delivered, Delivery, DeliveryName,
    Evidence, Expected, Failure, FailureContext, FindingState, GivenUp, Halt, HaltEnd, HaltScope,
    ImportSource, Issue, IssueStatus, KnownFact, Lease, Left, MAX_TEXT, Manifest, ModelUsage,
    NoDeliveryName, NoTraceParent, NotApplicable, NotArchivable, OpenEntry, OpenHandoff, Opinion,
    Paused, Progress, Question, Record, RefusedContract, Reopening, ReportFile, Resumed,
    ReviewFinding, Scar, Spending, Spent, StoredError, Task, TaskName, Told, TraceParent,
    Transition, UNSPECIFIED, Usage, Verdict, View, Witness, words_of,
};
pub use record::{archive, claim_queue, failure, not_applicable, open_entry, spending, usage};
pub use refusal::{
    ClaimEnd, ContractRefusal, Holding, LeaseRefusal, Limit, LimitReached, LookupRefusal,
    QueueRefusal, Refusal, RequestRefusal, RetryRefusal, RoleRefusal, StateRefusal,
};
pub use rules::{
    ADDED_SIGNER, Assignment, Exemption, Filled, GatePolicy, NO_CLAIMS, ProtocolFiles,
    ProtocolScope, SETTINGS, Setting, SettingError, Strictness, Weakness, beyond_cost,
    check_protocol, check_protocol_for, has_settings, is_earlier, is_set, keep_settings, loosened,
    next_version, only_setting_changed, weaker, why_weaker, with_version,
};
pub use step::answers::read as read_answer;
pub use step::screening::{self, Unscreened};
pub use step::{
    Change, EventArgs, FileChanges, NoStep, Planned, PlannedStep, Receipt, Request, SendOptions,
    SendRequest, Step, StepEvent, Stop, Update, archive_message, archived_before, recorded,
    unarchive_message,
};
pub use trailers::trailers;
pub use view::{
    Detail, Handoff, IssueSummary, Outcome, Turn, WaitStatus, choices, needs_attention,
    not_held_in, overdue_text, stuck_advice, turn,
};
