//! Corrections: records stay unchanged, and a note says what is correct.

use serde_json::{Map, Value};

use crate::planner::{Changed, Planner, trail};
use crate::record::{Annotation, Issue, NoUsage, View};
use crate::refusal::{Limit, LimitReached, Refusal, RequestRefusal, RoleRefusal};
use crate::step::{Planned, StepEvent, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Adds a note to a handoff or to the issue as a whole. Any agent may do so at any time,
    /// because a note changes no state; but a fact may be noted only by its source.
    pub(super) fn annotate(
        &self,
        mut issue: Issue,
        number: Option<u32>,
        note: &str,
        facts: &Map<String, Value>,
    ) -> Result<Planned, Stop<E>> {
        let mut record = self.record(&self.id(number.unwrap_or(issue.handoffs)))?;
        let id = number.map(|_| record.id.clone());
        let by = &self.step.by;
        let same = |known: &Annotation| {
            known.by == *by && known.id == id && known.note == note && known.facts == *facts
        };
        // A retry after a lost receipt is a repeat even if others added notes meanwhile. A fact is
        // a repeat only as the newest note: it may return to an earlier value.
        let mut known = issue.annotations.iter().rev();
        let is_known = if facts.is_empty() {
            known.any(same)
        } else {
            known.next().is_some_and(same)
        };
        // Only the agent that did the work reports its usage.
        let is_own = number.is_some() && record.to == *by;
        if !is_own && !self.step.usage.is_empty() {
            return Err(RequestRefusal::Usage(NoUsage::NotIts).into());
        }
        let is_reported = is_own && self.report_usage(&mut record)?;
        self.ensure_source(facts)?;
        // An event is recorded even if another one had the same note.
        if self.step.delivery.is_none() && is_known && !is_reported {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        let (about, state) = match &id {
            Some(id) => (id.to_string(), record.state.as_str()),
            None => (self.key.to_string(), issue.status.as_str()),
        };
        let note = Annotation {
            at: self.step.at,
            by: by.clone(),
            id,
            note: note.to_owned(),
            event: self.step.event_id(),
            facts: facts.clone(),
            approval: None,
            worker: self.step.worker.clone(),
        };
        let account = trail::remark(StepEvent::Annotate, &about, "annotated", &note.note);
        self.add_note(&mut issue, note).map_err(Refusal::from)?;
        let transition = format!("{about} {state}..{state}");
        if is_reported {
            let mut changed = Changed {
                quiet: vec![record.clone()],
                ..Changed::of(issue, record.id, Vec::new())
            };
            self.await_somebody(&mut changed)?;
            return Ok(Planned::Write(Box::new(self.commit(changed, &account)?)));
        }
        let message = self.message(&issue, &record, &[transition], &account);
        self.in_the_issue(issue, record, message)
    }
}

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Adds a note, up to a maximum, because each step of the issue writes all its notes again. The
    /// maximum for events and approvals is twice as large, so that agents' notes can't use it up.
    pub(super) fn add_note(&self, issue: &mut Issue, note: Annotation) -> Result<(), LimitReached> {
        const MOST: usize = 1_000;
        const BYTES: usize = 2 << 20;
        let times = usize::from(note.event.is_some() || note.approval.is_some()) + 1;
        let (most, bytes) = (times * MOST, times * BYTES);
        let length = |note: &Annotation| {
            let facts = note.facts.iter();
            let facts = facts.map(|(name, value)| name.len() + value.to_string().len());
            note.note.len() + facts.sum::<usize>()
        };
        let taken: usize = issue.annotations.iter().map(length).sum();
        if issue.annotations.len() >= most || taken + length(&note) > bytes {
            return Err(LimitReached {
                issue: self.key.clone(),
                protocol: issue.protocol.clone(),
                limit: Box::new(Limit::Notes { most, bytes }),
                basis: None,
            });
        }
        issue.annotations.push(note);
        Ok(())
    }

    /// Refuses facts that the actor may not note.
    fn ensure_source(&self, facts: &Map<String, Value>) -> Result<(), RoleRefusal> {
        let definition = self.protocol.definition();
        let (by, of_event) = (&self.step.by, self.step.delivery.is_some());
        let mut names = facts.keys();
        let foreign = names.find(|name| !definition.may_note(name, by, of_event));
        foreign.map_or(Ok(()), |fact| {
            let (told_by, asked) = definition.told_by(fact);
            Err(RoleRefusal::NotItsFact {
                agent: by.clone(),
                fact: fact.clone(),
                told_by: told_by.into(),
                asked,
            })
        })
    }
}
