//! Writing: load the tip, plan, prepare, publish by compare-and-swap; if the tip moved, plan again
//! on the new one.

use std::rc::Rc;
use std::time::{Duration, Instant};

use chrono::{DateTime, FixedOffset};
use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::quoted;
use handoff_base::{Moment, ObjectId, to_second};
use handoff_git::{Prepared, Proposal, PublishError, Queue, Repository};
use handoff_model::screening::screen_update;
use handoff_model::{
    Actor, EventArgs, Issue, LeaseRefusal, Receipt, Refusal, Request, Update, View, plan,
};
use handoff_protocol::{Event, Protocol};

use super::archive::unarchive_step;
use super::claim_queue::claimable;
use super::draft::{Decided, Draft};
use super::error::{BranchError, ContractError, LedgerError, UpstreamError, WriteError};
use super::evidence::changed;
use super::memory::Memory;
use super::order;
use super::remote::{MADE_OFFLINE, OnDemand, SYNCED_FROM, Unpublished, Upstream};
use super::session::{Session, author};
use super::signing::signed;
use super::snapshot::{KnownProtocols, SHAPE, Snapshot};

/// A ledger in a repository.
pub struct Ledger<'r> {
    repository: &'r Repository,
    branch: String,
    refname: String,
    /// Set if steps are not published one by one.
    chain: Option<Chain>,
    /// The remote that the ledger is shared through.
    upstream: Option<Box<Upstream<'r>>>,
    /// The offline commit that the next step replaces.
    origin: Option<ObjectId>,
    known: KnownProtocols,
    /// Where to get what this clone lacks.
    on_demand: Option<Rc<OnDemand>>,
}

/// Steps that no branch points to.
struct Chain {
    /// The last of them, if there is one.
    tip: Option<ObjectId>,
    /// Whether they are kept in memory only and lost when the program ends.
    in_memory: bool,
}

/// Steps that are all made or none.
#[must_use]
pub(super) struct Together {
    /// Where the ledger was before them.
    before: ObjectId,
    /// Whether the branch has to move at their end, or nothing but a rehearsal goes on.
    moves_branch: bool,
}

/// The handoff to claim: a given one, or the next in the queue.
pub enum Target {
    /// A given handoff.
    Handoff(HandoffId),
    /// The most urgent handoff that waits for the agent, the oldest first.
    Next,
}

/// What a write did.
#[derive(Debug)]
pub struct Done {
    /// The outcome of the request.
    pub receipt: Receipt,
    /// The commit that recorded it; `None` for a repeated request.
    pub commit: Option<ObjectId>,
    /// Findings that did not prevent it.
    pub warnings: Vec<Finding>,
}

impl<'r> Ledger<'r> {
    /// The ledger on a branch, which need not exist yet.
    ///
    /// # Errors
    /// [`BranchError::Name`] if the name is not valid for a branch.
    pub fn new(repository: &'r Repository, branch: &str) -> Result<Self, LedgerError> {
        let refname = format!("refs/heads/{branch}");
        if branch.starts_with('-') || branch == "HEAD" || !Repository::is_ref_name(&refname) {
            return Err(BranchError::Name(quoted(branch)).into());
        }
        Ok(Self {
            repository,
            branch: branch.to_owned(),
            refname,
            chain: None,
            upstream: None,
            origin: None,
            known: KnownProtocols::default(),
            on_demand: None,
        })
    }

    /// The same ledger as a rehearsal: each step is planned on the result of the steps before it,
    /// and nothing is written to the repository.
    ///
    /// # Errors
    /// [`LedgerError`] if the repository can't keep objects in memory.
    pub fn rehearsal(mut self) -> Result<Self, LedgerError> {
        self.repository.keep_new_objects_in_memory()?;
        self.chain = Some(Chain {
            tip: None,
            in_memory: true,
        });
        Ok(self)
    }

    /// Makes steps that are not kept, on the tip as it is.
    ///
    /// # Errors
    /// [`LedgerError`] if the repository can't be opened again, or that of a step.
    pub fn rehearse<T>(
        &mut self,
        steps: impl FnOnce(&mut Ledger<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        if self.is_rehearsed() {
            let before = self.existing()?;
            let done = steps(self);
            self.set_chain_tip(before);
            return done;
        }
        // What is kept in memory is lost with its handle of the repository.
        let repository = self.repository.reopened()?;
        let mut rehearsal = Ledger::new(&repository, &self.branch)?.rehearsal()?;
        if let Some(upstream) = self.upstream() {
            rehearsal = rehearsal.shared_through(upstream.name());
        }
        steps(&mut rehearsal)
    }

    /// The same ledger, shared through a remote, given by name or address: a step counts once the
    /// remote has it. Call [`Self::catch_up`] before the first step.
    #[must_use]
    pub fn shared_through(mut self, remote: &str) -> Self {
        let upstream = Upstream::new(self.repository, remote, &self.branch);
        self.upstream = Some(Box::new(upstream));
        let on_demand = OnDemand::new(self.repository, remote, &self.branch);
        self.on_demand = Some(Rc::new(on_demand));
        self
    }

    /// The same ledger, which fetches what this clone lacks within this time, or
    /// does not ask the remote for it.
    #[must_use]
    pub fn fetching_within(self, patience: Duration, offline: bool) -> Self {
        if let Some(on_demand) = &self.on_demand {
            on_demand.limit(patience, offline);
        }
        self
    }

    /// Why the remote could not be reached, if it could not.
    pub fn out_of_reach(&self) -> Option<Unpublished> {
        self.upstream()?.unreachable_reason()
    }

    /// The same ledger without its remote, as this clone has it.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self {
            repository: self.repository,
            branch: self.branch.clone(),
            refname: self.refname.clone(),
            chain: None,
            upstream: None,
            origin: None,
            known: Rc::clone(&self.known),
            on_demand: self.on_demand.clone(),
        }
    }

    pub(super) fn upstream(&self) -> Option<&Upstream<'r>> {
        self.upstream.as_deref()
    }

    pub(super) fn upstream_mut(&mut self) -> Option<&mut Upstream<'r>> {
        self.upstream.as_deref_mut()
    }

    /// Runs an operation with the remote, which is apart from the ledger meanwhile.
    ///
    /// # Errors
    /// [`UpstreamError::NoRemote`], or the operation's.
    pub(super) fn with_upstream<T>(
        &mut self,
        operation: impl FnOnce(&Self, &mut Upstream<'r>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let mut upstream = self.upstream.take().ok_or(UpstreamError::NoRemote)?;
        let done = operation(self, &mut upstream);
        self.upstream = Some(upstream);
        done
    }

    /// Whether a step is published on the remote.
    fn is_reached(&self) -> bool {
        !self.is_rehearsed() && self.upstream().is_some_and(Upstream::is_reached)
    }

    /// Whether the ledger has a remote.
    pub fn is_shared(&self) -> bool {
        self.upstream.is_some()
    }

    /// What the remote lacks of the last write, if anything.
    pub fn unpublished(&self) -> Option<&Unpublished> {
        self.upstream()?.unpublished.as_ref()
    }

    /// The same ledger at a commit. Steps are made on it without moving a branch.
    pub(super) fn aside(&self, tip: ObjectId) -> Self {
        let mut aside = self.alone();
        aside.chain = Some(Chain {
            tip: Some(tip),
            in_memory: false,
        });
        aside
    }

    /// Begins steps that are all made or none: the branch moves once they are all made.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no ledger.
    pub(super) fn begin_together(&mut self) -> Result<Together, LedgerError> {
        let before = self.existing()?;
        // A rehearsal already makes steps that no branch points to.
        let moves_branch = self.chain.is_none();
        if moves_branch {
            self.chain = Some(Chain {
                tip: Some(before),
                in_memory: false,
            });
        }
        Ok(Together {
            before,
            moves_branch,
        })
    }

    /// Begins steps that are all made or none, of which there may be thousands: their objects are
    /// kept in memory, and come into one pack at their end.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no ledger.
    pub(super) fn begin_batch(&mut self) -> Result<Together, LedgerError> {
        let together = self.begin_together()?;
        if together.moves_branch {
            self.repository.collect_new_objects();
        }
        Ok(together)
    }

    /// Takes the steps back that were begun together.
    pub(super) fn take_back(&mut self, steps: &Together) {
        if steps.moves_branch {
            self.chain = None;
        } else {
            self.set_chain_tip(steps.before);
        }
    }

    /// Moves the branch to the last of the steps that were begun together; returns whether it did.
    /// It does not if another writer was first: then they were made in vain.
    pub(super) fn publish_together(
        &mut self,
        session: &Session,
        steps: &Together,
    ) -> Result<bool, LedgerError> {
        if !steps.moves_branch {
            return Ok(true);
        }
        let (before, after) = (steps.before, self.existing()?);
        self.chain = None;
        self.repository.write_pack()?;
        if after == before {
            return Ok(true);
        }
        match self.move_branch(session, Some(before), after, "handoff: import") {
            Ok(()) => {
                self.memory().wrote(Some(before), after);
                Ok(true)
            }
            Err(PublishError::Moved | PublishError::Locked(_)) => Ok(false),
            Err(PublishError::Git(error)) => Err(error.into()),
        }
    }

    /// Sets the last of the steps that no branch points to: a new one, or an earlier one.
    pub(super) fn set_chain_tip(&mut self, tip: ObjectId) {
        if let Some(chain) = &mut self.chain {
            chain.tip = Some(tip);
        }
    }

    /// Sets the offline commit that the next step replaces.
    pub(super) fn set_origin(&mut self, commit: Option<ObjectId>) {
        self.origin = commit;
    }

    /// The branch's short name.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    pub(super) fn is_rehearsed(&self) -> bool {
        self.chain.as_ref().is_some_and(|chain| chain.in_memory)
    }

    /// The branch's full ref name.
    pub fn refname(&self) -> &str {
        &self.refname
    }

    /// The repository that the ledger is in.
    pub fn repository(&self) -> &'r Repository {
        self.repository
    }

    /// The commit that the branch is at, if it exists.
    ///
    /// # Errors
    /// [`LedgerError`] if the ref can't be read.
    pub fn tip_id(&self) -> Result<Option<ObjectId>, LedgerError> {
        if let Some(id) = self.chain.as_ref().and_then(|chain| chain.tip) {
            return Ok(Some(id));
        }
        Ok(self.repository.resolve(&self.refname)?)
    }

    /// Reads the ledger at its tip.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no ledger or it can't be read.
    pub fn tip(&self) -> Result<Snapshot<'r>, LedgerError> {
        self.at(self.existing()?)
    }

    /// The commit that the branch is at.
    ///
    /// # Errors
    /// [`BranchError::NoLedger`] if there is none.
    pub(super) fn existing(&self) -> Result<ObjectId, LedgerError> {
        let tip = self.tip_id()?.ok_or_else(|| {
            let branch = self.branch.clone();
            if self.repository.is_symbolic(&self.refname) {
                return BranchError::Symbolic(branch);
            }
            let seen = self.memory().seen();
            let seen = seen.filter(|id| self.repository.has(*id));
            let remote = self.upstream().map(|upstream| upstream.name().to_owned());
            BranchError::NoLedger {
                branch,
                seen,
                remote,
            }
        });
        Ok(tip?)
    }

    /// Reads the ledger at a commit.
    pub(super) fn at(&self, commit: ObjectId) -> Result<Snapshot<'r>, LedgerError> {
        if let Some(on_demand) = &self.on_demand {
            on_demand.ensure_frame(self.repository, commit)?;
        }
        let snapshot = Snapshot::at(self.repository, commit, &self.branch)?;
        Ok(snapshot
            .sharing(&self.known)
            .completed_by(self.on_demand.as_ref()))
    }

    /// Refuses to write where a write does harm: from a hook that receives a push, and if the
    /// branch is checked out, because the next commit there would undo the step.
    pub(super) fn guard(&self, session: &Session) -> Result<(), LedgerError> {
        if session.quarantined {
            return Err(WriteError::Quarantine.into());
        }
        if self.repository.is_symbolic(&self.refname) {
            let branch = self.branch.clone();
            return Err(BranchError::Symbolic(branch).into());
        }
        match self.repository.checked_out_at(&self.refname) {
            Some(path) => Err(BranchError::CheckedOut {
                branch: self.branch.clone(),
                path,
            }
            .into()),
            None => Ok(()),
        }
    }

    pub(super) fn memory(&self) -> Memory<'r> {
        Memory::new(self.repository, &self.refname)
    }

    /// Moves this clone's branch, in the queue of this machine's writers.
    pub(super) fn move_branch(
        &self,
        session: &Session,
        from: Option<ObjectId>,
        to: ObjectId,
        reflog: &str,
    ) -> Result<(), PublishError> {
        let mut queue = self.join_queue(session);
        let start = Instant::now();
        let mut attempts = 0;
        loop {
            attempts += 1;
            queue.leave(Some(&to.to_string()));
            let moved = self.repository().move_ref(self.refname(), from, to, reflog);
            queue.leave(None);
            match moved {
                Err(PublishError::Locked(_)) if start.elapsed() < session.patience => {
                    back_off(session, attempts);
                }
                other => return other,
            }
        }
    }

    /// Waits for other writers on this machine, and cleans up after one that was killed while
    /// publishing.
    pub(super) fn join_queue(&self, session: &Session) -> Queue {
        let common_dir = self.repository.common_dir();
        let mut queue = Queue::join(common_dir, Queue::WRITERS, session.patience);
        // A writer that was killed while publishing left the commit's id and the ref's lock.
        if let Some(commit) = queue.note() {
            self.repository.remove_abandoned_lock(&self.refname, commit);
            queue.leave(None);
        }
        queue
    }

    /// Claims a handoff, or takes it over (`event`). If artifact checks are enforced, refuses it when delivered files have
    /// changed.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn claim(
        &mut self,
        session: &Session,
        agent: &AgentName,
        target: &Target,
        event: Event,
        args: &EventArgs,
    ) -> Result<Done, LedgerError> {
        let mut warnings = Vec::new();
        let mut done = self.publish(session, |ledger, tip, at| {
            let id = match target {
                Target::Handoff(id) => id.clone(),
                Target::Next => {
                    let found = claimable(tip, agent, at)?;
                    match found.first {
                        Some(id) => id,
                        None => return Err(found.refusal(agent).into()),
                    }
                }
            };
            let claim = Update::change(id.number(), event, args.clone());
            let decided = ledger.plan_on(tip, &session.actor(agent, at), id.issue(), &claim)?;
            if let Decided::Write(_, receipt) = &decided {
                warnings = changed(ledger.repository, &receipt.record)?;
                if warnings.iter().any(Finding::is_error) {
                    let findings = std::mem::take(&mut warnings);
                    return Err(ContractError::Delivered(findings).into());
                }
            }
            Ok(decided)
        })?;
        done.warnings = warnings;
        Ok(done)
    }

    /// Applies an update to an existing issue.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn update(
        &mut self,
        session: &Session,
        agent: &AgentName,
        issue: &IssueKey,
        update: &Update,
    ) -> Result<Done, LedgerError> {
        self.publish(session, |ledger, tip, at| {
            ledger.plan_on(tip, &session.actor(agent, at), issue, update)
        })
    }

    /// Applies the update that follows from an issue as it is at the tip, and is decided again
    /// whenever another process has moved that. Writes nothing if none follows.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn update_if(
        &mut self,
        session: &Session,
        agent: &AgentName,
        key: &IssueKey,
        mut decide: impl FnMut(&Issue) -> Option<Update>,
    ) -> Result<Option<Done>, LedgerError> {
        let (receipt, commit) = self.write(session, |ledger, tip, at| {
            let issue = tip.issue(key)?.issue()?;
            let issue = issue.ok_or_else(|| Refusal::no_issue(key))?;
            let Some(update) = decide(&issue) else {
                return Ok(Decided::Nothing(None));
            };
            let decided = ledger.plan_on(tip, &session.actor(agent, at), key, &update);
            Ok(match decided? {
                Decided::Write(draft, receipt) => Decided::Write(draft, Some(receipt)),
                Decided::First(draft) => Decided::First(draft),
                Decided::Nothing(receipt) => Decided::Nothing(Some(receipt)),
            })
        })?;
        Ok(receipt.map(|receipt| Done {
            receipt,
            commit,
            warnings: Vec::new(),
        }))
    }

    /// The step that an update becomes on a tip, or the refusal.
    pub(super) fn plan_on(
        &self,
        tip: &Snapshot<'r>,
        actor: &Actor<'_>,
        key: &IssueKey,
        update: &Update,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let mut update = update.clone();
        self.plan_with(tip, actor, key, |protocol| {
            screen_update(protocol, &mut update)?;
            Ok(update)
        })
    }

    /// Plans an update under its protocol's rules.
    pub(super) fn plan_with(
        &self,
        tip: &Snapshot<'r>,
        actor: &Actor<'_>,
        key: &IssueKey,
        update: impl FnOnce(&Protocol) -> Result<Update, LedgerError>,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let folder = tip.issue(key)?;
        let issue = folder.issue()?.ok_or_else(|| Refusal::no_issue(key))?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        let name = canonical(protocol, Some(actor.name)).unwrap_or_else(|| actor.name.clone());
        let actor = Actor {
            name: &name,
            ..*actor
        };
        let update = update(protocol)?;
        let planned = plan(protocol, key, &folder, &actor, &Request::Update(&update))?;
        Decided::of(tip, &rules, name, planned)
    }

    pub(super) fn publish(
        &mut self,
        session: &Session,
        decide: impl FnMut(&Self, &Snapshot<'r>, Moment) -> Result<Decided<Receipt>, LedgerError>,
    ) -> Result<Done, LedgerError> {
        let (receipt, commit) = self.write(session, decide)?;
        Ok(Done {
            receipt,
            commit,
            warnings: Vec::new(),
        })
    }

    /// The write path: decide on the tip, publish, and repeat if the tip moved. With a remote, this
    /// process has its turn to talk to it until the end.
    pub(super) fn write<T>(
        &mut self,
        session: &Session,
        decide: impl FnMut(&Self, &Snapshot<'r>, Moment) -> Result<Decided<T>, LedgerError>,
    ) -> Result<(T, Option<ObjectId>), LedgerError> {
        self.guard(session)?;
        if self.is_rehearsed() {
            return self.attempt(session, decide);
        }
        // Opening a ledger for writing catches up once and reports the outcome.
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
        mut decide: impl FnMut(&Self, &Snapshot<'r>, Moment) -> Result<Decided<T>, LedgerError>,
    ) -> Result<(T, Option<ObjectId>), LedgerError> {
        let start = Instant::now();
        let mut attempts = 0;
        let mut queue = None;
        loop {
            let is_reached = self.is_reached();
            let tip = self.tip()?;
            let now = session.clock.author();
            let at = Moment::from(now);
            let decided = match decide(self, &tip, at) {
                Err(LedgerError::Refused(Refusal::Lease(LeaseRefusal::Overdue(id)))) => {
                    self.overdue_first(session, &tip, at, id)?
                }
                decided => decided?,
            };
            // Deciding may take long, so others wait only for what comes after it. Whoever has the
            // turn meets no other writer of this machine.
            if self.chain.is_none() && !is_reached && queue.is_none() && decided.is_written() {
                queue = Some(self.join_queue(session));
                if self.tip_id()? != Some(tip.commit()) {
                    continue;
                }
            }
            attempts += 1;
            let (mut draft, outcome) = match decided {
                Decided::Nothing(outcome) => return Ok((outcome, None)),
                Decided::Write(draft, outcome) => match tip.archived_under(&draft.files) {
                    Some(line) => (unarchive_step(&tip, &line)?.draft(None), None),
                    None => (draft, Some(outcome)),
                },
                Decided::First(draft) => (draft, None),
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

    /// The end of a lease, where a step was refused because that is not recorded yet.
    fn overdue_first<T>(
        &self,
        session: &Session,
        tip: &Snapshot<'r>,
        at: Moment,
        id: HandoffId,
    ) -> Result<Decided<T>, LedgerError> {
        match self.expire(session, tip, at, &id)? {
            Decided::Write(draft, _) => Ok(Decided::First(draft)),
            _ => Err(Refusal::Lease(LeaseRefusal::Overdue(id)).into()),
        }
    }

    /// Adds the trailer that says where a step comes from, if it needs one.
    fn name_origin(&self, session: &Session, draft: &mut Draft, is_reached: bool) {
        if let Some(origin) = self.origin {
            draft.message += &format!("{SYNCED_FROM}: {origin}\n");
        } else if self.is_shared() && !is_reached {
            // Another clone may make the very same step now; only one of them is the first.
            let own = (session.jitter)(u64::MAX);
            draft.message += &format!("{MADE_OFFLINE}: {own:016x}\n");
        }
    }

    /// Publishes a step: on the remote if it can be reached, else here. Returns `None` if it must be
    /// planned again.
    pub(super) fn publish_step(
        &mut self,
        session: &Session,
        queue: Option<&mut Queue>,
        prepared: Prepared<'_>,
        reflog: &str,
        (attempts, start): (u32, Instant),
    ) -> Result<Option<ObjectId>, LedgerError> {
        // With a remote, its own time budget ends the attempts.
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
                back_off(session, attempts);
                Ok(None)
            }
            Err(PublishError::Git(error)) => Err(error.into()),
        }
    }

    /// Writes the commit of a step on a tip; nothing points to it yet. `start` is when the write
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
        committer.at = order::recorded_after(tip.recorded(), committer.at);
        let (at, recorded) = (to_second(now), to_second(committer.at));
        if order::is_backdated(at, draft.previous, recorded, tip.recorded()) {
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
            refname: &self.refname,
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
            self.repository.write_pack()?;
            signed(self.repository, &proposal, session, demand, start)
        } else {
            Ok(self.repository.prepare(&proposal)?)
        }
    }
}

impl Ledger<'_> {
    /// Passes the turn to talk to the remote to the next process, and records whether the remote
    /// has what this one wrote, or everything here if it wrote nothing.
    pub(super) fn settle(&mut self, wrote: Option<ObjectId>) -> Result<(), LedgerError> {
        if !self.is_shared() {
            return Ok(());
        }
        self.with_upstream(|ledger, upstream| upstream.settle(wrote.or(ledger.tip_id()?)))
    }
}

/// What the ref's log says of a step.
fn reflog_of(draft: &Draft) -> String {
    let subject = draft.message.lines().next().unwrap_or_default();
    format!("handoff: {subject}")
}

/// Publishes a commit after noting it for recovery from a crash.
pub(super) fn in_turn(
    queue: &mut Queue,
    prepared: Prepared<'_>,
    reflog: &str,
) -> Result<ObjectId, PublishError> {
    queue.leave(Some(&prepared.commit().to_string()));
    let published = prepared.publish(reflog);
    queue.leave(None);
    published
}

/// Waits for the lock's holder, longer after each attempt.
pub(super) fn back_off(session: &Session, attempts: u32) {
    const LONGEST: u64 = 50_000;
    let pause = LONGEST.min(1_000 << attempts.min(6));
    std::thread::sleep(Duration::from_micros(pause + (session.jitter)(pause)));
}

/// An agent's name in its protocol; an agent that the protocol does not know keeps its name.
pub(super) fn canonical(protocol: &Protocol, agent: Option<&AgentName>) -> Option<AgentName> {
    let agent = agent?;
    let known = protocol.agent(agent.as_str());
    Some(known.map_or_else(|| agent.clone(), |known| known.id.clone()))
}
