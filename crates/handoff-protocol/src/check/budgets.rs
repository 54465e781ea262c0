//! Checks budgets that limit nothing, or under which nothing can be claimed.

use handoff_base::Amount;
use handoff_base::finding::FindingCode as Code;
use handoff_base::pointer::escaped_part;

use super::checker::Checker;
use crate::definition::Per;

impl Checker<'_> {
    pub(super) fn budgets(&mut self) {
        let budgets = self.definition.budgets();
        for (name, budget) in budgets {
            let at = |key: &str| format!("/limits/budgets/{}{key}", escaped_part(name));
            if let Some(agent) = &budget.agent {
                self.known_agent(at("/agent"), agent.as_str());
            }
            let mut fault = |key: &str, text: &str| {
                self.fault(Code::ProtocolLimit, at(key), text);
            };
            if name.is_empty() || name.len() > 64 || name.contains(|c: char| c.is_control()) {
                fault("", "a budget's name is one line of 1 to 64 characters");
            }
            if budget.limited().next().is_none() {
                fault(
                    "",
                    "it limits none of `cost`, `tokens`, `attempts` and `seconds`",
                );
            }
            if budget.cost.is_some() != budget.currency.is_some() {
                fault("/currency", "`cost` and `currency` are given together");
            }
            if budget.cost == Some(Amount::default()) {
                fault("/cost", "nothing can be claimed with a budget of 0");
            }
            let counts = [
                ("/tokens", budget.tokens),
                ("/attempts", budget.attempts),
                ("/seconds", budget.seconds),
            ];
            for (key, _) in counts.into_iter().filter(|(_, most)| *most == Some(0)) {
                fault(key, "nothing can be claimed with a budget of 0");
            }
            if budget.per == Per::Run && budget.attempts.is_some() {
                fault("/attempts", "a run is one attempt");
            }
        }
    }
}
