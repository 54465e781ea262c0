//! Putting right what a power cut left: empty objects, and refs that are empty or lead to missing
//! objects. What is missing comes from the remote.

use std::io;

use handoff_base::ObjectId;
use handoff_git::{Depth, PublishError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{LedgerError, WriteError};
use crate::ledger::Ledger;
use crate::session::Session;
use crate::upstream::{TRACKING, Upstream};

/// The outcome of a repair.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Repaired {
    /// how many empty object files were removed
    pub removed: usize,
    /// where the branch is now, if it exists
    pub commit: Option<ObjectId>,
    /// later commits of the branch that only this clone had
    pub lost: Vec<ObjectId>,
}

impl Ledger<'_> {
    /// Removes empty files of objects and refs, fetches what is missing from the remote, if there
    /// is one, and moves the branch to the last commit that is here with all its objects.
    ///
    /// # Errors
    /// [`LedgerError`], also if the remote can't be reached; the branch then stays at a commit that
    /// has all its objects, or is gone until the next repair.
    pub fn repair(&mut self, session: &Session) -> Result<Repaired, LedgerError> {
        self.guard(session)?;
        let removed = self.repository().remove_empty_objects().map_err(io_error)?;
        self.drop_empty(self.refname())?;
        self.drop_lost_tracking()?;
        let wanted = self.wanted()?;
        let there = if self.is_shared() {
            self.with_upstream(|ledger, upstream| ledger.fetch_anew(session, upstream, &wanted))?
        } else {
            None
        };
        let whole = self.newest_whole(&wanted, there)?;
        let newer = wanted.iter().take_while(|id| Some(**id) != whole);
        let lost: Vec<ObjectId> = newer.copied().collect();
        let commit = self.settle_branch(session, whole, there)?;
        if !lost.is_empty() {
            let forgotten = self.repository().forget_logged(self.refname(), &lost);
            forgotten.map_err(io_error)?;
        }
        Ok(Repaired {
            removed,
            commit,
            lost,
        })
    }

    /// The first of these commits that has all its objects but those of another one.
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

    /// Where the branch was, the newest first.
    fn wanted(&self) -> Result<Vec<ObjectId>, LedgerError> {
        let known = self.tip_id()?.into_iter();
        let logged = self.repository().logged(self.refname());
        let mut wanted: Vec<ObjectId> = Vec::new();
        // The log goes on after a value that was lost from the ref.
        for id in logged.into_iter().chain(known).chain(self.memory().seen()) {
            if !wanted.contains(&id) {
                wanted.push(id);
            }
        }
        Ok(wanted)
    }

    /// Removes tracking refs that are empty or lead to missing objects, which would keep git from
    /// fetching: also those of a remote that is not the ledger's yet, and the one that `git push`
    /// moves too.
    fn drop_lost_tracking(&self) -> Result<(), LedgerError> {
        let repository = self.repository();
        let mut tracking = repository.discardable(TRACKING).map_err(io_error)?;
        let upstream = self.upstream();
        tracking.extend(upstream.map(|u| format!("refs/remotes/{}/{}", u.name, u.branch)));
        for refname in &tracking {
            self.drop_empty(refname)?;
            if let Some(at) = repository.resolve(refname)?
                && !self.is_whole(at, None)?
            {
                repository.discard(refname)?;
            }
        }
        Ok(())
    }

    /// Fetches the whole ledger, ignoring what git considers known.
    fn fetch_anew(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        wanted: &[ObjectId],
    ) -> Result<Option<ObjectId>, LedgerError> {
        let known = upstream.known()?;
        if let Some(tip) = self.tip_id()?
            && !self.is_whole(tip, known)?
        {
            let whole = self.newest_whole(wanted, known)?;
            self.repository().discard(self.refname())?;
            let packed = self.tip_id()?;
            if let Some(whole) = whole.filter(|whole| Some(*whole) != packed) {
                self.moved(session, packed, whole)?;
            }
        }
        upstream.begin(session);
        upstream.anew = true;
        let there = upstream.look(session, Depth::All)?;
        upstream.ensure_reached()?;
        upstream.end();
        Ok(there)
    }

    /// Moves the branch to its last commit that is whole, or to the remote's if that is newer.
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
        match self.move_branch(session, from, to, "handoff: repair") {
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
