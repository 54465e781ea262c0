//! Protocols and their documents.

use handoff_base::finding::Finding;
use handoff_model::SettingError;

/// The protocol or the document was refused, or does not exist.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// A protocol is invalid and was not put in force.
    #[error("the protocol is invalid")]
    Refused(Vec<Finding>),
    /// There is already a protocol with that name.
    #[error("protocol {name} version {version} is already in force")]
    Exists { name: String, version: String },
    /// The files of a new version have the version that is in force.
    #[error("protocol {name} was not updated")]
    SameVersion {
        name: String,
        findings: Vec<Finding>,
    },
    /// There is no protocol with that name.
    #[error("the ledger has no protocol {name}")]
    Unknown { name: String, known: Vec<String> },
    /// A policy can't be set in a protocol.
    #[error("protocol {name} was not changed")]
    Setting { name: String, source: SettingError },
    /// Open handoffs could not continue under a new definition.
    #[error("protocol {name} cannot change this way while handoffs are open")]
    Orphans {
        name: String,
        findings: Vec<Finding>,
    },
    /// A protocol checks less than the default one, and nobody said that it may.
    #[error("protocol {name} is weaker than {default}, the ledger's default")]
    Weaker {
        name: String,
        default: String,
        findings: Vec<Finding>,
    },
    /// The protocol has no shared document with that name.
    #[error("the protocol has no document {name}")]
    NoDocument { name: String, known: Vec<String> },
    /// A shared document does not match its schema.
    #[error("the document was refused")]
    Document(Vec<Finding>),
}
