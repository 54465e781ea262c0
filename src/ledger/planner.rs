//! How each request becomes a step: who may ask, what changes, what is written.
//!
//! [`plan`] is pure. It reads the issue through a [`View`], and answers with
//! the files of the commit, its message and a receipt, or with a typed refusal.
//! The write path runs it on the tip, runs it again when the tip moved, and the
//! audit runs it once more for every commit of the history and compares: there
//! is one place that knows what a legal step is.

use serde_json::Value;

use super::intake::Contract;
use super::layout;
use super::message::{Change, Message};
use super::record::{
    self, ContractFile, Failure, Issue, IssueStatus, Lease, OpenHandoff, Record, Reopening,
    Transition, VERSION,
};
use super::refusal::Refusal;
use super::step::{Actor, Planned, Receipt, Request, Step, Stop, View};
use crate::git::Code;
use crate::ids::{AgentName, HandoffId, IssueKey};
use crate::protocol::{AgentKind, Event, Outcome, Protocol, State};

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
        Request::Send { contract, code } => planner.send(issue, contract, code.as_ref()),
        Request::Change {
            number,
            event,
            reason,
            failure,
        } => {
            let issue = issue.ok_or_else(|| Refusal::NoIssue { issue: key.clone() })?;
            planner.change(issue, *number, *event, reason.as_ref(), failure.as_ref())
        }
        Request::Reopen { reason } => {
            let issue = issue.ok_or_else(|| Refusal::NoIssue { issue: key.clone() })?;
            planner.reopen(issue, reason)
        }
    }
}

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

    /// Hands work on.
    fn send<E>(
        &self,
        issue: Option<Issue>,
        contract: &Contract,
        code: Option<&Code>,
    ) -> Result<Planned, Stop<E>>
    where
        V: View<E>,
    {
        let from = &contract.from;
        if self.actor.name != from {
            return Err(Refusal::NotTheSender {
                agent: self.actor.name.clone(),
                from: from.clone(),
            }
            .into());
        }
        let basis = match &issue {
            Some(issue) => self.basis(issue, from)?,
            None => None,
        };
        if let Some(issue) = &issue
            && let Some(earlier) = self.sent_before(issue, contract, basis.as_ref())?
        {
            let receipt = self.repeated(earlier, issue.clone());
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        let mut issue = self.admit(issue, contract, basis.as_ref())?;

        let follows = basis.as_ref().map(|held| held.id.clone());
        let mut touched = Vec::new();
        if let Some(held) = basis {
            issue.unfollowed.retain(|id| *id != held.id);
            if held.state == State::InProgress {
                touched.push(held);
            }
        }
        let number = issue.handoffs + 1;
        let id = self.id(number);
        for held in &mut touched {
            let kind = self.protocol.contract_type(&contract.kind);
            let outcome = kind.map(|k| self.protocol.outcome(k, contract.status.as_deref()));
            let event = outcome.map_or(Event::Complete, Outcome::event);
            let failure = contract
                .failure
                .as_ref()
                .filter(|_| event != Event::Complete);
            self.advance(held, event, Some(&id), None, failure)?;
        }
        let closes = self.protocol.is_kind(contract.to.as_str(), AgentKind::End);
        if closes {
            let held: Vec<_> = touched.iter().map(|r| r.id.clone()).collect();
            for open in issue.open.clone() {
                if !held.contains(&open.id) {
                    let mut record = self.record(&open.id)?;
                    self.advance(&mut record, Event::Cancel, Some(&id), None, None)?;
                    touched.push(record);
                }
            }
            issue.status = IssueStatus::Completed;
            issue.completed_at = Some(self.actor.at);
            issue.unfollowed.clear();
        }

        self.protocol
            .gather(&mut issue.facts, &contract.kind, &contract.value);
        let state = if closes {
            State::Completed
        } else {
            State::Pending
        };
        let priority = contract.priority.clone().or_else(|| {
            let known = issue.facts.get("priority").and_then(Value::as_str);
            known.map(str::to_owned)
        });
        let new = Record {
            version: VERSION,
            id: id.clone(),
            protocol: issue.protocol.clone(),
            contract_type: contract.kind.clone(),
            from: from.clone(),
            to: contract.to.clone(),
            state,
            priority,
            summary: contract.summary.clone(),
            contract: ContractFile::new(
                layout::contract_name(number, from, &contract.to, contract.format),
                contract.format,
                &contract.bytes,
            ),
            follows,
            code: code.cloned(),
            attempt: 1,
            lease: None,
            transitions: vec![Transition {
                at: self.actor.at,
                by: self.actor.name.clone(),
                event: None,
                from: None,
                to: state,
                sent: None,
                reason: None,
                failure: None,
            }],
        };
        issue.handoffs = number;
        let contract_path = format!("{}/{}", layout::issue_folder(self.key), new.contract.file);
        let summary = new.summary.clone();
        touched.push(new);
        let mut step = self.commit(issue, touched, &summary);
        step.files
            .push((contract_path, Some(contract.bytes.clone())));
        Ok(Planned::Write(Box::new(step)))
    }

    /// The handoff that a contract repeats: the one that the same bytes made
    /// before, unless its sender has reason to send them once more. It has when
    /// it sends on from something newer, or from the same handoff again after
    /// that was retried, reopened, or its successor was turned down.
    fn sent_before<E>(
        &self,
        issue: &Issue,
        contract: &Contract,
        basis: Option<&Record>,
    ) -> Result<Option<Record>, Stop<E>>
    where
        V: View<E>,
    {
        let number = self
            .view
            .sent_before(&contract.bytes)
            .map_err(Stop::Unreadable)?;
        let Some(number) = number else {
            return Ok(None);
        };
        let earlier = self.record(&self.id(number))?;
        let again = match basis {
            Some(held) => held.id.number() > number || earlier.follows.as_ref() == Some(&held.id),
            None => {
                let turned_down = [State::Rejected, State::Cancelled].contains(&earlier.state);
                let reopened = issue.reopened.last().is_some_and(|r| number <= r.handoffs);
                issue.status == IssueStatus::Open
                    && issue.open.is_empty()
                    && (turned_down || reopened)
            }
        };
        Ok((!again).then_some(earlier))
    }

    /// The handoff that a sender sends on from: the newest one it works on, or
    /// the newest it completed and has sent nothing on from.
    fn basis<E>(&self, issue: &Issue, from: &AgentName) -> Result<Option<Record>, Stop<E>>
    where
        V: View<E>,
    {
        let held = |open: &&OpenHandoff| open.to == *from && open.state == State::InProgress;
        if let Some(open) = issue.open.iter().rev().find(held) {
            return self.record(&open.id).map(Some);
        }
        // What waits to be claimed comes before what was completed earlier.
        if issue.open.iter().any(|open| open.to == *from) {
            return Ok(None);
        }
        for id in issue.unfollowed.iter().rev() {
            let record = self.record(id)?;
            if record.to == *from {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Refuses a contract whose sender may not send now; opens the issue for
    /// its first one.
    fn admit(
        &self,
        issue: Option<Issue>,
        contract: &Contract,
        basis: Option<&Record>,
    ) -> Result<Issue, Refusal> {
        let from = &contract.from;
        let opens = self
            .protocol
            .routes(from.as_str(), contract.to.as_str())
            .any(|r| r.opens && r.contracts.contains(&contract.kind));
        let Some(issue) = issue else {
            if !opens {
                let routes = self.protocol.definition().routes.iter().filter(|r| r.opens);
                return Err(Refusal::NotOpened {
                    issue: self.key.clone(),
                    openers: routes.map(|r| (r.from.clone(), r.to.to_string())).collect(),
                });
            }
            return Ok(Issue {
                version: VERSION,
                issue: self.key.clone(),
                protocol: contract.protocol.clone(),
                status: IssueStatus::Open,
                opened_at: self.actor.at,
                completed_at: None,
                handoffs: 0,
                steps: 0,
                open: Vec::new(),
                unfollowed: Vec::new(),
                reopened: Vec::new(),
                facts: serde_json::Map::new(),
            });
        };
        if issue.status == IssueStatus::Completed {
            return Err(Refusal::IssueCompleted {
                issue: self.key.clone(),
            });
        }
        if basis.is_some() {
            return Ok(issue);
        }
        if opens && issue.open.is_empty() {
            // The work starts anew: what could have been sent on earlier is over.
            let unfollowed = Vec::new();
            return Ok(Issue {
                unfollowed,
                ..issue
            });
        }
        let mine = issue.open.iter().rev().find(|open| open.to == *from);
        Err(match mine {
            Some(open) if open.state == State::Pending => Refusal::NotClaimed {
                id: open.id.clone(),
                agent: from.clone(),
            },
            Some(open) => Refusal::NotWorking {
                id: open.id.clone(),
                agent: from.clone(),
                state: open.state,
            },
            None => Refusal::NotHeld {
                agent: from.clone(),
                issue: self.key.clone(),
                open: issue
                    .open
                    .iter()
                    .map(|o| (o.id.clone(), o.to.clone()))
                    .collect(),
            },
        })
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
                && last.failure.as_ref() == failure
        });
        if again && event != Event::Claim {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        self.advance(&mut record, event, None, reason, failure)?;
        match event {
            Event::Complete if !self.protocol.receivers(record.to.as_str()).is_empty() => {
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
        let step = self.commit(issue, vec![record], &summary);
        Ok(Planned::Write(Box::new(step)))
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
        let files = vec![(layout::issue_file(self.key), Some(record::write(&issue)))];
        let receipt = self.receipt(record, issue, Vec::new());
        Ok(Planned::Write(Box::new(Step {
            files,
            message,
            receipt,
        })))
    }

    fn receipt(&self, record: Record, issue: Issue, changes: Vec<Change>) -> Receipt {
        let mut agents = self.protocol.definition().agents.iter();
        let lead = agents.find(|a| a.kind == AgentKind::Orchestrator);
        Receipt {
            onward: self
                .protocol
                .receivers(record.to.as_str())
                .into_iter()
                .cloned()
                .collect(),
            lead: lead.map(|a| a.id.clone()),
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
        });
        Ok(())
    }

    /// Turns changed records, the subject of the step last, into a step.
    fn commit(&self, mut issue: Issue, records: Vec<Record>, summary: &str) -> Step {
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
                files.push((entry, Some(stored.clone())));
            } else if was_open {
                files.push((entry, None));
            }
            files.push((layout::record_file(&record.id), Some(stored)));
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
                });
            }
        }
        issue.open.sort_by_key(|open| open.id.number());
        files.push((layout::issue_file(self.key), Some(record::write(&issue))));
        let record = records
            .into_iter()
            .next_back()
            .expect("a step changes at least one handoff");
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

fn claims(record: &Record) -> u32 {
    let claims = record
        .transitions
        .iter()
        .filter(|t| t.event == Some(Event::Claim));
    u32::try_from(claims.count()).unwrap_or(u32::MAX)
}
