//! Queries about the user's own branches, which are only read.

use git2::{Oid, Sort};
use handoff_base::Code;

use super::error::GitError;
use super::object_id::{ToOid, object_id};
use super::repository::Repository;

/// How many commits back a merge is searched for.
const DEPTH: usize = 200;

/// A commit on a code branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeCommit {
    /// The full id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl Repository {
    /// The branch of HEAD, if it has a commit.
    pub fn current_branch(&self) -> Option<String> {
        let head = self.inner.head().ok()?;
        let branch = head
            .is_branch()
            .then(|| head.shorthand().ok().map(str::to_owned));
        branch.flatten()
    }

    /// The address of a remote.
    pub fn remote_url(&self, name: &str) -> Option<String> {
        self.config(&format!("remote.{name}.url"))
    }

    /// The commit of a local branch or, failing that, `origin`'s.
    pub fn code(&self, branch: &str) -> Option<Code> {
        let commit = self.find_code_branch(branch)?;
        let tree = self.inner.find_commit(commit).ok()?.tree_id();
        Some(Code {
            branch: branch.to_owned(),
            commit: commit.to_string(),
            tree: Some(tree.to_string()),
        })
    }

    fn find_code_branch(&self, branch: &str) -> Option<Oid> {
        let refs = [
            format!("refs/heads/{branch}"),
            format!("refs/remotes/origin/{branch}"),
        ];
        let valid = |name: &&String| git2::Reference::is_valid_name(name.as_str());
        let mut found = refs.iter().filter(valid);
        found.find_map(|name| self.inner.refname_to_id(name).ok())
    }

    /// The branch that work is merged into: `origin/HEAD`'s, else `main`, else `master`.
    pub fn base_branch(&self) -> Option<String> {
        let remote = self.inner.find_reference("refs/remotes/origin/HEAD").ok();
        let named = remote.and_then(|r| {
            let target = r.symbolic_target().ok()??;
            Some(target.strip_prefix("refs/remotes/origin/")?.to_owned())
        });
        let usual = || {
            let mut names = ["main", "master"].into_iter();
            names
                .find(|n| self.find_code_branch(n).is_some())
                .map(str::to_owned)
        };
        named.or_else(usual)
    }

    /// The commits of a branch that another branch or commit lacks: the oldest first, without
    /// merges, at most the newest `limit`.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    /// [`GitError`] when history can't be read.
    pub fn commits_between(
        &self,
        base: &str,
        branch: &str,
        limit: usize,
    ) -> Result<Option<Vec<CodeCommit>>, GitError> {
        let Some(tip) = self.find_code_branch(branch) else {
            return Ok(None);
        };
        let known = |oid: &Oid| self.inner.find_commit(*oid).is_ok();
        let base = self
            .find_code_branch(base)
            .or_else(|| Oid::from_str(base).ok().filter(known));
        let Some(base) = base else {
            return Ok(None);
        };
        let mut walk = self.inner.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL)?;
        walk.push(tip)?;
        walk.hide(base)?;
        let mut commits = Vec::new();
        for oid in walk {
            let commit = self.inner.find_commit(oid?)?;
            if commit.parent_count() < 2 {
                let message = String::from_utf8_lossy(commit.message_bytes());
                let subject = message.lines().next().unwrap_or_default().to_owned();
                commits.push(CodeCommit {
                    id: commit.id().to_string(),
                    subject,
                });
            }
            if commits.len() == limit {
                break;
            }
        }
        commits.reverse();
        Ok(Some(commits))
    }

    /// Counts a branch's own commits without merges: those since it left its base, also if they
    /// have been merged. `None` if that is unknown here, or the count reaches `limit`.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    /// [`GitError`] when history can't be read.
    pub fn commits_on(
        &self,
        base: &str,
        branch: &str,
        sent: &[&str],
        limit: usize,
    ) -> Result<Option<usize>, GitError> {
        let Some(tip) = self.find_code_branch(base).filter(|_| !self.is_shallow()) else {
            return Ok(None);
        };
        let mut before = None;
        for id in self.first_parents(object_id(tip)).take(DEPTH) {
            let commit = self.inner.find_commit(id?.oid())?;
            let mut merged = commit.parent_ids().skip(1);
            if merged.any(|parent| sent.contains(&parent.to_string().as_str())) {
                before = commit.parent_id(0).ok();
            }
        }
        let base = before.map_or_else(|| base.to_owned(), |before| before.to_string());
        let commits = self.commits_between(&base, branch, limit)?;
        let count = commits.map(|commits| commits.len());
        Ok(count.filter(|count| (1..limit).contains(count)))
    }

    /// Counts the files that a branch changed since it left another.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn files_changed(&self, base: &str, branch: &str) -> Result<Option<usize>, GitError> {
        let (Some(base), Some(tip)) = (self.find_code_branch(base), self.find_code_branch(branch))
        else {
            return Ok(None);
        };
        let Ok(fork) = self.inner.merge_base(base, tip) else {
            return Ok(None);
        };
        let tree = |oid: Oid| Ok::<_, GitError>(object_id(self.inner.find_commit(oid)?.tree_id()));
        let tip = super::tree::Tree::new(self, tree(tip)?);
        let changes = tip.changes_since(Some(tree(fork)?), |_| false)?;
        Ok(Some(changes.len()))
    }

    /// The commit that merged a branch into the base branch: the newest merge whose second parent
    /// is the branch's commit.
    pub fn merge_of(&self, base: &str, commit: &str) -> Option<String> {
        let tip = self.find_code_branch(base)?;
        let wanted = Oid::from_str(commit).ok()?;
        let mut walk = self.inner.revwalk().ok()?;
        walk.simplify_first_parent().ok()?;
        walk.push(tip).ok()?;
        let mut recent = walk.filter_map(Result::ok).take(DEPTH);
        recent
            .find(|oid| {
                let commit = self.inner.find_commit(*oid);
                commit.is_ok_and(|c| c.parent_ids().skip(1).any(|p| p == wanted) || *oid == wanted)
            })
            .map(|oid| oid.to_string())
    }
}
