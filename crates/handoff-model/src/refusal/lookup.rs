//! Names and ids that nothing has.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::quoted;

/// The request names something that does not exist.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookupRefusal {
    /// There is no such issue.
    #[error("there is no issue {0}")]
    NoIssue(IssueKey),
    /// There is no such handoff.
    #[error("there is no handoff {0}")]
    NoHandoff(HandoffId),
    /// The protocol has no requirement with that name.
    #[error("protocol {protocol} has no requirement {}", quoted(name))]
    NoRequirement {
        name: String,
        protocol: AgentName,
        known: Vec<String>,
    },
}
