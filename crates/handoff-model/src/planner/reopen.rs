//! Reopening a completed or cancelled issue.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;
use handoff_protocol::{Event, State};

use crate::planner::{Planner, trail};
use crate::record::{Issue, IssueStatus, Record, Reopening, View};
use crate::refusal::{RequestRefusal, StateRefusal};
use crate::step::{Planned, StepEvent, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Reopens a completed or cancelled issue, or resumes a paused one. A cancelled issue returns
    /// to what it was.
    pub(super) fn reopen(
        &self,
        mut issue: Issue,
        reason: &str,
        said_at: Option<Moment>,
    ) -> Result<Planned, Stop<E>> {
        if let Some(paused) = issue.paused.take() {
            return self.end_pause(issue, paused, reason, said_at);
        }
        let record = self.record(&self.id(issue.handoffs))?;
        let again = issue
            .reopened
            .last()
            .is_some_and(|r| r.by == self.step.by && r.reason == reason);
        if issue.status == IssueStatus::Open {
            if said_at.is_none() && (again || self.was_resumed(&issue, reason)) {
                let receipt = self.repeated(record, issue);
                return Ok(Planned::Repeat(Box::new(receipt)));
            }
            return match said_at {
                Some(said_at) => self.go_on(issue, reason, said_at),
                None => Err(StateRefusal::NotCompleted(self.key.clone()).into()),
            };
        }
        let was = issue.status;
        let mut awaiting = Vec::new();
        if let Some(given_up) = issue
            .given_up
            .last()
            .filter(|_| was == IssueStatus::Cancelled)
        {
            issue.unfollowed.clone_from(&given_up.unfollowed);
            awaiting.clone_from(&given_up.awaiting);
        } else {
            let first = self.record(&self.id(1))?;
            if self.is_one_request(&first.contract_type) {
                return Err(RequestRefusal::OneRequest(self.key.clone()).into());
            }
            let basis = self.basis_again(&issue, &record)?;
            issue.unfollowed.extend(basis);
        }
        issue.status = IssueStatus::Open;
        issue.completed_at = None;
        issue.reopened.push(Reopening {
            at: self.step.at,
            by: self.step.by.clone(),
            reason: reason.to_owned(),
            handoffs: issue.handoffs,
            said_at,
        });
        let account = trail::remark(StepEvent::Reopen, self.key, "reopened", reason);
        let transition = format!("{} {}..open", self.key, was.as_str());
        let message = self.message(&issue, &record, &[transition], &account);
        self.in_the_issue_again(issue, awaiting, record, message)
    }

    /// The handoff from which work continues in a reopened issue: the one that its last contract
    /// was sent on from, else the newest completed one.
    fn basis_again(&self, issue: &Issue, last: &Record) -> Result<Option<HandoffId>, Stop<E>> {
        let sent_on_from = last.follows.as_ref().map(HandoffId::number);
        for number in sent_on_from.into_iter().chain((1..=issue.handoffs).rev()) {
            let record = self.record(&self.id(number))?;
            let done = record.latest().and_then(|t| t.event) == Some(Event::Complete);
            if done && record.state == State::Completed {
                return Ok(Some(record.id));
            }
        }
        Ok(None)
    }
}
