//! Contracts, and what comes with them.

use handoff_base::finding::Finding;
use handoff_contract::Allowance;
use handoff_model::Refusal;

/// What was to be recorded was refused.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// The contract was refused.
    #[error("the contract was refused")]
    Invalid(Vec<Finding>),
    /// A delivered file is not what the request asked for.
    #[error("the artifact was refused")]
    Artifact(Vec<Finding>),
    /// The repository contradicts what the contract states.
    #[error("the repository contradicts the contract")]
    Evidence(Vec<Finding>),
    /// A delivered file was changed or removed.
    #[error("a delivered file was changed or removed")]
    Delivered(Vec<Finding>),
    /// What was to be recorded contains secrets.
    #[error("it contains what looks like a secret, and was not recorded")]
    Secret(Vec<Finding>),
    /// An allowance matches nothing.
    #[error("nothing needs the allowance {0}")]
    UnusedAllowance(Allowance),
    /// The contract is well formed, but the protocol has no such route.
    #[error("the protocol refuses the contract")]
    Route(Vec<Finding>),
    /// The step was refused, so a gate of the protocol failed.
    #[error("{refusal}")]
    Gate {
        refusal: Box<Refusal>,
        findings: Vec<Finding>,
    },
}

impl ContractError {
    pub(super) fn findings(&self) -> &[Finding] {
        match self {
            Self::Invalid(findings)
            | Self::Artifact(findings)
            | Self::Evidence(findings)
            | Self::Delivered(findings)
            | Self::Secret(findings)
            | Self::Route(findings)
            | Self::Gate { findings, .. } => findings,
            Self::UnusedAllowance(_) => &[],
        }
    }
}
