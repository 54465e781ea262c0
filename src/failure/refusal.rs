//! What a user sees of a refusal: its exit code, a stable code, and what may be
//! done now.

use handoff_base::moment;
use handoff_base::text::quoted;
use handoff_model::{Limit, Refusal};
use handoff_protocol::{Event, State};

use super::Failure;
use crate::exit;

/// Events that follow from others.
const NOT_COMMANDS: [Event; 2] = [Event::Exhaust, Event::Expire];

/// The failure that a refusal is.
pub(crate) fn refused(refusal: &Refusal, message: String) -> Failure {
    let protocol = |code| Failure::new(exit::PROTOCOL, code, message.clone());
    match refusal {
        Refusal::OtherAttempt { id, .. } => {
            Failure::new(exit::CONFLICT, "other_attempt", message.clone())
                .hint(format!("nothing was written; see `git handoff show {id}`"))
        }
        Refusal::UnknownAgent { agents, .. } => {
            protocol("unknown_agent").hint(format!("agents are: {}", agents.join(", ")))
        }
        Refusal::NotTheSender { from, .. } => {
            protocol("not_the_sender").hint(format!("whoever is {from} sends it, with --as {from}"))
        }
        Refusal::NotOpened { openers, .. } => {
            let ways: Vec<String> = openers
                .iter()
                .map(|(from, to)| format!("{from} to {to}"))
                .collect();
            protocol("not_opened").hint(format!(
                "the first contract of an issue goes from {}",
                ways.join(", or from ")
            ))
        }
        Refusal::IssueCompleted { issue } => protocol("issue_completed").hint(format!(
            "`git handoff reopen {issue} --reason WHY` opens it again"
        )),
        Refusal::NotCompleted { issue } => {
            protocol("not_completed").hint(format!("see `git handoff status {issue}`"))
        }
        Refusal::NotClaimed { id, agent } => protocol("not_claimed").hint(format!(
            "claim it first: `git handoff claim {id} --as {agent}`"
        )),
        Refusal::NotWorking { id, agent, state } => {
            let next = match state {
                State::Blocked => format!("answer {id} ANSWER"),
                State::Failed => format!("retry {id}"),
                _ => format!("show {id}"),
            };
            protocol("not_working").hint(if state.is_terminal() {
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
            protocol("not_held").hint(if open.is_empty() {
                format!("see `git handoff status {issue}`")
            } else {
                open.join(", ")
            })
        }
        Refusal::NotYours { id, event, to, .. } if event.is_receivers() => {
            protocol("not_yours").hint(format!("only {to} can; see `git handoff show {id}`"))
        }
        Refusal::NotYours { id, to, .. } | Refusal::NotDecider { id, to, .. } => {
            protocol("not_yours").hint(format!(
                "its sender, {to} or an orchestrator can; see `git handoff show {id}`"
            ))
        }
        Refusal::AlreadyClaimed { id, .. } => {
            Failure::new(exit::CONFLICT, "already_claimed", message.clone())
                .hint(format!("if that was you, and no other process of your name, go on: `git handoff show {id}`; else take another: `git handoff claim --next`"))
        }
        Refusal::Illegal { id, illegal } => {
            let events: Vec<&str> = illegal
                .state
                .accepts()
                .filter(|event| !NOT_COMMANDS.contains(event))
                .map(Event::as_str)
                .collect();
            protocol("illegal_transition").hint(if events.is_empty() {
                format!("{} is final; see `git handoff show {id}`", illegal.state)
            } else {
                format!("what is possible now: {}", events.join(", "))
            })
        }
        Refusal::NoIssue { .. } => Failure::new(exit::NOT_FOUND, "no_issue", message.clone())
            .hint("`git handoff list` shows every issue"),
        Refusal::NoRequirement { known, .. } => {
            Failure::new(exit::USAGE, "no_requirement", message.clone())
                .hint(format!("it has: {}", known.join(", ")))
        }
        Refusal::NoHandoff { id } => Failure::new(exit::NOT_FOUND, "no_handoff", message.clone())
            .hint(format!(
                "`git handoff status {}` lists the issue's handoffs",
                id.issue()
            )),
        Refusal::Waits { id, waits_for } => protocol("waits").hint(match waits_for.first() {
            Some(first) => format!("see what it waits for: `git handoff show {first}`"),
            None => format!("see `git handoff show {id}`"),
        }),
        Refusal::NeedsAnswer {
            id,
            from,
            to,
            types,
        } => protocol("needs_answer").hint(format!(
            "write the answer: `git handoff new --issue {} --from {to} --to {from} --type {}`, and send it",
            id.issue(),
            types.join("|")
        )),
        Refusal::Answered { answer, .. } => {
            Failure::new(exit::CONFLICT, "already_answered", message.clone())
                .hint(format!("see the answer: `git handoff show {answer}`"))
        }
        Refusal::IdTaken { id, .. } => Failure::new(exit::CONFLICT, "id_taken", message.clone())
            .hint(format!(
                "give another contract an id of its own; see `git handoff show {id}`"
            )),
        Refusal::OtherProtocol { issue, protocol: name } => protocol("other_protocol").hint(
            format!("check the contract under it: `git handoff check FILE --protocol {name} --issue {issue}`"),
        ),
        Refusal::Unfit { findings, .. } => {
            Failure::new(exit::CONTRACT, "contract_refused", message.clone())
                .hint("deliver what the request asks for, and send the answer again")
                .findings(findings.clone())
        }
        Refusal::Tasks { issue, findings } => protocol("tasks_refused")
            .hint(format!("see where the tasks stand: `git handoff status {issue}`"))
            .findings(findings.clone()),
        Refusal::Loop { id, .. } => protocol("loop").hint(format!(
            "answer {id} with what is known, or ask another agent"
        )),
        Refusal::RetriesSpent { id, .. } => protocol("retries_spent").hint(format!(
            "`git handoff redrive {id} --reason WHY` gives it new attempts; else send anew, or give it up: `git handoff cancel {id}`"
        )),
        Refusal::TooEarly { id, .. } => protocol("too_early").hint(format!(
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
            Failure::new(exit::CONFLICT, "lease_lost", message.clone())
                .hint(format!("nothing of this was recorded, so keep what you have; {now}"))
        }
        Refusal::Overdue { id } => protocol("overdue").hint(format!("see `git handoff show {id}`")),
        Refusal::NotOverdue { id } => {
            protocol("not_overdue").hint(format!("see `git handoff show {id}`"))
        }
        Refusal::AnswerUnfit { id, findings } => {
            Failure::new(exit::CONTRACT, "answer_refused", message.clone())
                .hint(format!("`git handoff answer {id} KEY=VALUE …`, or a JSON file with one member for each key; `git handoff show {id}` tells what is asked"))
                .findings(findings.clone())
        }
        Refusal::SaidBefore { id, .. } => Failure::new(exit::CONFLICT, "said_before", message.clone())
            .hint(format!("see `git handoff show {id}`, and say it again if it still is what you want")),
        Refusal::NotAssignable { others, id, .. } => {
            let others: Vec<&str> = others.iter().map(|o| o.as_str()).collect();
            protocol("not_assignable").hint(if others.is_empty() {
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
                Limit::Cooldown { left, .. } => protocol("cooldown").hint(format!("send it again in {left} s, or {rest}")),
                Limit::Cycle { .. } => protocol("cycle").hint(format!("ask another agent or a person, or {rest}")),
                _ => protocol("limit_reached").hint(format!(
                    "send the work another way that the protocol has (`git handoff protocol show`), or {rest}; a person can raise the limit with `git handoff protocol update`"
                )),
            }
        }
        Refusal::NotAfter { field, fitting, .. } => protocol("decision_refused").hint(
            if fitting.is_empty() {
                format!("no `{field}` fits; see `git handoff protocol show`")
            } else {
                format!("what fits: {}", fitting.join(", "))
            },
        ),
        Refusal::NotAbout { field, known, .. } => {
            protocol("not_about").hint(format!("name the contract in hand: `{field}` is {}", quoted(known)))
        }
        Refusal::UnknownErrorCode { codes, .. } => {
            protocol("unknown_error_code").hint(format!("use one of: {}", codes.join(", ")))
        }
        Refusal::Evidence { issue, .. } => Failure::new(exit::CONTRACT, "evidence_refused", message.clone())
            .hint(format!("nothing was written; see `git handoff status {issue}`, and send the contract here, where its claims can be checked")),
        Refusal::NoSender => Failure::usage(message.clone())
            .hint("say who sends it: with --as AGENT or GIT_HANDOFF_AGENT"),
        Refusal::NothingToClaim { found, .. } => {
            let failure = Failure::new(exit::NOT_FOUND, "nothing_to_claim", message.clone());
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
        Refusal::OneRequest { issue } => protocol("one_request").hint(format!(
            "see it with `git handoff status {issue}`; send a new request with an id of its own"
        )),
    }
}
