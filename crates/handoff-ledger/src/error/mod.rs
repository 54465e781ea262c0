//! Errors of ledger operations: one file per subject; [`LedgerError`] is any of them.

#![allow(missing_docs, reason = "a variant's message says what its fields are")]

mod branch;
mod contract;
mod damage;
mod protocol;
mod rerun;
mod upstream;
mod write;

pub use branch::BranchError;
pub(crate) use branch::brought_back;
pub use contract::ContractError;
pub use damage::DamageError;
pub use protocol::ProtocolError;
pub use rerun::RerunError;
pub use upstream::UpstreamError;
pub use write::WriteError;

use std::path::PathBuf;

use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint;
use handoff_git::{CaptureError, GitError, PublishError, RemoteError};
use handoff_model::{NotArchivable, Refusal, Stop, StoredError, Unscreened};

/// A failed operation. Unless a variant says otherwise, the ledger is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// About the ledger's branch.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// About writing a step.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// About the ledger's remote.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// About repeated steps.
    #[error(transparent)]
    Rerun(#[from] RerunError),
    /// About contracts and what comes with them.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// About protocols and their documents.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// About stored files.
    #[error(transparent)]
    Damage(#[from] DamageError),
    /// The issue cannot be archived.
    #[error(transparent)]
    NotArchivable(Box<NotArchivable>),
    /// The step was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A repair was interrupted; unreadable files are in their old places.
    #[error("the repair did not finish; damaged files are back in place")]
    Unrepaired {
        source: Box<LedgerError>,
        /// Pack files that remain quarantined; their readable objects are in new packs.
        aside: Vec<PathBuf>,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Explained for LedgerError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Branch(error) => error.explanation(),
            Self::Write(error) => error.explanation(),
            Self::Upstream(error) => error.explanation(),
            Self::Rerun(error) => error.explanation(),
            Self::Contract(error) => error.explanation(),
            Self::Protocol(error) => error.explanation(),
            Self::Damage(error) => error.explanation(),
            Self::NotArchivable(why) => why.explanation(),
            Self::Refused(refusal) => refusal.explanation(),
            Self::Unrepaired { source, aside } => unrepaired(source, aside),
            Self::Git(error) => error.explanation(),
        }
    }
}

fn unrepaired(source: &LedgerError, aside: &[PathBuf]) -> Explanation {
    let mut next = hint!(
        "another clone, a backup or a bundle may have what is damaged: `git handoff fetch --repair --from PATH`"
    );
    if let LedgerError::Write(WriteError::NoCopy(_)) = source {
        next = next.and("; with --give-up, the branch goes back to its last whole step, and those that are lost are named");
    }
    if let Some(file) = aside.first() {
        let folder = file.parent().unwrap_or(file).display().to_string();
        next = next.and(hint!(
            "; damaged packs are in {}, and what can be read in them is in new ones",
            folder
        ));
    }
    Explanation {
        hint: Some(next),
        ..source.explanation()
    }
}

/// How to get the history that a shallow clone lacks.
pub const DEEPEN: &str = "`git handoff fetch --full` gets the rest; if the ledger has no remote (handoff.remote), use `git fetch --unshallow`";

impl LedgerError {
    /// Whether something could not be read, as opposed to being refused.
    pub(super) fn is_unreadable(&self) -> bool {
        use DamageError as D;
        matches!(
            self,
            Self::Git(_)
                | Self::Damage(D::Object { .. } | D::Missing(_) | D::Stored { .. } | D::Altered(_))
                | Self::Branch(BranchError::NotALedger(_))
        )
    }

    /// Whether an object is missing because this is a partial clone.
    pub fn is_left_out(&self) -> bool {
        matches!(
            self,
            Self::Git(error) | Self::Damage(DamageError::Object { source: error, .. })
                if error.is_left_out()
        )
    }

    /// Whether a hook on the remote refused.
    pub(super) fn is_of_a_hook(&self) -> bool {
        matches!(
            self,
            Self::Upstream(UpstreamError::Refused {
                source: RemoteError::Refused { .. },
                ..
            })
        )
    }

    pub(super) fn stored(path: &str, source: StoredError) -> Self {
        let path = path.to_owned();
        DamageError::Stored { path, source }.into()
    }

    pub(super) fn missing(path: String) -> Self {
        DamageError::Missing(path).into()
    }
}

impl From<PublishError> for LedgerError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Moved => WriteError::Contended(1).into(),
            PublishError::Locked(path) => WriteError::Locked(path).into(),
            PublishError::Git(error) => Self::Git(error),
        }
    }
}

impl From<CaptureError> for LedgerError {
    fn from(error: CaptureError) -> Self {
        match error {
            CaptureError::Git(error) => Self::Git(error),
            error => WriteError::Snapshot(Box::new(error)).into(),
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
            Unscreened::Secret { findings } => ContractError::Secret(findings),
            Unscreened::Unused { allowance } => ContractError::UnusedAllowance(allowance),
        }
        .into()
    }
}

impl From<NotArchivable> for LedgerError {
    fn from(why: NotArchivable) -> Self {
        Self::NotArchivable(Box::new(why))
    }
}
