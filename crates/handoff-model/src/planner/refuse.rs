//! Refused contracts, which a protocol may keep on record so that every clone sees them.

use crate::planner::{Planner, trail};
use crate::record::{Issue, RefusedContract, View};
use crate::refusal::RequestRefusal;
use crate::step::{Planned, StepEvent, Stop};

/// How many refusals an issue keeps; older ones are dropped.
const MOST_REFUSALS: usize = 50;

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Records that a contract of the actor was refused.
    pub(super) fn refuse(
        &self,
        mut issue: Issue,
        refused: RefusedContract,
    ) -> Result<Planned, Stop<E>> {
        let kinds = self.protocol.definition().on_record();
        if !kinds.contains(&refused.kind) {
            return Err(RequestRefusal::NotOnRecord(self.key.clone()).into());
        }
        let record = self.record(&self.id(issue.handoffs))?;
        // Immediate retries of the same contract are recorded once.
        let same = |last: &RefusedContract| {
            last.at == issue.updated_at
                && refused
                    == RefusedContract {
                        at: refused.at,
                        ..last.clone()
                    }
        };
        if issue.refusals.last().is_some_and(same) {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        let (key, by, state) = (self.key, &self.step.by, issue.status.as_str());
        let done = format!("refused {by}, {}", refused.code);
        let account = trail::remark(StepEvent::Refuse, key, &done, &refused.why);
        let transition = format!("{key} {state}..{state}");
        let message = self.message(&issue, &record, &[transition], &account);
        issue.refusals.push(refused);
        let older = issue.refusals.len().saturating_sub(MOST_REFUSALS);
        issue.refusals.drain(..older);
        self.in_the_issue(issue, record, message)
    }
}
