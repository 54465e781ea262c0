//! Pausing an issue, so that nobody is offered its work, and resuming it.
//!
//! No handoff changes: work that is held continues and can be sent on, and pending work waits.
//! While a pause holds work back, its deadlines don't pass.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Edit, Moment};
use handoff_protocol::{Event, State};

use crate::layout;
use crate::planner::{Changed, Planner, lease, trail};
use crate::record::{self, Halt, Issue, Paused, Record, Resumed, VERSION, View};
use crate::refusal::{Refusal, RoleRefusal, StateRefusal};
use crate::step::{FileChanges, Planned, StepEvent, Stop};

const PAUSE: &str = "pause or resume";

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Pauses an open issue, except for some agents. A new pause replaces the old one.
    pub(super) fn pause(
        &self,
        mut issue: Issue,
        reason: &str,
        except: &[AgentName],
        said_at: Option<Moment>,
    ) -> Result<Planned, Stop<E>> {
        let record = self.record(&self.id(issue.handoffs))?;
        let file = self.begin_pause(&mut issue, &record, reason, (except, &[]), said_at)?;
        let Some(file) = file else {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        };
        let account = trail::remark(StepEvent::Pause, self.key, "paused", reason);
        let transition = format!("{} open..paused", self.key);
        let message = self.message(&issue, &record, &[transition], &account);
        let mut planned = self.in_the_issue(issue, record, message)?;
        if let Planned::Write(step) = &mut planned {
            step.files.push(file);
        }
        Ok(planned)
    }

    /// Pauses the issue; returns the file that records it, or `None` if the issue is already paused
    /// the same way.
    pub(super) fn begin_pause(
        &self,
        issue: &mut Issue,
        about: &Record,
        reason: &str,
        (except, after): (&[AgentName], &[IssueKey]),
        said_at: Option<Moment>,
    ) -> Result<Option<(String, Edit)>, Stop<E>> {
        let mut agents = Vec::with_capacity(except.len());
        for name in except {
            let agent = self.protocol.agent(name.as_str());
            let agent = agent.ok_or_else(|| Refusal::unknown_agent(name, self.protocol))?;
            agents.push(agent.id.clone());
        }
        agents.sort();
        agents.dedup();
        for key in after {
            if self.ended(key)?.is_none() || key == self.key {
                return Err(Refusal::no_issue(key).into());
            }
        }
        let paused = Paused {
            version: VERSION,
            at: self.step.at,
            by: self.step.by.clone(),
            reason: reason.to_owned(),
            said_at,
            except: agents,
            after: after.to_vec(),
        };
        let again = |known: &Paused| {
            let at = known.at;
            *known
                == Paused {
                    at,
                    ..paused.clone()
                }
        };
        if issue.paused.as_ref().is_some_and(again) {
            return Ok(None);
        }
        self.ensure_open(issue)?;
        self.ensure_may_pause(about, PAUSE)?;
        self.ensure_newest(said_at, issue.goes_on_since(), "reopened")?;
        self.ensure_newest(said_at, issue.paused.as_ref().map(Paused::since), "paused")?;
        let stored = record::write(&paused);
        issue.paused = Some(paused);
        Ok(Some((layout::paused_file(self.key), Edit::Bytes(stored))))
    }

    /// Records an outside event that resumes an issue that is not paused, so that an older pause
    /// that arrives later has no effect.
    pub(super) fn go_on(
        &self,
        mut issue: Issue,
        reason: &str,
        said_at: Moment,
    ) -> Result<Planned, Stop<E>> {
        let record = self.record(&self.id(issue.handoffs))?;
        self.ensure_may_pause(&record, PAUSE)?;
        let is_known = |since: Moment| said_at.timestamp() <= since.timestamp();
        if issue.goes_on_since().is_some_and(is_known) {
            return Err(StateRefusal::NotCompleted(self.key.clone()).into());
        }
        self.resumed(&mut issue, None, reason, Some(said_at));
        let account = trail::remark(StepEvent::Reopen, self.key, "stays open", reason);
        let transition = format!("{} open..open", self.key);
        let message = self.message(&issue, &record, &[transition], &account);
        self.in_the_issue(issue, record, message)
    }

    pub(super) fn resumed(
        &self,
        issue: &mut Issue,
        paused: Option<Paused>,
        reason: &str,
        said_at: Option<Moment>,
    ) {
        issue.resumed.push(Resumed {
            at: self.step.at,
            by: self.step.by.clone(),
            reason: reason.to_owned(),
            said_at,
            paused,
        });
    }

    /// Ends the pause of an issue. Work that was held back gets its full time to be claimed.
    pub(super) fn end_pause(
        &self,
        mut issue: Issue,
        paused: Paused,
        reason: &str,
        said_at: Option<Moment>,
    ) -> Result<Planned, Stop<E>> {
        let about = self.record(&self.id(issue.handoffs))?;
        self.ensure_may_pause(&about, PAUSE)?;
        self.ensure_newest(said_at, Some(paused.since()), "paused")?;
        let waiting = self.held_back(&issue, &paused)?;
        self.resumed(&mut issue, Some(paused), reason, said_at);
        let mut changed = Changed::of(issue, self.id(1), Vec::new());
        changed.quiet = waiting;
        self.await_somebody(&mut changed)?;
        let Changed {
            issue,
            quiet,
            entries: mut files,
            ..
        } = changed;
        for record in &quiet {
            let before = self.shared_record(&record.id)?;
            if before.acknowledge_by != record.acknowledge_by {
                self.put(&mut files, record)?;
            }
        }
        let about = quiet
            .into_iter()
            .find(|r| r.id == about.id)
            .unwrap_or(about);
        let account = trail::remark(StepEvent::Reopen, self.key, "resumed", reason);
        let transition = format!("{} paused..open", self.key);
        let message = self.message(&issue, &about, &[transition], &account);
        files.push((layout::paused_file(self.key), Edit::Gone));
        Ok(self.issue_written(issue, files, about, message))
    }

    /// The work that a pause held back, without its deadlines to be claimed.
    pub(super) fn held_back(&self, issue: &Issue, paused: &Paused) -> Result<Vec<Record>, Stop<E>> {
        let mut waiting = Vec::new();
        for open in &issue.open {
            if open.state == State::Pending && paused.holds_back(&open.to) {
                let mut record = self.record(&open.id)?;
                if record.acknowledge_by.take().is_some() {
                    waiting.push(record);
                }
            }
        }
        Ok(waiting)
    }

    /// Whether the actor ended the last pause with this reason.
    pub(super) fn was_resumed(&self, issue: &Issue, reason: &str) -> bool {
        let last = issue.resumed.last();
        last.is_some_and(|last| last.by == self.step.by && last.reason == reason)
    }

    /// Removes the pause of an issue that ended; returns the file to remove.
    pub(super) fn no_longer_paused(&self, issue: &mut Issue) -> FileChanges {
        let ended = issue.status != record::IssueStatus::Open;
        let gone = (layout::paused_file(self.key), Edit::Gone);
        match issue.paused.take_if(|_| ended) {
            Some(_) => vec![gone],
            None => Vec::new(),
        }
    }

    /// Refuses to offer an agent work that a pause holds back.
    pub(super) fn ensure_not_paused(
        &self,
        issue: &Issue,
        agent: &AgentName,
    ) -> Result<(), StateRefusal> {
        // For a pause that waits for other issues, see `ensure_preceded`.
        match issue.held_back(agent) {
            Some(paused) if paused.after.is_empty() => self.ensure_going(issue, agent),
            _ => Ok(()),
        }
    }

    fn ensure_going(&self, issue: &Issue, agent: &AgentName) -> Result<(), StateRefusal> {
        match issue.held_back(agent) {
            None => Ok(()),
            Some(paused) => Err(StateRefusal::Paused {
                issue: self.key.clone(),
                agent: self.step.by.clone(),
                may_resume: self.leads(),
                paused: Box::new(paused.clone()),
            }),
        }
    }

    /// Refuses to offer an agent work that a ledger-wide pause holds back.
    fn ensure_not_halted(&self, agent: &AgentName) -> Result<(), Stop<E>> {
        match self.halted(agent)? {
            None => Ok(()),
            Some(halt) => Err(StateRefusal::Halted {
                agent: self.step.by.clone(),
                may_resume: self.leads(),
                halt: Box::new(halt),
            }
            .into()),
        }
    }

    /// Refuses to offer, or to expire, work that a ledger-wide pause or an issue before it holds
    /// back.
    pub(super) fn ensure_handed_out(
        &self,
        issue: &Issue,
        record: &Record,
        event: Event,
    ) -> Result<(), Stop<E>> {
        let expires = event == Event::Expire;
        if event.is_claim() || expires && record.state == State::Pending {
            self.ensure_not_halted(&record.to)?;
        }
        if event.is_claim() || expires {
            self.ensure_preceded(issue, &record.to)?;
        }
        Ok(())
    }

    /// Refuses to offer an agent work of an issue that comes after issues that are still open.
    fn ensure_preceded(&self, issue: &Issue, agent: &AgentName) -> Result<(), Stop<E>> {
        let Some(paused) = issue.held_back(agent) else {
            return Ok(());
        };
        for key in &paused.after {
            if self.ended(key)? != Some(true) {
                self.ensure_going(issue, agent)?;
            }
        }
        Ok(())
    }

    fn ended(&self, key: &IssueKey) -> Result<Option<bool>, Stop<E>> {
        self.view.ended(key).map_err(Stop::Unreadable)
    }

    /// When work is claimed after the issues before it have ended, ends the pause that waited for
    /// them.
    pub(super) fn go_on_after(&self, issue: &mut Issue, event: Event) -> FileChanges {
        let is_over = |paused: &mut Paused| event.is_claim() && !paused.after.is_empty();
        let Some(paused) = issue.paused.take_if(is_over) else {
            return Vec::new();
        };
        self.resumed(issue, Some(paused), "the issues before it have ended", None);
        vec![(layout::paused_file(self.key), Edit::Gone)]
    }

    /// The ledger-wide pause that holds an agent back, if any.
    fn halted(&self, agent: &AgentName) -> Result<Option<Halt>, Stop<E>> {
        let halts = self.view.halts().map_err(Stop::Unreadable)?;
        let name = self.protocol.name();
        Ok(halts.into_iter().find(|halt| halt.holds_back(agent, name)))
    }

    /// The first open handoff that is past its deadline. A pause stops deadlines; a ledger-wide
    /// pause stops only those of unclaimed work.
    pub(super) fn overdue(&self, issue: &Issue) -> Result<Option<HandoffId>, Stop<E>> {
        for open in lease::overdue(issue, self.step.at) {
            if open.state != State::Pending || self.halted(&open.to)?.is_none() {
                return Ok(Some(open.id.clone()));
            }
        }
        Ok(None)
    }

    /// Refuses an outside event that is older than the last one. GitHub's times are in whole
    /// seconds.
    fn ensure_newest(
        &self,
        said_at: Option<Moment>,
        since: Option<Moment>,
        done: &'static str,
    ) -> Result<(), StateRefusal> {
        match said_at.zip(since) {
            Some((said_at, since)) if said_at.timestamp() < since.timestamp() => {
                Err(StateRefusal::SaidEarlier {
                    issue: self.key.clone(),
                    said_at,
                    done,
                    since,
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses an agent that may not do this to the issue.
    pub(super) fn ensure_may_pause(&self, last: &Record, done: &str) -> Result<(), Stop<E>> {
        let first = match last.id.number() {
            1 => last.clone(),
            _ => self.record(&self.id(1))?,
        };
        if self.may_pause(&first) {
            return Ok(());
        }
        Err(RoleRefusal::NotPausedBy {
            done: done.into(),
            issue: self.key.clone(),
            agent: self.step.by.clone(),
            sender: first.from,
        }
        .into())
    }

    /// Whether the actor may pause and resume an issue: an orchestrator, a person, or the sender of
    /// its first handoff.
    pub(super) fn may_pause(&self, first: &Record) -> bool {
        self.leads() || self.step.by == first.from
    }
}
