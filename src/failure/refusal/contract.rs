//! Contracts that contradict their issue.

use handoff_base::text::quoted;
use handoff_model::ContractRefusal;

use crate::failure::{ErrorCode, Failure};

impl From<ContractRefusal> for Failure {
    fn from(refusal: ContractRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            ContractRefusal::OtherProtocol { issue, protocol } => {
                at(ErrorCode::OtherProtocol).hint(format!(
                    "check the contract against that protocol: `git handoff check FILE --protocol {protocol} --issue {issue}`"
                ))
            }
            ContractRefusal::IdTaken {
                id, failed: true, ..
            } => at(ErrorCode::IdTaken).hint(format!(
                "if this corrects what failed, `git handoff retry {id} --with FILE` sends it under the same id; use a new id for anything else"
            )),
            ContractRefusal::IdTaken { id, .. } => at(ErrorCode::IdTaken).hint(format!(
                "use a new id for a different contract; see `git handoff show {id}`"
            )),
            ContractRefusal::NothingFailed { issue, agent, .. } => {
                at(ErrorCode::NothingFailed).hint(format!(
                    "claim the work first if it waits for you: `git handoff inbox --as {agent}`; see `git handoff status {issue}`"
                ))
            }
            ContractRefusal::Tasks { issue, findings } => at(ErrorCode::TasksRefused)
                .hint(format!("see the state of the tasks: `git handoff status {issue}`"))
                .findings(findings),
            ContractRefusal::Findings { issue, findings } => at(ErrorCode::FindingsRefused)
                .hint(format!("see the findings and what became of them: `git handoff status {issue}`"))
                .findings(findings),
            ContractRefusal::Inconsistent { issue, findings } => at(ErrorCode::Inconsistent)
                .hint(format!(
                    "correct the contract; if the issue has changed, say so first: `git handoff annotate {issue} --fact NAME=VALUE --note 'WHY'`"
                ))
                .findings(findings),
            ContractRefusal::NotAfter { field, fitting, .. } if fitting.is_empty() => {
                at(ErrorCode::DecisionRefused).hint(format!(
                    "no `{field}` is allowed here; see `git handoff protocol show`"
                ))
            }
            ContractRefusal::NotAfter { fitting, .. } => {
                at(ErrorCode::DecisionRefused).advice(format!("allowed: {}", fitting.join(", ")))
            }
            ContractRefusal::NotAbout { field, known, .. } => {
                at(ErrorCode::NotAbout).advice(format!(
                    "name the contract you work on: set `{field}` to {}",
                    quoted(&known)
                ))
            }
            ContractRefusal::Evidence { issue, .. } => at(ErrorCode::EvidenceRefused).hint(format!(
                "nothing was written; see `git handoff status {issue}`, and send the contract here, where its statements can be checked"
            )),
        }
    }
}
