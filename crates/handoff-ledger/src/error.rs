//! Errors of ledger operations.

use std::path::PathBuf;

use handoff_base::finding::Finding;
use handoff_base::ids::HandoffId;
use handoff_base::{Moment, ObjectId};
use handoff_contract::{Allowance, SchemaError};
use handoff_git::{CaptureError, GitError, PublishError, RemoteError, SignError};
use handoff_model::{ContractRefusal, Refusal, RequestRefusal, Stop, StoredError, Unscreened};

/// A failed operation. Unless a variant says otherwise, the ledger is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The repository has no ledger.
    #[error("the repository has no ledger: there is no branch {branch}")]
    NoLedger {
        /// The branch that was looked for.
        branch: String,
        /// The commit at which this clone last saw it, if any.
        seen: Option<ObjectId>,
        /// The ledger's remote, if one is set.
        remote: Option<String>,
    },
    /// The branch exists but is not a ledger.
    #[error("branch {branch} is not a ledger: it has no ledger.json")]
    NotALedger {
        /// The branch.
        branch: String,
    },
    /// The branch name is invalid.
    #[error("{shown} cannot be the name of a branch")]
    BranchName {
        /// The name, escaped for display.
        shown: String,
    },
    /// A working tree has the ledger's branch checked out.
    #[error("branch {branch} is checked out at {}", path.display())]
    CheckedOut {
        /// The branch.
        branch: String,
        /// The working tree's root.
        path: PathBuf,
    },
    /// The branch is a symbolic ref.
    #[error("branch {branch} is a symbolic ref, which cannot be a ledger")]
    Symbolic {
        /// The branch.
        branch: String,
    },
    /// New objects are in quarantine: a push is being received.
    #[error(
        "objects are in quarantine here (a push is being received, or GIT_OBJECT_DIRECTORY is set), and the ledger's could be lost"
    )]
    Quarantine,
    /// Another process holds the lock of the branch, or left it behind.
    #[error("the branch stayed locked by {}", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The step is dated before the last step of its issue.
    #[error("the step is dated {at}, before the last step of its issue at {previous}")]
    Backdated {
        /// The step's time.
        at: Moment,
        /// The last step's.
        previous: Moment,
    },
    /// The branch moved during every attempt; nothing was written.
    #[error("the branch moved at each of {attempts} attempts")]
    Contended {
        /// How often it was tried.
        attempts: u32,
    },
    /// The remote refused. Nothing was written.
    #[error("{remote} refused")]
    Remote {
        /// The remote.
        remote: String,
        /// Why.
        source: RemoteError,
    },
    /// The remote can't be reached, and the operation needs it.
    #[error("cannot get the ledger from {remote}: {trouble}")]
    Unreachable {
        /// The remote.
        remote: String,
        /// Why.
        trouble: String,
    },
    /// The remote no longer has the ledger's branch.
    #[error("{remote} no longer has the ledger's branch {branch}")]
    RemoteGone {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// The remote's ledger and this one have no common commit.
    #[error("{remote} has a different ledger on branch {branch}: the two have no commit in common")]
    Unrelated {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// The ledger has no remote to sync with.
    #[error("the ledger has no remote")]
    NoRemote,
    /// There is no refused step with that name.
    #[error("there is no refused step {name}")]
    NoRejected {
        /// The name.
        name: String,
    },
    /// A commit is not a ledger step, so it can't be repeated.
    #[error("commit {commit} is not a ledger step")]
    NoStep {
        /// The commit.
        commit: ObjectId,
    },
    /// A step made offline depends on one that was refused on the remote's state.
    #[error("it depends on a step of {id} that was refused")]
    NotTaken {
        /// The handoff, as it was offline.
        id: HandoffId,
    },
    /// A step made offline would continue something else on the remote's state.
    #[error("it continued {was}, but would now continue {now}")]
    OtherHandoff {
        /// What it continued, in words.
        was: String,
        /// What it would continue, in words.
        now: String,
    },
    /// The contract was refused.
    #[error("the contract was refused")]
    Contract {
        /// Why, all of it.
        findings: Vec<Finding>,
    },
    /// A delivered file is not what the request asked for.
    #[error("the artifact was refused")]
    Artifact {
        /// Why, all of it.
        findings: Vec<Finding>,
    },
    /// The repository contradicts what the contract claims.
    #[error("the repository contradicts the contract")]
    Evidence {
        /// How, all of it.
        findings: Vec<Finding>,
    },
    /// A delivered file was changed or removed.
    #[error("a delivered file was changed or removed")]
    Delivered {
        /// Each of them.
        findings: Vec<Finding>,
    },
    /// A shared document does not match its schema.
    #[error("the document was refused")]
    Document {
        /// Why, all of it.
        findings: Vec<Finding>,
    },
    /// What was to be recorded contains secrets.
    #[error("it contains what looks like a secret, and was not recorded")]
    Secret {
        /// The secrets, and any other faults.
        findings: Vec<Finding>,
    },
    /// An allowance matches nothing.
    #[error("nothing needs the allowance {allowance}")]
    UnusedAllowance {
        /// What was allowed.
        allowance: Allowance,
    },
    /// The contract is well formed, but the protocol has no such route.
    #[error("the protocol refuses the contract")]
    Route {
        /// Why.
        findings: Vec<Finding>,
    },
    /// The step was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The step was refused, so a gate of the protocol failed.
    #[error("{refusal}")]
    Gate {
        /// Why it was refused.
        refusal: Box<Refusal>,
        /// The gate.
        findings: Vec<Finding>,
    },
    /// A protocol in force is invalid.
    #[error("protocol {name} is invalid")]
    Protocol {
        /// The protocol.
        name: String,
        /// Its faults.
        findings: Vec<Finding>,
    },
    /// A protocol is invalid and was not put in force.
    #[error("the protocol is invalid")]
    ProtocolRefused {
        /// Its faults.
        findings: Vec<Finding>,
    },
    /// There is already a protocol with that name.
    #[error("protocol {name} version {version} is already in force")]
    ProtocolExists {
        /// The protocol.
        name: String,
        /// Its version.
        version: String,
    },
    /// There is no protocol with that name.
    #[error("the ledger has no protocol {name}")]
    NoProtocol {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Open handoffs could not continue under a new definition.
    #[error("protocol {name} cannot change this way while handoffs are open")]
    Orphans {
        /// The protocol.
        name: String,
        /// Each of them.
        findings: Vec<Finding>,
    },
    /// The protocol has no shared document with that name.
    #[error("the protocol has no document {name}")]
    NoDocument {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A schema in force can't be used.
    #[error("{path} is not a usable schema")]
    Schema {
        /// The file.
        path: String,
        /// Why.
        source: Box<SchemaError>,
    },
    /// A skeleton is not JSON.
    #[error("{path} is not JSON")]
    Template {
        /// The skeleton's file.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A required file is missing.
    #[error("{path} is missing")]
    Missing {
        /// The file.
        path: String,
    },
    /// The object that holds a file is missing or damaged.
    #[error("{path} cannot be read")]
    Object {
        /// The file.
        path: String,
        /// Why.
        source: GitError,
    },
    /// A stored file can't be read.
    #[error("{path} cannot be read")]
    Stored {
        /// The file.
        path: String,
        /// Why.
        source: StoredError,
    },
    /// A stored file does not match its manifest.
    #[error("{path} is not what was recorded")]
    Altered {
        /// The file.
        path: String,
    },
    /// The unfinished work can't be saved.
    #[error("cannot save the worktree")]
    Snapshot(#[source] Box<CaptureError>),
    /// The commit could not be signed. Nothing was written.
    #[error("the commit could not be signed")]
    Signing(#[source] SignError),
    /// The commit has no signature that the protocol accepts. Nothing was
    /// written.
    #[error("the signature was refused")]
    Signature {
        /// Why.
        findings: Vec<Finding>,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl LedgerError {
    /// Whether something could not be read, as opposed to being refused.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(
            self,
            Self::Git(_)
                | Self::Object { .. }
                | Self::Missing { .. }
                | Self::Stored { .. }
                | Self::Altered { .. }
                | Self::NotALedger { .. }
        )
    }

    /// Whether an object is missing because this is a partial clone.
    pub fn is_left_out(&self) -> bool {
        matches!(self, Self::Git(error) | Self::Object { source: error, .. } if error.is_left_out())
    }

    /// Whether a hook on the remote refused.
    pub(super) fn is_of_a_hook(&self) -> bool {
        let source = match self {
            Self::Remote { source, .. } => source,
            _ => return false,
        };
        matches!(source, RemoteError::Refused { .. })
    }

    /// Every fault, if the error lists several.
    pub(super) fn findings(&self) -> &[Finding] {
        match self {
            Self::Contract { findings }
            | Self::Artifact { findings }
            | Self::Evidence { findings }
            | Self::Delivered { findings }
            | Self::Document { findings }
            | Self::Secret { findings }
            | Self::Route { findings }
            | Self::Gate { findings, .. }
            | Self::Protocol { findings, .. }
            | Self::ProtocolRefused { findings }
            | Self::Orphans { findings, .. }
            | Self::Signature { findings }
            | Self::Refused(
                Refusal::Request(RequestRefusal::Unfit { findings, .. })
                | Refusal::Contract(ContractRefusal::Tasks { findings, .. }),
            ) => findings,
            _ => &[],
        }
    }

    pub(super) fn stored(path: &str, source: StoredError) -> Self {
        Self::Stored {
            path: path.to_owned(),
            source,
        }
    }
}

impl From<PublishError> for LedgerError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Moved => Self::Contended { attempts: 1 },
            PublishError::Locked(path) => Self::Locked { path },
            PublishError::Git(error) => Self::Git(error),
        }
    }
}

impl From<Stop<LedgerError>> for LedgerError {
    fn from(stop: Stop<LedgerError>) -> Self {
        match stop {
            Stop::Refused(refusal) => Self::Refused(refusal),
            Stop::Unreadable(error) => error,
        }
    }
}

impl From<Unscreened> for LedgerError {
    fn from(unscreened: Unscreened) -> Self {
        match unscreened {
            Unscreened::Secret { findings } => Self::Secret { findings },
            Unscreened::Unused { allowance } => Self::UnusedAllowance { allowance },
        }
    }
}
