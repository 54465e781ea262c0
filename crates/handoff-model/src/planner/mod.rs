//! Turns each request into a step: who may make it, what changes, what is written.
//!
//! [`plan`] is pure. It reads the issue through a [`View`] and returns the commit's files, its
//! message and a receipt, or a typed refusal. The write path plans on the tip, and again if the tip
//! moved; the audit plans every commit of the history again and compares. So the rules for valid
//! steps exist only here.
//!
//! - Contracts: `send` and `answer`, `admission` (who may send), `holder` (what the sender holds), `tasks`,
//!   `findings` (of reviews), `answer_content` (against the questions), `limits`, `misfits` (all at once);
//! - Events of one handoff: `change`, `lease`, `retry`, `correct`;
//! - Other requests: `decide`, `annotate`, `approve`, `refuse`, and about the issue as a whole
//!   `give_up`, `reopen` and `pause`;
//! - The consequences of any of them: `ending` of an issue in which nothing is open, `follow_up` on
//!   what ended, `usage` and budgets, and `trail`, which words the commit.

mod admission;
mod annotate;
mod answer;
mod answer_content;
mod approve;
mod change;
mod correct;
mod decide;
mod ending;
mod findings;
mod follow_up;
mod give_up;
mod holder;
mod lease;
mod limits;
mod misfits;
mod pause;
mod refuse;
mod reopen;
mod retry;
mod send;
mod set;
mod tasks;
mod trail;
mod usage;

use std::marker::PhantomData;
use std::rc::Rc;

use handoff_protocol::{AgentKind, Event, IllegalEvent, Protocol, State, TaskState};

use crate::record::{
    Awaiting, Delivered, Issue, OpenHandoff, Progress, Record, RefusedContract, Task, Transition,
    View, open_path,
};
use crate::refusal::{Holding, LeaseRefusal, Refusal, StateRefusal};
use crate::step::message::Account;
use crate::step::{
    Change, EventArgs, FileChanges, Planned, PlannedStep, Receipt, Request, SendOptions,
    SendRequest, Step, Stop, Update,
};
use crate::{layout, record};
pub use findings::dismissed_before;
pub use give_up::may_give_up;
use handoff_base::Edit;
use handoff_base::Moment;
use handoff_base::ids::{HandoffId, IssueKey};
pub use holder::{Holder, held};
pub use limits::Sending;
pub use send::{reviewed_commit, shown_commit};
pub use set::ISSUE_SETTINGS;
pub use tasks::task_handoff;

/// Plans a step in an issue. `contract` is the one that it sends, if it sends one.
///
/// # Errors
/// [`Stop`]: a typed refusal, or a failure to read.
///
/// # Panics
/// If the step sends a contract and there is none.
pub fn plan<E>(
    protocol: &Protocol,
    key: &IssueKey,
    view: &impl View<E>,
    step: &Step,
    contract: Option<&SendRequest<'_>>,
) -> Result<Planned, Stop<E>> {
    let step = &step.canonical();
    if protocol
        .agent(step.by.as_str())
        .is_none_or(|a| a.kind == AgentKind::End)
    {
        return Err(Refusal::unknown_agent(&step.by, protocol).into());
    }
    let issue = view.shared_issue().map_err(Stop::Unreadable)?;
    let planner = Planner {
        protocol,
        key,
        view,
        step,
        contract,
        error: PhantomData,
    };
    if let Some(receipt) = planner.delivered(issue.as_deref())? {
        return Ok(Planned::Repeat(Box::new(receipt)));
    }
    let planned = planner.request(issue.as_deref().cloned());
    let update = step.request.update();
    let is_expiry = update.and_then(Update::event) == Some(Event::Expire);
    let overdue = issue.filter(|_| !is_expiry && !matches!(planned, Err(Stop::Unreadable(_))));
    let overdue = overdue.map(|issue| planner.overdue(&issue)).transpose()?;
    if let Some(id) = overdue.flatten() {
        // A repeat writes nothing, so it can be answered; the next write records what is overdue.
        // But a repeated event of the overdue handoff itself no longer holds.
        let is_about_it = update.and_then(Update::handoff) == Some(id.number());
        if matches!(planned, Ok(Planned::Repeat(_))) && !is_about_it {
            return planned;
        }
        return Err(LeaseRefusal::Overdue(id).into());
    }
    planned
}

/// Everything that a step changes.
struct Changed {
    /// The issue; what is derived from the records is updated later.
    issue: Issue,
    /// The handoffs whose state changes.
    records: Vec<Record>,
    /// The one of them that the step is about.
    subject: HandoffId,
    /// Handoffs whose record changes, but not their state.
    quiet: Vec<Record>,
    /// Whether the work just continues, so that no state changes.
    goes_on: bool,
    /// What awaits agents again because the issue is reopened.
    again: Vec<Awaiting>,
    /// The files of awaiting handoffs to add and to remove.
    entries: FileChanges,
}

impl Changed {
    /// The pending handoffs of tasks that depend on others.
    fn waiting(&self) -> Vec<HandoffId> {
        let waits = |task: &&Task| task.state == TaskState::Pending && !task.depends_on.is_empty();
        let waiting = self.issue.tasks.iter().filter(waits);
        waiting.map(|task| task.handoff.clone()).collect()
    }

    /// State changes of these handoffs; `subject` is the one that the step is about.
    fn of(issue: Issue, subject: HandoffId, records: Vec<Record>) -> Self {
        Self {
            issue,
            records,
            subject,
            quiet: Vec::new(),
            goes_on: false,
            again: Vec::new(),
            entries: FileChanges::new(),
        }
    }

    /// Copies the deadlines of leases and claims from the records to the list of open handoffs.
    fn list_deadlines(&mut self) {
        for record in self.records.iter().chain(&self.quiet) {
            let mut open = self.issue.open.iter_mut();
            if let Some(open) = open.find(|open| open.id == record.id) {
                open.expires_at = record.expires_at();
            }
        }
    }
}

/// The record of a handoff that the issue names.
fn recorded<E>(view: &impl View<E>, id: &HandoffId) -> Result<Rc<Record>, Stop<E>> {
    let found = view.shared_record(id.number()).map_err(Stop::Unreadable)?;
    Ok(found.ok_or_else(|| Refusal::no_handoff(id))?)
}

/// Why a handoff does not accept an event in its state.
fn illegal(record: &Record, illegal: IllegalEvent) -> Refusal {
    let id = record.id.clone();
    let claims = illegal.event == Event::Claim;
    match (&record.lease, LeaseRefusal::unacknowledged(record)) {
        (Some(lease), _) if claims => {
            LeaseRefusal::AlreadyClaimed(Holding::of(record, lease)).into()
        }
        (None, Some(late)) if claims => late.into(),
        _ if illegal.event == Event::Answer => StateRefusal::not_blocked(record, illegal).into(),
        _ => StateRefusal::illegal(id, illegal).into(),
    }
}

/// What all requests need: the protocol, the issue and the step.
struct Planner<'a, E, V> {
    protocol: &'a Protocol,
    key: &'a IssueKey,
    view: &'a V,
    step: &'a Step,
    contract: Option<&'a SendRequest<'a>>,
    /// The error of reading.
    error: PhantomData<E>,
}

impl<E, V: View<E>> Planner<'_, E, V> {
    fn request(&self, issue: Option<Issue>) -> Result<Planned, Stop<E>> {
        let known = |issue: Option<Issue>| {
            let issue_key = || self.key.clone();
            issue.ok_or_else(|| Refusal::no_issue(&issue_key()))
        };
        let update = match &self.step.request {
            Request::Send(_) => {
                let contract = self.contract;
                let contract = contract.expect("a step that sends comes with its contract");
                return self.send(issue, contract);
            }
            Request::Update(update) => update,
        };
        let issue = known(issue)?;
        match update {
            Update::Change {
                handoff,
                event,
                arguments,
            } => self.change(issue, *handoff, *event, arguments),
            Update::Decide {
                handoff,
                action,
                why,
            } => self.decide(issue, *handoff, *action, why),
            Update::Annotate {
                handoff,
                note,
                facts,
                approval: Some(approval),
            } => {
                let number = handoff.unwrap_or(issue.handoffs);
                self.approve(issue, number, (note, facts), approval)
            }
            Update::Annotate {
                handoff,
                note,
                facts,
                approval: None,
            } => self.annotate(issue, *handoff, note, facts),
            Update::GiveUp { reason } => self.give_up(issue, reason),
            Update::Reopen { reason, said_at } => self.reopen(issue, reason, *said_at),
            Update::Pause {
                reason,
                except,
                said_at,
            } => self.pause(issue, reason, except, *said_at),
            Update::Set {
                facts,
                reason,
                after,
                assignee,
            } => self.set(issue, facts, reason, (after.as_deref(), assignee.as_ref())),
            Update::Refuse { kind, code, why } => {
                let refused = RefusedContract {
                    at: self.step.at,
                    by: self.step.by.clone(),
                    kind: *kind,
                    code: code.clone(),
                    why: why.clone(),
                };
                self.refuse(issue, refused)
            }
        }
    }

    /// The receipt for an outside event that was applied before. Applying it again could mean
    /// something else by now.
    fn delivered(&self, issue: Option<&Issue>) -> Result<Option<Receipt>, Stop<E>> {
        let (Some(issue), Some(delivery)) = (issue, self.step.delivery.as_ref()) else {
            return Ok(None);
        };
        let Some(known) = issue.delivered(delivery) else {
            return Ok(None);
        };
        let record = self.record(&self.id(known.handoff))?;
        Ok(Some(self.repeated(record, issue.clone())))
    }

    fn options(&self) -> &SendOptions {
        self.step.request.options()
    }

    fn id(&self, number: u32) -> HandoffId {
        HandoffId::new(self.key.clone(), number)
    }

    /// A copy of a handoff's record, to change.
    fn record(&self, id: &HandoffId) -> Result<Record, Stop<E>> {
        recorded(self.view, id).map(Rc::unwrap_or_clone)
    }

    /// A handoff's record, to read.
    fn shared_record(&self, id: &HandoffId) -> Result<Rc<Record>, Stop<E>> {
        recorded(self.view, id)
    }

    /// A step that changes only the issue's file.
    fn in_the_issue(
        &self,
        issue: Issue,
        about: Record,
        message: String,
    ) -> Result<Planned, Stop<E>> {
        self.in_the_issue_again(issue, Vec::new(), about, message)
    }

    /// Like [`Planner::in_the_issue`]; afterwards the handoffs in `again` await agents again.
    fn in_the_issue_again(
        &self,
        issue: Issue,
        again: Vec<Awaiting>,
        about: Record,
        message: String,
    ) -> Result<Planned, Stop<E>> {
        let (mut issue, mut files) = self.await_in_issue(issue, again)?;
        files.extend(self.no_longer_paused(&mut issue));
        Ok(self.issue_written(issue, files, about, message))
    }

    /// A step that writes these files and the issue's.
    fn issue_written(
        &self,
        mut issue: Issue,
        mut files: FileChanges,
        about: Record,
        message: String,
    ) -> Planned {
        let previous = self.next_step(&mut issue, about.id.number());
        let own = Edit::Bytes(record::write(&issue));
        files.push((layout::issue_file(self.key), own));
        Planned::Write(Box::new(PlannedStep {
            files,
            message,
            receipt: self.receipt(about, issue, Vec::new()),
            previous,
            demanded: Vec::new(),
            begun: Vec::new(),
        }))
    }

    /// Counts the step in the issue, with its outside event; returns when the previous step was
    /// made.
    fn next_step(&self, issue: &mut Issue, handoff: u32) -> Option<Moment> {
        issue.steps += 1;
        issue
            .deliveries
            .extend(self.step.delivery.as_ref().map(|delivery| Delivered {
                id: delivery.id.clone(),
                part: delivery.part.clone(),
                handoff,
            }));
        let previous = std::mem::replace(&mut issue.updated_at, self.step.at);
        (issue.steps > 1).then_some(previous)
    }

    fn receipt(&self, record: Record, issue: Issue, changes: Vec<Change>) -> Receipt {
        Receipt {
            onward: Vec::new(),
            again: None,
            approval: None,
            needs_decision: false,
            approves_merge: false,
            lead: None,
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

    /// Cancels a handoff because another one was sent.
    fn withdraw(&self, record: &mut Record, sent: &HandoffId) -> Result<(), Refusal> {
        self.advance(record, Event::Cancel, Some(sent), &EventArgs::default())
    }

    fn advance(
        &self,
        record: &mut Record,
        event: Event,
        sent: Option<&HandoffId>,
        args: &EventArgs,
    ) -> Result<(), Refusal> {
        let from = record.state;
        let to = from.on(event).map_err(|refused| illegal(record, refused))?;
        let ran_out_at = record.expires_at().filter(|_| event == Event::Expire);
        record.state = to;
        record.not_before = None;
        record.acknowledge_by = None;
        record.lease = match to {
            State::InProgress => Some(self.lease(record, args)?),
            _ => None,
        };
        match event {
            Event::Retry => {
                record.attempt += 1;
                record.not_before = self.not_before(record, args);
            }
            Event::Redrive => {
                record.attempt += 1;
                record.redriven_at = Some(record.attempt);
            }
            Event::Reassign if from == State::Failed => record.attempt += 1,
            Event::Release => {
                record.not_before = args.after.map(|seconds| self.step.at.later(seconds));
                let news = args.progress.as_ref().map(|text| Progress {
                    at: self.step.at,
                    text: text.clone(),
                });
                if let Some(news) = news.filter(|news| record.progress.last() != Some(news)) {
                    record.report(news);
                }
            }
            _ => {}
        }
        let args = args.clone();
        let retry = self.protocol.definition().retry();
        let draws = retry.is_some_and(|retry| retry.jitter.is_some());
        record.transitions.push(Transition {
            at: self.step.at,
            by: self.step.by.clone(),
            // When a lease expires, whoever notices did not cause it.
            worker: self.step.worker.clone().filter(|_| event != Event::Expire),
            event: Some(event),
            from: Some(from),
            to,
            sent: sent.cloned(),
            reason: args.reason,
            failure: args.failure,
            ran_out_at,
            context: args.context,
            questions: args.questions,
            values: args.values,
            receiver: args.receiver,
            // Recorded even if the delay was zero: only this value explains that.
            jitter: args.jitter.filter(|_| event == Event::Retry && draws),
            allowed_secrets: args.allowed_secrets,
            traceparent: self.step.traceparent.filter(|_| event != Event::Expire),
        });
        if to == State::Failed {
            self.exhaust(record);
        }
        Ok(())
    }

    /// Updates the list of open handoffs after the changes, and ends the issue if nothing is left
    /// to do.
    fn list_open(&self, changed: &mut Changed) -> Result<(), Stop<E>> {
        let Changed { issue, records, .. } = changed;
        for record in records.iter() {
            issue.open.retain(|open| open.id != record.id);
            if !record.state.is_terminal() {
                issue.open.push(OpenHandoff {
                    id: record.id.clone(),
                    to: record.to.clone(),
                    state: record.state,
                    expires_at: record.expires_at(),
                });
            }
        }
        issue.open.sort_by_key(|open| open.id.number());
        changed.list_deadlines();
        self.await_claims(changed)?;
        changed.list_deadlines();
        self.end(&mut changed.issue, &changed.records);
        Ok(())
    }

    /// The commit of a step.
    fn commit(&self, changed: Changed, account: &Account) -> Result<PlannedStep, Stop<E>> {
        let mut changed = changed;
        let days = self.book(&mut changed)?;
        let Changed {
            mut issue,
            records,
            subject,
            quiet,
            goes_on,
            again: _,
            entries,
        } = changed;
        let previous = self.next_step(&mut issue, subject.number());
        let mut files = entries;
        files.extend(days);
        files.extend(self.no_longer_paused(&mut issue));
        let mut changes = Vec::with_capacity(records.len());
        for record in &records {
            self.put(&mut files, record)?;
            let from = if goes_on {
                Some(record.state)
            } else {
                record.latest().and_then(|t| t.from)
            };
            changes.push(Change {
                id: record.id.clone(),
                from,
                to: record.state,
            });
        }
        for record in &quiet {
            self.put(&mut files, record)?;
        }
        files.push((
            layout::issue_file(self.key),
            Edit::Bytes(record::write(&issue)),
        ));
        let is_subject = |record: &Record| record.id == subject;
        let (about, mut begun): (Vec<_>, Vec<_>) = records.into_iter().partition(is_subject);
        begun.retain(|record| record.transitions.len() == 1);
        let record = about.into_iter().chain(quiet).find(is_subject);
        let record = record.expect("the subject is one of the handoffs that change");
        if changes.is_empty() {
            changes.push(Change {
                id: record.id.clone(),
                from: Some(record.state),
                to: record.state,
            });
        }
        let transitions: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let message = self.message(&issue, &record, &transitions, account);
        let receipt = self.receipt(record, issue, changes);
        Ok(PlannedStep {
            files,
            message,
            receipt,
            previous,
            demanded: Vec::new(),
            begun,
        })
    }

    /// Writes a handoff's record, and the entry derived from it among the open handoffs.
    fn put(&self, files: &mut FileChanges, record: &Record) -> Result<(), Stop<E>> {
        let stored = record::write(record);
        let before = self.view.shared_record(record.id.number());
        let before = before.map_err(Stop::Unreadable)?;
        let (was, is) = (before.as_deref().and_then(open_path), open_path(record));
        let was = was.filter(|was| Some(was) != is.as_ref());
        files.extend(was.map(|was| (was, Edit::Gone)));
        files.extend(is.map(|is| (is, Edit::Bytes(stored.clone()))));
        files.push((layout::record_file(&record.id), Edit::Bytes(stored)));
        Ok(())
    }
}
