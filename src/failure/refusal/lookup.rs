//! Names and ids that nothing has.

use handoff_model::LookupRefusal;

use crate::failure::{ErrorCode, Failure};

impl From<LookupRefusal> for Failure {
    fn from(refusal: LookupRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            LookupRefusal::NoIssue(_) => {
                at(ErrorCode::NoIssue).hint("`git handoff list` shows every issue")
            }
            LookupRefusal::NoHandoff(id) => at(ErrorCode::NoHandoff).hint(format!(
                "`git handoff status {}` lists the issue's handoffs",
                id.issue()
            )),
            LookupRefusal::NoRequirement { known, .. } => at(ErrorCode::NoRequirement)
                .advice(format!("the protocol has: {}", known.join(", "))),
        }
    }
}
