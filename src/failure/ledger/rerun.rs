//! Repeated steps.

use handoff_ledger::RerunError;

use crate::failure::{ErrorCode, Failure, chain};

impl From<RerunError> for Failure {
    fn from(error: RerunError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message);
        match error {
            RerunError::NoRejected(_) => {
                at(ErrorCode::NoRejected).hint("`git handoff refused` lists them")
            }
            RerunError::NoStep(_) => at(ErrorCode::LedgerDamaged)
                .hint("`git handoff verify` shows what is wrong with it"),
            RerunError::NotTaken(_) => at(ErrorCode::NotTaken)
                .hint("retry that step first: `git handoff refused` lists the refused steps"),
            RerunError::OtherHandoff { .. } => at(ErrorCode::OtherHandoff)
                .hint("check the state of the issue, and send the contract again: `git handoff refused show NAME` prints it"),
        }
    }
}
