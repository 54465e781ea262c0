//! Refusals about the queue of claimable work.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::{Moment, hint};

use crate::record::Claimable;
use crate::refusal::{listed, see_handoff, time};

/// The work can't be claimed yet.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueRefusal {
    /// No pending handoff of the agent is claimable.
    #[error("nothing waits for {agent}{}", but(found))]
    NothingToClaim {
        agent: AgentName,
        /// What waits for it, and why.
        found: Box<Claimable>,
    },
    /// Other handoffs must be completed first.
    #[error("{id} waits for {}", listed(waits_for, ", "))]
    Waits {
        id: HandoffId,
        waits_for: Vec<HandoffId>,
    },
    /// The parts of its task must end first.
    #[error("{id} waits for its parts: {}", listed(parts, ", "))]
    PartsRun {
        id: HandoffId,
        parts: Vec<HandoffId>,
    },
    /// The next attempt may not start yet.
    #[error("{id} cannot be claimed before {}", time(*not_before))]
    TooEarly { id: HandoffId, not_before: Moment },
}

impl Explained for QueueRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::NothingToClaim { found, .. } if found.halt.is_some() => {
                let resume = found.halt.iter().map(|halt| halt.scope.resume(&halt.by));
                let resume: String = resume.collect();
                ErrorCode::NothingToClaim.hint(format!(
                    "`git handoff wait --inbox` waits until it goes on; who paused it can run `{resume}`"
                ))
            }
            Self::NothingToClaim { agent, found } => {
                ErrorCode::NothingToClaim.hint(match (&found.late, &found.later, &found.waits) {
                    (Some(id), ..) => {
                        hint!("`git handoff next {}` shows what becomes of it", id.issue())
                    }
                    (None, Some((at, id)), _) => {
                        hint!("{} can be claimed from {}; try again then", id, at)
                    }
                    (None, None, Some((id, on))) => {
                        hint!("{} waits for {}; try again later", id, on)
                    }
                    (None, None, None) => match &found.turn {
                        Some((id, before)) => hint!(
                            "{} is to be merged into the base that {} is being merged into: `git handoff wait --inbox` waits for its turn",
                            id,
                            before
                        ),
                        None => hint!(
                            "`git handoff inbox --as {}` shows what else needs you; `git handoff wait --inbox` waits for work",
                            agent
                        ),
                    },
                })
            }
            Self::Waits { id, waits_for } => ErrorCode::Waits.hint(match waits_for.first() {
                Some(first) => hint!("see what it waits for: `git handoff show {}`", first),
                None => see_handoff(id),
            }),
            Self::PartsRun { id, .. } => ErrorCode::PartsRun.hint(hint!(
                "it is completed when the last report on them is; see `git handoff status {}`",
                id.issue()
            )),
            Self::TooEarly { id, .. } => ErrorCode::TooEarly.hint(hint!(
                "try again then; `git handoff show {}` shows what went wrong",
                id
            )),
        }
    }
}

/// The rest of a sentence about an agent's queue, if it contains work that can't be claimed.
fn but(found: &Claimable) -> String {
    match &found.late {
        _ if let Some(halt) = &found.halt => format!(": {halt}"),
        Some(id) => format!(" that can be claimed: {id} was not claimed in time"),
        None if *found == Claimable::default() => String::new(),
        None => " that can be claimed yet".to_owned(),
    }
}
