//! Contracts, and what comes with them.

use handoff_ledger::ContractError;

use crate::failure::{ErrorCode, Failure, chain};

impl From<ContractError> for Failure {
    fn from(error: ContractError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message);
        match error {
            ContractError::Invalid(findings) => at(ErrorCode::ContractRefused)
                .hint("fix the contract (see `git handoff check FILE`) and send it again")
                .findings(findings),
            ContractError::Artifact(findings) => at(ErrorCode::ArtifactRefused)
                .advice("fix the delivered file and send the contract again")
                .findings(findings),
            ContractError::Evidence(findings) => at(ErrorCode::EvidenceContradicted)
                .advice("nothing was written; make the repository match the contract, or correct the contract, and send it again")
                .findings(findings),
            ContractError::Delivered(findings) => at(ErrorCode::ArtifactChanged)
                .hint("nothing was written; restore what was delivered, or reject the handoff with `git handoff reject ID --reason WHY`")
                .findings(findings),
            ContractError::Secret(findings) => at(ErrorCode::SecretFound)
                .advice("nothing was written; remove it and run the command again. If it is not a secret, allow it with `--allow-secret RULE@PLACE` if the command has that option, or in the protocol's `secrets`")
                .findings(findings),
            ContractError::UnusedAllowance(_) => at(ErrorCode::UnusedAllowance)
                .hint("leave it out; `git handoff check FILE` names rules and places"),
            ContractError::Route(findings) => at(ErrorCode::RouteRefused)
                .hint("`git handoff graph --protocol` draws the allowed routes")
                .findings(findings),
            ContractError::Gate { refusal, findings } => Self::from(*refusal).findings(findings),
        }
    }
}
