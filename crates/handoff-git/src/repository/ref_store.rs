//! Reads and moves refs, independent of the storage format in `refs`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use handoff_base::ObjectId;

use super::Repository;
use crate::error::{GitError, PublishError};
use crate::files::RefWatch;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An object.
    Id(ObjectId),
    /// Another ref.
    Symbolic(String),
}

/// A compare-and-swap of one ref.
pub(crate) struct RefUpdate<'a> {
    pub(crate) refname: &'a str,
    /// The expected value; `None` if it must not exist.
    pub(crate) from: Option<ObjectId>,
    /// The new value; `None` to delete it.
    pub(crate) to: Option<ObjectId>,
    /// The reflog message; no entry if empty.
    pub(crate) reflog: &'a str,
}

/// A storage format of refs.
///
/// All names are valid: callers check them.
pub(crate) trait RefStore {
    /// A ref's target; `None` if it does not exist.
    fn read(&self, repository: &Repository, refname: &str) -> Result<Option<Target>, GitError>;

    /// All refs whose names have a prefix, sorted by name.
    fn list(
        &self,
        repository: &Repository,
        prefix: &str,
    ) -> Result<Vec<(String, Target)>, GitError>;

    /// Applies an update, or leaves the ref unchanged.
    fn update(&self, repository: &Repository, update: &RefUpdate<'_>) -> Result<(), PublishError>;

    /// The refs in a folder that can be discarded, including unreadable ones.
    fn discardable(&self, repository: &Repository, folder: &str) -> io::Result<Vec<String>>;

    /// Removes a dangling ref regardless of its value; a packed value applies again.
    fn discard(&self, repository: &Repository, refname: &str) -> Result<(), PublishError>;

    /// The values in a ref's log, newest first.
    fn logged(&self, repository: &Repository, refname: &str) -> Vec<ObjectId>;

    /// Removes entries with these commits from a ref's log.
    fn forget_logged(
        &self,
        repository: &Repository,
        refname: &str,
        lost: &[ObjectId],
    ) -> io::Result<()>;

    /// Removes the stale lock of a process that was killed while moving a ref to this commit. Other
    /// locks stay.
    fn remove_abandoned_lock(&self, repository: &Repository, refname: &str, commit: &str);

    /// The working tree, main or linked, whose HEAD points to a ref.
    fn checked_out_at(&self, repository: &Repository, refname: &str) -> Option<PathBuf>;

    /// Creates HEAD in a new worktree's git directory, which has only `commondir` yet.
    fn start_head(
        &self,
        repository: &Repository,
        git_dir: &Path,
        head: &Target,
    ) -> Result<(), GitError>;

    /// Whether only git can resolve revision expressions, because libgit2 can't see the refs.
    fn is_gits_alone(&self) -> bool {
        false
    }

    /// The file below the common directory that changes with every ref update.
    fn watched(&self, refname: &str) -> PathBuf;
}

/// The maximum number of symbolic refs followed, as in git.
const MOST_HOPS: usize = 5;

impl Repository {
    /// Whether this is a valid ref name.
    pub fn is_ref_name(name: &str) -> bool {
        git2::Reference::is_valid_name(name)
    }

    /// A ref's target; `None` if it is missing or can't exist.
    pub(super) fn read_ref(&self, refname: &str) -> Result<Option<Target>, GitError> {
        if !Self::is_ref_name(refname) {
            return Ok(None);
        }
        self.refs.read(self, refname)
    }

    /// The refs whose names have a prefix, sorted by name.
    pub(crate) fn list_refs(&self, prefix: &str) -> Result<Vec<(String, Target)>, GitError> {
        self.refs.list(self, prefix)
    }

    /// The names of the refs below a folder, such as `refs/heads/`, sorted.
    ///
    /// # Errors
    /// [`GitError`] when the refs can't be listed.
    pub fn ref_names(&self, folder: &str) -> Result<Vec<String>, GitError> {
        let refs = self.list_refs(folder)?.into_iter();
        Ok(refs.map(|(name, _)| name).collect())
    }

    /// The branch that prevents another one of this ref's name: one is a folder of the other.
    ///
    /// # Errors
    /// [`GitError`] when the refs can't be listed.
    pub fn ref_in_the_way(&self, refname: &str) -> Result<Option<String>, GitError> {
        let folders = refname.match_indices('/').map(|(at, _)| &refname[..at]);
        let above = folders.filter(|name| matches!(self.resolve(name), Ok(Some(_))));
        let mut all = above.map(str::to_owned).collect::<Vec<_>>();
        all.extend(self.ref_names(&format!("{refname}/"))?);
        let first = all.into_iter().next();
        Ok(first.map(|name| name.trim_start_matches("refs/heads/").to_owned()))
    }

    /// The object that a ref points to, through symbolic refs.
    ///
    /// # Errors
    /// [`GitError`] when the ref can't be read; a missing one is `None`.
    pub fn resolve(&self, refname: &str) -> Result<Option<ObjectId>, GitError> {
        let mut at = self.read_ref(refname)?;
        for _ in 0..MOST_HOPS {
            match at {
                Some(Target::Symbolic(name)) => at = self.read_ref(&name)?,
                Some(Target::Id(id)) => return Ok(Some(id)),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Whether a ref is symbolic.
    pub fn is_symbolic(&self, refname: &str) -> bool {
        matches!(self.read_ref(refname), Ok(Some(Target::Symbolic(_))))
    }

    /// The target of a symbolic ref; `None` if it is missing or not symbolic.
    ///
    /// # Errors
    /// [`GitError`] when the ref can't be read.
    pub fn symbolic_target(&self, refname: &str) -> Result<Option<String>, GitError> {
        Ok(match self.read_ref(refname)? {
            Some(Target::Symbolic(name)) => Some(name),
            Some(Target::Id(_)) | None => None,
        })
    }

    /// Whether a remote-tracking branch of this name points to a commit.
    ///
    /// # Errors
    /// [`GitError`] when the refs can't be listed.
    pub fn is_remotes(&self, branch: &str, commit: ObjectId) -> Result<bool, GitError> {
        let end = format!("/{branch}");
        let mut refs = self.list_refs("refs/remotes/")?.into_iter();
        Ok(refs.any(|(name, target)| name.ends_with(&end) && target == Target::Id(commit)))
    }

    /// The working tree, main or linked, in which a branch is checked out or being rebased.
    pub fn checked_out_at(&self, refname: &str) -> Option<PathBuf> {
        let says =
            |path: PathBuf| fs::read_to_string(path).is_ok_and(|found| found.trim_end() == refname);
        // A rebase moves its original branch when it ends or is aborted.
        let is_rebased = |dir: &Path| {
            ["rebase-merge/head-name", "rebase-apply/head-name"]
                .iter()
                .any(|file| says(dir.join(file)))
        };
        let head = self.refs.checked_out_at(self, refname);
        head.or_else(|| self.worktree_where(is_rebased))
    }

    /// The working tree, main or linked, whose git directory satisfies `is_it`.
    pub fn worktree_where(&self, is_it: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let common = self.common_dir();
        let bare = matches!(self.config_bool("core.bare"), Ok(Some(true)));
        if !bare && is_it(common) {
            return Some(common.parent().unwrap_or(common).to_owned());
        }
        let linked = fs::read_dir(common.join("worktrees")).ok()?;
        let dirs = linked.filter_map(|entry| Some(entry.ok()?.path()));
        dirs.filter(|dir| is_it(dir)).find_map(|dir| {
            let link = fs::read_to_string(dir.join("gitdir")).ok()?;
            // The path is relative if `worktree.useRelativePaths` is set.
            let link = dir.join(link.trim_end());
            let worktree = link.parent()?.to_owned();
            worktree.exists().then_some(worktree)
        })
    }

    /// Moves a ref from `expected` to another commit; `None` expects that the ref does not exist.
    ///
    /// # Errors
    /// [`PublishError`]; the ref is then unchanged by this call.
    pub fn move_ref(
        &self,
        refname: &str,
        expected: Option<ObjectId>,
        to: ObjectId,
        reflog: &str,
    ) -> Result<(), PublishError> {
        let update = RefUpdate {
            refname,
            from: expected,
            to: Some(to),
            reflog,
        };
        let moved = self.refs.update(self, &update);
        self.grown.note();
        moved?;
        self.keep_fresh().inspect_err(|_| {
            // No ref may point to a commit with missing objects.
            let back = RefUpdate {
                refname,
                from: Some(to),
                to: expected,
                reflog: "handoff: its objects were removed",
            };
            let _ = self.refs.update(self, &back);
        })?;
        Ok(())
    }

    /// Deletes a ref that points to this object.
    ///
    /// # Errors
    /// [`PublishError`]; the ref is then unchanged by this call.
    pub(crate) fn delete_ref(&self, refname: &str, at: ObjectId) -> Result<(), PublishError> {
        let update = RefUpdate {
            refname,
            from: Some(at),
            to: None,
            reflog: "",
        };
        self.refs.update(self, &update)
    }

    /// The refs in a folder that [`Self::discard`] can remove, including unreadable ones.
    ///
    /// # Errors
    /// When they can't be listed.
    pub fn discardable(&self, folder: &str) -> io::Result<Vec<String>> {
        self.refs.discardable(self, folder)
    }

    /// Removes a dangling ref regardless of its value. In the files backend, a packed value applies
    /// again and the log stays.
    ///
    /// # Errors
    /// [`PublishError`] when it is locked or can't be removed.
    pub fn discard(&self, refname: &str) -> Result<(), PublishError> {
        self.refs.discard(self, refname)
    }

    /// The last values in a ref's log, newest first.
    pub fn logged(&self, refname: &str) -> Vec<ObjectId> {
        self.refs.logged(self, refname)
    }

    /// Removes lost commits from a ref's log, where `git fsck` would report them forever.
    ///
    /// # Errors
    /// When the log can't be read or written.
    pub fn forget_logged(&self, refname: &str, lost: &[ObjectId]) -> io::Result<()> {
        self.refs.forget_logged(self, refname, lost)
    }

    /// Removes the stale lock of a process that was killed while publishing this commit. If that
    /// fails, publishing reports the locked ref.
    pub fn remove_abandoned_lock(&self, refname: &str, commit: &str) {
        self.refs.remove_abandoned_lock(self, refname, commit);
    }

    /// Watches refs by their full names.
    pub fn watch(&self, refnames: &[&str]) -> RefWatch {
        let mut files: Vec<PathBuf> = refnames
            .iter()
            .map(|name| self.refs.watched(name))
            .collect();
        files.dedup();
        RefWatch::new(self.common_dir(), &files)
    }
}
