//! Stored files that cannot be used.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_base::hint;
use handoff_base::ids::IssueKey;
use handoff_contract::SchemaError;
use handoff_git::GitError;
use handoff_model::StoredError;

/// A file of the ledger is missing or damaged.
#[derive(Debug, thiserror::Error)]
pub enum DamageError {
    /// A protocol in force is invalid.
    #[error("protocol {name} is invalid")]
    Protocol {
        name: String,
        findings: Vec<Finding>,
    },
    /// A schema in force can't be used.
    #[error("{path} is not a usable schema")]
    Schema {
        path: String,
        source: Box<SchemaError>,
    },
    /// A skeleton is not JSON.
    #[error("{path} is not JSON")]
    Template {
        path: String,
        source: serde_json::Error,
    },
    /// A required file is missing.
    #[error("{0} is missing")]
    Missing(String),
    /// The object that holds a file is missing or damaged.
    #[error("{path} cannot be read")]
    Object { path: String, source: GitError },
    /// A stored file can't be read.
    #[error("{path} cannot be read")]
    Stored { path: String, source: StoredError },
    /// Commits on which an issue stands are not steps.
    #[error(
        "commit {} is not a step of the ledger, and {issue} stands on it",
        named(findings)
    )]
    NotSteps {
        issue: IssueKey,
        findings: Vec<Finding>,
    },
    /// A protocol's files exceed the maximum total size.
    #[error("{0} and the files before it are too large")]
    TooLarge(String),
    /// A stored file does not match its manifest.
    #[error("{0} is not what was recorded")]
    Altered(String),
}

impl Explained for DamageError {
    fn explanation(&self) -> Explanation {
        let code = match self {
            Self::Object { source, .. } if source.is_left_out() => return source.explanation(),
            Self::Protocol { .. } => ErrorCode::ProtocolBroken,
            Self::Schema { .. } => ErrorCode::SchemaBroken,
            Self::Template { .. } => ErrorCode::TemplateBroken,
            Self::Missing(_)
            | Self::Object { .. }
            | Self::Stored { .. }
            | Self::NotSteps { .. }
            | Self::TooLarge(_)
            | Self::Altered(_) => ErrorCode::LedgerDamaged,
        };
        let explanation = match self {
            Self::NotSteps { issue, .. } => code.hint(hint!(
                "`git handoff verify {}` names each; a person takes it back: `git handoff help recovery`",
                issue
            )),
            _ => code.hint("`git handoff verify` shows where the damage began"),
        };
        match self {
            Self::Protocol { findings, .. } | Self::NotSteps { findings, .. } => {
                explanation.findings(findings)
            }
            _ => explanation,
        }
    }
}

/// The first commit that findings are about.
fn named(findings: &[Finding]) -> String {
    let mut commits = findings.iter().filter_map(|one| one.commit.as_deref());
    commits.next().unwrap_or("?").chars().take(10).collect()
}
