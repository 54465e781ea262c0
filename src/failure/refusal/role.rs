//! Who may act, and who may send.

use handoff_base::ids::AgentName;
use handoff_model::RoleRefusal;

use crate::failure::{ErrorCode, Failure};

impl From<RoleRefusal> for Failure {
    fn from(refusal: RoleRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            RoleRefusal::UnknownAgent { agents, .. } => {
                at(ErrorCode::UnknownAgent).advice(format!("agents are: {}", agents.join(", ")))
            }
            RoleRefusal::NoSender => {
                at(ErrorCode::Usage).advice("name the sender with --as AGENT or GIT_HANDOFF_AGENT")
            }
            RoleRefusal::NotTheSender { from, .. } => at(ErrorCode::NotTheSender)
                .advice(format!("only {from} can send it, with --as {from}")),
            RoleRefusal::NotGivenUpBy { issue, sender, .. } => {
                at(ErrorCode::NotYours).hint(format!(
                    "{sender}, an agent that it awaits, an orchestrator or a person can; \
                     see `git handoff status {issue}`"
                ))
            }
            RoleRefusal::NotPausedBy { issue, sender, .. } => {
                at(ErrorCode::NotYours).hint(format!(
                    "{sender}, an orchestrator or a person can; see `git handoff status {issue}`"
                ))
            }
            RoleRefusal::NotAPerson {
                people, protocol, ..
            } => {
                let people: Vec<&str> = people.iter().map(AgentName::as_str).collect();
                at(ErrorCode::NotYours).advice(match people[..] {
                    [] => format!(
                        "{protocol} has no agent of kind `human`: `git handoff protocol copy \
                         {protocol}`, add one, then `git handoff protocol update` it"
                    ),
                    _ => format!("who can: {}", people.join(", ")),
                })
            }
            RoleRefusal::NotYours { id, event, to, .. } if event.is_receivers() => {
                at(ErrorCode::NotYours).hint(format!("only {to} can; see `git handoff show {id}`"))
            }
            RoleRefusal::NotYours { id, to, .. } | RoleRefusal::NotDecider { id, to, .. } => {
                at(ErrorCode::NotYours).hint(format!(
                    "its sender, {to} or an orchestrator can; see `git handoff show {id}`"
                ))
            }
        }
    }
}
