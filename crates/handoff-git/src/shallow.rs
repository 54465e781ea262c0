//! What a clone does not have: history beyond the depth it was cloned with, and
//! objects that a filter left out.

use std::collections::{HashSet, VecDeque};
use std::fs;

use git2::ErrorCode;
use handoff_base::ObjectId;

use super::error::GitError;
use super::repository::Repository;

impl Repository {
    /// Says whether history was cut off when this repository was cloned, of whatever
    /// branch.
    pub fn is_shallow(&self) -> bool {
        let found = fs::metadata(self.common_dir().join("shallow"));
        found.is_ok_and(|found| found.len() > 0)
    }

    /// Says whether a commit's parents are not in this shallow clone.
    pub(super) fn is_boundary(&self, id: ObjectId) -> bool {
        self.boundary.holds(self.common_dir(), id)
    }

    /// Says whether objects were left out when this repository was cloned, which its
    /// remote promised to have.
    pub fn is_partial(&self) -> bool {
        let promised = |config: &git2::Config| {
            let mut entries = config.entries(Some("^remote\\..*\\.promisor$")).ok()?;
            let remote = entries.next().is_some_and(|entry| entry.is_ok());
            Some(remote || config.get_string("extensions.partialclone").is_ok())
        };
        self.configuration(promised)
            .is_ok_and(|is| is == Some(true))
    }

    /// The failure to read an object, which a partial clone may just not have.
    pub(super) fn without(&self, error: git2::Error) -> GitError {
        if error.code() == ErrorCode::NotFound && self.is_partial() {
            GitError::left_out(error)
        } else {
            error.into()
        }
    }

    /// Says whether the first commit in this one's history has parents that are not
    /// in this shallow clone.
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

    /// A commit and all behind it that this clone has, the nearest first, until one
    /// is met that `ends` the search.
    pub(super) fn ancestors(
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
