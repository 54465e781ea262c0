//! Contracts that contradict their issue.

use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};

use crate::evidence::EvidenceFault;

/// The contract contradicts what the issue already has.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ContractRefusal {
    /// The issue follows another protocol.
    #[error("issue {issue} follows protocol {protocol}")]
    OtherProtocol {
        /// The issue.
        issue: IssueKey,
        /// Its protocol.
        protocol: AgentName,
    },
    /// Another contract has the same id.
    #[error("{contract_id} is already the contract id of {id}, for a different contract")]
    IdTaken {
        /// The contract's own id, escaped for display.
        contract_id: String,
        /// The handoff that has it.
        id: HandoffId,
    },
    /// The contract contradicts the state of the tasks.
    #[error("the contract does not fit the tasks of issue {issue}")]
    Tasks {
        /// The issue.
        issue: IssueKey,
        /// All the reasons.
        findings: Vec<Finding>,
    },
    /// The decision contradicts its basis.
    #[error("`{field}` cannot be {value} after {id}, whose status is {status}")]
    NotAfter {
        /// The field.
        field: Box<str>,
        /// Its value, escaped for display.
        value: Box<str>,
        /// The handoff that the sender works on.
        id: HandoffId,
        /// The status of its contract.
        status: Box<str>,
        /// The values that fit.
        fitting: Vec<String>,
    },
    /// The contract is about another contract than its sender works on.
    #[error("`{field}` is {value}, but {id} is about another contract")]
    NotAbout {
        /// The field.
        field: Box<str>,
        /// Its value, escaped for display.
        value: Box<str>,
        /// The handoff that the sender works on.
        id: HandoffId,
        /// The id of that handoff's contract.
        known: Box<str>,
    },
    /// The recorded evidence does not match what the rules require.
    #[error("{fault}")]
    Evidence {
        /// The issue.
        issue: IssueKey,
        /// What is wrong with it.
        fault: EvidenceFault,
    },
}
