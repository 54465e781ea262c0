//! Retries, and the failures that lead to them.

use handoff_model::RetryRefusal;

use crate::failure::{ErrorCode, Failure};

impl From<RetryRefusal> for Failure {
    fn from(refusal: RetryRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            RetryRefusal::OtherAttempt { id, .. } => at(ErrorCode::OtherAttempt)
                .hint(format!("nothing was written; see `git handoff show {id}`")),
            RetryRefusal::Spent { id, .. } => at(ErrorCode::RetriesSpent).hint(format!(
                "`git handoff retry {id} --reason WHY` gives it new attempts; otherwise send it as a new handoff, or cancel it: `git handoff cancel {id}`"
            )),
            RetryRefusal::NotCorrectable { id, .. } => at(ErrorCode::CorrectionRefused).hint(format!(
                "see `git handoff show {id}`; `git handoff retry {id}` gives it another attempt as it is"
            )),
            RetryRefusal::UnknownCode { codes, .. } => {
                at(ErrorCode::UnknownFailureCode).advice(format!("use one of: {}", codes.join(", ")))
            }
            RetryRefusal::NotAssignable { others, id, .. } if others.is_empty() => {
                at(ErrorCode::NotAssignable).hint(format!(
                    "no other agent can; retry with the same agent, or cancel it: `git handoff cancel {id}`"
                ))
            }
            RetryRefusal::NotAssignable { others, .. } => {
                let others: Vec<&str> = others.iter().map(|o| o.as_str()).collect();
                at(ErrorCode::NotAssignable).advice(format!("agents that can: {}", others.join(", ")))
            }
        }
    }
}
