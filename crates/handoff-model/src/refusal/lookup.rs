//! Refusals about unknown names and ids.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint;
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

impl Explained for LookupRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::NoIssue(_) => ErrorCode::NoIssue.hint("`git handoff list` shows every issue"),
            Self::NoHandoff(id) => ErrorCode::NoHandoff.hint(hint!(
                "`git handoff status {}` lists the issue's handoffs",
                id.issue()
            )),
            Self::NoRequirement { known, .. } => {
                ErrorCode::NoRequirement.hint(hint!("the protocol has: {}", known.join(", ")))
            }
        }
    }
}
