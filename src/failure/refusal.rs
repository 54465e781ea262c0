//! What a user sees of a refusal: its exit code, a stable code, and what may be
//! done now.

use handoff_base::moment;
use handoff_base::text::quoted;
use handoff_model::{Limit, Refusal};
use handoff_protocol::{Event, State};

use super::{ErrorCode, Failure};

/// Events that follow from others.
const NOT_COMMANDS: [Event; 2] = [Event::Exhaust, Event::Expire];

/// The failure that a refusal is.
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
            protocol(ErrorCode::NotTheSender).hint(format!("whoever is {from} sends it, with --as {from}"))
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
            "`git handoff reopen {issue} --reason WHY` opens it again"
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
                format!("`git handoff {next}` comes first, then a claim by {agent}")
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
                .hint(format!("if that was you, and no other process of your name, go on: `git handoff show {id}`; else take another: `git handoff claim --next`"))
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
                format!("what is possible now: {}", events.join(", "))
            })
        }
        Refusal::NoIssue { .. } => Failure::new(ErrorCode::NoIssue, message.clone())
            .hint("`git handoff list` shows every issue"),
        Refusal::NoRequirement { known, .. } => {
            Failure::new(ErrorCode::NoRequirement, message.clone())
                .hint(format!("it has: {}", known.join(", ")))
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
                "give another contract an id of its own; see `git handoff show {id}`"
            )),
        Refusal::OtherProtocol { issue, protocol: name } => protocol(ErrorCode::OtherProtocol).hint(
            format!("check the contract under it: `git handoff check FILE --protocol {name} --issue {issue}`"),
        ),
        Refusal::Unfit { findings, .. } => {
            Failure::new(ErrorCode::ContractRefused, message.clone())
                .hint("deliver what the request asks for, and send the answer again")
                .findings(findings.clone())
        }
        Refusal::Tasks { issue, findings } => protocol(ErrorCode::TasksRefused)
            .hint(format!("see where the tasks stand: `git handoff status {issue}`"))
            .findings(findings.clone()),
        Refusal::Loop { id, .. } => protocol(ErrorCode::Loop).hint(format!(
            "answer {id} with what is known, or ask another agent"
        )),
        Refusal::RetriesSpent { id, .. } => protocol(ErrorCode::RetriesSpent).hint(format!(
            "`git handoff redrive {id} --reason WHY` gives it new attempts; else send anew, or give it up: `git handoff cancel {id}`"
        )),
        Refusal::TooEarly { id, .. } => protocol(ErrorCode::TooEarly).hint(format!(
            "come back then; until then `git handoff show {id}` tells what went wrong"
        )),
        Refusal::LeaseLength { .. } => {
            Failure::usage(message.clone()).hint("`git handoff extend` makes it longer while the work goes on")
        }
        Refusal::LeaseLost { id, state, holder, .. } => {
            let now = match (state, holder) {
                (State::Pending, _) => format!("it waits to be claimed again: `git handoff claim {id}`"),
                (State::Failed, _) => format!("`git handoff retry {id}` makes it claimable again"),
                (State::Dead, _) => format!("`git handoff redrive {id} --reason WHY` gives it new attempts"),
                _ => format!("see where it stands: `git handoff show {id}`"),
            };
            Failure::new(ErrorCode::LeaseLost, message.clone())
                .hint(format!("nothing of this was recorded, so keep what you have; {now}"))
        }
        Refusal::Overdue { id } => protocol(ErrorCode::Overdue).hint(format!("see `git handoff show {id}`")),
        Refusal::NotOverdue { id } => {
            protocol(ErrorCode::NotOverdue).hint(format!("see `git handoff show {id}`"))
        }
        Refusal::AnswerUnfit { id, findings } => {
            Failure::new(ErrorCode::AnswerRefused, message.clone())
                .hint(format!("`git handoff answer {id} KEY=VALUE …`, or a JSON file with one member for each key; `git handoff show {id}` tells what is asked"))
                .findings(findings.clone())
        }
        Refusal::SaidBefore { id, .. } => Failure::new(ErrorCode::SaidBefore, message.clone())
            .hint(format!("see `git handoff show {id}`, and say it again if it still is what you want")),
        Refusal::NotAssignable { others, id, .. } => {
            let others: Vec<&str> = others.iter().map(|o| o.as_str()).collect();
            protocol(ErrorCode::NotAssignable).hint(if others.is_empty() {
                format!("nobody else can; try again with the same agent, or give it up: `git handoff cancel {id}`")
            } else {
                format!("who can: {}", others.join(", "))
            })
        }
        Refusal::Limit { limit, issue, basis } => {
            let rest = match basis {
                Some(id) => format!("end what you hold with what is known ({id}: answer, complete, fail or block it)"),
                None => format!("go on with what is open (`git handoff status {issue}`)"),
            };
            match &**limit {
                Limit::Cooldown { left, .. } => protocol(ErrorCode::Cooldown).hint(format!("send it again in {left} s, or {rest}")),
                Limit::Cycle { .. } => protocol(ErrorCode::Cycle).hint(format!("ask another agent or a person, or {rest}")),
                _ => protocol(ErrorCode::LimitReached).hint(format!(
                    "send the work another way that the protocol has (`git handoff protocol show`), or {rest}; a person can raise the limit with `git handoff protocol update`"
                )),
            }
        }
        Refusal::NotAfter { field, fitting, .. } => protocol(ErrorCode::DecisionRefused).hint(
            if fitting.is_empty() {
                format!("no `{field}` fits; see `git handoff protocol show`")
            } else {
                format!("what fits: {}", fitting.join(", "))
            },
        ),
        Refusal::NotAbout { field, known, .. } => {
            protocol(ErrorCode::NotAbout).hint(format!("name the contract in hand: `{field}` is {}", quoted(known)))
        }
        Refusal::UnknownErrorCode { codes, .. } => {
            protocol(ErrorCode::UnknownFailureCode).hint(format!("use one of: {}", codes.join(", ")))
        }
        Refusal::Evidence { issue, .. } => Failure::new(ErrorCode::EvidenceRefused, message.clone())
            .hint(format!("nothing was written; see `git handoff status {issue}`, and send the contract here, where its claims can be checked")),
        Refusal::NoSender => Failure::usage(message.clone())
            .hint("say who sends it: with --as AGENT or GIT_HANDOFF_AGENT"),
        Refusal::NothingToClaim { found, .. } => {
            let failure = Failure::new(ErrorCode::NothingToClaim, message.clone());
            match (&found.later, &found.waits) {
                (Some((at, id)), _) => failure.hint(format!(
                    "{id} can be claimed from {}; come again then",
                    moment::shown(*at)
                )),
                (None, Some((id, on))) => {
                    failure.hint(format!("{id} waits for {on}; come again later"))
                }
                (None, None) => failure.hint("`git handoff wait --inbox` waits until there is something"),
            }
        }
        Refusal::OneRequest { issue } => protocol(ErrorCode::OneRequest).hint(format!(
            "see it with `git handoff status {issue}`; send a new request with an id of its own"
        )),
    }
}
