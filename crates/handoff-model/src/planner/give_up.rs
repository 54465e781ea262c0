//! Cancelling an issue without open handoffs.

use handoff_base::ids::AgentName;
use handoff_protocol::Protocol;

use crate::planner::{Planner, trail};
use crate::record::{GivenUp, Issue, IssueStatus, Record, View};
use crate::refusal::{RoleRefusal, StateRefusal};
use crate::step::{Planned, StepEvent, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    pub(super) fn give_up(&self, mut issue: Issue, reason: &str) -> Result<Planned, Stop<E>> {
        let record = self.record(&self.id(issue.handoffs))?;
        let again = issue
            .given_up
            .last()
            .is_some_and(|g| g.by == self.step.by && g.reason == reason);
        if issue.status == IssueStatus::Cancelled && again {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        self.ensure_open(&issue)?;
        let first = self.record(&self.id(1))?;
        if !may_give_up(self.protocol, &issue, &first, &self.step.by) {
            return Err(RoleRefusal::NotGivenUpBy {
                issue: self.key.clone(),
                agent: self.step.by.clone(),
                sender: first.from,
            }
            .into());
        }
        if !issue.open.is_empty() {
            let open = issue.open.iter();
            return Err(StateRefusal::StillOpen {
                issue: self.key.clone(),
                open: open.map(|open| open.id.clone()).collect(),
            }
            .into());
        }
        issue.status = IssueStatus::Cancelled;
        issue.given_up.push(GivenUp {
            at: self.step.at,
            by: self.step.by.clone(),
            reason: reason.to_owned(),
            unfollowed: std::mem::take(&mut issue.unfollowed),
            awaiting: issue.awaiting.clone(),
        });
        let account = trail::remark(StepEvent::GiveUp, self.key, "given up", reason);
        let transition = format!("{} open..cancelled", self.key);
        let message = self.message(&issue, &record, &[transition], &account);
        self.in_the_issue(issue, record, message)
    }
}

/// Whether an agent may cancel an issue: an orchestrator, a person, the sender of its `first`
/// handoff, or an agent that it awaits.
pub fn may_give_up(protocol: &Protocol, issue: &Issue, first: &Record, agent: &AgentName) -> bool {
    let is_awaited = issue.awaiting.iter().any(|one| one.agent == *agent);
    is_awaited || *agent == first.from || protocol.steps_in(agent)
}
