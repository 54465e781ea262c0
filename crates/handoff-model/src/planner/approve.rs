//! Approvals and disapprovals by persons, kept among the issue's notes.

use handoff_protocol::State;
use serde_json::{Map, Value};

use crate::planner::Planner;
use crate::record::{Annotation, Approval, Issue, Record, View};
use crate::refusal::{Refusal, RoleRefusal, StateRefusal};
use crate::step::message::Account;
use crate::step::{Planned, StepEvent, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Records whether a person approves a handoff. This changes no state, but requirements depend
    /// on it. The note's facts say since when it holds, if it was given earlier elsewhere.
    pub(super) fn approve(
        &self,
        mut issue: Issue,
        number: u32,
        (note, facts): (&str, &Map<String, Value>),
        approval: &Approval,
    ) -> Result<Planned, Stop<E>> {
        let record = self.record(&self.id(number))?;
        let by = &self.step.by;
        if !self.is_person() {
            return Err(RoleRefusal::NotAPerson {
                agent: by.clone(),
                people: self.protocol.definition().people().cloned().collect(),
                protocol: self.protocol.name().to_owned(),
            }
            .into());
        }
        if matches!(record.state, State::Rejected | State::Cancelled) {
            return Err(StateRefusal::NothingToApprove {
                id: record.id,
                state: record.state,
            }
            .into());
        }
        let approval = Approval {
            code: approval.code.clone().or_else(|| record.code.clone()),
            ..approval.clone()
        };
        let own = |known: &&Annotation| known.approval.is_some() && known.by == *by;
        // The same approval is recorded again if the person gave another one in between.
        let last = issue.annotations.iter().rev().find(own);
        let is_same = |last: &Annotation| {
            let about = last.id.as_ref() == Some(&record.id);
            let by_same = last.worker.as_ref() == self.step.worker.as_ref();
            about && by_same && last.approval.as_ref() == Some(&approval) && last.note == note
        };
        if last.is_some_and(is_same) {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        let event = if approval.approved {
            StepEvent::Approve
        } else {
            StepEvent::Disapprove
        };
        issue.judge_resolved(&record.id, approval.approved);
        let account = Account {
            reason: Some(note.to_owned()).filter(|note| !note.is_empty()),
            ..Account::new(event, record.id.to_string(), approval.done())
        };
        let approval = Annotation {
            at: self.step.at,
            by: by.clone(),
            id: Some(record.id.clone()),
            note: note.to_owned(),
            event: self.step.event_id(),
            facts: facts.clone(),
            approval: Some(approval),
            worker: self.step.worker.clone(),
        };
        self.add_note(&mut issue, approval).map_err(Refusal::from)?;
        let transition = format!("{} {}..{}", record.id, record.state, record.state);
        let message = self.message(&issue, &record, &[transition], &account);
        self.in_the_issue(issue, record, message)
    }

    /// Whether a person's rejection comes after the claim, so that it is recorded as a disapproval: of
    /// code, or of what meets a requirement.
    pub(super) fn disapproves(&self, record: &Record) -> bool {
        let is_over = matches!(record.state, State::Rejected | State::Cancelled);
        let mut requirements = self.protocol.definition().requirements.values();
        let mut meets = || requirements.any(|one| one.shown_by.contains(&record.contract_type));
        let counts = record.code.is_some() || meets();
        record.state != State::Pending && !is_over && self.is_person() && counts
    }

    /// Whether the actor is a person.
    pub(super) fn is_person(&self) -> bool {
        self.protocol.is_person(self.step.by.as_str())
    }
}
