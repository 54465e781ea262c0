//! The ledger: one branch, one commit for each step.
//!
//! `handoff_model` decides what a request does; this crate makes a commit of it. Its layers, each
//! using only those before it:
//!
//! - `error`, `session` (the environment of a write), `memory` (what this clone saw of the branch);
//! - [`Snapshot`]: the ledger at one commit; `evidence`: claims compared with the repository;
//!   `signing`: the required key of a commit; `contract_match`: the protocol of a contract;
//! - `draft` and `archive_step`: a planned commit; `upstream`: the remote's branch, and this
//!   process's lock for talking to it;
//! - [`Ledger`]: the branch, how it is read and moves; `step_plan`: an update's step;
//! - `write`: the path of every write, to the remote and the branch;
//! - the verbs: `update`, `sending`, `failure`, `expiry`, `archive`, `halt`, `protocol_store`,
//!   `founding`;
//! - `recorded_step`: the step that a commit records, for `verify`, which replays all of them, for
//!   `remote`, which repeats offline steps, and for exports.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod archive;
mod archive_step;
mod artifacts;
pub mod attention;
mod authority;
mod base_branch;
mod briefing;
mod claim_queue;
mod code_branches;
mod context;
mod contract_match;
mod default_protocol;
mod draft;
mod error;
mod evidence;
mod expiry;
mod external_reviews;
mod failure;
mod feed;
mod founding;
mod halt;
mod identity;
mod ledger;
mod memory;
mod order;
mod origin;
mod origin_code;
mod overview;
mod protocol_effects;
mod protocol_store;
mod quarantine;
mod recorded_step;
mod refusals;
mod remote;
mod requirement;
mod same_files;
mod sending;
mod session;
mod shared_resources;
mod signing;
mod snapshot;
mod step_kind;
mod step_plan;
mod survey;
mod tally;
mod turns;
mod update;
mod upstream;
mod verify;
mod write;

pub use archive::{ArchiveRequest, ArchivedTogether};
pub use archive_step::end_of_second;
pub use authority::OtherProtocol;
pub use base_branch::{base_branch, changes_of};
pub use briefing::{Briefing, ContractText, DecidedOn, Rejection, WorkBranch, WorkBrief, briefing};
pub use claim_queue::claimable;
pub use code_branches::newest_code;
pub use context::{HandoffContext, IssueContext, IssueReport, context, contract_value};
pub use contract_match::{ContractMatch, Offer, accepted};
pub use default_protocol::DefaultChange;
pub use error::{
    BranchError, ContractError, DEEPEN, DamageError, LedgerError, ProtocolError, RerunError,
    UpstreamError, WriteError,
};
pub use external_reviews::Said;
pub use failure::{
    Attached, CAPS, Contents, Keep, Kept, MOST_COMMITS, PastFailure, Place, RestoreFailure,
    Restored, Shown, failures, past_work, past_work_in_full, restore, restore_attachments,
    restored_here,
};
pub use feed::{FollowError, Happening, Kind, commits_after, happenings};
pub use founding::Founding;
pub use halt::HaltChange;
pub use handoff_base::ledger_names::DEFAULT_BRANCH;
pub use ledger::{Ledger, Together};
pub use memory::Audited;
pub use origin_code::{CodePush, UnpushedCode};
pub use overview::{Bucket, Overview, OverviewLimits, overview};
pub use protocol_effects::{CheckedMore, LimitedIssue};
pub use protocol_store::{
    Consent, KeptSetting, ProtocolChange, PutMode, RequiredFields, documents, open_issues,
};
pub use quarantine::Quarantine;
pub use recorded_step::{RecordedStep, States, StepReader};
pub use refusals::{RefusalReason, Refused as RefusedContract};
pub use remote::{Rejected, RejectedStep, RemoteDistance, Renamed, Repaired, Synced};
pub use requirement::{
    GateRequest, Judgement, MergeLeft, approved_merge, judge_any, judge_gate, merge_left,
    merge_left_here, merged_into, merges_left, unreported_merge, unsent_commits,
};
pub use sending::Gathered;
pub use session::{Clock, Session, SetTime};
pub use snapshot::{IssueFolder, Listed, Rules, Snapshot};
pub use step_kind::StepKind;
pub use survey::{
    ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, Issues, PauseSurvey, RoundSurvey,
    Survey, UsageSurvey,
};
pub use tally::{Reached, Tally, Work};
pub use turns::turn_before;
pub use update::Target;
pub use upstream::{RemoteLook, Unpublished};
pub use verify::{Audit, AuditScope, BranchMove, NextCommit};
pub use write::Done;
