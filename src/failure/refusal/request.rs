//! Requests, questions and their answers.

use handoff_base::ids::AgentName;
use handoff_base::text::word;
use handoff_model::RequestRefusal;
use handoff_model::usage::NoUsage;

use crate::failure::{ErrorCode, Failure};

impl From<RequestRefusal> for Failure {
    fn from(refusal: RequestRefusal) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        match refusal {
            RequestRefusal::NotOnRecord(issue) => at(ErrorCode::NotOnRecord)
                .hint(format!("see `git handoff status {issue}`")),
            RequestRefusal::Usage(source) => usage_refused(&source),
            RequestRefusal::OneRequest(issue) => at(ErrorCode::OneRequest).hint(format!(
                "see `git handoff status {issue}`; send a new request with a new id"
            )),
            RequestRefusal::NeedsAnswer { id, from, to, types } => {
                let new = format!("git handoff new --issue {} --from {to} --to {from}", id.issue());
                let commands = types.iter().map(|kind| format!("`{new} --type {}`", word(kind)));
                let commands = commands.collect::<Vec<_>>().join(" or ");
                at(ErrorCode::NeedsAnswer)
                    .hint(format!("write the answer: {commands}, and send it"))
            }
            RequestRefusal::NeedsReport {
                id,
                from,
                to,
                kind,
                ..
            } => {
                at(ErrorCode::NeedsReport).hint(format!(
                    "write the report: `git handoff new --issue {} --from {from} --to {to} --type {}`, and send it",
                    id.issue(),
                    word(&kind)
                ))
            }
            RequestRefusal::NeedsDecision { id, agent, to } => {
                let to = to.as_ref().map_or("AGENT", AgentName::as_str);
                at(ErrorCode::NeedsDecision).hint(format!(
                    "write the decision: `git handoff new --issue {} --from {agent} --to {to}`, and send it; `git handoff next {}` says what the protocol suggests",
                    id.issue(),
                    id.issue()
                ))
            }
            RequestRefusal::Answered { answer, .. } => at(ErrorCode::AlreadyAnswered)
                .hint(format!("see the answer: `git handoff show {answer}`")),
            RequestRefusal::Unfit { findings, .. } => at(ErrorCode::ContractRefused)
                .advice("deliver what the request asks for, and send the answer again")
                .findings(findings),
            RequestRefusal::AnswerUnfit { id, findings } => at(ErrorCode::AnswerRefused)
                .hint(format!("`git handoff answer {id} KEY=VALUE …`, or a JSON file with one member for each key; `git handoff show {id}` lists the keys"))
                .findings(findings),
            RequestRefusal::Loop { id, .. } => at(ErrorCode::Loop).advice(format!(
                "answer {id} with what is known, or ask another agent"
            )),
        }
    }
}

/// A report of what work took that can't be recorded.
pub(crate) fn usage_refused(source: &NoUsage) -> Failure {
    let text = format!("the usage cannot be recorded: {source}");
    Failure::new(ErrorCode::UsageRefused, text).advice(
        "nothing was written; give an object, or a list of one for each model, with provider, model, input_tokens, output_tokens, cached_tokens, cost and currency, turns, wall_seconds or working_seconds",
    )
}
