//! The states of issues and handoffs.

use handoff_base::ids::HandoffId;
use handoff_model::StateRefusal;
use handoff_protocol::{Event, State};

use crate::failure::{ErrorCode, Failure};
use crate::render::resume;

/// Events that no command causes directly.
const NOT_COMMANDS: [Event; 2] = [Event::Exhaust, Event::Expire];

impl From<StateRefusal> for Failure {
    fn from(refusal: StateRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            StateRefusal::NotOpened { openers, .. } => {
                let routes = openers.iter().map(|(from, to)| format!("{from} to {to}"));
                let routes: Vec<String> = routes.collect();
                at(ErrorCode::NotOpened).advice(format!(
                    "the first contract of an issue goes from {}",
                    routes.join(", or from ")
                ))
            }
            StateRefusal::Completed(issue) => at(ErrorCode::IssueCompleted).hint(format!(
                "`git handoff reopen {issue} --reason WHY` reopens it"
            )),
            StateRefusal::Cancelled(issue) => at(ErrorCode::IssueCancelled).hint(format!(
                "`git handoff reopen {issue} --reason WHY` reopens it"
            )),
            StateRefusal::StillOpen { open, .. } => {
                let cancel = |id: &HandoffId| format!("`git handoff cancel {id} --reason WHY`");
                let commands: Vec<String> = open.iter().map(cancel).collect();
                at(ErrorCode::StillOpen).hint(format!("cancel it first: {}", commands.join(", ")))
            }
            StateRefusal::Paused {
                issue,
                agent,
                may_resume,
                ..
            } => {
                let failure = at(ErrorCode::IssuePaused);
                if may_resume {
                    failure.hint(format!("run `{}`", resume(&issue, &agent, "WHY")))
                } else {
                    failure.hint(format!("`git handoff next {issue}` says who can resume it"))
                }
            }
            StateRefusal::NotCompleted(issue) => {
                at(ErrorCode::NotCompleted).hint(format!("see `git handoff status {issue}`"))
            }
            StateRefusal::NothingToApprove { id, .. } => {
                at(ErrorCode::IllegalTransition).hint(format!(
                    "`git handoff status {}` shows what came after it",
                    id.issue()
                ))
            }
            StateRefusal::Illegal { id, illegal } => {
                let events = illegal.state.accepts();
                let events = events.filter(|event| !NOT_COMMANDS.contains(event));
                let events: Vec<&str> = events.map(Event::as_str).collect();
                let failure = at(ErrorCode::IllegalTransition);
                let another = [Event::Retry, Event::Reassign];
                if illegal.state == State::InProgress && another.contains(&illegal.event) {
                    failure.hint(format!(
                        "an attempt is running: `git handoff show {id}` says who holds it, until when; wait for its end with `git handoff wait {id}`"
                    ))
                } else if events.is_empty() {
                    let state = illegal.state;
                    failure.hint(format!("{state} is final; see `git handoff show {id}`"))
                } else {
                    failure.advice(format!("possible now: {}", events.join(", ")))
                }
            }
            StateRefusal::SaidEarlier { issue, .. } => {
                at(ErrorCode::SaidBefore).hint(format!("see `git handoff status {issue}`"))
            }
            StateRefusal::SaidBefore { id, .. } => at(ErrorCode::SaidBefore).hint(format!(
                "see `git handoff show {id}`, and repeat it if you still want it"
            )),
        }
    }
}
