//! The ledger: one branch, one commit for each step.
//!
//! [`Ledger`] opens it and writes to it; [`Snapshot`] reads it at one commit. `handoff_model`
//! decides what a request does; this crate turns its answer into a commit (`draft`, `write`) and
//! publishes it to the branch and the remote (`remote`). `contract_match` finds the protocol of a
//! contract, `sending` gathers the data sent with one. `failure` keeps the context of failed
//! attempts, `evidence` compares claims with the repository, `signing` knows which key must sign a
//! commit. `verify` replays every step of history, and `exchange` exports and imports it; both
//! learn from `recorded_step` what a commit records.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod archive;
mod artifacts;
pub mod attention;
mod authority;
mod base_branch;
mod briefing;
mod claim_queue;
mod code_branches;
mod context;
mod contract_match;
mod draft;
mod error;
mod evidence;
mod exchange;
mod expiry;
mod failure;
mod feed;
mod founding;
mod identity;
mod memory;
mod order;
mod overview;
mod protocol_store;
mod recorded_step;
mod refusals;
mod remote;
mod requirement;
mod said;
mod sending;
mod session;
mod shared;
mod signing;
mod snapshot;
mod survey;
mod tally;
mod verify;
mod write;

pub use archive::{ArchiveRequest, ArchivedTogether, end_of_second};
pub use authority::OtherProtocol;
pub use base_branch::base_branch;
pub use briefing::{Briefing, Emitted, Previous, WorkBranch, WorkBrief, briefing};
pub use claim_queue::claimable;
pub use context::{HandoffContext, IssueContext, context, contract_value};
pub use contract_match::{ContractMatch, Offer};
pub use error::{
    BranchError, ContractError, DamageError, LedgerError, ProtocolError, RerunError, UpstreamError,
    WriteError,
};
pub use exchange::{
    ExchangeError, Export, Exported, Fault, Import, Imported, Item, Layout, Refused, Source,
    export, import,
};
pub use failure::{
    Attached, CAPS, Contents, Keep, Kept, MOST_COMMITS, PastFailure, Place, RestoreFailure,
    Restored, Shown, failures, failures_in_full, restore, restore_attachments,
};
pub use feed::{FollowError, Happening, Kind, commits_after, happenings};
pub use founding::Founding;
pub use memory::Audited;
pub use overview::{Bucket, Overview, OverviewLimits, overview};
pub use protocol_store::{ProtocolChange, PutMode, documents, open_issues};
pub use refusals::{RefusalReason, Refused as RefusedContract};
pub use remote::{
    Rejected, RejectedStep, RemoteDistance, RemoteLook, Renamed, Repaired, Synced, Unpublished,
};
pub use requirement::{GateRequest, Judgement, judge_any, judge_gate};
pub use said::Said;
pub use session::{Clock, Session};
pub use snapshot::{IssueFolder, Listed, Rules, Snapshot};
pub use survey::{
    ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, Issues, PauseSurvey, RoundSurvey,
    Survey, UsageSurvey,
};
pub use tally::{Reached, Tally, Work};
pub use verify::{Audit, AuditScope, BranchMove, NextCommit, meaning};
pub use write::{Done, Ledger, Target};

/// The default branch of a ledger.
pub const DEFAULT_BRANCH: &str = "handoffs";
