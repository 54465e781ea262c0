//! Refusals about the states of issues and handoffs.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint::Hint;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::quoted;
use handoff_base::{Moment, hint};
use handoff_protocol::{Event, IllegalEvent, Protocol, State};

use crate::record::{Halt, HaltScope, Paused, Record};
use crate::refusal::{listed, see_issue, time};

/// Events that no command causes.
const NOT_COMMANDS: [Event; 2] = [Event::Exhaust, Event::Expire];

/// The issue's or handoff's state does not allow it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StateRefusal {
    /// An issue's first contract must open it.
    #[error("issue {issue} has not been opened yet")]
    NotOpened {
        issue: IssueKey,
        /// The agents that may open an issue, with their receivers.
        openers: Vec<(String, String)>,
    },
    /// The closing contract was already sent.
    #[error("issue {0} is completed: nothing can be added to it")]
    Completed(IssueKey, AgentName),
    /// It was given up.
    #[error("issue {0} is cancelled: nothing can be added to it")]
    Cancelled(IssueKey, AgentName),
    /// An issue with open handoffs can't be given up.
    #[error("issue {issue} cannot be given up: {} still open in it", are(open))]
    StillOpen {
        issue: IssueKey,
        open: Vec<HandoffId>,
    },
    /// The issue is paused for this agent.
    #[error("issue {issue} is {paused}")]
    Paused {
        issue: IssueKey,
        /// The agent that was refused.
        agent: AgentName,
        /// Whether that agent may resume it.
        may_resume: bool,
        paused: Box<Paused>,
    },
    /// More than this issue is paused.
    #[error("{halt}")]
    Halted {
        /// The agent that was refused.
        agent: AgentName,
        /// Whether that agent may resume it.
        may_resume: bool,
        halt: Box<Halt>,
    },
    /// It is not paused.
    #[error("{scope} is not paused")]
    NotHalted {
        scope: Box<HaltScope>,
        /// What is paused.
        paused: Vec<HaltScope>,
    },
    /// The pauses are too long: they are in the manifest, which every command reads.
    #[error("the ledger's pauses would take more than {bytes} bytes")]
    HaltsFull { bytes: usize },
    /// An open issue can't be reopened.
    #[error("issue {0} is open")]
    NotCompleted(IssueKey),
    /// The lifecycle has no such transition.
    #[error("{id} {}", cannot(illegal))]
    Illegal {
        id: HandoffId,
        illegal: IllegalEvent,
        /// The command that answers it, if it is blocked.
        answer: Option<String>,
    },
    /// The question was answered already.
    #[error("{id} was answered by {by} at {}{}", time(*at), said(reason.as_deref()))]
    Answered {
        id: HandoffId,
        by: AgentName,
        at: Moment,
        /// The answer.
        reason: Option<String>,
    },
    /// A handoff that was rejected or cancelled can't be approved.
    #[error("{id} is {state}: there is nothing to approve")]
    NothingToApprove { id: HandoffId, state: State },
    /// An outside event is older than the current pause or reopening.
    #[error("this is from {}, and issue {issue} was {done} at {}", time(*said_at), time(*since))]
    SaidEarlier {
        issue: IssueKey,
        said_at: Moment,
        /// `paused` or `reopened`.
        done: &'static str,
        since: Moment,
    },
    /// An event was said before the handoff reached its current state.
    #[error("this is from {}, before {id} reached its current state at {}", time(*said_at), time(*since))]
    SaidBefore {
        id: HandoffId,
        since: Moment,
        said_at: Moment,
    },
}

impl StateRefusal {
    pub(crate) fn illegal(id: HandoffId, illegal: IllegalEvent) -> Self {
        let answer = None;
        Self::Illegal {
            id,
            illegal,
            answer,
        }
    }

    /// The refusal of an answer to what is not blocked, with the answer that it has.
    pub(crate) fn not_blocked(record: &Record, illegal: IllegalEvent) -> Self {
        let id = record.id.clone();
        let mut before = record.transitions.iter().rev();
        match before.find(|one| one.event == Some(Event::Answer)) {
            Some(answer) => Self::Answered {
                id,
                by: answer.by.clone(),
                at: answer.at,
                reason: answer.reason.clone(),
            },
            None => Self::illegal(id, illegal),
        }
    }

    /// The refusal of a contract that does not open the issue.
    pub fn not_opened(issue: &IssueKey, protocol: &Protocol) -> Self {
        let routes = protocol.definition().routes.iter();
        // A route from an agent to itself opens no issue.
        let routes = routes.filter(|r| r.opens && r.from != r.to.as_str());
        Self::NotOpened {
            issue: issue.clone(),
            openers: routes.map(|r| (r.from.clone(), r.to.to_string())).collect(),
        }
    }
}

impl Explained for StateRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::NotOpened { issue, openers } => {
                ErrorCode::NotOpened.hint(how_opened(issue, openers))
            }
            Self::Completed(issue, by) => ErrorCode::IssueCompleted.hint(reopen(issue, by)),
            Self::Cancelled(issue, by) => ErrorCode::IssueCancelled.hint(reopen(issue, by)),
            Self::StillOpen { open, .. } => ErrorCode::StillOpen.hint(cancel_first(open)),
            Self::Paused {
                issue,
                agent,
                may_resume: true,
                paused,
            } => {
                let by = agent.clone();
                let paused = Paused { by, ..(**paused).clone() };
                let resume = paused.resume(issue, "WHY");
                ErrorCode::IssuePaused.hint(format!("run `{resume}`"))
            }
            Self::Paused { issue, .. } => ErrorCode::IssuePaused
                .hint(hint!("`git handoff next {}` says who can resume it", issue)),
            Self::Halted {
                agent,
                may_resume,
                halt,
            } => ErrorCode::WorkPaused.hint(if *may_resume {
                format!("run `{}`", halt.scope.resume(agent)).into()
            } else {
                hint!(
                    "wait: `git handoff wait --inbox` ends once it goes on; {} or a person resumes it",
                    halt.by
                )
            }),
            Self::HaltsFull { .. } => ErrorCode::LimitReached
                .hint("nothing was written; give a shorter reason, or resume what is paused"),
            Self::NotHalted { paused, .. } => {
                let known = paused.iter().map(HaltScope::option);
                ErrorCode::NotCompleted.hint(match &known.collect::<Vec<_>>()[..] {
                    [] => hint!("nothing is paused but single issues: `git handoff status`"),
                    known => hint!("paused are: {}", known.join(", ")),
                })
            }
            Self::NotCompleted(issue) => ErrorCode::NotCompleted.hint(hint!(
                "`git handoff next {}` says how it goes on",
                issue
            )),
            Self::Answered { id, .. } => ErrorCode::IllegalTransition.hint(hint!(
                "to add to it: `git handoff annotate {} --note TEXT`, which whoever works on it is told",
                id
            )),
            Self::NothingToApprove { id, .. } => ErrorCode::IllegalTransition.hint(hint!(
                "`git handoff status {}` shows what came after it",
                id.issue()
            )),
            Self::Illegal {
                id,
                illegal,
                answer,
            } => ErrorCode::IllegalTransition.hint(match answer {
                Some(answer) => format!("`{answer}` first").into(),
                None => instead(id, illegal),
            }),
            Self::SaidEarlier { issue, .. } => ErrorCode::SaidBefore.hint(see_issue(issue)),
            Self::SaidBefore { id, .. } => ErrorCode::SaidBefore.hint(hint!(
                "see `git handoff show {}`, and repeat it if you still want it",
                id
            )),
        }
    }
}

/// Which contract opens an issue, with the command.
fn how_opened(issue: &IssueKey, openers: &[(String, String)]) -> Hint {
    let routes = openers.iter().map(|(from, to)| format!("{from} to {to}"));
    let routes: Vec<String> = routes.collect();
    let hint = hint!(
        "the first contract of an issue goes from {}",
        routes.join(", or from ")
    );
    let open = openers.first().map(|(from, to)| {
        hint!(
            ": `git handoff send --issue {} --to {} --as {}` says what to --set",
            issue,
            to,
            from
        )
    });
    match open {
        Some(open) => hint.and(open),
        None => hint,
    }
}

/// The commands that cancel what is open.
fn cancel_first(open: &[HandoffId]) -> Hint {
    let mut hint = Hint::from("cancel it first: ");
    for (at, id) in open.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let cancel = hint!("`git handoff cancel {} --reason WHY`", id);
        hint = hint.and(comma).and(cancel);
    }
    hint
}

fn reopen(issue: &IssueKey, by: &AgentName) -> Hint {
    hint!(
        "`git handoff reopen {} --as {} --reason WHY` reopens it",
        issue,
        by
    )
}

/// An answer: `: "8080"`.
fn said(answer: Option<&str>) -> String {
    answer.map_or_else(String::new, |answer| format!(": {}", quoted(answer)))
}

/// Why an event is refused: `12.3 waits for an answer and can't be claimed`.
fn cannot(illegal: &IllegalEvent) -> String {
    let is = match illegal.state {
        State::Blocked => "waits for an answer".to_owned(),
        state => format!("is {state}"),
    };
    let verb = match illegal.event {
        Event::Redrive => Event::Retry,
        event => event,
    };
    format!("{is}: `{verb}` is not possible")
}

/// The events that are possible instead, as a hint.
fn instead(id: &HandoffId, illegal: &IllegalEvent) -> Hint {
    let events = illegal.state.accepts();
    let events = events.filter(|event| !NOT_COMMANDS.contains(event));
    let events = events.map(|event| match event {
        Event::TakeOver => "claim --take-over",
        event => event.as_str(),
    });
    let events: Vec<&str> = events.collect();
    let another = [Event::Retry, Event::Reassign];
    if illegal.state == State::InProgress && another.contains(&illegal.event) {
        return hint!(
            "an attempt is running: `git handoff show {}` says who holds it, until when; wait for its end with `git handoff wait {}`",
            id,
            id
        );
    }
    if events.is_empty() {
        return hint!(
            "{} is final; `git handoff next {}` says how the work goes on",
            illegal.state,
            id.issue()
        );
    }
    if illegal.state.is_stuck() {
        return hint!(
            "`git handoff next {}` says who decides about another attempt, and with which command",
            id.issue()
        );
    }
    hint!("possible now: {}", events.join(", "))
}

/// `7.1 is`, or `7.1, 7.2 are`.
fn are(ids: &[HandoffId]) -> String {
    let verb = if ids.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", listed(ids, ", "))
}
