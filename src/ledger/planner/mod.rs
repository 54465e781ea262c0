//! How each request becomes a step: who may ask, what changes, what is written.
//!
//! [`plan`] is pure. It reads the issue through a [`View`], and answers with
//! the files of the commit, its message and a receipt, or with a typed refusal.
//! The write path runs it on the tip, runs it again when the tip moved, and the
//! audit runs it once more for every commit of the history and compares: there
//! is one place that knows what a legal step is. `admission` says who may send, `send`
//! what sending does, `answer` what an answer does, `tasks` what becomes of
//! tasks.

mod admission;
mod answer;
mod send;
mod tasks;

use super::layout;
use super::message::{Change, Message};
use super::record::{
    self, Failure, Issue, IssueStatus, Lease, OpenHandoff, Record, Reopening, Transition,
};
use super::refusal::Refusal;
use super::step::{Actor, Planned, Receipt, Request, Step, Stop, View};
use crate::git::Edit;
use crate::ids::{HandoffId, IssueKey, quoted};
use crate::protocol::{AgentKind, ContractType, Event, Protocol, State};
pub(super) use answer::answers;
use send::Sending;
pub(super) use tasks::{misplaced, task_handoff};

/// Decides what a request does to an issue.
///
/// # Errors
/// [`Stop`]: a typed refusal, or a failure to read.
pub fn plan<E>(
    protocol: &Protocol,
    key: &IssueKey,
    view: &impl View<E>,
    actor: &Actor<'_>,
    request: &Request<'_>,
) -> Result<Planned, Stop<E>> {
    if protocol
        .agent(actor.name.as_str())
        .is_none_or(|a| a.kind == AgentKind::End)
    {
        return Err(Refusal::unknown_agent(actor.name, protocol).into());
    }
    let issue = view.issue().map_err(Stop::Unreadable)?;
    let planner = Planner {
        protocol,
        key,
        view,
        actor,
    };
    match request {
        Request::Send {
            contract,
            code,
            artifacts,
            answers,
        } => planner.send(
            issue,
            &Sending {
                contract,
                code: code.as_ref(),
                artifacts,
                answers: *answers,
            },
        ),
        Request::Change {
            number,
            event,
            told,
        } => {
            let issue = issue.ok_or_else(|| Refusal::NoIssue { issue: key.clone() })?;
            let (reason, failure) = (told.reason.as_ref(), told.failure.as_ref());
            planner.change(issue, *number, *event, reason, failure)
        }
        Request::Reopen { reason } => {
            let issue = issue.ok_or_else(|| Refusal::NoIssue { issue: key.clone() })?;
            planner.reopen(issue, reason)
        }
    }
}

/// Everything that a step changes.
struct Changed {
    /// The issue, without what follows from the records.
    issue: Issue,
    /// The handoffs whose state changes.
    records: Vec<Record>,
    /// The one of them that the step is about.
    subject: HandoffId,
    /// Handoffs of which something else changes.
    quiet: Vec<Record>,
}

/// The code of a failure that was given none.
pub const UNSPECIFIED: &str = "FAILED";

/// One issue, one actor, one protocol: what the requests have in common.
struct Planner<'a, V> {
    protocol: &'a Protocol,
    key: &'a IssueKey,
    view: &'a V,
    actor: &'a Actor<'a>,
}

impl<V> Planner<'_, V> {
    fn id(&self, number: u32) -> HandoffId {
        HandoffId::new(self.key.clone(), number)
    }

    fn record<E>(&self, id: &HandoffId) -> Result<Record, Stop<E>>
    where
        V: View<E>,
    {
        let found = self.view.record(id.number()).map_err(Stop::Unreadable)?;
        Ok(found.ok_or_else(|| Refusal::NoHandoff { id: id.clone() })?)
    }

    /// Changes the state of one handoff.
    fn change<E>(
        &self,
        mut issue: Issue,
        number: u32,
        event: Event,
        reason: Option<&String>,
        failure: Option<&Failure>,
    ) -> Result<Planned, Stop<E>>
    where
        V: View<E>,
    {
        let mut record = self.record(&self.id(number))?;
        self.authorize(&record, event)?;
        let again = record.latest().is_some_and(|last| {
            last.event == Some(event)
                && last.by == *self.actor.name
                && last.sent.is_none()
                && last.reason.as_ref() == reason
                && same_failure(last.failure.as_ref(), failure)
        });
        if again && event != Event::Claim {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        let failure = self.reported(failure)?;
        let failure = failure.as_ref();
        match event {
            Event::Claim if !record.waits_for.is_empty() => {
                return Err(Refusal::Waits {
                    id: record.id,
                    waits_for: record.waits_for,
                }
                .into());
            }
            Event::Complete => {
                let waits_for = self.open_parts(&issue, &record);
                if !waits_for.is_empty() {
                    let id = record.id;
                    return Err(Refusal::Waits { id, waits_for }.into());
                }
                if !self.answers_to(&record).is_empty() && record.state == State::InProgress {
                    let types = self.answers_to(&record).into_iter();
                    return Err(Refusal::NeedsAnswer {
                        types: types.map(str::to_owned).collect(),
                        id: record.id,
                        from: record.from,
                        to: record.to,
                    }
                    .into());
                }
            }
            Event::Retry => {
                let retries = record.attempt - 1;
                if record.max_retries.is_some_and(|most| retries >= most) {
                    let id = record.id;
                    return Err(Refusal::RetriesSpent { id, retries }.into());
                }
            }
            _ => {}
        }
        self.advance(&mut record, event, None, reason, failure)?;
        match event {
            // What follows from a task that was broken down are its parts.
            Event::Complete
                if !self.protocol.receivers(record.to.as_str()).is_empty()
                    && record
                        .task
                        .as_ref()
                        .is_none_or(|task| task.parent.is_some()) =>
            {
                issue.unfollowed.push(record.id.clone());
            }
            // What was handed over comes back: its sender may send again.
            Event::Reject | Event::Cancel => {
                if let Some(id) = &record.follows
                    && self.record(id)?.state == State::Completed
                    && !issue.unfollowed.contains(id)
                {
                    issue.unfollowed.push(id.clone());
                }
            }
            _ => {}
        }
        let words = failure
            .map(|f| f.message.clone())
            .or_else(|| reason.cloned());
        let summary = words.unwrap_or_else(|| record.summary.clone());
        let mut changed = Changed {
            issue,
            subject: record.id.clone(),
            records: vec![record],
            quiet: Vec::new(),
        };
        self.follow_tasks(&mut changed)?;
        Ok(Planned::Write(Box::new(self.commit(changed, &summary))))
    }

    /// A failure with what the protocol says of its code.
    fn reported(&self, failure: Option<&Failure>) -> Result<Option<Failure>, Refusal> {
        let codes = &self.protocol.definition().errors;
        let coded = |failure: &&Failure| !codes.is_empty() && failure.code != UNSPECIFIED;
        let Some(failure) = failure.filter(coded) else {
            return Ok(failure.cloned());
        };
        let known = codes.get(&failure.code);
        let known = known.ok_or_else(|| Refusal::UnknownErrorCode {
            code: quoted(&failure.code),
            protocol: self.protocol.name().to_owned(),
            codes: codes.keys().cloned().collect(),
        })?;
        let mut failure = failure.clone();
        let advice = failure.suggested_action.get_or_insert_default();
        if advice.is_empty() {
            advice.clone_from(&known.recovery);
        }
        Ok(Some(failure))
    }

    /// Opens a completed issue again.
    fn reopen<E>(&self, mut issue: Issue, reason: &str) -> Result<Planned, Stop<E>>
    where
        V: View<E>,
    {
        let record = self.record(&self.id(issue.handoffs))?;
        let again = issue
            .reopened
            .last()
            .is_some_and(|r| r.by == *self.actor.name && r.reason == reason);
        if issue.status == IssueStatus::Open {
            if again {
                let receipt = self.repeated(record, issue);
                return Ok(Planned::Repeat(Box::new(receipt)));
            }
            return Err(Refusal::NotCompleted {
                issue: self.key.clone(),
            }
            .into());
        }
        let first = self.record(&self.id(1))?;
        if self.is_one_request(&first.contract_type) {
            return Err(Refusal::OneRequest {
                issue: self.key.clone(),
            }
            .into());
        }
        issue.status = IssueStatus::Open;
        issue.completed_at = None;
        issue.unfollowed.extend(record.follows.clone());
        issue.reopened.push(Reopening {
            at: self.actor.at,
            by: self.actor.name.clone(),
            reason: reason.to_owned(),
            handoffs: issue.handoffs,
        });
        issue.steps += 1;
        let message = Message {
            subject: format!("{} reopened by {}", self.key, self.actor.name),
            transitions: vec![format!("{} completed..open", self.key)],
            ..Message::about(&record, self.key, reason)
        };
        let message = message.render();
        let files = vec![(
            layout::issue_file(self.key),
            Edit::Bytes(record::write(&issue)),
        )];
        let receipt = self.receipt(record, issue, Vec::new());
        Ok(Planned::Write(Box::new(Step {
            files,
            message,
            receipt,
        })))
    }

    /// The types of contract that answer a handoff.
    fn answers_to(&self, record: &Record) -> Vec<&str> {
        let types = self.protocol.definition().contracts.iter();
        let answers = types.filter(|c| c.answers.contains(&record.contract_type));
        answers.map(|c| c.name.as_str()).collect()
    }

    fn receipt(&self, record: Record, issue: Issue, changes: Vec<Change>) -> Receipt {
        // A request is answered before anyone else is asked.
        let answers = self.answers_to(&record);
        let kind = |kind: &str| (answers.len() > 1).then(|| kind.to_owned());
        let asked = answers.iter().map(|a| (record.from.clone(), kind(a)));
        let receivers = self.protocol.receivers(record.to.as_str()).into_iter();
        let others = receivers.filter(|to| answers.is_empty() || **to != record.from);
        let others = others.flat_map(|to| {
            let first = self.protocol.definition().formats.first();
            let types = self.protocol.types_between(record.to.as_str(), to.as_str());
            let types = types
                .into_iter()
                .filter(|c| first.is_none_or(|f| c.has_format(f)));
            let types: Vec<&ContractType> = types.filter(|c| c.travels()).collect();
            let several = types.len() > 1;
            let named = |c: &ContractType| (to.clone(), several.then(|| c.name.clone()));
            types.into_iter().map(named).collect::<Vec<_>>()
        });
        let onward = asked.chain(others).collect();
        Receipt {
            onward,
            lead: self.protocol.lead().cloned(),
            record,
            issue,
            changes,
            repeated: false,
        }
    }

    fn repeated(&self, record: Record, issue: Issue) -> Receipt {
        Receipt {
            repeated: true,
            ..self.receipt(record, issue, Vec::new())
        }
    }

    /// Says whether the actor may cause this event.
    fn authorize(&self, record: &Record, event: Event) -> Result<(), Refusal> {
        let name = self.actor.name;
        let leads = [AgentKind::Orchestrator, AgentKind::Human];
        let may = if event.is_receivers() {
            *name == record.to
        } else {
            *name == record.to
                || *name == record.from
                || leads
                    .iter()
                    .any(|&kind| self.protocol.is_kind(name.as_str(), kind))
        };
        if may {
            return Ok(());
        }
        Err(Refusal::NotYours {
            id: record.id.clone(),
            agent: name.clone(),
            event,
            to: record.to.clone(),
        })
    }

    /// Applies an event to a record.
    fn advance(
        &self,
        record: &mut Record,
        event: Event,
        sent: Option<&HandoffId>,
        reason: Option<&String>,
        failure: Option<&Failure>,
    ) -> Result<(), Refusal> {
        let from = record.state;
        let to = from
            .on(event)
            .map_err(|illegal| match (event, &record.lease) {
                (Event::Claim, Some(lease)) => Refusal::AlreadyClaimed {
                    id: record.id.clone(),
                    holder: lease.holder.clone(),
                    since: lease.since,
                },
                _ => Refusal::Illegal {
                    id: record.id.clone(),
                    illegal,
                },
            })?;
        record.state = to;
        record.lease = (to == State::InProgress).then(|| Lease {
            holder: self.actor.name.clone(),
            since: self.actor.at,
            token: 1 + claims(record),
            expires_at: None,
            progress: None,
        });
        if matches!(event, Event::Retry | Event::Redrive) {
            record.attempt += 1;
        }
        record.transitions.push(Transition {
            at: self.actor.at,
            by: self.actor.name.clone(),
            event: Some(event),
            from: Some(from),
            to,
            sent: sent.cloned(),
            reason: reason.cloned(),
            failure: failure.cloned(),
            questions: Vec::new(),
            values: serde_json::Map::new(),
            receiver: None,
            jitter: None,
        });
        Ok(())
    }

    /// Turns what changed into a step.
    fn commit(&self, changed: Changed, summary: &str) -> Step {
        let Changed {
            mut issue,
            records,
            subject,
            quiet,
        } = changed;
        issue.steps += 1;
        let mut files = Vec::with_capacity(records.len() * 2 + 2);
        let mut changes = Vec::with_capacity(records.len());
        for record in &records {
            let stored = record::write(record);
            let entry = layout::open_entry(&record.id, &record.to);
            let from = record.latest().and_then(|t| t.from);
            let was_open = from.is_some_and(|state| !state.is_terminal());
            let is_open = !record.state.is_terminal();
            if is_open {
                files.push((entry, Edit::Bytes(stored.clone())));
            } else if was_open {
                files.push((entry, Edit::Gone));
            }
            files.push((layout::record_file(&record.id), Edit::Bytes(stored)));
            changes.push(Change {
                id: record.id.clone(),
                from,
                to: record.state,
            });

            issue.open.retain(|open| open.id != record.id);
            if is_open {
                issue.open.push(OpenHandoff {
                    id: record.id.clone(),
                    to: record.to.clone(),
                    state: record.state,
                    expires_at: record.lease.as_ref().and_then(|l| l.expires_at),
                });
            }
        }
        // Only what is open waits for others.
        for record in &quiet {
            let stored = record::write(record);
            let entry = layout::open_entry(&record.id, &record.to);
            files.push((entry, Edit::Bytes(stored.clone())));
            files.push((layout::record_file(&record.id), Edit::Bytes(stored)));
        }
        issue.open.sort_by_key(|open| open.id.number());
        files.push((
            layout::issue_file(self.key),
            Edit::Bytes(record::write(&issue)),
        ));
        let record = { records.into_iter() }
            .find(|record| record.id == subject)
            .expect("the subject is one of the handoffs that change");
        let message = Message {
            transitions: changes.iter().map(ToString::to_string).collect(),
            ..Message::about(&record, self.key, summary)
        }
        .render();
        let receipt = self.receipt(record, issue, changes);
        Step {
            files,
            message,
            receipt,
        }
    }
}

/// Says whether a failure is the one that was reported before; what the
/// protocol recommends was added to it then.
fn same_failure(known: Option<&Failure>, told: Option<&Failure>) -> bool {
    match (known, told) {
        (Some(known), Some(told)) if told.suggested_action.is_none() => {
            let suggested_action = None;
            *told
                == Failure {
                    suggested_action,
                    ..known.clone()
                }
        }
        _ => known == told,
    }
}

fn claims(record: &Record) -> u32 {
    let claims = record
        .transitions
        .iter()
        .filter(|t| t.event == Some(Event::Claim));
    u32::try_from(claims.count()).unwrap_or(u32::MAX)
}
