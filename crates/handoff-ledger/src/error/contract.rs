//! Errors about contracts and what comes with them.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_contract::Allowance;
use handoff_model::Refusal;

/// A contract or another document was refused.
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
    /// The document contains secrets.
    #[error("it contains what looks like a secret, and was not recorded")]
    Secret(Vec<Finding>),
    /// An allowance matches nothing.
    #[error("nothing needs the allowance {0}")]
    UnusedAllowance(Allowance),
    /// The contract is well formed, but the protocol has no such route.
    #[error("the protocol refuses the contract")]
    Route(Vec<Finding>),
    /// The step was refused, with what is to be told beside it: the gate of the protocol that failed, what
    /// the repository contradicts.
    #[error("{refusal}")]
    Gate {
        refusal: Box<Refusal>,
        findings: Vec<Finding>,
    },
}

impl Explained for ContractError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Invalid(findings) => ErrorCode::ContractRefused
                .hint("fix the contract (see `git handoff check FILE`) and send it again")
                .findings(findings),
            Self::Artifact(findings) => ErrorCode::ArtifactRefused
                .hint("fix the delivered file and send the contract again")
                .findings(findings),
            Self::Evidence(findings) => ErrorCode::EvidenceContradicted
                .hint("nothing was written; make the repository match the contract, or correct the contract, and send it again")
                .findings(findings),
            Self::Delivered(findings) => ErrorCode::ArtifactChanged
                .hint("nothing was written; restore what was delivered, or reject the handoff with `git handoff reject ID --reason WHY`")
                .findings(findings),
            Self::Secret(findings) => ErrorCode::SecretFound
                .hint("nothing was written; remove it and run the command again. If it is not a secret, allow it with `--allow-secret RULE@PLACE` if the command has that option, or in the protocol's `secrets`")
                .findings(findings),
            Self::UnusedAllowance(_) => ErrorCode::UnusedAllowance
                .hint("leave it out; `git handoff check FILE` names rules and places"),
            Self::Route(findings) => ErrorCode::RouteRefused
                .hint("`git handoff graph --protocol` draws the allowed routes")
                .findings(findings),
            Self::Gate { refusal, findings } => refusal.explanation().findings(findings),
        }
    }
}
