//! How an operation on the ledger can fail.

use std::path::PathBuf;

use handoff_base::finding::Finding;
use handoff_base::ids::HandoffId;
use handoff_base::{Moment, ObjectId};
use handoff_contract::{Allowance, SchemaError};
use handoff_git::{CaptureError, GitError, PublishError, RemoteError, SignError};
use handoff_model::{Refusal, Stop, StoredError, Unscreened};

/// A failed operation. Unless it says otherwise, the ledger is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The repository has no ledger.
    #[error("the repository has no ledger: there is no branch {branch}")]
    NoLedger {
        /// The branch that was looked for.
        branch: String,
        /// Where this clone saw it last, if it did.
        seen: Option<ObjectId>,
        /// The remote that it is shared through, if one is set.
        remote: Option<String>,
    },
    /// The branch is something else.
    #[error("branch {branch} is not a ledger: it has no ledger.json")]
    NotALedger {
        /// The branch.
        branch: String,
    },
    /// The branch is not a name that a branch can have.
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
    /// The branch is another name for something else.
    #[error("branch {branch} is a symbolic ref, which cannot be a ledger")]
    Symbolic {
        /// The branch.
        branch: String,
    },
    /// Objects are kept apart for now: a push is being received.
    #[error(
        "objects are kept apart here (a push is being received, or GIT_OBJECT_DIRECTORY is set), and the ledger would lose its own"
    )]
    Quarantine,
    /// Another process holds the lock of the branch, or left it behind.
    #[error("the branch stayed locked by {}", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The step was given a time before the last step of its issue.
    #[error("the step is dated {at}, and the last one of its issue {previous}")]
    Backdated {
        /// The step's time.
        at: Moment,
        /// The last step's.
        previous: Moment,
    },
    /// The branch moved each time; nothing was written.
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
    /// The remote can't be reached, and without it there is nothing to do.
    #[error("the ledger cannot be had from {remote}: {trouble}")]
    Unreachable {
        /// The remote.
        remote: String,
        /// Why.
        trouble: String,
    },
    /// The remote no longer has the ledger's branch.
    #[error("{remote} had the ledger's branch {branch}, and no longer has it")]
    RemoteGone {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// The remote's ledger and this one began apart.
    #[error("{remote} has another ledger on branch {branch}: they have no commit in common")]
    Unrelated {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// There is no remote to bring the ledger together with.
    #[error("the ledger has no remote")]
    NoRemote,
    /// No refused step is kept under that name.
    #[error("no refused step is kept as {name}")]
    NoRejected {
        /// The name.
        name: String,
    },
    /// A commit is not a step that could be made again.
    #[error("commit {commit} is no step")]
    NoStep {
        /// The commit.
        commit: ObjectId,
    },
    /// A step that was made offline follows one that the remote's state refused.
    #[error("it rests on a step of {id} that was not taken")]
    NotTaken {
        /// The handoff, as it was offline.
        id: HandoffId,
    },
    /// A step that was made offline would do something else on the remote's state.
    #[error("it continued {was}, and now it would continue {now}")]
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
    /// A file that the contract delivers is not what was asked for.
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
    /// A file that was delivered is not what it was.
    #[error("what was delivered is not what it was")]
    Delivered {
        /// Each of them.
        findings: Vec<Finding>,
    },
    /// A shared document is not as its schema wants it.
    #[error("the document was refused")]
    Document {
        /// Why, all of it.
        findings: Vec<Finding>,
    },
    /// What was to be kept holds secrets.
    #[error("it holds what looks like a secret, and was not kept")]
    Secret {
        /// Each of them, and whatever else is wrong.
        findings: Vec<Finding>,
    },
    /// Something was allowed that is not there.
    #[error("nothing needs the allowance {allowance}")]
    UnusedAllowance {
        /// What was allowed.
        allowance: Allowance,
    },
    /// The contract is well formed, and the protocol has no such route.
    #[error("the protocol refuses the contract")]
    Route {
        /// Why.
        findings: Vec<Finding>,
    },
    /// The step was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The step was refused, and so a gate of the protocol is not passed.
    #[error("{refusal}")]
    Gate {
        /// Why it was refused.
        refusal: Box<Refusal>,
        /// The gate.
        findings: Vec<Finding>,
    },
    /// A protocol in force is at fault.
    #[error("protocol {name} is at fault")]
    Protocol {
        /// The protocol.
        name: String,
        /// Its faults.
        findings: Vec<Finding>,
    },
    /// A protocol is at fault and was not put in force.
    #[error("the protocol is at fault")]
    ProtocolRefused {
        /// Its faults.
        findings: Vec<Finding>,
    },
    /// There is a protocol of that name already.
    #[error("protocol {name} is in force already, in version {version}")]
    ProtocolExists {
        /// The protocol.
        name: String,
        /// Its version.
        version: String,
    },
    /// There is no protocol of that name.
    #[error("the ledger has no protocol {name}")]
    NoProtocol {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Open handoffs could not go on under a new definition.
    #[error("protocol {name} cannot change so while handoffs are open")]
    Orphans {
        /// The protocol.
        name: String,
        /// Each of them.
        findings: Vec<Finding>,
    },
    /// The protocol has no shared document of that name.
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
    /// A skeleton is no JSON.
    #[error("{path} is not JSON")]
    Template {
        /// The skeleton's file.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A file that must be there is not.
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
    /// A stored file is not what the manifest beside it says.
    #[error("{path} is not what was kept")]
    Altered {
        /// The file.
        path: String,
    },
    /// The unfinished work can't be kept.
    #[error("the worktree cannot be kept")]
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
    /// Says whether something could not be read, rather than being refused.
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

    /// Says whether an object is not here because this is a partial clone.
    pub fn is_left_out(&self) -> bool {
        matches!(self, Self::Git(error) | Self::Object { source: error, .. } if error.is_left_out())
    }

    /// Says whether a hook of the remote refused.
    pub(super) fn is_of_a_hook(&self) -> bool {
        let source = match self {
            Self::Remote { source, .. } => source,
            _ => return false,
        };
        matches!(source, RemoteError::Refused { .. })
    }

    /// Every fault, where the failure is about several.
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
            | Self::Refused(Refusal::Unfit { findings, .. } | Refusal::Tasks { findings, .. }) => {
                findings
            }
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
