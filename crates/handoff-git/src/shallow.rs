//! What a clone does not have: history beyond the depth it was cloned with, and
//! objects that a filter left out.
//!
//! git says where history ends in a file, which every fetch may change. libgit2
//! reads it once, and not at all in a linked worktree or where it compares two
//! lines of commits, so it is read here.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::fs;
use std::rc::Rc;
use std::time::SystemTime;

use git2::ErrorCode;
use handoff_base::ObjectId;

use super::repository::{GitError, Repository};

/// The commits whose parents are not here, and the state of the file that said so.
#[derive(Default)]
pub(super) struct Boundary(RefCell<Option<(Stamp, Rc<HashSet<ObjectId>>)>>);

/// What tells two states of the file apart: it is replaced as a whole.
type Stamp = (Option<SystemTime>, u64);

impl Repository {
    /// Says whether history was cut off when this repository was cloned, of whatever
    /// branch.
    pub fn is_shallow(&self) -> bool {
        let found = fs::metadata(self.common_dir().join("shallow"));
        found.is_ok_and(|found| found.len() > 0)
    }

    /// Says whether a commit's parents are not in this shallow clone.
    pub(super) fn is_boundary(&self, id: ObjectId) -> bool {
        let path = self.common_dir().join("shallow");
        let Ok(found) = fs::metadata(&path) else {
            return false;
        };
        let stamp = (found.modified().ok(), found.len());
        let mut known = self.boundary.0.borrow_mut();
        if let Some((at, ids)) = &*known
            && *at == stamp
        {
            return ids.contains(&id);
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let ids: HashSet<ObjectId> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let is = ids.contains(&id);
        *known = Some((stamp, Rc::new(ids)));
        is
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
        match error.code() == ErrorCode::NotFound && self.is_partial() {
            true => GitError::left_out(error),
            false => error.into(),
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
