//! A ledger in a repository: its branch, how it is read, and how it moves.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use handoff_base::ObjectId;
use handoff_base::ids::WorkerId;
use handoff_base::text::quoted;
use handoff_git::{Prepared, PublishError, Queue, Repository, Tree};
use handoff_model::layout;

use super::error::{BranchError, LedgerError, UpstreamError, WriteError};
use super::memory::Memory;
use super::session::Session;
use super::snapshot::{KnownProtocols, OnDemand, Snapshot};
use super::upstream::{Unpublished, Upstream};

/// Synchronizes this clone and the remote; a callback, because repeating steps belongs to a higher
/// layer.
pub(super) type Reconcile = fn(&Ledger<'_>, &Session, &mut Upstream<'_>) -> Result<(), LedgerError>;

/// A ledger in a repository.
pub struct Ledger<'r> {
    repository: &'r Repository,
    branch: String,
    refname: String,
    /// Set while steps are published in batches.
    chain: Option<Chain>,
    /// The remote that the ledger is shared through.
    upstream: Option<Box<Upstream<'r>>>,
    reconcile: Option<Reconcile>,
    /// The offline commit that the next step replaces.
    origin: Option<ObjectId>,
    known: KnownProtocols,
    /// The worker for whom commands are printed, if it is known.
    reader: Option<WorkerId>,
    /// The sound commit whose settings are used while the tip's can't be read.
    settings_from: Option<ObjectId>,
    /// The source of objects that this clone lacks.
    on_demand: Option<Rc<OnDemand>>,
}

/// Steps that no branch points to.
struct Chain {
    /// The last of them, if any.
    tip: Option<ObjectId>,
    /// Whether they are only in memory, and lost when the program ends.
    in_memory: bool,
}

/// Steps that are atomic together.
#[doc(hidden)]
#[must_use]
pub struct Together {
    /// The ledger's commit before them.
    before: ObjectId,
    /// Whether the branch moves at the end; in a rehearsal it does not.
    moves_branch: bool,
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
            settings_from: None,
            upstream: None,
            reconcile: None,
            origin: None,
            known: KnownProtocols::default(),
            reader: None,
            on_demand: None,
        })
    }

    /// The same ledger, read for this worker.
    #[must_use]
    pub fn read_for(mut self, reader: Option<WorkerId>) -> Self {
        self.reader = reader;
        self
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

    /// Makes steps on the current tip and discards them.
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
        // Objects in memory are dropped with their repository handle.
        let repository = self.repository.reopened()?;
        let mut rehearsal = Ledger::new(&repository, &self.branch)?.rehearsal()?;
        if let (Some(upstream), Some(reconcile)) = (self.upstream(), self.reconcile) {
            rehearsal = rehearsal.with_remote(upstream.name(), reconcile);
        }
        steps(&mut rehearsal)
    }

    /// The same ledger, shared through a remote, given by name or URL. `reconcile` synchronizes
    /// both sides when a push finds other steps there.
    #[must_use]
    pub(super) fn with_remote(mut self, remote: &str, reconcile: Reconcile) -> Self {
        let upstream = Upstream::new(self.repository, remote, &self.branch);
        self.upstream = Some(Box::new(upstream));
        self.reconcile = Some(reconcile);
        let on_demand = OnDemand::new(self.repository, remote, &self.branch);
        self.on_demand = Some(Rc::new(on_demand));
        self
    }

    /// Synchronizes this clone and the remote, after looking at the remote.
    pub(super) fn bring_together(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
    ) -> Result<(), LedgerError> {
        let reconcile = self.reconcile.ok_or(UpstreamError::NoRemote)?;
        reconcile(self, session, upstream)
    }

    /// The same ledger, which fetches missing objects within this time; or not at all if it is
    /// offline.
    #[must_use]
    pub fn fetching_within(self, patience: Duration, offline: bool) -> Self {
        if let Some(on_demand) = &self.on_demand {
            on_demand.limit(patience, offline);
        }
        self
    }

    /// Why the remote is unreachable, if it is.
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
            settings_from: None,
            upstream: None,
            reconcile: None,
            origin: None,
            known: Rc::clone(&self.known),
            reader: self.reader.clone(),
            on_demand: self.on_demand.clone(),
        }
    }

    pub(super) fn upstream(&self) -> Option<&Upstream<'r>> {
        self.upstream.as_deref()
    }

    pub(super) fn upstream_mut(&mut self) -> Option<&mut Upstream<'r>> {
        self.upstream.as_deref_mut()
    }

    /// Runs an operation with the remote, detached from the ledger for its duration.
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

    /// Whether a step can be published on the remote.
    pub(super) fn is_reached(&self) -> bool {
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

    /// The refs that move with this clone's ledger: its branch, and the one by which git follows its
    /// remote.
    pub fn refnames(&self) -> Vec<String> {
        let own = std::iter::once(self.refname.clone());
        let remote = self.upstream().map(|upstream| upstream.name().to_owned());
        let gits = remote.map(|remote| format!("refs/remotes/{remote}/{}", self.branch));
        own.chain(gits).collect()
    }

    /// The lock that kept this clone's branch from following a step that the remote has.
    pub fn left_lock(&self) -> Option<&Path> {
        self.upstream()?.left_lock.as_deref()
    }

    /// The same ledger at a commit. Its steps move no branch.
    pub(super) fn aside(&self, tip: ObjectId) -> Self {
        let mut aside = self.alone();
        aside.chain = Some(Chain {
            tip: Some(tip),
            in_memory: false,
        });
        aside
    }

    /// Begins steps that are atomic together: the branch moves after the last one.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no ledger.
    #[doc(hidden)]
    pub fn begin_together(&mut self) -> Result<Together, LedgerError> {
        let before = self.existing()?;
        // A rehearsal's steps move no branch anyway.
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

    /// Like [`Self::begin_together`], but for thousands of steps: their objects stay in memory
    /// until one pack is written at the end.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no ledger.
    #[doc(hidden)]
    pub fn begin_batch(&mut self) -> Result<Together, LedgerError> {
        let together = self.begin_together()?;
        if together.moves_branch {
            self.repository.collect_new_objects();
        }
        Ok(together)
    }

    /// Discards the steps since `steps` began.
    #[doc(hidden)]
    pub fn take_back(&mut self, steps: &Together) {
        if steps.moves_branch {
            self.chain = None;
        } else {
            self.set_chain_tip(steps.before);
        }
    }

    /// Moves the branch to the last of the steps; returns whether it did. If another writer was
    /// faster, it does not, and the steps are lost.
    ///
    /// # Errors
    /// [`LedgerError`] if the objects or the branch can't be written.
    #[doc(hidden)]
    pub fn publish_together(
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

    /// Sets the last step that no branch points to.
    pub(super) fn set_chain_tip(&mut self, tip: ObjectId) {
        if let Some(chain) = &mut self.chain {
            chain.tip = Some(tip);
        }
    }

    pub(super) fn set_origin(&mut self, commit: Option<ObjectId>) {
        self.origin = commit;
    }

    /// The branch's short name.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// Whether its steps move no branch.
    pub(super) fn is_chained(&self) -> bool {
        self.chain.is_some()
    }

    /// The offline commit that the next step replaces.
    pub(super) fn origin(&self) -> Option<ObjectId> {
        self.origin
    }

    /// Whether its steps are only in memory.
    #[doc(hidden)]
    pub fn is_rehearsed(&self) -> bool {
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
            let other = self.repository.remotes().into_iter();
            BranchError::NoLedger {
                branch,
                seen,
                remote,
                other: other.max_by_key(|name| name == "origin"),
            }
        });
        Ok(tip?)
    }

    /// The state at a commit of the ledger.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn at(&self, commit: ObjectId) -> Result<Snapshot<'r>, LedgerError> {
        if let Some(on_demand) = &self.on_demand {
            on_demand.ensure_frame(self.repository, commit)?;
        }
        let snapshot = Snapshot::at(self.repository, commit, &self.branch);
        let snapshot = snapshot.or_else(|error| match self.settings_from {
            Some(sound) if error.is_unreadable() => {
                Snapshot::standing_in(self.repository, commit, sound)
            }
            _ => Err(error),
        })?;
        Ok(snapshot
            .sharing(&self.known)
            .read_for(self.reader.as_ref())
            .completed_by(self.on_demand.as_ref()))
    }

    /// Uses the settings from before a commit that is not a step, instead of those it destroyed;
    /// `None` ends that.
    pub(super) fn mend(&mut self, stray: Option<ObjectId>) -> Result<(), LedgerError> {
        let stray = stray
            .map(|stray| self.repository.commit(stray))
            .transpose()?;
        self.settings_from = stray.and_then(|stray| stray.parents.first().copied());
        Ok(())
    }

    /// Refuses harmful writes: from a hook that receives a push, and while the branch is checked
    /// out, because the next commit there would undo the step.
    pub(super) fn guard(&self, session: &Session) -> Result<(), LedgerError> {
        if session.quarantined {
            return Err(WriteError::Quarantine.into());
        }
        if self.repository.is_symbolic(&self.refname) {
            let branch = self.branch.clone();
            return Err(BranchError::Symbolic(branch).into());
        }
        // A repair comes here with a ref that can't be read.
        if matches!(self.tip_id(), Ok(None))
            && let Some(other) = self.repository.ref_in_the_way(&self.refname)?
        {
            let branch = self.branch.clone();
            return Err(BranchError::InTheWay { branch, other }.into());
        }
        self.ensure_not_checked_out()
    }

    /// Refuses to write on a branch that a working tree has checked out.
    ///
    /// # Errors
    /// [`BranchError::CheckedOut`]
    pub fn ensure_not_checked_out(&self) -> Result<(), LedgerError> {
        match self.repository.checked_out_at(&self.refname) {
            Some(path) => Err(BranchError::CheckedOut {
                branch: self.branch.clone(),
                path,
                is_unborn: matches!(self.tip_id(), Ok(None)),
            }
            .into()),
            None => Ok(()),
        }
    }

    /// Whether a history of the branch with the ledger's name never was a ledger, but is somebody's
    /// own: neither its first commit nor its last is one, and this clone never saw one.
    ///
    /// # Errors
    /// [`LedgerError`] if a commit can't be read.
    pub fn never_was_a_ledger(&self, tip: ObjectId) -> Result<bool, LedgerError> {
        let is_ledger = |id| -> Result<bool, LedgerError> {
            let tree = Tree::new(self.repository, self.repository.commit(id)?.tree);
            Ok(tree.entry(layout::MANIFEST)?.is_some())
        };
        if self.seen().is_some() || self.repository.is_shallow() || is_ledger(tip)? {
            return Ok(false);
        }
        let mut first = tip;
        for id in self.repository.first_parents(tip) {
            first = id?;
        }
        Ok(!is_ledger(first)?)
    }

    /// Refuses to write on a branch that was set back to before a commit that this clone saw on it.
    pub(super) fn ensure_not_set_back(&self) -> Result<(), LedgerError> {
        // First, because other writers move the branch before they note it.
        let seen = self.seen();
        let tip = self.existing()?;
        let is_after = |seen: &ObjectId| {
            *seen != tip && matches!(self.repository.is_in_history(tip, *seen), Ok(true))
        };
        match seen.filter(is_after) {
            Some(seen) => Err(BranchError::SetBack {
                branch: self.branch.clone(),
                tip,
                seen,
            }
            .into()),
            None => Ok(()),
        }
    }

    pub(super) fn memory(&self) -> Memory<'r> {
        Memory::new(self.repository, &self.refname)
    }

    /// Moves this clone's branch, queued with this machine's other writers.
    pub(super) fn move_branch(
        &self,
        session: &Session,
        from: Option<ObjectId>,
        to: ObjectId,
        reflog: &str,
    ) -> Result<(), PublishError> {
        self.move_branch_within(session, session.patience, (from, to), reflog)
    }

    /// The same, with another limit on the wait for the branch's lock.
    pub(super) fn move_branch_within(
        &self,
        session: &Session,
        patience: Duration,
        (from, to): (Option<ObjectId>, ObjectId),
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
                Err(PublishError::Locked(_)) if start.elapsed() < patience => {
                    session.back_off(attempts);
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
}

impl Ledger<'_> {
    /// Releases the remote's lock, and records whether the remote has this write's commit, or the
    /// tip if nothing was written.
    pub(super) fn settle(&mut self, wrote: Option<ObjectId>) -> Result<(), LedgerError> {
        if !self.is_shared() {
            return Ok(());
        }
        self.with_upstream(|ledger, upstream| upstream.settle(wrote.or(ledger.tip_id()?)))
    }
}

/// Publishes a commit after noting it for crash recovery.
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
