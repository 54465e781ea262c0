//! The limits of a protocol.

use handoff_base::ids::AgentName;
use handoff_base::text::word;
use handoff_model::{BudgetSpent, Limit, LimitReached};
use handoff_protocol::Per;

use crate::failure::{ErrorCode, Failure, Hint};

impl From<LimitReached> for Failure {
    fn from(refusal: LimitReached) -> Self {
        let message = refusal.to_string();
        let at = |code| Self::new(code, message);
        let rest = match refusal.basis {
            Some(id) => Hint::advice(format!(
                "finish what you hold with what is known ({id}: answer, complete, fail or block it)"
            )),
            None => Hint::from(format!(
                "continue with the open work (`git handoff status {}`)",
                refusal.issue
            )),
        };
        match *refusal.limit {
            Limit::Cooldown { left, .. } => at(ErrorCode::Cooldown)
                .hint(rest.map(|rest| format!("send it again in {left} s, or {rest}"))),
            Limit::Cycle { .. } => at(ErrorCode::Cycle)
                .hint(rest.map(|rest| format!("ask another agent or a person, or {rest}"))),
            Limit::Item { people, .. } if !people.is_empty() => {
                let people: Vec<&str> = people.iter().map(AgentName::as_str).collect();
                let people = people.join(" or ");
                at(ErrorCode::LimitReached)
                    .hint(rest.map(|rest| format!("hand it to {people}, or {rest}")))
            }
            _ => at(ErrorCode::LimitReached).hint(format!(
                "use another route of the protocol (`git handoff protocol show`), or {}; a person can raise the limit with `git handoff protocol update`",
                rest.text
            )),
        }
    }
}

impl From<BudgetSpent> for Failure {
    fn from(refusal: BudgetSpent) -> Self {
        let message = refusal.to_string();
        let BudgetSpent { id, protocol, left } = refusal;
        let (name, unit) = (word(&left.budget), left.unit.as_str());
        let raise = format!("git handoff protocol set {protocol} budgets.{unit}.{name} N");
        let wait = match left.per {
            Per::Day => "claim it again tomorrow (UTC), or ",
            Per::Run | Per::Issue => "",
        };
        Self::new(ErrorCode::BudgetSpent, message).hint(format!(
            "{wait}ask a person to raise the budget (`{raise}`) or to end the issue; `git handoff status {}` shows what it cost",
            id.issue()
        ))
    }
}
