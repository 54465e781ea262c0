//! Work that is not ready.

use handoff_model::QueueRefusal;

use crate::failure::{ErrorCode, Failure};

impl From<QueueRefusal> for Failure {
    fn from(refusal: QueueRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            QueueRefusal::NothingToClaim { found, .. } => {
                let failure = at(ErrorCode::NothingToClaim);
                if let Some(id) = &found.late {
                    return failure.hint(format!(
                        "`git handoff next {}` shows what becomes of it",
                        id.issue()
                    ));
                }
                match (&found.later, &found.waits) {
                    (Some((at, id)), _) => {
                        failure.advice(format!("{id} can be claimed from {at}; try again then"))
                    }
                    (None, Some((id, on))) => {
                        failure.advice(format!("{id} waits for {on}; try again later"))
                    }
                    (None, None) => failure.hint("`git handoff wait --inbox` waits for work"),
                }
            }
            QueueRefusal::Waits { id, waits_for } => {
                at(ErrorCode::Waits).hint(match waits_for.first() {
                    Some(first) => format!("see what it waits for: `git handoff show {first}`"),
                    None => format!("see `git handoff show {id}`"),
                })
            }
            QueueRefusal::PartsRun { id, .. } => at(ErrorCode::PartsRun).hint(format!(
                "it is completed when the last report on them is; see `git handoff status {}`",
                id.issue()
            )),
            QueueRefusal::TooEarly { id, .. } => at(ErrorCode::TooEarly).hint(format!(
                "try again then; `git handoff show {id}` shows what went wrong"
            )),
        }
    }
}
