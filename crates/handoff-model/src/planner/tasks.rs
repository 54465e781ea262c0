//! Tasks: the contracts that open or complete them, their dependencies, and parents, which are done
//! when their parts are.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::text::{quoted, summary_line};
use handoff_protocol::{ContractType, Event, State, TaskFields, TaskPlan, TaskState};

use crate::contract::Contract;
use crate::planner::{Changed, Planner};
use crate::record::{Issue, OpenHandoff, Record, Task, TaskName, View};
use crate::refusal::ContractRefusal;
use crate::step::{EventArgs, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Whether a contract breaks down the task that its sender holds. The sender keeps it until all
    /// parts are done.
    pub(super) fn breaks_down(
        &self,
        kind: &ContractType,
        contract: &Contract,
        held: &Record,
    ) -> bool {
        let plan = kind.tasks.as_ref().map(|t| t.read(&contract.value));
        plan.is_some_and(|plan| {
            !plan.opens.is_empty()
                && plan.parent.is_some()
                && held.task.as_ref().map(|task| &task.id) == plan.parent.as_ref()
        })
    }

    /// Whether a part in a plan was rejected or cancelled, so that the plan may be sent again.
    pub(super) fn plan_turned_down(
        &self,
        issue: &Issue,
        kind: &ContractType,
        contract: &Contract,
    ) -> Result<bool, Stop<E>> {
        let plan = kind.tasks.as_ref().map(|t| t.read(&contract.value));
        let plan = plan.unwrap_or_default();
        for id in &plan.opens {
            if let Some(task) = find(issue, plan.parent.as_deref(), id) {
                let state = self.shared_record(&task.handoff)?.state;
                if matches!(state, State::Rejected | State::Cancelled) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Completes the reports on a task's parts that its holder has claimed: the new plan is the
    /// answer to them.
    pub(super) fn reports_on(
        &self,
        issue: &Issue,
        held: &Record,
        sent: &HandoffId,
    ) -> Result<Vec<Record>, Stop<E>> {
        let parent = held.task.as_ref().map(|task| &task.id);
        let mut reports = Vec::new();
        for open in issue.held_by(&held.to).filter(|open| open.id != held.id) {
            let mut record = self.record(&open.id)?;
            if record.task.as_ref().and_then(|task| task.parent.as_ref()) == parent {
                self.advance(
                    &mut record,
                    Event::Complete,
                    Some(sent),
                    &EventArgs::default(),
                )?;
                reports.push(record);
            }
        }
        Ok(reports)
    }

    /// Refuses a contract that contradicts the state of its tasks.
    pub(super) fn fits_tasks(
        &self,
        issue: &Issue,
        kind: &ContractType,
        contract: &Contract,
        from: &AgentName,
    ) -> Result<(), ContractRefusal> {
        let Some(fields) = &kind.tasks else {
            return Ok(());
        };
        let mut findings = task_mismatches(issue, fields, &fields.read(&contract.value), from);
        if findings.is_empty() {
            return Ok(());
        }
        crate::contract::semantic::gates(self.protocol, &mut findings);
        Err(ContractRefusal::Tasks {
            issue: self.key.clone(),
            findings,
        })
    }

    /// Adds the handoffs of a contract: one for each task that it opens, or a single one.
    pub(super) fn open_tasks(
        &self,
        changed: &mut Changed,
        kind: &ContractType,
        contract: &Contract,
        new: Record,
    ) -> Result<(), Stop<E>> {
        let plan = kind.tasks.as_ref().map(|t| t.read(&contract.value));
        let plan = plan.unwrap_or_default();
        let parent = plan.parent.clone();
        if plan.opens.is_empty() {
            let mut new = new;
            new.task = plan.completes.map(|id| TaskName { id, parent });
            changed.records.push(new);
            return Ok(());
        }
        if let Some(broken) = parent.as_deref() {
            let mut tasks = changed.issue.tasks.iter_mut();
            if let Some(task) = tasks.find(|t| t.parent.is_none() && t.id == broken) {
                task.state = TaskState::BrokenDown;
            }
        }
        let first = new.id.number();
        let mut replaced = Vec::new();
        for (i, id) in (0u32..).zip(&plan.opens) {
            let mut record = new.clone();
            record.id = self.id(first + i);
            record.task = Some(TaskName {
                id: id.clone(),
                parent: parent.clone(),
            });
            let title = plan.titles.get(id).map(|title| summary_line(title));
            if let Some(title) = title.filter(|title| !title.is_empty()) {
                record.summary = title;
            }
            changed.issue.handoffs = first + i;
            // A task that is planned again gets a new handoff in place of the old one.
            if let Some(known) = find(&changed.issue, parent.as_deref(), id) {
                let mut old = self.record(&known.handoff)?;
                changed.issue.unfollowed.retain(|id| *id != old.id);
                replaced.push((old.id.clone(), record.id.clone()));
                if !old.state.is_terminal() {
                    self.advance(
                        &mut old,
                        Event::Cancel,
                        Some(&record.id),
                        &EventArgs::default(),
                    )?;
                    changed.records.push(old);
                }
            }
            let tasks = &mut changed.issue.tasks;
            tasks.retain(|t| t.parent != parent || t.id != *id);
            tasks.push(Task {
                id: id.clone(),
                parent: parent.clone(),
                handoff: record.id.clone(),
                depends_on: plan.on(id).to_vec(),
                state: TaskState::Pending,
            });
            changed.records.push(record);
        }
        // Dependencies can be recorded only now that every task has its handoff.
        let issue = &changed.issue;
        for record in &mut changed.records {
            if record.id.number() >= first
                && let Some(task) = &record.task
            {
                let on = plan.on(&task.id).iter();
                let tasks = on.filter_map(|on| find(issue, parent.as_deref(), on));
                let waits = tasks.filter(|t| t.state != TaskState::Completed);
                record.waits_for = waits.map(|t| t.handoff.clone()).collect();
            }
        }
        if let Some(whole) = parent.as_deref().and_then(|id| root(&changed.issue, id)) {
            let whole = whole.handoff.clone();
            self.change_quietly(changed, &whole, |record| {
                let had = record.parts.len();
                record
                    .parts
                    .retain(|id| replaced.iter().all(|(old, _)| old != id));
                had != record.parts.len()
            })?;
        }
        self.wait_instead(changed, &replaced)
    }

    /// Where others wait for a replaced handoff, makes them wait for the new one.
    fn wait_instead(
        &self,
        changed: &mut Changed,
        replaced: &[(HandoffId, HandoffId)],
    ) -> Result<(), Stop<E>> {
        let mut waiting = changed.waiting();
        waiting.retain(|id| changed.records.iter().all(|r| r.id != *id));
        for id in waiting {
            let mut record = self.record(&id)?;
            let mut waits = false;
            for on in &mut record.waits_for {
                if let Some((_, new)) = replaced.iter().find(|(old, _)| old == on) {
                    on.clone_from(new);
                    waits = true;
                }
            }
            if waits && !record.state.is_terminal() {
                changed.quiet.push(record);
            }
        }
        Ok(())
    }

    /// Updates tasks after a change of their handoffs. A completed task no longer blocks its
    /// dependents. A parent lists the open handoffs of its parts, and is done when the last report
    /// is completed.
    pub(super) fn follow_tasks(&self, changed: &mut Changed) -> Result<(), Stop<E>> {
        if changed.issue.tasks.is_empty() {
            return Ok(());
        }
        let mut next = 0;
        while let Some(record) = changed.records.get(next) {
            next += 1;
            let (id, state) = (record.id.clone(), record.state);
            let parent = record.task.as_ref().and_then(|task| task.parent.clone());
            let reported = record.follows.clone().filter(|_| parent.is_some());
            if self.follow_task(&mut changed.issue, &id, state) && state == State::Completed {
                self.free(changed, &id)?;
            }
            if let (Some(parent), Some(part)) = (&parent, reported) {
                self.follow_report(changed, parent, &part, state)?;
            }
            if let Some(parent) = parent {
                self.follow_part(changed, &parent, &id, state)?;
            }
        }
        Ok(())
    }

    /// Updates the state of a handoff's task; returns whether it has one.
    fn follow_task(&self, issue: &mut Issue, id: &HandoffId, state: State) -> bool {
        let tasks = &mut issue.tasks;
        let Some(at) = tasks.iter().position(|task| task.handoff == *id) else {
            return false;
        };
        let is_whole = tasks[at].parent.is_none();
        let whole = Some(&tasks[at].id).filter(|_| is_whole);
        let has_parts = whole.is_some() && tasks.iter().any(|t| t.parent.as_ref() == whole);
        tasks[at].state = match state {
            State::Completed => TaskState::Completed,
            State::InProgress if has_parts => TaskState::BrokenDown,
            State::InProgress => TaskState::InProgress,
            State::Pending => TaskState::Pending,
            State::Failed => TaskState::Failed,
            State::Blocked => TaskState::Blocked,
            State::Dead => TaskState::Dead,
            State::Rejected => TaskState::Rejected,
            State::Cancelled => TaskState::Cancelled,
        };
        true
    }

    /// Removes a completed handoff from what others wait for.
    fn free(&self, changed: &mut Changed, done: &HandoffId) -> Result<(), Stop<E>> {
        for id in changed.waiting() {
            self.change_quietly(changed, &id, |record| {
                let waited = record.waits_for.len();
                record.waits_for.retain(|on| on != done);
                waited != record.waits_for.len()
            })?;
        }
        Ok(())
    }

    /// Changes a record without changing its state; `change` returns whether it changed anything.
    fn change_quietly(
        &self,
        changed: &mut Changed,
        id: &HandoffId,
        change: impl FnOnce(&mut Record) -> bool,
    ) -> Result<(), Stop<E>> {
        let mut known = changed.records.iter_mut().chain(&mut changed.quiet);
        if let Some(record) = known.find(|r| r.id == *id) {
            change(record);
            return Ok(());
        }
        let mut record = self.record(id)?;
        if !record.state.is_terminal() && change(&mut record) {
            changed.quiet.push(record);
        }
        Ok(())
    }

    /// Updates a part after a report on it. If the report was rejected or cancelled, the part is
    /// worked on again, and its parent and its dependents wait for the next report.
    fn follow_report(
        &self,
        changed: &mut Changed,
        parent: &str,
        part: &HandoffId,
        report: State,
    ) -> Result<(), Stop<E>> {
        let issue = &mut changed.issue;
        let is_turned_down = issue.unfollowed.contains(part);
        let whole = root(issue, parent).map(|task| task.handoff.clone());
        let mut tasks = issue.tasks.iter_mut();
        let task = tasks.find(|t| t.handoff == *part && t.parent.as_deref() == Some(parent));
        let (Some(task), Some(whole)) = (task, whole) else {
            return Ok(());
        };
        match (report, task.state) {
            (State::Rejected | State::Cancelled, TaskState::Completed) if is_turned_down => {
                task.state = TaskState::InProgress;
                let id = task.id.clone();
                let waiting = issue.tasks.iter().filter(|t| t.depends_on.contains(&id));
                let waiting: Vec<HandoffId> = waiting.map(|t| t.handoff.clone()).collect();
                for id in waiting {
                    self.change_quietly(changed, &id, |record| {
                        let waits = record.state == State::Pending;
                        record.waits_for.extend(waits.then(|| part.clone()));
                        waits
                    })?;
                }
                self.change_quietly(changed, &whole, |record| {
                    record.parts.push(part.clone());
                    record.parts.sort_by_key(HandoffId::number);
                    true
                })
            }
            (State::Pending, TaskState::InProgress) => {
                task.state = TaskState::Completed;
                self.free(changed, part)?;
                self.change_quietly(changed, &whole, |record| {
                    record.parts.retain(|id| id != part);
                    true
                })
            }
            _ => Ok(()),
        }
    }

    /// Updates a part's parent after a change of the part's handoff or of a report on it. The
    /// parent is completed when all parts are and the last report is completed.
    fn follow_part(
        &self,
        changed: &mut Changed,
        parent: &str,
        part: &HandoffId,
        state: State,
    ) -> Result<(), Stop<E>> {
        let Some(task) = root(&changed.issue, parent) else {
            return Ok(());
        };
        let whole = task.handoff.clone();
        self.change_quietly(changed, &whole, |record| {
            let had = record.parts.clone();
            record.parts.retain(|id| id != part);
            if !state.is_terminal() && !record.state.is_terminal() {
                record.parts.push(part.clone());
                record.parts.sort_by_key(HandoffId::number);
            }
            had != record.parts
        })?;
        if state != State::Completed || !is_done(&changed.issue, parent) {
            return Ok(());
        }
        // Not while a report on a part is still open, as when this step sends it.
        let is_open = |r: &Record| {
            let of = r.task.as_ref().and_then(|task| task.parent.as_deref());
            of == Some(parent) && !r.state.is_terminal()
        };
        if changed.records.iter().any(|r| r.id == whole || is_open(r)) {
            return Ok(());
        }
        let at = changed.quiet.iter().position(|r| r.id == whole);
        let mut record = match at {
            Some(at) => changed.quiet.swap_remove(at),
            None => self.record(&whole)?,
        };
        if record.state == State::InProgress && record.parts.is_empty() {
            let sent = changed.subject.clone();
            let args = EventArgs::default();
            self.advance(&mut record, Event::Complete, Some(&sent), &args)?;
            changed.records.push(record);
        } else if at.is_some() {
            changed.quiet.push(record);
        }
        Ok(())
    }

    /// Cancels the open parts of a cancelled handoff, for the same reason.
    pub(super) fn cancel_parts(
        &self,
        whole: &mut Record,
        args: &EventArgs,
    ) -> Result<Vec<Record>, Stop<E>> {
        let args = EventArgs {
            reason: args.reason.clone(),
            ..EventArgs::default()
        };
        let mut cancelled = Vec::new();
        for id in std::mem::take(&mut whole.parts) {
            let mut part = self.record(&id)?;
            // Handoffs of parts whose report was rejected have ended already.
            if part.state.is_terminal() {
                continue;
            }
            self.advance(&mut part, Event::Cancel, Some(&whole.id), &args)?;
            cancelled.push(part);
        }
        Ok(cancelled)
    }
}

/// Whether all parts of a task are completed, and were reported.
fn is_done(issue: &Issue, parent: &str) -> bool {
    let mut parts = issue
        .tasks
        .iter()
        .filter(|t| t.parent.as_deref() == Some(parent));
    parts.all(|t| t.state == TaskState::Completed && !issue.unfollowed.contains(&t.handoff))
}

/// Whether this is the handoff of a part of a task.
pub(super) fn is_part(issue: &Issue, id: &HandoffId) -> bool {
    let mut tasks = issue.tasks.iter();
    tasks.any(|t| t.handoff == *id && t.parent.is_some())
}

/// The handoff of the task that a contract completes or breaks down.
pub fn task_handoff(issue: &Issue, kind: &ContractType, contract: &Contract) -> Option<HandoffId> {
    let plan = kind.tasks.as_ref()?.read(&contract.value);
    let task = match &plan.completes {
        Some(done) => find(issue, plan.parent.as_deref(), done),
        None => root(issue, plan.parent.as_deref()?),
    };
    task.map(|task| task.handoff.clone())
}

/// The task with this name and parent.
fn find<'i>(issue: &'i Issue, parent: Option<&str>, id: &str) -> Option<&'i Task> {
    let mut tasks = issue.tasks.iter();
    tasks.find(|t| t.id == id && t.parent.as_deref() == parent)
}

/// A task without a parent.
fn root<'i>(issue: &'i Issue, id: &str) -> Option<&'i Task> {
    find(issue, None, id)
}

/// How a contract's tasks contradict the issue's.
pub(super) fn task_mismatches(
    issue: &Issue,
    fields: &TaskFields,
    plan: &TaskPlan,
    from: &AgentName,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = parent_fault(issue, plan, from)
        .map(|(code, text)| fault(code, &fields.parent, text))
        .into_iter()
        .collect();
    found.extend(planned_faults(issue, fields, plan));
    found.extend(
        completed_fault(issue, plan, from).map(|(code, text)| fault(code, &fields.completes, text)),
    );
    for id in &plan.siblings {
        if find(issue, plan.parent.as_deref(), id).is_none() {
            let text = format!("no task {} was handed over under its parent", quoted(id));
            found.push(fault(FindingCode::TaskOrphan, &fields.siblings, text));
        }
    }
    found
}

fn fault(code: FindingCode, pointer: &Option<String>, text: String) -> Finding {
    Finding::error(code, pointer.clone().unwrap_or_default(), text)
}

/// The open handoff of a task.
fn open_handoff<'i>(issue: &'i Issue, task: &Task) -> Option<&'i OpenHandoff> {
    issue.open.iter().find(|open| open.id == task.handoff)
}

/// Whether an agent can't send contracts of this type because they break down a task and it has
/// none.
pub(super) fn lacks_task(issue: &Issue, kind: &ContractType, from: &AgentName) -> bool {
    let breaks_down = |fields: &TaskFields| fields.parent.is_some() && fields.opens.is_some();
    let is_with_sender = |task: &Task| {
        let open = open_handoff(issue, task);
        task.state != TaskState::Completed && open.is_some_and(|open| open.to == *from)
    };
    let mut whole = issue.tasks.iter().filter(|task| task.parent.is_none());
    kind.tasks.as_ref().is_some_and(breaks_down) && !whole.any(is_with_sender)
}

/// Why a sender is not working on the task of an open handoff, if it is not.
fn not_at_work(task: &Task, open: &OpenHandoff, from: &AgentName) -> Option<String> {
    let OpenHandoff { to, state, .. } = open;
    (*state != State::InProgress || to != from).then(|| {
        let task = quoted(&task.id);
        format!("task {task} is {state} with {to}: {from} does not work on it")
    })
}

fn parent_fault(issue: &Issue, plan: &TaskPlan, from: &AgentName) -> Option<(FindingCode, String)> {
    let id = plan.parent.as_deref()?;
    let Some(task) = root(issue, id) else {
        let text = format!("no task {} was handed over in this issue", quoted(id));
        return Some((FindingCode::TaskOrphan, text));
    };
    let part = plan
        .completes
        .as_deref()
        .and_then(|part| find(issue, Some(id), part));
    let late = part.is_some_and(|part| issue.unfollowed.contains(&part.handoff));
    // The report on a part may be sent again after the task itself is completed.
    let text = if task.state == TaskState::Completed && !late {
        format!("task {} is completed", quoted(id))
    } else if plan.opens.is_empty() {
        return None;
    } else if let Some(open) = open_handoff(issue, task) {
        not_at_work(task, open, from)?
    } else {
        format!("nobody works on task {}", quoted(id))
    };
    Some((FindingCode::TaskState, text))
}

/// Faults of newly planned tasks: work on them has begun, their dependencies are unknown, or they
/// depend on one another.
fn planned_faults(issue: &Issue, fields: &TaskFields, plan: &TaskPlan) -> Vec<Finding> {
    let mut found = Vec::new();
    let parent = plan.parent.as_deref();
    for id in &plan.opens {
        // A part whose report was rejected or cancelled may also be planned again.
        let is_begun = |t: &&Task| t.state.is_begun() && !issue.unfollowed.contains(&t.handoff);
        if let Some(task) = find(issue, parent, id).filter(is_begun) {
            let text = format!("task {} is {} already", quoted(id), task.state.as_str());
            found.push(fault(FindingCode::TaskState, &fields.opens, text));
        }
        for on in plan.on(id) {
            if !plan.opens.contains(on) && find(issue, parent, on).is_none() {
                let (id, on) = (quoted(id), quoted(on));
                let text = format!("{id} depends on {on}, which is unknown");
                let code = FindingCode::TaskUnknownDependency;
                found.push(fault(code, &fields.dependencies, text));
            }
        }
    }
    // Tasks that were planned before may depend on the new ones.
    let mut all = plan.clone();
    for task in issue.tasks.iter().filter(|t| {
        t.parent.as_deref() == parent
            && t.state != TaskState::Completed
            && !plan.opens.contains(&t.id)
    }) {
        all.dependencies
            .insert(task.id.clone(), task.depends_on.clone());
    }
    if !plan.opens.is_empty()
        && let Some(circle) = all.circle()
    {
        let text = format!(
            "with what was planned before, the tasks wait for one another: {}",
            circle.join(" → ")
        );
        found.push(fault(FindingCode::TaskCycle, &fields.dependencies, text));
    }
    found
}

fn completed_fault(
    issue: &Issue,
    plan: &TaskPlan,
    from: &AgentName,
) -> Option<(FindingCode, String)> {
    let id = plan.completes.as_deref()?;
    let Some(task) = find(issue, plan.parent.as_deref(), id) else {
        let text = format!("no task {} was handed over under its parent", quoted(id));
        return Some((FindingCode::TaskOrphan, text));
    };
    let text = match open_handoff(issue, task) {
        Some(open) => not_at_work(task, open, from)?,
        // A part is completed before it is reported.
        None if issue.unfollowed.contains(&task.handoff) => return None,
        None => format!("task {} is {} already", quoted(id), task.state.as_str()),
    };
    Some((FindingCode::TaskState, text))
}
