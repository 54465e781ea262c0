//! Handoffs that await an agent: rejected or cancelled ones await their sender, an answer awaits its
//! requester, and completed work that was not sent on awaits its agent. One that lacks a person's
//! approval for its merge, or whose code was merged before its review, awaits that person. Two more
//! are only notices: to the agent that held cancelled work, and to the requester whose answer ended
//! the issue.
//!
//! Each step derives the list from the issue before it and the handoffs that it changes, so that
//! the tip shows what is stalled, without the history.

use std::rc::Rc;

use handoff_base::Edit;
use handoff_base::ids::HandoffId;
use handoff_protocol::{Event, State, Style, TaskState};

use crate::decision::{due, may_be_due};
use crate::planner::{Changed, Planner};
use crate::record::open_entry::awaiting_path;
use crate::record::{self, Awaiting, DaySpending, Issue, IssueStatus, Record, View};
use crate::step::{FileChanges, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Updates, after a step's changes, which handoffs are open and which await an agent.
    pub(super) fn await_somebody(&self, changed: &mut Changed) -> Result<(), Stop<E>> {
        self.list_open(changed)?;
        let before = changed.issue.awaiting.clone();
        let mut after = if changed.issue.status != IssueStatus::Open {
            Vec::new()
        } else {
            let mut after = Vec::new();
            for known in &before {
                if self.was_ended(known)? && !self.is_taken_up(changed, known)? {
                    after.push(known.clone());
                }
            }
            after.extend(self.ended_now(changed));
            after.append(&mut changed.again);
            let after = self.unfollowed(changed, after)?;
            if after.is_empty() && self.nothing_moves(changed)? {
                Vec::from_iter(self.last_resort(changed)?)
            } else {
                after
            }
        };
        let told = changed.issue.to_tell.clone();
        after.extend(self.due_from_persons(changed)?);
        let to_tell = self.to_tell(changed, &after);
        let (all_before, all_after) = ([before, told].concat(), [&*after, &to_tell].concat());
        changed.entries = self.entries(changed, &all_before, &all_after)?;
        changed.issue.awaiting = after;
        changed.issue.to_tell = to_tell;
        Ok(())
    }

    /// Like [`Planner::await_somebody`], for a step that changes the issue but no handoff. `again`
    /// is what awaited an agent before the issue was cancelled.
    pub(super) fn await_in_issue(
        &self,
        issue: Issue,
        again: Vec<Awaiting>,
    ) -> Result<(Issue, FileChanges), Stop<E>> {
        let mut changed = Changed::of(issue, self.id(1), Vec::new());
        changed.again = again;
        self.await_somebody(&mut changed)?;
        Ok((changed.issue, changed.entries))
    }

    /// Whether an entry was about an ended handoff of an open issue: others await persons, which
    /// each step decides anew.
    fn was_ended(&self, known: &Awaiting) -> Result<bool, Stop<E>> {
        let issue = self.view.shared_issue().map_err(Stop::Unreadable)?;
        let was_open = issue.is_some_and(|issue| issue.status == IssueStatus::Open);
        Ok(was_open && self.shared_record(&known.id)?.state.is_terminal())
    }

    /// The handoffs about which a person has to decide after the step.
    fn due_from_persons(&self, changed: &Changed) -> Result<Vec<Awaiting>, Stop<E>> {
        let issue = &changed.issue;
        if !may_be_due(self.protocol, issue) {
            return Ok(Vec::new());
        }
        let after = After {
            view: self.view,
            issue: Rc::new(issue.clone()),
            records: changed.records.iter().chain(&changed.quiet).collect(),
        };
        // While an issue is open, only what is open in it can be due.
        let numbers: Vec<u32> = match issue.status {
            IssueStatus::Open => issue.open.iter().map(|open| open.id.number()).collect(),
            _ => (1..=issue.handoffs).collect(),
        };
        let mut found = Vec::new();
        for number in numbers {
            let due = due(&after, self.protocol, issue, number).map_err(Stop::Unreadable)?;
            let id = self.id(number);
            found.extend(due.map(|due| Awaiting {
                id,
                agent: due.agent,
            }));
        }
        Ok(found)
    }

    /// Whether the step deals with an ended handoff: it sends on from it, replaces it, or is the
    /// requester's next step after an answer.
    fn is_taken_up(&self, changed: &Changed, known: &Awaiting) -> Result<bool, Stop<E>> {
        let ended = self.changed_record(changed, &known.id)?;
        let sent = changed.records.iter().filter(|record| is_new(record));
        let replaces = |new: &Record| {
            ended.state != State::Completed
                && !is_note(new)
                && new.from == ended.from
                && new.follows == ended.follows
                && new.task == ended.task
        };
        // When work starts over, earlier handoffs no longer await anybody.
        let restarts = |new: &Record| {
            let relays = self.protocol.definition().style() == Style::Relay;
            let begins = new.follows.is_none() && !new.state.is_terminal();
            relays && begins && changed.issue.open.len() == 1
        };
        let mut takes = sent.filter(|new| {
            let follows = new.follows.as_ref() == Some(&ended.id);
            restarts(new) || new.from == known.agent && (follows || replaces(new))
        });
        if takes.next().is_some() {
            return Ok(true);
        }
        let acts = |record: &Record| {
            let last = record.transitions.last();
            last.is_some_and(|t| {
                t.by == known.agent && !matches!(t.event, Some(Event::Claim | Event::Expire))
            })
        };
        Ok(ended.answers.is_some() && changed.records.iter().any(acts))
    }

    /// The agents to notify, except the one that acts.
    fn to_tell(&self, changed: &Changed, after: &[Awaiting]) -> Vec<Awaiting> {
        let mut found = changed.issue.to_tell.clone();
        let is_over = changed.issue.status == IssueStatus::Completed;
        let calls = self.protocol.definition().style() == Style::Call;
        for record in &changed.records {
            let is_answer = is_new(record) && record.answers.is_some();
            let agent = match record.state {
                State::Completed if is_over && calls && is_answer => Some(&record.to),
                State::Cancelled if is_over && calls => Some(&record.from),
                _ => None,
            };
            let under = record.cancelled_under().filter(|to| **to != record.from);
            found.extend(agent.into_iter().chain(under).map(|agent| Awaiting {
                id: record.id.clone(),
                agent: agent.clone(),
            }));
        }
        found.retain(|one| one.agent != self.step.by && !after.contains(one));
        found.sort_by_key(|one| one.id.number());
        found.dedup();
        found
    }

    /// The handoffs that this step ended and that await an agent.
    fn ended_now(&self, changed: &Changed) -> Vec<Awaiting> {
        let goes_on = !changed.issue.open.is_empty();
        let ended = changed.records.iter().filter_map(|record| {
            let last = record.latest()?;
            let agent = match (record.state, &last.sent) {
                (State::Completed, _) if is_new(record) && record.answers.is_some() => &record.to,
                (State::Rejected, None) => &record.from,
                // An agent that cancels its own handoff needs no entry, unless nothing is left to
                // do.
                (State::Cancelled, None) if !goes_on || record.from != self.step.by => &record.from,
                _ => return None,
            };
            Some(Awaiting {
                id: record.id.clone(),
                agent: agent.clone(),
            })
        });
        ended.collect()
    }

    /// Adds the completed handoffs without a successor. If the successor was rejected or cancelled,
    /// that one has an entry instead.
    fn unfollowed(
        &self,
        changed: &Changed,
        awaiting: Vec<Awaiting>,
    ) -> Result<Vec<Awaiting>, Stop<E>> {
        let mut found = Vec::new();
        let mut told = Vec::new();
        for known in awaiting {
            let ended = self.changed_record(changed, &known.id)?;
            if ended.state != State::Completed {
                told.extend(ended.follows);
            } else if ended.answers.is_none() {
                continue;
            }
            found.push(known);
        }
        for id in &changed.issue.unfollowed {
            if !told.contains(id) {
                let agent = self.changed_record(changed, id)?.to;
                let id = id.clone();
                found.push(Awaiting { id, agent });
            }
        }
        found.sort_by_key(|awaiting| awaiting.id.number());
        Ok(found)
    }

    /// Whether the only open tasks were broken down, and all their parts have ended.
    fn nothing_moves(&self, changed: &Changed) -> Result<bool, Stop<E>> {
        let broken_down = |id: &HandoffId| {
            let mut tasks = changed.issue.tasks.iter();
            tasks.any(|task| task.handoff == *id && task.state == TaskState::BrokenDown)
        };
        for open in &changed.issue.open {
            let is_whole = open.state == State::InProgress && broken_down(&open.id);
            if !is_whole || !self.changed_record(changed, &open.id)?.parts.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The entry for an issue in which nothing is open and nobody is awaited: the newest handoff
    /// whose agent may send, else the newest. Notes don't count.
    fn last_resort(&self, changed: &Changed) -> Result<Option<Awaiting>, Stop<E>> {
        let mut newest = None;
        for number in (1..=changed.issue.handoffs).rev() {
            let record = self.changed_record(changed, &self.id(number))?;
            if is_note(&record) {
                continue;
            }
            let agent = match record.state {
                State::Completed => record.to,
                _ => record.from,
            };
            let may_send = !self.protocol.receivers(agent.as_str()).is_empty();
            let id = record.id;
            let one = Awaiting { id, agent };
            if may_send {
                return Ok(Some(one));
            }
            newest = newest.or(Some(one));
        }
        Ok(newest)
    }

    /// The files of the entries to add, to change and to remove.
    fn entries(
        &self,
        changed: &Changed,
        before: &[Awaiting],
        after: &[Awaiting],
    ) -> Result<FileChanges, Stop<E>> {
        let mut files = FileChanges::new();
        let path = |one: &Awaiting| awaiting_path(&one.id, &one.agent);
        for gone in before.iter().filter(|one| !after.contains(one)) {
            files.push((path(gone), Edit::Gone));
        }
        for one in after {
            let mut records = changed.records.iter().chain(&changed.quiet);
            if !before.contains(one) || records.any(|record| record.id == one.id) {
                let stored = record::write(&self.changed_record(changed, &one.id)?);
                files.push((path(one), Edit::Bytes(stored)));
            }
        }
        Ok(files)
    }

    /// A handoff's record after the step.
    fn changed_record(&self, changed: &Changed, id: &HandoffId) -> Result<Record, Stop<E>> {
        let mut known = changed.records.iter().chain(&changed.quiet);
        match known.find(|record| record.id == *id) {
            Some(record) => Ok(record.clone()),
            None => self.record(id),
        }
    }
}

/// An issue as it is after a step.
struct After<'a, V> {
    /// The issue before it.
    view: &'a V,
    issue: Rc<Issue>,
    /// The records that the step changes.
    records: Vec<&'a Record>,
}

impl<E, V: View<E>> View<E> for After<'_, V> {
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, E> {
        Ok(Some(Rc::clone(&self.issue)))
    }

    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, E> {
        let mut changed = self.records.iter();
        match changed.find(|record| record.id.number() == number) {
            Some(record) => Ok(Some(Rc::new((*record).clone()))),
            None => self.view.shared_record(number),
        }
    }

    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, E> {
        self.view.sent_before(bytes)
    }

    fn spent_on(&self, day: &str) -> Result<Option<DaySpending>, E> {
        self.view.spent_on(day)
    }

    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, E> {
        self.view.contract(record)
    }
}

/// Whether a handoff ended when it was sent, without being an answer.
fn is_note(record: &Record) -> bool {
    let first = record.transitions.first();
    first.is_some_and(|first| first.to.is_terminal()) && record.answers.is_none()
}

/// Whether this step created the record.
fn is_new(record: &Record) -> bool {
    record.transitions.len() == 1
}
