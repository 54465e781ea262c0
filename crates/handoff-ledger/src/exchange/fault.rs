//! Why one item of an import was refused, while the others go on.

use handoff_base::finding::Finding;
use handoff_base::ids::HandoffId;

use crate::error::LedgerError;

/// Why an item was refused.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The ledger refused it, as it would have refused it to an agent.
    #[error(transparent)]
    Ledger(LedgerError),
    /// It can't be read, or is not what it should be.
    #[error("the item cannot be read")]
    Unreadable {
        /// Why.
        findings: Vec<Finding>,
    },
    /// A step before it is missing, so that it would be out of order.
    #[error("step {step} of {of} is out of order: {why}")]
    Order {
        /// Its number.
        step: u32,
        /// What it is a step of.
        of: String,
        /// What is missing.
        why: String,
    },
    /// A contract before it is missing, so that it would be out of order.
    #[error("it would be out of order: {why}")]
    Behind {
        /// What is missing.
        why: String,
    },
    /// The ledger has another step in its place.
    #[error("the ledger has another step {step} of {of}")]
    Other {
        /// Its number.
        step: u32,
        /// What it is a step of.
        of: String,
    },
    /// A step like it was taken before, and it would change nothing.
    #[error("the ledger has this step of {id} already")]
    Repeats {
        /// The handoff.
        id: HandoffId,
    },
}

impl Fault {
    /// A fault that is one finding.
    pub(super) fn unreadable(code: &'static str, text: impl Into<String>) -> Self {
        Self::Unreadable {
            findings: vec![Finding::error(code, "", text)],
        }
    }

    /// Says whether a finding of it has this code.
    pub(super) fn is_of(&self, code: &str) -> bool {
        match self {
            Self::Unreadable { findings } => findings.iter().any(|f| f.code == code),
            _ => false,
        }
    }

    /// An error of the ledger as the fault of one item, where it is one; an
    /// error that would meet every other item too is given back.
    pub(super) fn of(error: LedgerError) -> Result<Self, LedgerError> {
        let own = matches!(
            error,
            LedgerError::Contract { .. }
                | LedgerError::Secret { .. }
                | LedgerError::Route { .. }
                | LedgerError::Refused(_)
                | LedgerError::Gate { .. }
                | LedgerError::Signature { .. }
                | LedgerError::ProtocolRefused { .. }
                | LedgerError::ProtocolExists { .. }
                | LedgerError::NoProtocol { .. }
                | LedgerError::Orphans { .. }
                | LedgerError::NoDocument { .. }
        );
        if own {
            Ok(Self::Ledger(error))
        } else {
            Err(error)
        }
    }
}
