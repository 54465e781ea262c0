//! What a clone lacks: history beyond its depth, and filtered objects.

use std::fs;

use git2::ErrorCode;
use handoff_base::ObjectId;

use super::Repository;
use crate::error::GitError;

impl Repository {
    /// Whether this clone is shallow, for any branch.
    pub fn is_shallow(&self) -> bool {
        let found = fs::metadata(self.common_dir().join("shallow"));
        found.is_ok_and(|found| found.len() > 0)
    }

    /// Whether a commit's parents are missing from this shallow clone.
    pub(crate) fn is_boundary(&self, id: ObjectId) -> bool {
        self.boundary.holds(self.common_dir(), id)
    }

    /// Whether this is a partial clone, whose promisor remote has the missing objects.
    pub fn is_partial(&self) -> bool {
        let promised = |config: &git2::Config| {
            let mut entries = config.entries(Some("^remote\\..*\\.promisor$")).ok()?;
            let remote = entries.next().is_some_and(|entry| entry.is_ok());
            Some(remote || config.get_string("extensions.partialclone").is_ok())
        };
        self.configuration(promised)
            .is_ok_and(|is| is == Some(true))
    }

    /// Whether this is a partial clone of a remote, given by name.
    pub fn is_promised_by(&self, remote: &str) -> bool {
        let promisor = self.config_bool(&format!("remote.{remote}.promisor"));
        // Without a stored filter, git would store the one of a request permanently.
        let filter = || self.config(&format!("remote.{remote}.partialclonefilter"));
        matches!(promisor, Ok(Some(true))) && filter().is_some()
    }

    /// Converts an error about an object that a partial clone may have left out.
    pub(crate) fn without(&self, error: git2::Error) -> GitError {
        if error.code() == ErrorCode::NotFound && self.is_partial() {
            GitError::left_out(error)
        } else {
            error.into()
        }
    }
}
