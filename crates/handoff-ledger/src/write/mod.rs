//! Writing: load the tip, plan, prepare, publish by compare-and-swap; if the tip moved, plan again
//! on the new one.

mod publication;

use std::time::Instant;

use chrono::{DateTime, FixedOffset};
use handoff_base::finding::Finding;
use handoff_base::{Moment, ObjectId, to_second};
use handoff_git::{Prepared, Proposal, PublishError, Queue};
use handoff_model::{LeaseRefusal, Receipt, Refusal};

use super::archive_step::unarchive_step;
use super::draft::{Decided, Draft};
use super::error::{LedgerError, WriteError};
use super::ledger::{Ledger, in_turn};
use super::order;
use super::origin::{MADE_OFFLINE, SYNCED_FROM};
use super::session::{Session, author};
use super::signing::signed;
use super::snapshot::{SHAPE, Snapshot};
use super::upstream::Upstream;

/// The result of a write.
#[derive(Debug)]
#[non_exhaustive]
pub struct Done {
    /// The outcome of the request.
    pub receipt: Receipt,
    /// The commit that recorded it; `None` for a repeat.
    pub commit: Option<ObjectId>,
    /// Findings that did not prevent it.
    pub warnings: Vec<Finding>,
    /// The code branch that was pushed to `origin` for it.
    pub pushed: Option<String>,
}

impl<'r> Ledger<'r> {
    pub(super) fn publish(
        &mut self,
        session: &Session,
        mut decide: impl FnMut(&Self, &Snapshot<'r>, Moment) -> Decided<Receipt>,
    ) -> Result<Done, LedgerError> {
        let mut misdated = None;
        let (receipt, commit) = self.write(session, |ledger, tip, at| {
            misdated = tip.misdated(session.now());
            decide(ledger, tip, at)
        })?;
        Ok(Done {
            receipt,
            commit,
            warnings: misdated.into_iter().collect(),
            pushed: None,
        })
    }

    /// The write path: decides on the tip, publishes, and repeats if the tip moved. With a remote,
    /// this process holds its lock until the end.
    pub(super) fn write<T>(
        &mut self,
        session: &Session,
        decide: impl FnMut(&Self, &Snapshot<'r>, Moment) -> Decided<T>,
    ) -> Result<(T, Option<ObjectId>), LedgerError> {
        self.guard(session)?;
        if self.is_rehearsed() {
            return self.attempt(session, decide);
        }
        // Opening a ledger for writing synchronizes it once and reports the outcome.
        debug_assert!(self.upstream().is_none_or(Upstream::is_settled));
        if let Some(upstream) = self.upstream_mut() {
            upstream.ensure_turn(session);
        }
        let written = self.attempt(session, decide);
        match &written {
            Ok((_, commit)) => self.settle(*commit)?,
            Err(_) => self.upstream_mut().into_iter().for_each(Upstream::end),
        }
        written
    }

    fn attempt<T>(
        &mut self,
        session: &Session,
        mut decide: impl FnMut(&Self, &Snapshot<'r>, Moment) -> Decided<T>,
    ) -> Result<(T, Option<ObjectId>), LedgerError> {
        let start = Instant::now();
        if !self.is_chained() {
            self.ensure_not_set_back()?;
            self.notice_strays(session.now());
        }
        let mut attempts = 0;
        let mut queue = None;
        loop {
            let is_reached = self.is_reached();
            let tip = self.tip()?;
            let now = session.clock.author();
            let at = Moment::from(now);
            let (draft, outcome) = match decide(self, &tip, at) {
                Err(LedgerError::Refused(Refusal::Lease(LeaseRefusal::Overdue(id)))) => {
                    // The expiry is recorded first, then the request is decided again.
                    let (expiry, _) = self.expire(session, &tip, at, &id)?;
                    let overdue = || Refusal::Lease(LeaseRefusal::Overdue(id));
                    (Some(expiry.ok_or_else(overdue)?), None)
                }
                decided => decided.map(|(draft, outcome)| (draft, Some(outcome)))?,
            };
            // Deciding may take long, so the queue is joined only now. The remote's lock makes it
            // unnecessary: it excludes this machine's other writers.
            if !self.is_chained() && !is_reached && queue.is_none() && draft.is_some() {
                queue = Some(self.join_queue(session));
                if self.tip_id()? != Some(tip.commit()) {
                    continue;
                }
            }
            attempts += 1;
            let (mut draft, outcome) = match (draft, outcome) {
                (Some(draft), outcome) => match tip.archived_under(&draft.files) {
                    Some(line) => (unarchive_step(&tip, &line)?, None),
                    None => (draft, outcome),
                },
                (None, Some(outcome)) => return Ok((outcome, None)),
                (None, None) => continue,
            };
            if outcome.is_some() {
                self.name_origin(session, &mut draft, is_reached);
            }
            let prepared = self.prepared_step(session, &tip, &draft, now, start)?;
            let reflog = reflog_of(&draft);
            let published = self.publish_step(
                session,
                queue.as_mut(),
                prepared,
                &reflog,
                (attempts, start),
            )?;
            match (published, outcome) {
                (Some(commit), Some(outcome)) => return Ok((outcome, Some(commit))),
                (Some(_), None) => attempts = 0,
                (None, _) => {}
            }
        }
    }

    /// Adds the trailer with the step's origin, if it needs one.
    fn name_origin(&self, session: &Session, draft: &mut Draft, is_reached: bool) {
        if let Some(origin) = self.origin() {
            draft.message += &format!("{SYNCED_FROM}: {origin}\n");
        } else if self.is_shared() && !is_reached {
            // Another clone may make the identical step; only one of them may be first.
            let own = (session.jitter)(u64::MAX);
            draft.message += &format!("{MADE_OFFLINE}: {own:016x}\n");
        }
    }

    /// Publishes a step on the remote if it is reachable, else here. Returns `None` if it must be
    /// planned again.
    pub(super) fn publish_step(
        &mut self,
        session: &Session,
        queue: Option<&mut Queue>,
        prepared: Prepared<'_>,
        reflog: &str,
        (attempts, start): (u32, Instant),
    ) -> Result<Option<ObjectId>, LedgerError> {
        // With a remote, its own time limit ends the attempts.
        if self.is_reached() {
            return self.with_upstream(|ledger, upstream| {
                ledger.publish_there(upstream, session, prepared, reflog, attempts)
            });
        }
        let (parent, commit) = (prepared.parent(), prepared.commit());
        let Some(queue) = queue else {
            self.set_chain_tip(commit);
            return Ok(Some(commit));
        };
        let late = start.elapsed() >= session.patience;
        match in_turn(queue, prepared, reflog) {
            Ok(commit) => {
                self.memory().wrote(parent, commit);
                Ok(Some(commit))
            }
            Err(PublishError::Moved) if late => Err(WriteError::Contended(attempts).into()),
            Err(PublishError::Moved) => Ok(None),
            Err(PublishError::Locked(path)) if late => Err(WriteError::Locked(path).into()),
            Err(PublishError::Locked(_)) => {
                session.back_off(attempts);
                Ok(None)
            }
            Err(PublishError::Git(error)) => Err(error.into()),
        }
    }

    /// Writes the commit of a step on a tip; no ref points to it yet. `start` is when the write
    /// began.
    fn prepared_step(
        &self,
        session: &Session,
        tip: &Snapshot<'r>,
        draft: &Draft,
        now: DateTime<FixedOffset>,
        start: Instant,
    ) -> Result<Prepared<'r>, LedgerError> {
        let mut committer = session.committer();
        let limit = tip.limit(session.now())?;
        committer.at = order::recorded_after(limit, committer.at);
        let (at, recorded) = (to_second(now), to_second(committer.at));
        if order::is_backdated(at, draft.previous, recorded, limit) {
            let previous = draft.previous.unwrap_or(at);
            return Err(WriteError::Backdated { at, previous }.into());
        }
        session.ensure_not_ahead(at, recorded)?;
        let person = match &draft.author {
            Some(agent) => author(agent, now),
            None => {
                let mut person = session.committer();
                person.at = now;
                person
            }
        };
        let proposal = Proposal {
            refname: self.refname(),
            parent: Some((tip.commit(), tip.tree_id())),
            edits: &draft.files,
            shape: SHAPE,
            author: &person,
            committer: &committer,
            message: &draft.message,
        };
        let demand = draft.demand.as_ref();
        let wanted = session.sign || demand.is_some();
        if wanted && !self.is_rehearsed() {
            // git signs, and has to find the step's objects.
            self.repository().write_pack()?;
            signed(self.repository(), &proposal, session, demand, start)
        } else {
            Ok(self.repository().prepare(&proposal)?)
        }
    }
}

/// The ref's log entry for a step.
fn reflog_of(draft: &Draft) -> String {
    let subject = draft.message.lines().next().unwrap_or_default();
    format!("handoff: {subject}")
}
