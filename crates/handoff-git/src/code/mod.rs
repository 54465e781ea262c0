//! The user's own branches, read-only: queries (here), what a branch added to its base
//! (`evidence`), and how it was merged (`merge`, `own_change`).

mod evidence;
mod merge;
mod own_change;

pub use evidence::{Added, Differences, FactError, Named, Unknown};
pub use own_change::{CodeStore, undone_by_rebase};

use git2::{BranchType, Oid, Sort};
use handoff_base::text::{quoted, word};
use handoff_base::{Code, ObjectId};

use self::merge::Conflict;
use crate::error::GitError;
use crate::objects::{ToOid, object_id};
use crate::repository::Repository;

/// How many first parents are searched for a merge.
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
    /// The current branch; `None` if HEAD is detached or unborn.
    pub fn current_branch(&self) -> Option<String> {
        let head = self.symbolic_target("HEAD").ok()??;
        let branch = head.strip_prefix("refs/heads/")?;
        self.resolve(&head).ok()??;
        Some(branch.to_owned())
    }

    /// The URL of a remote.
    pub fn remote_url(&self, name: &str) -> Option<String> {
        self.config(&format!("remote.{name}.url"))
    }

    /// The commit of a local branch or, without one, `origin`'s.
    pub fn code(&self, branch: &str) -> Option<Code> {
        let commit = self.find_code_branch(branch)?;
        let tree = self.inner.find_commit(commit).ok()?.tree_id();
        Some(Code {
            branch: branch.to_owned(),
            commit: commit.to_string(),
            tree: Some(tree.to_string()),
        })
    }

    /// Why a code branch has no commit.
    pub fn no_branch(&self, branch: &str) -> String {
        let branch = quoted(branch);
        if self.is_without_commits() {
            return format!("there is no branch {branch}: the repository has no commit yet");
        }
        let origin = self.remote_url("origin");
        let origin = origin.map_or(" here", |_| " here, or where origin was fetched last");
        format!("there is no branch {branch}{origin}")
    }

    /// Whether HEAD is unborn, and there is no base branch either.
    pub fn is_without_commits(&self) -> bool {
        matches!(self.resolve("HEAD"), Ok(None)) && self.base_branch().is_none()
    }

    /// A code branch as git commands name it: `origin/NAME` if it is not here.
    pub fn code_name(&self, branch: &str) -> String {
        let here = self.resolve(&format!("refs/heads/{branch}"));
        let there = matches!(here, Ok(None)) && self.on_origin(branch).is_some();
        format!("{}{branch}", if there { "origin/" } else { "" })
    }

    fn find_code_branch(&self, branch: &str) -> Option<Oid> {
        let refs = [
            format!("refs/heads/{branch}"),
            format!("refs/remotes/origin/{branch}"),
        ];
        let found = refs.iter().find_map(|name| self.resolve(name).ok()?);
        found.map(ToOid::oid)
    }

    /// The names of local branches, at most this many.
    pub fn local_branches(&self, most: usize) -> Vec<String> {
        let all = self.inner.branches(Some(BranchType::Local));
        let all = all.into_iter().flatten().flatten();
        let names = all.filter_map(|(branch, _)| Some(branch.name().ok()??.to_owned()));
        names.take(most).collect()
    }

    /// The base branch: `origin/HEAD`'s, else `main`, `master`, or the one that `init.defaultBranch`
    /// names.
    pub fn base_branch(&self) -> Option<String> {
        self.base_branch_on("origin")
    }

    /// Like [`Self::base_branch`], but by the HEAD of another remote.
    pub fn base_branch_on(&self, remote: &str) -> Option<String> {
        let place = format!("refs/remotes/{remote}/");
        let head = self.symbolic_target(&format!("{place}HEAD")).ok();
        let named = head
            .flatten()
            .and_then(|target| Some(target.strip_prefix(&place)?.to_owned()));
        let usual = || {
            let usual = ["main", "master"].into_iter().map(str::to_owned);
            let configured = std::iter::once_with(|| self.config("init.defaultBranch"));
            let mut names = usual.chain(configured.flatten());
            names.find(|name| self.find_code_branch(name).is_some())
        };
        named.or_else(usual)
    }

    /// The commits reachable from a branch but not from another one: oldest first, without merges,
    /// at most the newest `limit`.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn commits_between(
        &self,
        base: &str,
        branch: &str,
        limit: usize,
    ) -> Result<Option<Vec<CodeCommit>>, GitError> {
        let (Some(base), Some(tip)) = (self.find_base(base)?, self.find_code_branch(branch)) else {
            return Ok(None);
        };
        let mut walk = self.inner.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL)?;
        walk.push(tip)?;
        walk.hide(base)?;
        let ids = walk.map(|oid| Ok(object_id(oid?)));
        self.without_merges(ids, limit).map(Some)
    }

    /// A branch's own commits, by the rule that checks claims: oldest first, without merges, at
    /// most the newest `limit`. `None` if unknown in this clone.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn own_commits(
        &self,
        base: &str,
        branch: &str,
        limit: usize,
    ) -> Result<Option<Vec<CodeCommit>>, GitError> {
        let Some(added) = self.added_by(base, branch)? else {
            return Ok(None);
        };
        let ids = added.commits.into_iter().map(|(id, _)| Ok(id));
        self.without_merges(ids, limit).map(Some)
    }

    /// The commits that a branch added to its base; `None` if unknown in this clone.
    fn added_by(&self, base: &str, branch: &str) -> Result<Option<Added>, GitError> {
        let Some(tip) = self.find_code_branch(branch) else {
            return Ok(None);
        };
        self.added_until(base, object_id(tip))
    }

    fn added_until(&self, base: &str, tip: ObjectId) -> Result<Option<Added>, GitError> {
        match self.find_base(base)? {
            Some(base) => if_known(self.added(object_id(base), tip)),
            None => Ok(None),
        }
    }

    /// The first `limit` commits that are not merges, in reverse order.
    fn without_merges(
        &self,
        ids: impl Iterator<Item = Result<ObjectId, GitError>>,
        limit: usize,
    ) -> Result<Vec<CodeCommit>, GitError> {
        let mut commits = Vec::new();
        for id in ids {
            let commit = self.inner.find_commit(id?.oid())?;
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
        Ok(commits)
    }

    /// The commit of a base branch, as in [`Self::base_code`], or the commit with this id.
    fn find_base(&self, base: &str) -> Result<Option<Oid>, GitError> {
        let known = |oid: &Oid| self.inner.find_commit(*oid).is_ok();
        let id = match self.base_code(base)? {
            Some(code) => code.commit,
            None => base.to_owned(),
        };
        Ok(parsed(&id).filter(known))
    }

    /// The commit at which the work up to `tip` left the base branch, if this clone has both.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn fork_of(&self, base: &str, tip: ObjectId) -> Result<Option<ObjectId>, GitError> {
        Ok(self.added_until(base, tip)?.map(|added| added.fork))
    }

    /// Counts the files that a branch changed since its fork point.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn files_changed(&self, base: &str, branch: &str) -> Result<Option<usize>, GitError> {
        let (Some(tip), Some(added)) =
            (self.find_code_branch(branch), self.added_by(base, branch)?)
        else {
            return Ok(None);
        };
        let changed = self.differences(added.fork, object_id(tip));
        if_known(changed.map(|changed| changed.len()))
    }

    /// The newest commit of the base branch that contains a branch's work up to `tip`: a merge,
    /// squash or rebase or, after a fast-forward, the tip itself, provided that the branch got
    /// beyond `start`.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn merge_of(&self, base: &str, start: &str, tip: &str) -> Result<Option<String>, GitError> {
        self.brought_by(base, Some(start), tip, Conflict::MayBeSolved)
    }

    /// Whether a commit of the base branch is a merge, a squash or a rebase of a branch's work up to
    /// `tip`, without a conflict that somebody solved.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn is_merged_into(&self, base: &str, tip: &str) -> Result<bool, GitError> {
        let by = self.brought_by(base, None, tip, Conflict::TellsApart)?;
        Ok(by.is_some())
    }

    /// The command that pushes a local branch at `tip` to `origin`, which has it at `there`: by force
    /// if it was rewritten here.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn push_command(
        &self,
        branch: &str,
        tip: ObjectId,
        there: Option<ObjectId>,
    ) -> Result<String, GitError> {
        let is_rewritten = match there {
            Some(there) => self.is_rewritten(branch, tip, there)?,
            None => false,
        };
        let force = if is_rewritten {
            "--force-with-lease "
        } else {
            ""
        };
        Ok(format!("git push {force}origin {}", word(branch)))
    }

    /// Whether a local branch at `tip` was rewritten, so that it has all of `origin`'s at `there` by
    /// other commits: it was there itself, or has what is there rebased or squashed.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn is_rewritten(
        &self,
        branch: &str,
        tip: ObjectId,
        there: ObjectId,
    ) -> Result<bool, GitError> {
        if self.is_in_history(there, tip)? {
            return Ok(false);
        }
        let was_there = self
            .logged(&format!("refs/heads/{branch}"))
            .contains(&there);
        Ok(was_there || self.is_merged_into(&tip.to_string(), &there.to_string())?)
    }

    fn brought_by(
        &self,
        base: &str,
        start: Option<&str>,
        tip: &str,
        conflict: Conflict,
    ) -> Result<Option<String>, GitError> {
        let (Some(base), Some(tip)) = (self.find_base(base)?, parsed(tip)) else {
            return Ok(None);
        };
        let Ok(fork) = self.inner.merge_base(base, tip) else {
            return Ok(None);
        };
        let mut walk = self.inner.revwalk()?;
        walk.simplify_first_parent()?;
        walk.push(base)?;
        for oid in walk.take(DEPTH) {
            let oid = oid?;
            let is_it = if oid == tip {
                start != Some(&*tip.to_string())
            } else {
                oid != fork && self.brings(object_id(oid), object_id(tip), conflict)?
            };
            if is_it {
                return Ok(Some(oid.to_string()));
            }
            if oid == fork {
                break;
            }
        }
        Ok(None)
    }

    /// Whether a commit of the base branch results from merging a branch, by any strategy.
    fn brings(
        &self,
        commit: ObjectId,
        tip: ObjectId,
        conflict: Conflict,
    ) -> Result<bool, GitError> {
        let is = |mismatch| Ok::<_, GitError>(if_known(mismatch)? == Some(None));
        Ok(is(self.not_a_merge(commit, Some(tip)))?
            || is(self.other_than_squash(commit, Some(tip), conflict))?
            || is(self.other_than_rebase(commit, Some(tip), conflict))?
            || conflict == Conflict::TellsApart && is(self.other_than_merged_again(commit, tip))?)
    }
}

fn parsed(id: &str) -> Option<Oid> {
    id.parse::<ObjectId>().ok().map(ToOid::oid)
}

/// A fact; `None` if this clone can't tell it.
fn if_known<T>(fact: Result<T, FactError>) -> Result<Option<T>, GitError> {
    match fact {
        Ok(fact) => Ok(Some(fact)),
        Err(FactError::Unknown(_)) => Ok(None),
        Err(FactError::Git(error)) => Err(error),
    }
}
