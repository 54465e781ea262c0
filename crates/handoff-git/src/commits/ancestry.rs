//! Walks through a commit's ancestors.

use std::collections::{HashSet, VecDeque};

use git2::ErrorCode;
use handoff_base::ObjectId;

use super::{Stored, stored_parents};
use crate::error::GitError;
use crate::objects::{ToOid, object_id};
use crate::repository::Repository;

impl Repository {
    /// A commit and its first parents, newest first, up to a shallow clone's boundary.
    ///
    /// # Errors
    /// Each item may be a [`GitError`]; the walk ends there.
    pub fn history(&self, tip: ObjectId) -> impl Iterator<Item = Result<Stored, GitError>> + '_ {
        let shallow = self.is_shallow();
        let mut next = Some(tip);
        std::iter::from_fn(move || {
            let stored = self.stored_in(next.take()?, shallow);
            if let Ok(stored) = &stored {
                next = stored.commit.parents.first().copied();
            }
            Some(stored)
        })
    }

    /// The ids of a commit and its first parents, newest first, up to a shallow clone's boundary.
    ///
    /// They are read lazily: libgit2's revwalk loads all of them before it returns the first, and
    /// returns none if one is missing.
    ///
    /// # Errors
    /// Each item may be a [`GitError`]; the walk ends there.
    pub fn first_parents(
        &self,
        tip: ObjectId,
    ) -> impl Iterator<Item = Result<ObjectId, GitError>> + '_ {
        let shallow = self.is_shallow();
        let mut next = Some(tip);
        std::iter::from_fn(move || {
            let id = next.take()?;
            if let Err(error) = self.ensure_not_cut_off(id) {
                return Some(Err(error));
            }
            Some(match self.patiently(|| self.inner.find_commit(id.oid())) {
                Ok(commit) => {
                    let before = stored_parents(commit.raw_header_bytes()).into_iter().next();
                    next = before.filter(|_| !shallow || !self.is_boundary(id));
                    Ok(id)
                }
                Err(error) => Err(error.into()),
            })
        })
    }

    /// The newest common ancestor of two commits.
    ///
    /// # Errors
    /// [`GitError`] when a commit between them can't be read.
    pub fn common_ancestor(
        &self,
        one: ObjectId,
        other: ObjectId,
    ) -> Result<Option<ObjectId>, GitError> {
        if self.is_shallow() {
            let (behind, _) = self.ancestors(other, |_| false)?;
            return Ok(self.ancestors(one, |id| behind.contains(&id))?.1);
        }
        match self.inner.merge_base(one.oid(), other.oid()) {
            Ok(id) => Ok(Some(object_id(id))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a commit is `of` or one of its ancestors.
    ///
    /// # Errors
    /// [`GitError`] when a commit between them can't be read.
    pub fn is_in_history(&self, commit: ObjectId, of: ObjectId) -> Result<bool, GitError> {
        if self.is_shallow() {
            return Ok(self.ancestors(of, |id| id == commit)?.1.is_some());
        }
        let is_below = || self.inner.graph_descendant_of(of.oid(), commit.oid());
        Ok(commit == of || self.patiently(is_below)?)
    }

    /// Counts the commits that only the first, and that only the second of two histories has.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn ahead_and_behind(
        &self,
        one: ObjectId,
        other: ObjectId,
    ) -> Result<(usize, usize), GitError> {
        if self.is_shallow() {
            let (one, _) = self.ancestors(one, |_| false)?;
            let (other, _) = self.ancestors(other, |_| false)?;
            return Ok((
                one.difference(&other).count(),
                other.difference(&one).count(),
            ));
        }
        Ok(self.inner.graph_ahead_behind(one.oid(), other.oid())?)
    }

    /// Whether a commit's history is truncated in this shallow clone.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn is_cut_off(&self, tip: ObjectId) -> Result<bool, GitError> {
        if !self.is_shallow() {
            return Ok(false);
        }
        let mut first = tip;
        for id in self.first_parents(tip) {
            first = id?;
        }
        Ok(self.commit(first)?.cut_off)
    }

    /// A commit and its ancestors in this clone, breadth first, up to the first for which `ends` is
    /// true.
    pub(crate) fn ancestors(
        &self,
        tip: ObjectId,
        ends: impl Fn(ObjectId) -> bool,
    ) -> Result<(HashSet<ObjectId>, Option<ObjectId>), GitError> {
        let (mut met, mut next) = (HashSet::new(), VecDeque::from([tip]));
        while let Some(id) = next.pop_front() {
            if !met.insert(id) {
                continue;
            }
            if ends(id) {
                return Ok((met, Some(id)));
            }
            next.extend(self.commit(id)?.parents);
        }
        Ok((met, None))
    }
}
