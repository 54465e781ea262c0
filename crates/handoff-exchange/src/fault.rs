//! Why an item of an import was refused; the other items are still imported.

use handoff::base::codes::ErrorCode;
use handoff::base::explained::{Explained, Explanation};
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::HandoffId;
use handoff::git::GitError;
use handoff::ledger::{ContractError, LedgerError, ProtocolError, WriteError};

/// Why an item was refused.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The ledger refused it, as it would refuse an agent's.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// It can't be read, or is malformed.
    #[error("the item cannot be read")]
    Unreadable {
        /// Why.
        findings: Vec<Finding>,
    },
    /// An earlier step is missing, so it would be out of order.
    #[error("step {step} of {of} is out of order: {why}")]
    Order {
        /// Its number.
        step: u32,
        /// What it is a step of.
        of: String,
        /// What is missing.
        why: String,
    },
    /// An earlier contract is missing, so it would be out of order.
    #[error("it would be out of order: {why}")]
    Behind {
        /// What is missing.
        why: String,
    },
    /// The ledger has a different step in its place.
    #[error("the ledger has a different step {step} of {of}")]
    Other {
        /// Its number.
        step: u32,
        /// What it is a step of.
        of: String,
    },
    /// An identical step was already taken, so it would change nothing.
    #[error("the ledger already has this step of {id}")]
    Repeats {
        /// The handoff.
        id: HandoffId,
    },
}

impl Explained for Fault {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Ledger(error) => error.explanation(),
            Self::Unreadable { findings } => {
                Explanation::from(ErrorCode::ImportUnreadable).findings(findings)
            }
            Self::Order { .. } | Self::Behind { .. } => {
                ErrorCode::OutOfOrder.hint("fix what was refused before it, and import again")
            }
            Self::Other { .. } | Self::Repeats { .. } => ErrorCode::ImportConflict
                .hint("import it into a new ledger, on its own branch: --branch NAME"),
        }
    }
}

impl From<GitError> for Fault {
    fn from(error: GitError) -> Self {
        Self::Ledger(error.into())
    }
}

impl Fault {
    /// A fault with a single finding.
    pub(super) fn unreadable(code: FindingCode, text: impl Into<String>) -> Self {
        Self::Unreadable {
            findings: vec![Finding::error(code, "", text)],
        }
    }

    /// Whether one of its findings has this code.
    pub(super) fn is_of(&self, code: FindingCode) -> bool {
        match self {
            Self::Unreadable { findings } => findings.iter().any(|f| f.code == code),
            _ => false,
        }
    }

    /// Converts a ledger error that concerns only one item into its fault; returns an error that
    /// concerns every item.
    pub(super) fn of(error: LedgerError) -> Result<Self, LedgerError> {
        use ContractError as C;
        use ProtocolError as P;
        match error {
            LedgerError::Refused(_)
            | LedgerError::Contract(C::Invalid(_) | C::Secret(_) | C::Route(_) | C::Gate { .. })
            | LedgerError::Protocol(
                P::Refused(_)
                | P::Exists { .. }
                | P::Unknown { .. }
                | P::Orphans { .. }
                | P::NoDocument { .. }
                | P::Document(_),
            )
            | LedgerError::Write(WriteError::Signature(_)) => Ok(Self::Ledger(error)),
            _ => Err(error),
        }
    }
}
