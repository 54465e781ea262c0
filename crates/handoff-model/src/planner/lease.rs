//! Leases and deadlines to claim: their length, extension and expiry.

use std::collections::BTreeSet;

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_protocol::{Event, LONGEST, State};

use crate::planner::{Changed, Planner, trail};
use crate::record::{
    Failure, Issue, Lease, NOT_ACKNOWLEDGED, OpenHandoff, Progress, Record, TIMED_OUT, Transition,
    View,
};
use crate::refusal::{ClaimEnd, Holding, LeaseRefusal, Refusal, StateRefusal};
use crate::step::{EventArgs, Planned, Stop};

/// The open handoffs of an issue that are past their deadline, except those that a pause holds
/// back.
pub(super) fn overdue(issue: &Issue, at: Moment) -> impl Iterator<Item = &OpenHandoff> {
    issue.open.iter().filter(move |open| {
        let is_over = open.expires_at.is_some_and(|end| end <= at);
        is_over && issue.held_back(&open.to).is_none()
    })
}

/// Whether an agent is working on a handoff of an issue, rather than waiting for others.
fn is_at_work(issue: &Issue, agent: &AgentName) -> bool {
    issue.held_by(agent).any(|open| open.expires_at.is_some())
}

impl<E, V: View<E>> Planner<'_, E, V> {
    /// The lease of a new claim or takeover.
    pub(super) fn lease(&self, record: &Record, args: &EventArgs) -> Result<Lease, LeaseRefusal> {
        let Some(worker) = self.step.worker.as_ref() else {
            return Err(LeaseRefusal::NoWorker(record.id.clone()));
        };
        let seconds = self.length(record, args)?;
        // If the work waits for others, the lease has no deadline, also for a new worker.
        let waits = |lease: &Lease| lease.seconds.is_some() && lease.expires_at.is_none();
        let length = seconds.filter(|_| !record.lease.as_ref().is_some_and(waits));
        Ok(Lease {
            holder: self.step.by.clone(),
            worker: worker.clone(),
            since: self.step.at,
            token: record.claims().saturating_add(1),
            seconds,
            expires_at: length.map(|seconds| self.step.at.later(seconds)),
            progress: None,
        })
    }

    /// Sets the deadlines to claim: for handoffs that the step changes, and for agents that begin
    /// or end work.
    pub(super) fn await_claims(&self, changed: &mut Changed) -> Result<(), Stop<E>> {
        let Changed {
            issue,
            records,
            quiet,
            goes_on,
            ..
        } = changed;
        let moved = records.iter().chain(quiet.iter()).filter(|_| !*goes_on);
        let moved: BTreeSet<AgentName> = moved.map(|record| record.to.clone()).collect();
        for open in issue.open.iter().filter(|open| {
            // Only what must change: an agent at work has no deadlines to claim, an idle one has.
            let is_bound = open.expires_at.is_some() == is_at_work(issue, &open.to);
            open.state == State::Pending && is_bound && moved.contains(&open.to)
        }) {
            if records.iter().chain(quiet.iter()).all(|r| r.id != open.id) {
                let mut record = self.record(&open.id)?;
                let until = self.claim_by(issue, records, &record)?;
                if record.acknowledge_by != until {
                    record.acknowledge_by = until;
                    quiet.push(record);
                }
            }
        }
        for i in 0..records.len() {
            records[i].acknowledge_by = self.claim_by(issue, records, &records[i])?;
        }
        for record in quiet {
            record.acknowledge_by = self.claim_by(issue, records, record)?;
        }
        Ok(())
    }

    /// The deadline to claim a handoff; `None` if it can't be claimed yet, or its receiver has
    /// shown that it is there: by working in the issue, or by claiming another task of the same
    /// contract.
    fn claim_by(
        &self,
        issue: &Issue,
        changed: &[Record],
        record: &Record,
    ) -> Result<Option<Moment>, Stop<E>> {
        // An imported handoff has not been offered here yet.
        let is_old = record.imported.is_some() && record.transitions.len() == 1;
        if record.state != State::Pending || !record.waits_for.is_empty() || is_old {
            return Ok(None);
        }
        let to = record.intended.as_ref().unwrap_or(&record.to);
        let seconds = self.protocol.acknowledge_seconds(
            record.from.as_str(),
            to.as_str(),
            &record.contract_type,
            record.acknowledge_seconds,
        );
        let Some(seconds) = seconds else {
            return Ok(record.acknowledge_by);
        };
        if is_at_work(issue, &record.to) || self.is_acknowledged(issue, changed, record)? {
            return Ok(None);
        }
        let since = record
            .not_before
            .map_or(self.step.at, |at| at.max(self.step.at));
        Ok(record.acknowledge_by.or(Some(since.later(seconds))))
    }

    /// Whether the receiver of a handoff has claimed another one of the same contract.
    fn is_acknowledged(
        &self,
        issue: &Issue,
        changed: &[Record],
        record: &Record,
    ) -> Result<bool, Stop<E>> {
        let is_claimed = |other: &Record| {
            other.contract.file == record.contract.file
                && other.to == record.to
                && other.claims() > 0
        };
        let is_new = |new: &Record| new.id == record.id && new.transitions.len() == 1;
        if changed.iter().any(is_new) {
            return Ok(false);
        }
        let parent = record.task.as_ref().map(|task| &task.parent);
        let tasks = issue.tasks.iter().filter(|t| Some(&t.parent) == parent);
        for task in tasks.filter(|task| task.handoff != record.id) {
            let claimed = match changed.iter().find(|other| other.id == task.handoff) {
                Some(other) => is_claimed(other),
                None => is_claimed(&*self.shared_record(&task.handoff)?),
            };
            if claimed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The length of a lease that starts now, in seconds; `None` is unlimited.
    fn length(&self, record: &Record, args: &EventArgs) -> Result<Option<u64>, LeaseRefusal> {
        let own = self.usual_length(record);
        let most = self.longest(record);
        if args.lease.is_some_and(|asked| asked == 0 || asked > most) {
            let id = record.id.clone();
            return Err(LeaseRefusal::Length { id, most });
        }
        Ok(args.lease.or(own))
    }

    /// The maximum length of a lease, in seconds.
    fn longest(&self, record: &Record) -> u64 {
        let time = self.protocol.definition().limits.as_ref();
        let longest = time.and_then(|time| time.longest_lease_seconds);
        let longest = longest.unwrap_or(LONGEST);
        // A length that the contract or the protocol sets is always allowed, even if longer.
        longest.max(self.usual_length(record).unwrap_or(0))
    }

    fn usual_length(&self, record: &Record) -> Option<u64> {
        let agent = record.to.as_str();
        self.protocol.lease_seconds(agent, record.timeout_seconds)
    }

    /// Refuses a release that delays the next claim for longer than the longest lease.
    pub(super) fn ensure_can_release(
        &self,
        record: &Record,
        args: &EventArgs,
    ) -> Result<(), LeaseRefusal> {
        let most = self.longest(record);
        match args.after {
            Some(after) if after == 0 || after > most => Err(LeaseRefusal::After {
                id: record.id.clone(),
                most,
            }),
            _ => Ok(()),
        }
    }

    /// Extends a lease, and records the progress that its holder reports.
    pub(super) fn extend(
        &self,
        issue: Issue,
        mut record: Record,
        args: &EventArgs,
    ) -> Result<Planned, Stop<E>> {
        let from = record.state;
        let illegal = |illegal| StateRefusal::illegal(record.id.clone(), illegal);
        from.on(Event::Extend).map_err(illegal)?;
        let asked = EventArgs {
            lease: args.lease.or(record.lease.as_ref().and_then(|l| l.seconds)),
            ..EventArgs::default()
        };
        let seconds = self.length(&record, &asked)?;
        let end = seconds.map(|seconds| self.step.at.later(seconds));
        let at = self.step.at;
        let is_news = self.report_usage(&mut record)?;
        let Some(lease) = &mut record.lease else {
            let id = record.id;
            return Err(Refusal::no_handoff(&id).into());
        };
        let mut extended = lease.clone();
        // A holder that waits for others has no deadline. An extension never shortens a lease.
        if extended.expires_at.is_some() && end > extended.expires_at {
            (extended.seconds, extended.expires_at) = (seconds, end);
        }
        if let Some(text) = &args.progress
            && extended.progress.as_ref().is_none_or(|p| p.text != *text)
        {
            let text = text.clone();
            extended.progress = Some(Progress { at, text });
        }
        if extended == *lease && !is_news {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        let reported = extended.progress.clone();
        let news = reported.filter(|report| lease.progress.as_ref() != Some(report));
        *lease = extended;
        let account = trail::extension(&record, at, news.as_ref());
        if let Some(news) = news {
            record.report(news);
        }
        let mut changed = Changed {
            goes_on: true,
            ..Changed::of(issue, record.id.clone(), vec![record])
        };
        self.list_open(&mut changed)?;
        Ok(Planned::Write(Box::new(self.commit(changed, &account)?)))
    }

    /// The failure that is recorded when a lease or the time to claim runs out.
    pub(super) fn expired(&self, record: &Record) -> Result<Failure, Refusal> {
        let Some(end) = record.expires_at().filter(|end| *end <= self.step.at) else {
            return Err(LeaseRefusal::NotOverdue(record.id.clone()).into());
        };
        // It is recorded, and earlier ledgers have it in this form.
        let end = end.rfc3339();
        let (code, message) = match &record.lease {
            Some(lease) => (
                TIMED_OUT,
                format!(
                    "{} was not done in time: its lease ran out at {end}",
                    lease.holder
                ),
            ),
            None => (
                NOT_ACKNOWLEDGED,
                format!("{} did not claim it in time: it had until {end}", record.to),
            ),
        };
        let progress = record.lease.as_ref().and_then(|l| l.progress.as_ref());
        let failure = Failure {
            code: code.to_owned(),
            message,
            details: progress.map(|p| format!("the last it said: {}", p.text)),
            recoverable: true,
            suggested_action: None,
            no_retry: false,
            run: None,
        };
        let reported = self.reported(Some(&failure))?;
        Ok(reported.unwrap_or(failure))
    }

    /// Whether the actor holds a lease.
    fn is_holder(&self, lease: &Lease) -> bool {
        lease.holder == self.step.by && self.step.worker.as_ref() == Some(&lease.worker)
    }

    /// Whether the actor holds the handoff already, so that a claim repeats its own.
    pub(super) fn holds(&self, record: &Record) -> bool {
        let lease = record.lease.as_ref();
        lease.is_some_and(|lease| self.is_holder(lease)) && !record.is_expired(self.step.at)
    }

    /// Whether the actor made this claim.
    fn is_own_claim(&self, transition: &Transition) -> bool {
        let worker = self.step.worker.as_ref();
        transition.event.is_some_and(Event::is_claim)
            && transition.by == self.step.by
            && (worker.is_none() || transition.worker.as_ref() == worker)
    }

    /// How the actor's newest claim of a handoff ended, if it did.
    pub(super) fn claim_end(&self, record: &Record) -> Option<ClaimEnd> {
        let all = &record.transitions;
        let claim = all.iter().rposition(|t| self.is_own_claim(t))?;
        let mut since = all[claim + 1..].iter();
        let end = since.find(|t| t.from == Some(State::InProgress))?;
        match end.event? {
            Event::Expire => Some(ClaimEnd::RanOut(end.at)),
            Event::TakeOver => Some(ClaimEnd::TakenOver(Box::new(end.clone()))),
            _ => None,
        }
    }

    /// Refuses to take over without a reason, or from the actor itself.
    pub(super) fn ensure_can_take_over(
        &self,
        record: &Record,
        args: &EventArgs,
    ) -> Result<(), LeaseRefusal> {
        let id = || record.id.clone();
        match &record.lease {
            Some(lease) if self.is_holder(lease) => Err(LeaseRefusal::OwnClaim {
                id: id(),
                worker: lease.worker.clone(),
                since: lease.since,
            }),
            _ if args.reason.is_none() => Err(LeaseRefusal::NoReason(id())),
            _ => Ok(()),
        }
    }

    /// Refuses a caller that does not hold the handoff: another worker of its agent does, its token
    /// is outdated, or its lease expired.
    pub(super) fn ensure_lease_held(
        &self,
        record: &Record,
        token: Option<u32>,
    ) -> Result<(), LeaseRefusal> {
        let agent = &self.step.by;
        let lease = record.lease.as_ref();
        if let Some(lease) = lease.filter(|lease| lease.holder == *agent) {
            if !self.is_holder(lease) {
                return Err(LeaseRefusal::HeldByWorker(Holding::of(record, lease)));
            }
            if token.is_none_or(|token| token == lease.token) {
                return Ok(());
            }
        }
        let end = self.claim_end(record);
        if token.is_none() && end.is_none() {
            return Ok(());
        }
        // A handoff that ended for another reason reports that reason.
        let mut claims = record.transitions.iter().rev();
        let newest = claims.find(|t| t.event.is_some_and(Event::is_claim));
        if token.is_none()
            && record.state.is_terminal()
            && record.to == *agent
            && newest.is_some_and(|claim| self.is_own_claim(claim))
        {
            return Ok(());
        }
        Err(LeaseRefusal::Lost {
            id: record.id.clone(),
            agent: agent.clone(),
            token,
            end,
            state: record.state,
            holder: lease.map(|lease| Box::new((lease.holder.clone(), lease.token))),
        })
    }

    /// Removes the end of the lease of a holder that waits for others; returns whether it had one.
    pub(super) fn hold(&self, record: &mut Record) -> bool {
        let lease = record
            .lease
            .as_mut()
            .filter(|_| record.state == State::InProgress);
        lease.is_some_and(|lease| lease.expires_at.take().is_some())
    }
}
