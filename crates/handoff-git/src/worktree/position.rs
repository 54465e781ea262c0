//! A working tree's branch, commit, operation in progress and unpublished commits.

use std::fs;

use git2::RepositoryState;
use handoff_base::ObjectId;

use crate::error::GitError;
use crate::objects::{ToOid, object_id};
use crate::repository::Repository;
use crate::repository::Target;

/// The HEAD of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The branch, without `refs/heads/`; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// HEAD's commit and tree; `None` before the first commit.
    pub head: Option<(ObjectId, ObjectId)>,
}

/// Commits that another clone may lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpublished {
    /// The commits to keep, parents first.
    pub commits: Vec<ObjectId>,
    /// Whether there are too many, so that only the tips are listed.
    pub more: bool,
    /// Whether a remote lacks one.
    pub missing: bool,
}

impl Repository {
    /// The current HEAD.
    ///
    /// # Errors
    /// [`GitError`] when HEAD can't be read.
    pub fn position(&self) -> Result<Position, GitError> {
        let target = self.symbolic_target("HEAD")?;
        let branch = target.map(|name| name.trim_start_matches("refs/heads/").to_owned());
        let commit = self.resolve("HEAD")?;
        let head = match commit {
            Some(commit) => Some((commit, self.commit(commit)?.tree)),
            None => None,
        };
        Ok(Position { branch, head })
    }

    /// git's name for the operation in progress.
    pub fn operation(&self) -> Option<&'static str> {
        Some(match self.inner.state() {
            RepositoryState::Clean => return None,
            RepositoryState::Merge => "merge",
            RepositoryState::Revert | RepositoryState::RevertSequence => "revert",
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => "cherry-pick",
            RepositoryState::Bisect => "bisect",
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge => "rebase",
            RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => "am",
        })
    }

    /// The commits and the message of a merge in progress.
    pub fn merging(&self) -> (Vec<ObjectId>, Vec<u8>) {
        let own = self.inner.path();
        let heads = fs::read_to_string(own.join("MERGE_HEAD")).unwrap_or_default();
        let heads = heads.lines().filter_map(|line| line.parse().ok()).collect();
        (heads, fs::read(own.join("MERGE_MSG")).unwrap_or_default())
    }

    /// These commits and their ancestors that no remote-tracking ref contains. Only these commits,
    /// if there is no such ref or the limit is exceeded.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn unpublished(&self, tips: &[ObjectId], limit: usize) -> Result<Unpublished, GitError> {
        let refs = self.list_refs("refs/remotes/")?.into_iter();
        let remote: Vec<ObjectId> = refs
            .filter_map(|(name, target)| match target {
                Target::Id(id) => Some(id),
                Target::Symbolic(_) => self.resolve(&name).ok()?,
            })
            .collect();
        let themselves = || tips.to_vec();
        if remote.is_empty() || tips.iter().all(|tip| remote.contains(tip)) {
            return Ok(Unpublished {
                commits: themselves(),
                more: false,
                missing: false,
            });
        }
        let mut walk = self.inner.revwalk()?;
        for tip in tips {
            walk.push(tip.oid())?;
        }
        for id in remote {
            // A broken ref excludes nothing.
            let _ = walk.hide(id.oid());
        }
        walk.set_sorting(git2::Sort::TOPOLOGICAL)?;
        let mut commits = Vec::new();
        for id in walk {
            match id {
                Ok(id) => commits.push(object_id(id)),
                // A shallow clone's boundary.
                Err(_) => break,
            }
            if commits.len() > limit {
                return Ok(Unpublished {
                    commits: themselves(),
                    more: true,
                    missing: true,
                });
            }
        }
        commits.reverse();
        let missing = !commits.is_empty();
        // Even published commits can be missing in another clone.
        let published = tips.iter().filter(|tip| !commits.contains(tip));
        let published: Vec<ObjectId> = published.copied().collect();
        commits.splice(0..0, published);
        Ok(Unpublished {
            commits,
            more: false,
            missing,
        })
    }
}
