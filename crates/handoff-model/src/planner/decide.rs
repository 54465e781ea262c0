//! Decisions about handoffs and their reasons, which the issue keeps.

use handoff_base::ids::HandoffId;
use handoff_protocol::Action;

use crate::planner::{Planner, trail};
use crate::record::{Decision, Issue, View};
use crate::refusal::RoleRefusal;
use crate::step::{Planned, StepEvent, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Adds a decision to an issue.
    pub(super) fn decided(&self, issue: &mut Issue, id: &HandoffId, action: Action, why: &str) {
        issue.decisions.push(Decision {
            at: self.step.at,
            by: self.step.by.clone(),
            id: id.clone(),
            action,
            why: why.to_owned(),
        });
    }

    /// Records a decision that changes no handoff's state.
    pub(super) fn decide(
        &self,
        mut issue: Issue,
        number: u32,
        action: Action,
        why: &str,
    ) -> Result<Planned, Stop<E>> {
        let record = self.record(&self.id(number))?;
        if !self.may_decide(&record) {
            return Err(RoleRefusal::NotDecider {
                id: record.id,
                agent: self.step.by.clone(),
                to: record.to,
            }
            .into());
        }
        let known = issue.decisions.last();
        if known.is_some_and(|d| d.id == record.id && d.action == action && d.why == why) {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        self.decided(&mut issue, &record.id, action, why);
        self.end_decided(&mut issue, &record, action);
        let done = format!("decided to {}", action.as_str());
        let account = trail::remark(StepEvent::Decide, &record.id, &done, why);
        let transition = format!("{} {}..{}", record.id, record.state, record.state);
        let message = self.message(&issue, &record, &[transition], &account);
        self.in_the_issue(issue, record, message)
    }
}
