//! Errors about protocols and their documents.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_base::hint;
use handoff_base::ids::AgentName;
use handoff_model::SettingError;

use super::DEEPEN;

/// The protocol or the document was refused, or does not exist.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// A protocol is invalid and was not put in force.
    #[error("the protocol is invalid")]
    Refused(Vec<Finding>),
    /// There is already a protocol with that name.
    #[error("protocol {name} version {version} is already in force")]
    Exists { name: String, version: String },
    /// The new files have the same version as the protocol in force.
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
    /// A new version can't keep a setting of the previous one.
    #[error("protocol {name} was not updated: what was set in it would be lost")]
    LosesSetting { name: String, source: SettingError },
    /// A shallow history hides a protocol's settings.
    #[error(
        "protocol {name} was not updated: its settings are unknown, since this clone is shallow"
    )]
    CutOff { name: String },
    /// Open handoffs could not continue under a new definition.
    #[error("protocol {name} cannot change this way while handoffs are open")]
    Orphans {
        name: String,
        findings: Vec<Finding>,
    },
    /// Nothing could be sent in open issues because of the limits of a new version.
    #[error("issues are open that protocol {name} would leave beyond its limits")]
    PastLimits {
        name: String,
        findings: Vec<Finding>,
    },
    /// A protocol checks less than the default one, without `--weaker`.
    #[error("protocol {name} is weaker than {}", if name == default { "its version in force".to_owned() } else { format!("{default}, the ledger's default") })]
    Weaker {
        name: String,
        default: String,
        findings: Vec<Finding>,
    },
    /// An agent makes a protocol weaker.
    #[error(
        "protocol {name} would be weaker, and {agent} is not a person: only a person raises a limit or checks less"
    )]
    WeakerByAgent {
        name: String,
        agent: AgentName,
        people: Vec<String>,
        findings: Vec<Finding>,
    },
    /// The protocol has no shared document with that name.
    #[error("the protocol has no document {name}")]
    NoDocument { name: String, known: Vec<String> },
    /// A shared document does not match its schema.
    #[error("the document was refused")]
    Document(Vec<Finding>),
}

impl Explained for ProtocolError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Refused(findings) => ErrorCode::ProtocolRefused
                .hint("each finding has its place, and what helps")
                .findings(findings),
            Self::SameVersion { name, findings } => ErrorCode::ProtocolRefused
                .hint(hint!(
                    "raise `version` in its protocol.json and update again; `git handoff protocol show {}` shows what is in force",
                    name
                ))
                .findings(findings),
            Self::Exists { name, .. } => ErrorCode::ProtocolExists.hint(hint!(
                "`git handoff protocol update` puts a new version in force; see `git handoff protocol show {}`",
                name
            )),
            Self::Unknown { known, .. } => ErrorCode::NoProtocol.hint(hint!(
                "the ledger has: {}; `git handoff protocol add` puts another in force",
                known.join(", ")
            )),
            Self::Setting { source: SettingError::Edit(_), .. } => ErrorCode::Usage.hint(
                "copy the protocol, edit its protocol.json and use `git handoff protocol update`",
            ),
            Self::Setting { name, .. } => ErrorCode::Usage
                .hint(hint!("`git handoff protocol set {}` lists what can be set", name)),
            Self::LosesSetting { name, .. } => ErrorCode::ProtocolRefused.hint(hint!(
                "`git handoff protocol set {}` lists what is set; add --drop-settings to update without it",
                name
            )),
            Self::CutOff { .. } => ErrorCode::Shallow.hint(DEEPEN),
            Self::Orphans { findings, .. } => ErrorCode::ProtocolOrphans
                .hint("finish the open handoffs first, or keep what they need in the definition")
                .findings(findings),
            Self::PastLimits { findings, .. } => ErrorCode::ProtocolOrphans
                .hint("nothing was written; raise the limits, or end these issues first; if it is meant: --past-limits")
                .findings(findings),
            Self::Weaker { findings, .. } => ErrorCode::ProtocolWeaker
                .hint("nothing was written; make it as strict, or say that it may be weaker: --weaker, which is recorded with your name")
                .findings(findings),
            Self::WeakerByAgent { people, findings, .. } => ErrorCode::NotYours
                .hint(hint!("nothing was written; who can: {}", people.join(", ")))
                .findings(findings),
            Self::NoDocument { known, .. } if known.is_empty() => {
                ErrorCode::NoDocument.hint("the protocol shares no documents")
            }
            Self::NoDocument { known, .. } => {
                ErrorCode::NoDocument.hint(hint!("the protocol has: {}", known.join(", ")))
            }
            Self::Document(findings) => ErrorCode::DocumentRefused
                .hint("fix the document and set it again")
                .findings(findings),
        }
    }
}
