//! The ledger: one branch, one commit for each step.
//!
//! [`Ledger`] opens it and writes to it; [`Snapshot`] reads it at one commit.
//! `intake` is the door for contracts, `planner` decides what a request does,
//! `step` holds the types of that, `record` is the stored form, `layout` says
//! where things are, `message` what a commit says. `failure` keeps what is needed to go on after one.
//! `evidence` compares what contracts claim with the repository, `signing` knows which key a commit must
//! be signed with. `verify` runs history through `planner` again, and `exchange` writes it out and reads it back;
//! both learn from `asked` what a commit claims to be.

mod advice;
mod annotation;
mod answers;
mod artifacts;
mod asked;
mod briefing;
mod choice;
mod code_branches;
mod context;
mod delivery;
mod desk;
mod draft;
mod error;
mod evidence;
mod exchange;
mod expiry;
mod failure;
mod feed;
mod founding;
mod identity;
mod intake;
mod layout;
mod memory;
mod message;
mod order;
mod planner;
mod protocol_check;
mod ready;
mod record;
mod refusal;
mod refusals;
mod remote;
mod requirement;
mod screening;
mod semantic;
mod sending;
mod session;
mod shared;
mod signing;
mod snapshot;
mod step;
mod stored;
mod survey;
mod tally;
mod traceparent;
mod turn;
mod verify;
mod waiting;
mod write;

pub use advice::{Advice, Choice, choices, decider, stands_still};
pub use annotation::Annotation;
pub use answers::read as read_answer;
pub use briefing::{Briefing, Emitted, Previous, briefing};
pub use choice::{Chosen, Offer};
pub use context::{context, contract_value};
pub use delivery::{Delivered, Delivery, DeliveryName, NoDeliveryName};
pub use desk::{Desk, Look, Pile, desk};
pub use error::LedgerError;
pub use evidence::{Evidence, EvidenceFault, ReportError, ReportFile, Reports, Verdict};
pub use exchange::{
    ExchangeError, Export, Exported, Fault, Import, Imported, Item, Layout, Refused, Source,
    export, import,
};
pub use failure::{
    Attached, Attachment, CAPS, Contents, FailureContext, FailureFile, Host, Keep, Kept,
    MOST_COMMITS, Mark, Merge, PastFailure, Place, RestoreFailure, Restored, Shown, SnapshotFile,
    SnapshotManifest, Stand, Summary, failures, failures_in_full, restore, restore_attachments,
};
pub use feed::{FollowError, Happening, Kind, commits_after, happenings};
pub use founding::Founding;
pub use intake::{Contract, Review, Schemas, review};
pub use layout::{issue_folder, record_file};
pub use memory::Audited;
pub use message::{Change, trailers};
pub use planner::{UNSPECIFIED, plan};
pub use protocol_check::check_protocol;
pub use ready::{Ready, ready};
pub use record::{
    Artifact, ContractFile, Counted, Decision, Expected, Failure, Issue, IssueStatus, Lease,
    Manifest, OpenHandoff, Progress, Question, Record, Reopening, StoredError, Task, TaskName,
    Transition,
};
pub use refusal::{Limit, Refusal};
pub use refusals::Refused as RefusedContract;
pub use remote::{
    Beside, Glimpse, Publication, Rejected, RejectedStep, Renamed, Synced, Unpublished,
};
pub use requirement::{Answered, required};
pub use session::{Clock, Session};
pub use shared::{Change as ProtocolStep, ProtocolChange, ProtocolFiles, documents, open_issues};
pub use snapshot::{IssueFolder, OpenEntry, Rules, Snapshot};
pub use step::{Actor, FileChanges, MAX_TEXT, Planned, Receipt, Request, Step, Stop, Told, View};
pub use survey::{ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, RoundSurvey, Survey};
pub use tally::{Reached, Tally, Work};
pub use traceparent::{NoTraceParent, TraceParent};
pub use turn::{Turn, turn};
pub use verify::{Audit, AuditScope, BranchMove, NextCommit, meaning};
pub use waiting::{Outcome, Standing};
pub use write::{Done, Ledger, Target};

/// The branch that a ledger is on unless something else is said.
pub const DEFAULT_BRANCH: &str = "handoffs";
