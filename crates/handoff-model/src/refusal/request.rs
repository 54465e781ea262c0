//! Refusals about requests, questions and answers.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_base::hint;
use handoff_base::hint::Hint;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_protocol::State;

use crate::record::NoUsage;
use crate::refusal::see_issue;

/// The request or the answer can't be accepted like this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestRefusal {
    /// The protocol does not keep such refusals on record.
    #[error("the protocol of issue {0} keeps no such refusals on record")]
    NotOnRecord(IssueKey),
    /// The key differs only in case from that of another issue.
    #[error("issue {key} can't be opened beside issue {other}: on some file systems they are one")]
    Twin {
        /// The new one.
        key: IssueKey,
        /// The other.
        other: IssueKey,
    },
    /// This field can't be set.
    #[error("{what} can't be set")]
    NotSettable {
        issue: IssueKey,
        what: String,
        /// What can be set instead.
        known: Vec<String>,
        /// One of it, as the command takes it.
        example: String,
    },
    /// The usage report is invalid.
    #[error("the usage cannot be recorded")]
    Usage(#[source] NoUsage),
    /// The issue is a single request, which has been answered.
    #[error("issue {0} is a single request, and is already answered")]
    OneRequest(IssueKey),
    /// A request must be answered, not just completed.
    #[error("{id} is a request: {from} waits for an answer")]
    NeedsAnswer {
        id: HandoffId,
        from: AgentName,
        to: AgentName,
        /// The types of contract that answer it.
        types: Vec<String>,
    },
    /// A part of a task must be reported, not just completed.
    #[error("{id} is a part of task {task}, and is completed with a report on it")]
    NeedsReport {
        id: HandoffId,
        from: AgentName,
        to: AgentName,
        /// The task that it is part of.
        task: Box<str>,
        /// The type of contract that reports it.
        kind: Box<str>,
    },
    /// Work that awaits a decision must be concluded by it, not just completed.
    #[error("{id} awaits a decision of {agent}")]
    NeedsDecision {
        id: HandoffId,
        agent: AgentName,
        /// The agent that takes over if the decision is to continue.
        to: Option<AgentName>,
    },
    /// The request already has its answer.
    #[error("{id} is {state}: {answer} is its answer")]
    Answered {
        id: HandoffId,
        state: State,
        answer: HandoffId,
    },
    /// The contract contradicts facts of the issue.
    #[error("the contract does not fit issue {issue}")]
    Unfit {
        issue: IssueKey,
        findings: Vec<Finding>,
    },
    /// The answer does not match the questions.
    #[error("the answer to {id} does not match the question")]
    AnswerUnfit {
        id: HandoffId,
        /// The command that answers.
        command: String,
        findings: Vec<Finding>,
    },
    /// The receiver waits for the sender, directly or through others.
    #[error("{to} is already waiting for {from} in {id}: {reason}")]
    Loop {
        from: AgentName,
        to: AgentName,
        id: HandoffId,
        reason: String,
    },
}

impl Explained for RequestRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::NotOnRecord(issue) => {
                ErrorCode::NotOnRecord.hint(see_issue(issue))
            }
            Self::Twin { other, .. } => ErrorCode::IdTaken.hint(hint!(
                "nothing was written; name the issue as it was opened, {}, or use another key",
                other
            )),
            Self::NotSettable {
                issue,
                known,
                example,
                ..
            } => ErrorCode::Usage.hint(hint!(
                "nothing was written; known are: {}; such as `git handoff set {} {} --reason WHY`",
                known.join(", "),
                issue,
                example
            )),
            Self::Usage(_) => ErrorCode::UsageRefused.hint(
                "nothing was written; give an object, or a list of one for each model, with provider, model, input_tokens, output_tokens, cached_tokens, cost and currency, turns, wall_seconds or working_seconds",
            ),
            Self::OneRequest(issue) => ErrorCode::OneRequest.hint(hint!(
                "see `git handoff status {}`; send a new request with a new id",
                issue
            )),
            Self::NeedsAnswer { id, from, to, types } => {
                let mut hint = Hint::from("write the answer: ");
                for (at, kind) in types.iter().enumerate() {
                    let or = if at == 0 { "" } else { " or " };
                    hint = hint.and(or).and(hint!(
                        "`git handoff new --issue {} --from {} --to {} --type {}`",
                        id.issue(),
                        to,
                        from,
                        kind
                    ));
                }
                ErrorCode::NeedsAnswer.hint(hint.and(", and send it"))
            }
            Self::NeedsReport { id, from, to, kind, .. } => ErrorCode::NeedsReport.hint(hint!(
                "write the report: `git handoff new --issue {} --from {} --to {} --type {}`, and send it",
                id.issue(),
                from,
                to,
                kind
            )),
            Self::NeedsDecision { id, agent, to } => ErrorCode::NeedsDecision.hint(hint!(
                "write the decision: `git handoff new --issue {} --from {} --to {}`, and send it; `git handoff next {}` says what the protocol suggests",
                id.issue(),
                agent,
                to.as_ref().map_or("AGENT", AgentName::as_str),
                id.issue()
            )),
            Self::Answered { answer, .. } => ErrorCode::AlreadyAnswered
                .hint(hint!("see the answer: `git handoff show {}`", answer)),
            Self::Unfit { findings, .. } => ErrorCode::ContractRefused
                .hint("deliver what the request asks for, and send the answer again")
                .findings(findings),
            Self::AnswerUnfit { id, command, findings } => ErrorCode::AnswerRefused
                .hint(
                    Hint::from(format!("`{command}`")).and(hint!(
                        ", or a JSON file with one member for each key; `git handoff show {}` lists the keys",
                        id
                    )),
                )
                .findings(findings),
            Self::Loop { id, .. } => ErrorCode::Loop.hint(hint!(
                "answer {} with what is known, or ask another agent",
                id
            )),
        }
    }
}
