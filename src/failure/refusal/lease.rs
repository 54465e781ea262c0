//! Leases and claims.

use handoff_model::{Holding, LeaseRefusal};
use handoff_protocol::State;

use crate::failure::{ErrorCode, Failure};

/// The command that takes a handoff over from its worker.
fn take_over(by: &Holding) -> String {
    let (id, agent) = (&by.id, &by.agent);
    format!("`git handoff claim {id} --take-over --reason WHY --as {agent}`")
}

/// What to do if the same worker claimed the handoff elsewhere, unless another one took it over.
fn other_tree(by: &Holding) -> String {
    match &by.taken_over {
        Some(_) => String::new(),
        None => format!(
            " if you claimed it in another working tree, add --worker {};",
            by.worker
        ),
    }
}

impl From<LeaseRefusal> for Failure {
    fn from(refusal: LeaseRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            LeaseRefusal::AlreadyClaimed(by) => at(ErrorCode::AlreadyClaimed).hint(format!(
                "claim another: `git handoff claim --next`; only if that worker is gone, take it over: {}",
                take_over(&by)
            )),
            LeaseRefusal::HeldByWorker(by) => at(ErrorCode::HeldByWorker).hint(format!(
                "nothing was recorded, so keep your work; see `git handoff show {}`;{} only if that worker is gone, take it over: {}",
                by.id,
                other_tree(&by),
                take_over(&by)
            )),
            LeaseRefusal::OwnClaim { id, .. } => at(ErrorCode::OwnClaim)
                .hint(format!("you hold it, so go on: `git handoff context {}`", id.issue())),
            LeaseRefusal::NoReason(id) => at(ErrorCode::Usage).hint(format!(
                "`git handoff claim {id} --take-over --reason WHY`"
            )),
            LeaseRefusal::NoWorker(_) => at(ErrorCode::NoWorker)
                .advice("name the worker with --worker ID or GIT_HANDOFF_WORKER"),
            LeaseRefusal::NotClaimed { id, agent } => at(ErrorCode::NotClaimed).hint(format!(
                "claim it first: `git handoff claim {id} --as {agent}`"
            )),
            LeaseRefusal::NotWorking { id, agent, state } => {
                let next = match state {
                    State::Blocked => format!("answer {id} ANSWER"),
                    State::Failed => format!("retry {id}"),
                    _ => format!("show {id}"),
                };
                at(ErrorCode::NotWorking).hint(if state.is_terminal() {
                    format!("{state} is final; see `git handoff {next}`")
                } else {
                    format!("run `git handoff {next}` first; then {agent} can claim it")
                })
            }
            LeaseRefusal::NotHeld { open, issue, .. } if open.is_empty() => {
                at(ErrorCode::NotHeld).hint(format!("see `git handoff status {issue}`"))
            }
            LeaseRefusal::NotHeld { open, .. } => {
                let open = open.iter().map(|(id, to)| format!("{id} is with {to}"));
                let open: Vec<String> = open.collect();
                at(ErrorCode::NotHeld).advice(open.join(", "))
            }
            LeaseRefusal::Length { .. } => at(ErrorCode::Usage)
                .hint("`git handoff extend` extends it while the work goes on"),
            LeaseRefusal::After { id, .. } => at(ErrorCode::Usage)
                .advice(format!("without --after, {id} is offered again at once")),
            LeaseRefusal::Lost { id, state, .. } => {
                let now = match state {
                    State::Pending => format!("claim it again: `git handoff claim {id}`"),
                    State::Failed => format!("`git handoff retry {id}` makes it claimable again"),
                    State::Dead => {
                        format!("`git handoff retry {id} --reason WHY` gives it new attempts")
                    }
                    _ => format!("see its state: `git handoff show {id}`"),
                };
                at(ErrorCode::LeaseLost)
                    .hint(format!("nothing was recorded, so keep your work; {now}"))
            }
            LeaseRefusal::Unacknowledged { id, state, .. } => {
                at(ErrorCode::NotAcknowledged).hint(match state {
                    State::Dead => {
                        format!("`git handoff retry {id} --reason WHY` gives it new attempts")
                    }
                    _ => format!("`git handoff retry {id}` makes it claimable again"),
                })
            }
            LeaseRefusal::Overdue(id) => {
                at(ErrorCode::Overdue).hint(format!("see `git handoff show {id}`"))
            }
            LeaseRefusal::NotOverdue(id) => {
                at(ErrorCode::NotOverdue).hint(format!("see `git handoff show {id}`"))
            }
        }
    }
}
