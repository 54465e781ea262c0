//! How an issue ends without a closing contract.

use handoff_protocol::{Action, Ends, Event, State, Style};

use crate::decision::is_to_settle;
use crate::planner::Planner;
use crate::record::{Issue, IssueStatus, Record, View};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Ends an issue if these changes leave nothing to do: some work was completed, and no decision
    /// about its answer is pending.
    pub(super) fn end(&self, issue: &mut Issue, changed: &[Record]) {
        let succeeded = |record: &Record| {
            record.state == State::Completed
                && record.latest().and_then(|t| t.event) == Some(Event::Complete)
        };
        let Some(done) = changed.iter().find(|record| succeeded(record)) else {
            if changed.iter().any(|record| self.is_given_up(record)) {
                self.end_if_idle(issue);
            }
            return;
        };
        let answer = changed.iter().find(|record| record.answers.is_some());
        if is_to_settle(self.protocol, issue, done, answer, self.step.at) {
            return;
        }
        self.end_if_idle(issue);
    }

    /// Whether a request was cancelled that is not the whole issue, so that its requester continues
    /// without it.
    fn is_given_up(&self, record: &Record) -> bool {
        let calls = self.protocol.definition().style() == Style::Call;
        let cancel = record.latest().filter(|t| t.event == Some(Event::Cancel));
        calls
            && cancel.is_some_and(|t| t.sent.is_none())
            && !self.is_one_request(&record.contract_type)
    }

    /// Ends an issue if a decision about its last answer leaves nothing to do.
    pub(super) fn end_decided(&self, issue: &mut Issue, record: &Record, action: Action) {
        let settles = matches!(action, Action::ProceedPartial | Action::Advance);
        if settles && record.state == State::Completed {
            self.end_if_idle(issue);
        }
    }

    fn end_if_idle(&self, issue: &mut Issue) {
        // In a call, the requester has the result and need not send it on.
        let calls = self.protocol.definition().style() == Style::Call;
        if self.protocol.ends() == Ends::NothingOpen
            && issue.status == IssueStatus::Open
            && issue.open.is_empty()
            && (calls || issue.unfollowed.is_empty())
        {
            issue.status = IssueStatus::Completed;
            issue.completed_at = Some(self.step.at);
        }
    }
}
