//! Repairs what a power failure or a disk destroyed: empty or damaged objects, and refs that are
//! empty or point to missing objects. Missing objects come from the remote or a copy.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use handoff_base::ObjectId;
use handoff_git::{Aside, Depth, Patience, PublishError, Remote, SharedModes, masked};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{LedgerError, UpstreamError, WriteError};
use crate::ledger::Ledger;
use crate::session::Session;
use crate::upstream::{TRACKING, Upstream};

/// The message in the reflog.
const REFLOG: &str = "handoff: repair";

/// The result of a repair.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Repaired {
    /// how many empty object files were removed
    pub removed: usize,
    /// damaged files that are in place no more: where each is now
    pub aside: Vec<PathBuf>,
    /// damaged objects of other branches, which stay as they are
    pub others: Vec<ObjectId>,
    /// where the branch is now, if it exists
    pub commit: Option<ObjectId>,
    /// later commits of the branch that only this clone had
    pub lost: Vec<ObjectId>,
}

impl Ledger<'_> {
    /// Removes empty files of objects and refs, quarantines damaged object files, fetches what is
    /// missing from the remote, if there is one, or from the copy that `source` names, and moves
    /// the branch to the last commit whose objects are all here. Steps that need an unrecoverable
    /// object are dropped only with `gives_up`.
    ///
    /// # Errors
    /// [`LedgerError`], also if the remote is unreachable; damaged files are back in their places
    /// then, except packs that were replaced by a new one.
    pub fn repair(
        &mut self,
        session: &Session,
        source: Option<&str>,
        gives_up: bool,
    ) -> Result<Repaired, LedgerError> {
        self.guard(session)?;
        let _modes = SharedModes::begin();
        if source.is_none() && self.is_shared() {
            // Before anything is moved.
            self.with_upstream(|_, upstream| upstream.ensure_answers(session))?;
        }
        let at = self.tip_id().ok().flatten();
        let tracked = self.tracked()?;
        let removed = self.repository().remove_empty_objects().map_err(io_error)?;
        let mut aside = self.repository().set_loose_aside().map_err(io_error)?;
        let done = self.repair_beside(session, source, gives_up, &mut aside);
        self.track_again(tracked, done.is_err());
        match done {
            Ok(repaired) => Ok(Repaired {
                removed,
                ..repaired
            }),
            Err(error) => {
                aside.put_back(None).map_err(io_error)?;
                if let (Some(at), Ok(now)) = (at, self.tip_id())
                    && now != Some(at)
                {
                    let _ = self.repository().move_back(self.refname(), now, at, REFLOG);
                }
                let aside = aside.files();
                let source = Box::new(error);
                Err(LedgerError::Unrepaired { source, aside })
            }
        }
    }

    fn repair_beside(
        &mut self,
        session: &Session,
        source: Option<&str>,
        gives_up: bool,
        aside: &mut Aside,
    ) -> Result<Repaired, LedgerError> {
        let repository = self.repository();
        self.drop_empty(self.refname())?;
        let wanted = self.wanted()?;
        if let Some(tip) = wanted.first()
            && !repository.is_partial()
            && !self.is_whole(*tip, None)?
        {
            repository.set_packs_aside(aside).map_err(io_error)?;
        }
        self.drop_lost_tracking()?;
        let there = match source {
            Some(source) => {
                self.bring_from(session, source, &wanted)?;
                None
            }
            None if self.is_shared() => self
                .with_upstream(|ledger, upstream| ledger.fetch_anew(session, upstream, &wanted))?,
            None => None,
        };
        let whole = self.newest_whole(&wanted, there)?;
        let newer = wanted.iter().take_while(|id| Some(**id) != whole);
        let lost: Vec<ObjectId> = newer.copied().collect();
        if !lost.is_empty() && !gives_up && !aside.files().is_empty() {
            return Err(WriteError::NoCopy(lost.len()).into());
        }
        let commit = self.settle_branch(session, whole, there)?;
        if !lost.is_empty() {
            let tracked = self.tracked()?.into_iter().map(|(refname, _)| refname);
            for refname in tracked.chain([self.refname().to_owned()]) {
                let forgotten = self.repository().forget_logged(&refname, &lost);
                forgotten.map_err(io_error)?;
            }
        }
        let mut others = Vec::new();
        if !aside.files().is_empty() {
            // If git can't tell what is missing, all files are put back.
            let missing = self.repository().missing_of_refs().ok();
            others = aside.put_back(missing.as_ref()).map_err(io_error)?;
        }
        Ok(Repaired {
            removed: 0,
            aside: aside.files(),
            others,
            commit,
            lost,
        })
    }

    /// Fetches all objects of the branch from a copy of the repository: a folder, a URL, or a
    /// bundle.
    fn bring_from(
        &self,
        session: &Session,
        source: &str,
        wanted: &[ObjectId],
    ) -> Result<(), LedgerError> {
        self.step_back(session, wanted, None)?;
        let patience = Patience {
            deadline: Some(Instant::now() + session.patience),
            interrupted: &AtomicBool::new(false),
        };
        let copy = Remote::new(self.repository(), source, self.refname());
        let brought = copy.bring(true, &patience);
        brought.map_err(|error| UpstreamError::unreachable(masked(source), &error))?;
        Ok(())
    }

    /// Moves a branch that lacks objects to its last complete commit, or removes it: otherwise git
    /// does not fetch.
    fn step_back(
        &self,
        session: &Session,
        wanted: &[ObjectId],
        known: Option<ObjectId>,
    ) -> Result<(), LedgerError> {
        if let Some(tip) = self.tip_id()?
            && !self.is_whole(tip, known)?
        {
            match self.newest_whole(wanted, known)? {
                Some(whole) => self.moved(session, Some(tip), whole)?,
                None => self.repository().discard(self.refname())?,
            }
        }
        Ok(())
    }

    /// The first of these commits with all its objects, except those of another commit.
    fn newest_whole(
        &self,
        wanted: &[ObjectId],
        without: Option<ObjectId>,
    ) -> Result<Option<ObjectId>, LedgerError> {
        for id in wanted {
            if self.is_whole(*id, without)? {
                return Ok(Some(*id));
            }
        }
        Ok(None)
    }

    fn is_whole(&self, id: ObjectId, without: Option<ObjectId>) -> Result<bool, LedgerError> {
        self.repository().is_whole(id, without).map_err(io_error)
    }

    fn drop_empty(&self, refname: &str) -> Result<(), LedgerError> {
        let dropped = self.repository().remove_empty_ref(refname);
        dropped.map_err(io_error)?;
        Ok(())
    }

    /// The earlier values of the branch, newest first.
    fn wanted(&self) -> Result<Vec<ObjectId>, LedgerError> {
        let known = self.tip_id()?.into_iter();
        let logged = self.repository().logged(self.refname());
        let mut wanted: Vec<ObjectId> = Vec::new();
        // The log continues after a value that the ref lost.
        for id in logged.into_iter().chain(known).chain(self.memory().seen()) {
            if !wanted.contains(&id) {
                wanted.push(id);
            }
        }
        Ok(wanted)
    }

    /// The tracking refs, and their values: also those of a remote that is not yet the ledger's,
    /// and the one that `git push` moves too.
    fn tracked(&self) -> Result<Vec<(String, Option<ObjectId>)>, LedgerError> {
        let repository = self.repository();
        let mut tracking = repository.discardable(TRACKING).map_err(io_error)?;
        let upstream = self.upstream();
        tracking.extend(upstream.map(|u| format!("refs/remotes/{}/{}", u.name, u.branch)));
        let value = |refname: &String| repository.resolve(refname).ok().flatten();
        let tracked = tracking.into_iter().map(|refname| {
            let at = value(&refname);
            (refname, at)
        });
        Ok(tracked.collect())
    }

    /// Removes tracking refs that are empty or point to missing objects, with which git does not
    /// fetch.
    fn drop_lost_tracking(&self) -> Result<(), LedgerError> {
        let repository = self.repository();
        for (refname, _) in self.tracked()? {
            self.drop_empty(&refname)?;
            if let Some(at) = repository.resolve(&refname)?
                && !self.is_whole(at, None)?
            {
                repository.discard(&refname)?;
            }
        }
        Ok(())
    }

    /// Restores tracking refs that the remote's branch does not descend from: the next look then
    /// reports that it was rewritten. Those whose objects exist nowhere stay removed, unless the
    /// repair failed.
    fn track_again(&self, tracked: Vec<(String, Option<ObjectId>)>, failed: bool) {
        let repository = self.repository();
        for (refname, was) in tracked {
            let now = repository.resolve(&refname).ok().flatten();
            let Some(was) = was.filter(|was| Some(*was) != now) else {
                continue;
            };
            let continues = now.map(|now| repository.is_in_history(was, now));
            let continues = matches!(continues, Some(Ok(true)));
            if !continues && (failed || matches!(self.is_whole(was, None), Ok(true))) {
                let _ = repository.move_back(&refname, now, was, REFLOG);
            }
        }
    }

    /// Fetches the whole ledger, even if git regards it as known.
    fn fetch_anew(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        wanted: &[ObjectId],
    ) -> Result<Option<ObjectId>, LedgerError> {
        self.step_back(session, wanted, upstream.known()?)?;
        upstream.begin(session);
        upstream.anew = true;
        let there = upstream.look(session, Depth::All)?;
        upstream.ensure_reached()?;
        upstream.end();
        Ok(there)
    }

    /// Moves the branch to its last complete commit, or to the remote's if that is newer.
    fn settle_branch(
        &self,
        session: &Session,
        whole: Option<ObjectId>,
        there: Option<ObjectId>,
    ) -> Result<Option<ObjectId>, LedgerError> {
        let target = match (whole, there) {
            (Some(here), Some(there)) if self.repository().is_in_history(here, there)? => {
                Some(there)
            }
            (Some(here), _) => Some(here),
            (None, there) => there,
        };
        let now = self.tip_id()?;
        if let Some(target) = target.filter(|target| Some(*target) != now) {
            self.moved(session, now, target)?;
        }
        Ok(target)
    }

    fn moved(
        &self,
        session: &Session,
        from: Option<ObjectId>,
        to: ObjectId,
    ) -> Result<(), LedgerError> {
        match self.move_branch(session, from, to, REFLOG) {
            Ok(()) => Ok(()),
            Err(PublishError::Moved) => Err(WriteError::Contended(1).into()),
            Err(PublishError::Locked(path)) => Err(WriteError::Locked(path).into()),
            Err(PublishError::Git(error)) => Err(error.into()),
        }
    }
}

fn io_error(source: io::Error) -> LedgerError {
    WriteError::Repair(source).into()
}
