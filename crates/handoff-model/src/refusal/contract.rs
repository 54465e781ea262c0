//! Refusals of contracts that contradict their issue.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_base::hint;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::quoted;

use crate::contract::evidence::EvidenceFault;

/// The contract contradicts its issue.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ContractRefusal {
    /// The issue follows another protocol.
    #[error("issue {issue} follows protocol {protocol}")]
    OtherProtocol {
        issue: IssueKey,
        protocol: AgentName,
    },
    /// Another contract has the same id.
    #[error("{contract_id} is already the contract id of {id}, for a different contract")]
    IdTaken {
        /// The contract's own id, escaped for display.
        contract_id: String,
        id: HandoffId,
        /// Whether that handoff failed, so that its contract can be corrected.
        failed: bool,
    },
    /// The contract reports failed or blocked work, but its sender holds no work.
    #[error(
        "status `{status}` says how work of {agent} ended, and it holds none in issue {issue} that this contract would end"
    )]
    NothingFailed {
        issue: IssueKey,
        agent: AgentName,
        status: Box<str>,
    },
    /// The contract contradicts the state of the tasks.
    #[error("the contract does not fit the tasks of issue {issue}")]
    Tasks {
        issue: IssueKey,
        findings: Vec<Finding>,
    },
    /// The contract contradicts the findings of the reviews.
    #[error("the contract does not fit the findings of issue {issue}")]
    Findings {
        issue: IssueKey,
        findings: Vec<Finding>,
    },
    /// The contract contradicts facts of the issue.
    #[error("this contradicts what is known of issue {issue}")]
    Inconsistent {
        issue: IssueKey,
        findings: Vec<Finding>,
        /// What the sender asks others for, if only they may correct a fact.
        asks: Option<Box<Correction>>,
    },
    /// The status of the sender's work does not allow the decision.
    #[error("`{field}` cannot be {value} after {id}, whose status is {status}")]
    NotAfter {
        field: Box<str>,
        /// Its value, escaped for display.
        value: Box<str>,
        /// The handoff that the sender works on.
        id: HandoffId,
        /// The effective status, with the reason if it is not the contract's.
        status: Box<str>,
        fitting: Vec<String>,
    },
    /// The contract is about another one than the sender works on.
    #[error("`{field}` is {value}, but {id} is about another contract")]
    NotAbout {
        field: Box<str>,
        /// Its value, escaped for display.
        value: Box<str>,
        /// The handoff that the sender works on.
        id: HandoffId,
        known: Box<str>,
    },
    /// The recorded evidence checks do not match those that the rules require.
    #[error("{fault}")]
    Evidence {
        issue: IssueKey,
        fault: EvidenceFault,
    },
}

/// The correction of a fact that is not the sender's to note.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The handoff that the sender holds.
    pub id: HandoffId,
    /// The sender.
    pub agent: AgentName,
    /// The command that notes the fact.
    pub note: String,
}

impl Explained for ContractRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::OtherProtocol { issue, protocol } => ErrorCode::OtherProtocol.hint(hint!(
                "check the contract against that protocol: `git handoff check FILE --protocol {} --issue {}`",
                protocol,
                issue
            )),
            Self::IdTaken { id, failed: true, .. } => ErrorCode::IdTaken.hint(hint!(
                "if this corrects what failed, `git handoff retry {} --with FILE` sends it under the same id; use a new id for anything else",
                id
            )),
            Self::IdTaken { id, .. } => ErrorCode::IdTaken.hint(hint!(
                "use a new id for a different contract; see `git handoff show {}`",
                id
            )),
            Self::NothingFailed { issue, agent, .. } => ErrorCode::NothingFailed.hint(hint!(
                "claim the work first if it waits for you: `git handoff inbox --as {}`; see `git handoff status {}`",
                agent,
                issue
            )),
            Self::Tasks { issue, findings } => ErrorCode::TasksRefused
                .hint(hint!("see the state of the tasks: `git handoff status {}`", issue))
                .findings(findings),
            Self::Findings { issue, findings } => ErrorCode::FindingsRefused
                .hint(hint!(
                    "see the findings and what became of them: `git handoff status {}`",
                    issue
                ))
                .findings(findings),
            Self::Inconsistent {
                findings,
                asks: Some(asks),
                ..
            } => ErrorCode::Inconsistent
                .hint(hint!(
                    "correct the contract; if what is known is wrong, ask for a note of what is right (`{}`): `git handoff block {} --as {} --reason 'WHAT IS RIGHT, AND WHY'`",
                    asks.note,
                    asks.id,
                    asks.agent
                ))
                .findings(findings),
            Self::Inconsistent {
                issue, findings, ..
            } => ErrorCode::Inconsistent
                .hint(hint!(
                    "correct the contract; if the issue has changed, say so first: `git handoff annotate {} --fact NAME=VALUE --note 'WHY'`",
                    issue
                ))
                .findings(findings),
            Self::NotAfter { field, fitting, .. } if fitting.is_empty() => {
                ErrorCode::DecisionRefused.hint(hint!(
                    "no `{}` is allowed here; see `git handoff protocol show`",
                    field
                ))
            }
            Self::NotAfter { fitting, .. } => {
                ErrorCode::DecisionRefused.hint(hint!("allowed: {}", fitting.join(", ")))
            }
            Self::NotAbout { field, known, .. } => ErrorCode::NotAbout.hint(hint!(
                "name the contract you work on: set `{}` to {}",
                field,
                quoted(known)
            )),
            Self::Evidence { issue, .. } => ErrorCode::EvidenceRefused.hint(hint!(
                "nothing was written; see `git handoff status {}`, and send the contract here, where its statements can be checked",
                issue
            )),
        }
    }
}
