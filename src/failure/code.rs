//! The code of every error: a stable word for programs, and the exit code that goes with it.
//!
//! `codes.md` explains each of them; a test compares the two.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::exit;

macro_rules! error_codes {
    ($($name:ident = $word:literal, $($exit:ident)|+;)+) => {
        /// The code of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
        #[schemars(with = "String")]
        pub(crate) enum ErrorCode {
            $($name,)+
        }

        impl ErrorCode {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// The word, as `error.code` has it.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The exit codes that go with it, the usual one first.
            pub(crate) fn exits(self) -> &'static [u8] {
                match self {
                    $(Self::$name => &[$(exit::$exit),+],)+
                }
            }
        }
    };
}

error_codes! {
    AgentsBusy = "agents_busy", CONFLICT;
    AgentsChanged = "agents_changed", CONFLICT;
    AgentsFile = "agents_file", ENVIRONMENT;
    AgentsRefused = "agents_refused", ENVIRONMENT;
    Alert = "alert", NO;
    AlreadyAnswered = "already_answered", CONFLICT;
    AlreadyClaimed = "already_claimed", CONFLICT;
    AlreadyNotified = "already_notified", CONFLICT;
    AnswerRefused = "answer_refused", CONTRACT;
    ArtifactChanged = "artifact_changed", CONTRACT;
    ArtifactRefused = "artifact_refused", CONTRACT;
    AttachmentRefused = "attachment_refused", CONTRACT;
    Backdated = "backdated", USAGE;
    Bare = "bare", ENVIRONMENT;
    BudgetSpent = "budget_spent", PROTOCOL;
    CheckedOut = "checked_out", ENVIRONMENT;
    CollectorRefused = "collector_refused", ENVIRONMENT;
    CollectorRejected = "collector_rejected", ENVIRONMENT;
    CollectorUnreachable = "collector_unreachable", ENVIRONMENT;
    CommentsRefused = "comments_refused", CONTRACT;
    Contended = "contended", TIMED_OUT;
    ContractRefused = "contract_refused", CONTRACT;
    Cooldown = "cooldown", PROTOCOL;
    CorrectionRefused = "correction_refused", PROTOCOL;
    Cycle = "cycle", PROTOCOL;
    DecisionRefused = "decision_refused", PROTOCOL;
    Demo = "demo", ENVIRONMENT;
    Directory = "directory", ENVIRONMENT;
    DocumentRefused = "document_refused", CONTRACT;
    EventRefused = "event_refused", CONTRACT;
    EvidenceContradicted = "evidence_contradicted", CONTRACT;
    EvidenceRefused = "evidence_refused", CONTRACT;
    Exists = "exists", CONFLICT;
    FindingsRefused = "findings_refused", PROTOCOL;
    FolderNotEmpty = "folder_not_empty", USAGE;
    FolderUnreadable = "folder_unreadable", USAGE;
    FolderUnwritable = "folder_unwritable", ENVIRONMENT;
    GateClosed = "gate_closed", NO;
    GatePolicyRefused = "gate_policy_refused", USAGE;
    Git = "git", ENVIRONMENT;
    GithubRefused = "github_refused", ENVIRONMENT;
    GithubUnreachable = "github_unreachable", ENVIRONMENT;
    HeldByWorker = "held_by_worker", CONFLICT;
    HookChanged = "hook_changed", CONFLICT;
    HookFile = "hook_file", ENVIRONMENT;
    HookRefused = "hook_refused", NO;
    HooksRefused = "hooks_refused", ENVIRONMENT;
    HttpsMissing = "https_missing", ENVIRONMENT;
    IdTaken = "id_taken", CONFLICT;
    IllegalTransition = "illegal_transition", PROTOCOL;
    ImportConflict = "import_conflict", CONFLICT;
    ImportRefused = "import_refused", CONTRACT | PROTOCOL | CONFLICT;
    ImportUnreadable = "import_unreadable", CONTRACT;
    ImportVersion = "import_version", CONTRACT;
    Inconsistent = "inconsistent", PROTOCOL;
    Interrupted = "interrupted", TIMED_OUT;
    IssueCancelled = "issue_cancelled", PROTOCOL;
    IssueCompleted = "issue_completed", PROTOCOL;
    IssuePaused = "issue_paused", PROTOCOL;
    LeaseLost = "lease_lost", CONFLICT;
    LedgerDamaged = "ledger_damaged", INTEGRITY;
    LedgerThere = "ledger_there", CONFLICT;
    LeftOut = "left_out", ENVIRONMENT;
    LimitReached = "limit_reached", PROTOCOL;
    Locked = "locked", TIMED_OUT;
    Loop = "loop", PROTOCOL;
    McpFailed = "mcp_failed", ENVIRONMENT;
    NeedsAnswer = "needs_answer", PROTOCOL;
    NeedsDecision = "needs_decision", PROTOCOL;
    NeedsReport = "needs_report", PROTOCOL;
    NoAgent = "no_agent", USAGE;
    NoAlerts = "no_alerts", NOT_FOUND;
    NoBase = "no_base", NOT_FOUND;
    NoCode = "no_code", NOT_FOUND;
    NoComments = "no_comments", NOT_FOUND;
    NoCommit = "no_commit", NOT_FOUND;
    NoContext = "no_context", NOT_FOUND;
    NoDocument = "no_document", NOT_FOUND;
    NoFailure = "no_failure", NOT_FOUND;
    NoFile = "no_file", NOT_FOUND;
    NoGit = "no_git", ENVIRONMENT;
    NoHandoff = "no_handoff", NOT_FOUND;
    NoIdentity = "no_identity", ENVIRONMENT;
    NoIssue = "no_issue", NOT_FOUND;
    NoIssueNamed = "no_issue_named", NOT_FOUND;
    NoLedger = "no_ledger", ENVIRONMENT;
    NoProtocol = "no_protocol", NOT_FOUND;
    NoRejected = "no_rejected", NOT_FOUND;
    NoRemote = "no_remote", USAGE;
    NoRequirement = "no_requirement", USAGE;
    NoSnapshot = "no_snapshot", NOT_FOUND;
    NoTask = "no_task", NOT_FOUND;
    NoTasks = "no_tasks", NOT_FOUND;
    NoType = "no_type", NOT_FOUND;
    NoWorker = "no_worker", USAGE;
    NoWorkflow = "no_workflow", USAGE;
    NotALedger = "not_a_ledger", ENVIRONMENT;
    NotAbout = "not_about", PROTOCOL;
    NotAcknowledged = "not_acknowledged", PROTOCOL;
    NotArchivable = "not_archivable", PROTOCOL;
    NotAssignable = "not_assignable", PROTOCOL;
    NotClaimed = "not_claimed", PROTOCOL;
    NotCompleted = "not_completed", PROTOCOL;
    NotDelivered = "not_delivered", ENVIRONMENT;
    NotHeld = "not_held", PROTOCOL;
    NotInHistory = "not_in_history", INTEGRITY;
    NotOnRecord = "not_on_record", PROTOCOL;
    NotOpened = "not_opened", PROTOCOL;
    NotOverdue = "not_overdue", PROTOCOL;
    NotPublished = "not_published", NOT_PUBLISHED;
    NotTaken = "not_taken", CONFLICT;
    NotTheSender = "not_the_sender", PROTOCOL;
    NotWorking = "not_working", PROTOCOL;
    NotYours = "not_yours", PROTOCOL;
    NothingFailed = "nothing_failed", PROTOCOL;
    NothingToArchive = "nothing_to_archive", NOT_FOUND;
    NothingToClaim = "nothing_to_claim", NOT_FOUND;
    NothingToDecide = "nothing_to_decide", NOT_FOUND;
    NothingToImport = "nothing_to_import", NOT_FOUND;
    OneRequest = "one_request", PROTOCOL;
    OtherAgent = "other_agent", USAGE;
    OtherAttempt = "other_attempt", CONFLICT;
    OtherEvidence = "other_evidence", PROTOCOL;
    OtherHandoff = "other_handoff", CONFLICT;
    OtherProtocol = "other_protocol", PROTOCOL;
    OutOfOrder = "out_of_order", PROTOCOL;
    Output = "output", ENVIRONMENT;
    Overdue = "overdue", PROTOCOL;
    OwnClaim = "own_claim", CONFLICT;
    Panicked = "panicked", ENVIRONMENT;
    PartsRun = "parts_run", PROTOCOL;
    Port = "port", ENVIRONMENT;
    Postdated = "postdated", USAGE;
    ProtocolBroken = "protocol_broken", INTEGRITY;
    ProtocolExists = "protocol_exists", PROTOCOL;
    ProtocolFaults = "protocol_faults", NO;
    ProtocolOrphans = "protocol_orphans", PROTOCOL;
    ProtocolRefused = "protocol_refused", CONTRACT;
    ProtocolUnexpected = "protocol_unexpected", NO;
    ProtocolWeaker = "protocol_weaker", PROTOCOL;
    Quarantine = "quarantine", ENVIRONMENT;
    Rejected = "rejected", CONFLICT;
    RemoteDenied = "remote_denied", ENVIRONMENT;
    RemoteFormat = "remote_format", ENVIRONMENT;
    RemoteGone = "remote_gone", INTEGRITY;
    RemoteProtected = "remote_protected", ENVIRONMENT;
    RemoteRefused = "remote_refused", PROTOCOL;
    RemoteRewritten = "remote_rewritten", INTEGRITY;
    RemoteShallow = "remote_shallow", ENVIRONMENT;
    RemoteUnreachable = "remote_unreachable", ENVIRONMENT;
    Renamed = "renamed", CONFLICT;
    ReportRefused = "report_refused", CONTRACT;
    Repository = "repository", ENVIRONMENT;
    Restore = "restore", ENVIRONMENT;
    RetriesSpent = "retries_spent", PROTOCOL;
    RouteRefused = "route_refused", PROTOCOL;
    SaidBefore = "said_before", CONFLICT;
    SchemaBroken = "schema_broken", INTEGRITY;
    SecretFound = "secret_found", CONTRACT;
    Shallow = "shallow", NOT_FOUND;
    Signals = "signals", ENVIRONMENT;
    SignatureRefused = "signature_refused", PROTOCOL;
    SigningFailed = "signing_failed", ENVIRONMENT;
    SnapshotRefused = "snapshot_refused", CONTRACT;
    StillOpen = "still_open", PROTOCOL;
    SymbolicBranch = "symbolic_branch", ENVIRONMENT;
    TasksRefused = "tasks_refused", PROTOCOL;
    TemplateBroken = "template_broken", INTEGRITY;
    TimedOut = "timed_out", TIMED_OUT;
    TooEarly = "too_early", PROTOCOL;
    UnknownAgent = "unknown_agent", PROTOCOL;
    UnknownFailureCode = "unknown_error_code", PROTOCOL;
    Unrelated = "unrelated", INTEGRITY;
    UnusedAllowance = "unused_allowance", USAGE;
    Usage = "usage", USAGE;
    UsageRefused = "usage_refused", CONTRACT;
    WaitFailed = "wait_failed", NO;
    Waits = "waits", PROTOCOL;
    WorkerFile = "worker_file", ENVIRONMENT;
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
