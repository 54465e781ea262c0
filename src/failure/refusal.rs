//! What a user sees of a refusal: its exit code, a stable code, and what can be
//! done next.

use handoff_base::moment;
use handoff_base::text::quoted;
use handoff_model::{Limit, Refusal};
use handoff_protocol::{Event, State};

use super::{ErrorCode, Failure};

/// Events that no command causes directly.
const NOT_COMMANDS: [Event; 2] = [Event::Exhaust, Event::Expire];

/// Converts a refusal into a failure.
pub(crate) fn refused(refusal: &Refusal, message: String) -> Failure {
    let protocol = |code| Failure::new(code, message.clone());
    match refusal {
        Refusal::OtherAttempt { id, .. } => {
            Failure::new(ErrorCode::OtherAttempt, message.clone())
                .hint(format!("nothing was written; see `git handoff show {id}`"))
        }
        Refusal::UnknownAgent { agents, .. } => {
            protocol(ErrorCode::UnknownAgent).hint(format!("agents are: {}", agents.join(", ")))
        }
        Refusal::NotTheSender { from, .. } => {
            protocol(ErrorCode::NotTheSender).hint(format!("only {from} can send it, with --as {from}"))
        }
        Refusal::NotOpened { openers, .. } => {
            let ways: Vec<String> = openers
                .iter()
                .map(|(from, to)| format!("{from} to {to}"))
                .collect();
            protocol(ErrorCode::NotOpened).hint(format!(
                "the first contract of an issue goes from {}",
                ways.join(", or from ")
            ))
        }
        Refusal::IssueCompleted { issue } => protocol(ErrorCode::IssueCompleted).hint(format!(
            "`git handoff reopen {issue} --reason WHY` reopens it"
        )),
        Refusal::NotCompleted { issue } => {
            protocol(ErrorCode::NotCompleted).hint(format!("see `git handoff status {issue}`"))
        }
        Refusal::NotClaimed { id, agent } => protocol(ErrorCode::NotClaimed).hint(format!(
            "claim it first: `git handoff claim {id} --as {agent}`"
        )),
        Refusal::NotWorking { id, agent, state } => {
            let next = match state {
                State::Blocked => format!("answer {id} ANSWER"),
                State::Failed => format!("retry {id}"),
                _ => format!("show {id}"),
            };
            protocol(ErrorCode::NotWorking).hint(if state.is_terminal() {
                format!("{state} is final; see `git handoff {next}`")
            } else {
                format!("run `git handoff {next}` first; then {agent} can claim it")
            })
        }
        Refusal::NotHeld { open, issue, .. } => {
            let open: Vec<String> = open
                .iter()
                .map(|(id, to)| format!("{id} is with {to}"))
                .collect();
            protocol(ErrorCode::NotHeld).hint(if open.is_empty() {
                format!("see `git handoff status {issue}`")
            } else {
                open.join(", ")
            })
        }
        Refusal::NotYours { id, event, to, .. } if event.is_receivers() => {
            protocol(ErrorCode::NotYours).hint(format!("only {to} can; see `git handoff show {id}`"))
        }
        Refusal::NotYours { id, to, .. } | Refusal::NotDecider { id, to, .. } => {
            protocol(ErrorCode::NotYours).hint(format!(
                "its sender, {to} or an orchestrator can; see `git handoff show {id}`"
            ))
        }
        Refusal::AlreadyClaimed { id, .. } => {
            Failure::new(ErrorCode::AlreadyClaimed, message.clone())
                .hint(format!("if you claimed it yourself, and not another process with your name, continue: `git handoff show {id}`; otherwise claim another: `git handoff claim --next`"))
        }
        Refusal::Illegal { id, illegal } => {
            let events: Vec<&str> = illegal
                .state
                .accepts()
                .filter(|event| !NOT_COMMANDS.contains(event))
                .map(Event::as_str)
                .collect();
            protocol(ErrorCode::IllegalTransition).hint(if events.is_empty() {
                format!("{} is final; see `git handoff show {id}`", illegal.state)
            } else {
                format!("possible now: {}", events.join(", "))
            })
        }
        Refusal::NoIssue { .. } => Failure::new(ErrorCode::NoIssue, message.clone())
            .hint("`git handoff list` shows every issue"),
        Refusal::NoRequirement { known, .. } => {
            Failure::new(ErrorCode::NoRequirement, message.clone())
                .hint(format!("the protocol has: {}", known.join(", ")))
        }
        Refusal::NoHandoff { id } => Failure::new(ErrorCode::NoHandoff, message.clone())
            .hint(format!(
                "`git handoff status {}` lists the issue's handoffs",
                id.issue()
            )),
        Refusal::Waits { id, waits_for } => protocol(ErrorCode::Waits).hint(match waits_for.first() {
            Some(first) => format!("see what it waits for: `git handoff show {first}`"),
            None => format!("see `git handoff show {id}`"),
        }),
        Refusal::NeedsAnswer {
            id,
            from,
            to,
            types,
        } => protocol(ErrorCode::NeedsAnswer).hint(format!(
            "write the answer: `git handoff new --issue {} --from {to} --to {from} --type {}`, and send it",
            id.issue(),
            types.join("|")
        )),
        Refusal::Answered { answer, .. } => {
            Failure::new(ErrorCode::AlreadyAnswered, message.clone())
                .hint(format!("see the answer: `git handoff show {answer}`"))
        }
        Refusal::IdTaken { id, .. } => Failure::new(ErrorCode::IdTaken, message.clone())
            .hint(format!(
                "use a new id for a different contract; see `git handoff show {id}`"
            )),
        Refusal::OtherProtocol { issue, protocol: name } => protocol(ErrorCode::OtherProtocol).hint(
            format!("check the contract against that protocol: `git handoff check FILE --protocol {name} --issue {issue}`"),
        ),
        Refusal::Unfit { findings, .. } => {
            Failure::new(ErrorCode::ContractRefused, message.clone())
                .hint("deliver what the request asks for, and send the answer again")
                .findings(findings.clone())
        }
        Refusal::Tasks { issue, findings } => protocol(ErrorCode::TasksRefused)
            .hint(format!("see the state of the tasks: `git handoff status {issue}`"))
            .findings(findings.clone()),
        Refusal::Loop { id, .. } => protocol(ErrorCode::Loop).hint(format!(
            "answer {id} with what is known, or ask another agent"
        )),
        Refusal::RetriesSpent { id, .. } => protocol(ErrorCode::RetriesSpent).hint(format!(
            "`git handoff redrive {id} --reason WHY` gives it new attempts; otherwise send it as a new handoff, or cancel it: `git handoff cancel {id}`"
        )),
        Refusal::TooEarly { id, .. } => protocol(ErrorCode::TooEarly).hint(format!(
            "try again then; `git handoff show {id}` shows what went wrong"
        )),
        Refusal::LeaseLength { .. } => {
            Failure::usage(message.clone()).hint("`git handoff extend` extends it while the work goes on")
        }
        Refusal::LeaseLost { id, state, holder, .. } => {
            let now = match (state, holder) {
                (State::Pending, _) => format!("claim it again: `git handoff claim {id}`"),
                (State::Failed, _) => format!("`git handoff retry {id}` makes it claimable again"),
                (State::Dead, _) => format!("`git handoff redrive {id} --reason WHY` gives it new attempts"),
                _ => format!("see its state: `git handoff show {id}`"),
            };
            Failure::new(ErrorCode::LeaseLost, message.clone())
                .hint(format!("nothing was recorded, so keep your work; {now}"))
        }
        Refusal::Overdue { id } => protocol(ErrorCode::Overdue).hint(format!("see `git handoff show {id}`")),
        Refusal::NotOverdue { id } => {
            protocol(ErrorCode::NotOverdue).hint(format!("see `git handoff show {id}`"))
        }
        Refusal::AnswerUnfit { id, findings } => {
            Failure::new(ErrorCode::AnswerRefused, message.clone())
                .hint(format!("`git handoff answer {id} KEY=VALUE …`, or a JSON file with one member for each key; `git handoff show {id}` lists the keys"))
                .findings(findings.clone())
        }
        Refusal::SaidBefore { id, .. } => Failure::new(ErrorCode::SaidBefore, message.clone())
            .hint(format!("see `git handoff show {id}`, and repeat it if you still want it")),
        Refusal::NotAssignable { others, id, .. } => {
            let others: Vec<&str> = others.iter().map(|o| o.as_str()).collect();
            protocol(ErrorCode::NotAssignable).hint(if others.is_empty() {
                format!("no other agent can; retry with the same agent, or cancel it: `git handoff cancel {id}`")
            } else {
                format!("agents that can: {}", others.join(", "))
            })
        }
        Refusal::Limit { limit, issue, basis } => {
            let rest = match basis {
                Some(id) => format!("finish what you hold with what is known ({id}: answer, complete, fail or block it)"),
                None => format!("continue with the open work (`git handoff status {issue}`)"),
            };
            match &**limit {
                Limit::Cooldown { left, .. } => protocol(ErrorCode::Cooldown).hint(format!("send it again in {left} s, or {rest}")),
                Limit::Cycle { .. } => protocol(ErrorCode::Cycle).hint(format!("ask another agent or a person, or {rest}")),
                _ => protocol(ErrorCode::LimitReached).hint(format!(
                    "use another route of the protocol (`git handoff protocol show`), or {rest}; a person can raise the limit with `git handoff protocol update`"
                )),
            }
        }
        Refusal::NotAfter { field, fitting, .. } => protocol(ErrorCode::DecisionRefused).hint(
            if fitting.is_empty() {
                format!("no `{field}` is allowed here; see `git handoff protocol show`")
            } else {
                format!("allowed: {}", fitting.join(", "))
            },
        ),
        Refusal::NotAbout { field, known, .. } => {
            protocol(ErrorCode::NotAbout).hint(format!("name the contract you work on: set `{field}` to {}", quoted(known)))
        }
        Refusal::UnknownErrorCode { codes, .. } => {
            protocol(ErrorCode::UnknownFailureCode).hint(format!("use one of: {}", codes.join(", ")))
        }
        Refusal::Evidence { issue, .. } => Failure::new(ErrorCode::EvidenceRefused, message.clone())
            .hint(format!("nothing was written; see `git handoff status {issue}`, and send the contract here, where its claims can be checked")),
        Refusal::NoSender => Failure::usage(message.clone())
            .hint("name the sender with --as AGENT or GIT_HANDOFF_AGENT"),
        Refusal::NothingToClaim { found, .. } => {
            let failure = Failure::new(ErrorCode::NothingToClaim, message.clone());
            match (&found.later, &found.waits) {
                (Some((at, id)), _) => failure.hint(format!(
                    "{id} can be claimed from {}; try again then",
                    moment::shown(*at)
                )),
                (None, Some((id, on))) => {
                    failure.hint(format!("{id} waits for {on}; try again later"))
                }
                (None, None) => failure.hint("`git handoff wait --inbox` waits for work"),
            }
        }
        Refusal::OneRequest { issue } => protocol(ErrorCode::OneRequest).hint(format!(
            "see `git handoff status {issue}`; send a new request with a new id"
        )),
    }
}
