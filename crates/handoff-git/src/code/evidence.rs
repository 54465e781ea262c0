//! Facts about the user's commits, such as what a branch added to its base. Objects are only read,
//! and no process is started.
//!
//! A fact that needs missing history or objects is [`Unknown`], never a guess.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use git2::{ErrorCode, ObjectType, Sort};
use handoff_base::{Code, ObjectId};

use crate::error::GitError;
use crate::objects::{ToOid, object_id};
use crate::repository::{Repository, Target};
use crate::tree::{Shape, Tree};

/// The maximum number of commits that one query walks.
pub(super) const MOST_COMMITS: usize = 10_000;

/// The maximum number of paths compared.
const MOST_PATHS: usize = 100_000;

/// Why a fact can't be determined in this clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The history is truncated: the clone is shallow.
    #[error("this clone is shallow, and the missing history may contain the answer")]
    Shallow,
    /// Objects are missing from this partial clone.
    #[error("this is a partial clone, and the object is missing")]
    Partial,
    /// There are too many commits or paths.
    #[error("too many to compare: the limits are {MOST_COMMITS} commits and {MOST_PATHS} paths")]
    TooMuch,
    /// The commits have no common ancestor.
    #[error("the branch and its base have no commit in common")]
    Unrelated,
}

/// Why a fact could not be determined.
#[derive(Debug, thiserror::Error)]
pub enum FactError {
    /// This clone can't tell.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The repository is damaged.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl From<git2::Error> for FactError {
    fn from(error: git2::Error) -> Self {
        Self::Git(error.into())
    }
}

/// The object that a full or abbreviated id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A commit.
    Commit(ObjectId),
    /// Another kind of object.
    Other(&'static str),
    /// The abbreviation is ambiguous.
    Several,
    /// No object.
    Nothing,
}

/// Each path that differs between two trees, with its object in the second tree.
pub type Differences = BTreeMap<String, Option<ObjectId>>;

/// The commits that a branch added to its base.
#[derive(Clone, Debug)]
pub struct Added {
    /// The fork point: the commit where it left the base.
    pub fork: ObjectId,
    /// The commits after it, newest first, each with its number of parents.
    pub commits: Vec<(ObjectId, usize)>,
}

impl Repository {
    /// The commit of the base branch, local or on `origin`: the one that contains the other, or
    /// `origin`'s if they diverged.
    ///
    /// # Errors
    /// [`GitError`] when history can't be read.
    pub fn base_code(&self, branch: &str) -> Result<Option<Code>, GitError> {
        let local = self.resolve(&format!("refs/heads/{branch}"));
        let (local, remote) = (local.ok().flatten(), self.on_origin(branch));
        let commit = match (local, remote) {
            (Some(local), Some(remote)) if local != remote => {
                let ahead = self.inner.graph_descendant_of(local.oid(), remote.oid())?;
                Some(if ahead { local } else { remote })
            }
            (local, remote) => local.or(remote),
        };
        let Some(commit) = commit else {
            return Ok(None);
        };
        let tree = self.inner.find_commit(commit.oid())?.tree_id();
        Ok(Some(Code {
            branch: branch.to_owned(),
            commit: commit.to_string(),
            tree: Some(tree.to_string()),
        }))
    }

    /// The object that a full or abbreviated id names.
    ///
    /// # Errors
    /// [`FactError`]; [`Unknown`] if this shallow or partial clone may just lack the object.
    pub fn named(&self, text: &str) -> Result<Named, FactError> {
        let digits = 2 * self.format().id_bytes();
        let is_id =
            (4..=digits).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        let nothing = || match self.gap() {
            Some(unknown) => Err(unknown.into()),
            None => Ok(Named::Nothing),
        };
        if !is_id {
            return Ok(Named::Nothing);
        }
        let odb = self.inner.odb()?;
        let padded: ObjectId = format!("{text:0<digits$}")
            .parse()
            .map_err(GitError::from)?;
        let found = odb.exists_prefix(padded.oid(), text.len());
        let oid = match found {
            Ok(oid) => oid,
            Err(error) if error.code() == ErrorCode::Ambiguous => return Ok(Named::Several),
            Err(error) if error.code() == ErrorCode::NotFound => return nothing(),
            Err(error) => return Err(error.into()),
        };
        Ok(match odb.read_header(oid)?.1 {
            ObjectType::Commit => Named::Commit(object_id(oid)),
            ObjectType::Tag => Named::Other("a tag"),
            ObjectType::Tree => Named::Other("a tree"),
            _ => Named::Other("a file"),
        })
    }

    /// Why a missing object may exist elsewhere; `None` in a full clone.
    fn gap(&self) -> Option<Unknown> {
        if self.is_shallow() {
            return Some(Unknown::Shallow);
        }
        self.is_partial().then_some(Unknown::Partial)
    }

    /// Turns a not-found error into [`Unknown`] if this clone is incomplete.
    pub(crate) fn known<T>(&self, answer: Result<T, FactError>) -> Result<T, FactError> {
        match answer {
            Err(FactError::Git(error)) if error.is_not_found() => match self.gap() {
                Some(unknown) => Err(unknown.into()),
                None => Err(error.into()),
            },
            answer => answer,
        }
    }

    /// Whether a commit is an ancestor of `tip`, or `tip` itself.
    ///
    /// # Errors
    /// [`FactError`]; a commit not found in truncated history is unknown.
    pub fn has_commit(&self, tip: ObjectId, commit: ObjectId) -> Result<bool, FactError> {
        if tip == commit {
            return Ok(true);
        }
        let has = self.inner.graph_descendant_of(tip.oid(), commit.oid());
        let has = self.known(has.map_err(FactError::from))?;
        if !has && self.is_shallow() {
            return Err(Unknown::Shallow.into());
        }
        Ok(has)
    }

    /// The commits reachable from one commit but not from others, newest first.
    ///
    /// # Errors
    /// [`FactError`]; [`Unknown`] if history is truncated among these commits.
    pub fn commits_since(
        &self,
        tip: ObjectId,
        known: &[ObjectId],
    ) -> Result<Vec<(ObjectId, usize)>, FactError> {
        let walk = || -> Result<Vec<(ObjectId, usize)>, FactError> {
            let mut walk = self.inner.revwalk()?;
            walk.set_sorting(Sort::TOPOLOGICAL)?;
            walk.push(tip.oid())?;
            for known in known {
                walk.hide(known.oid())?;
            }
            let mut commits = Vec::new();
            for oid in walk {
                if commits.len() == MOST_COMMITS {
                    return Err(Unknown::TooMuch.into());
                }
                let id = object_id(oid?);
                let commit = self.commit(id)?;
                if commit.cut_off {
                    return Err(Unknown::Shallow.into());
                }
                commits.push((id, commit.parents.len()));
            }
            Ok(commits)
        };
        self.known(walk())
    }

    /// The commits that a branch added to its base. If the base has merged the branch, those that
    /// it had added before that merge.
    ///
    /// # Errors
    /// [`FactError`] when it is unknown or history can't be read.
    pub fn added(&self, base: ObjectId, tip: ObjectId) -> Result<Added, FactError> {
        let base = self.before_merge(base, tip)?;
        let fork = self.fork(base, tip)?;
        let commits = self.commits_since(tip, &[base])?;
        if self.is_shallow() {
            // Requires the base's commits since the fork, too: without them, some could pass for
            // the branch's own.
            self.commits_since(base, &[tip])?;
        }
        Ok(Added { fork, commits })
    }

    /// The newest common ancestor of two commits.
    ///
    /// # Errors
    /// [`FactError`] when it is unknown or history can't be read.
    pub(crate) fn fork(&self, one: ObjectId, other: ObjectId) -> Result<ObjectId, FactError> {
        match self.inner.merge_base(one.oid(), other.oid()) {
            Ok(oid) => Ok(object_id(oid)),
            Err(error) if error.code() == ErrorCode::NotFound => {
                Err(self.gap().unwrap_or(Unknown::Unrelated).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The base branch's commit before it merged this commit; `base` itself if it never did.
    fn before_merge(&self, base: ObjectId, tip: ObjectId) -> Result<ObjectId, FactError> {
        if base == tip || !self.known(self.descends(base, tip))? {
            return Ok(base);
        }
        let line = self.first_parents(base).take(MOST_COMMITS + 1);
        let line = self.known(
            line.map(|id| Ok(id?))
                .collect::<Result<Vec<_>, FactError>>(),
        )?;
        if line.contains(&tip) {
            // `tip` is one of the base's own first parents.
            return Ok(base);
        }
        // Binary search over first parents: newer ones contain it, older ones do not.
        let (mut has, mut lacks) = (0, line.len());
        while lacks - has > 1 {
            let middle = has + (lacks - has) / 2;
            if self.known(self.descends(line[middle], tip))? {
                has = middle
            } else {
                lacks = middle
            }
        }
        match line.get(lacks) {
            Some(before) => Ok(*before),
            None if line.len() > MOST_COMMITS => Err(Unknown::TooMuch.into()),
            None => Ok(base),
        }
    }

    pub(super) fn descends(&self, tip: ObjectId, commit: ObjectId) -> Result<bool, FactError> {
        Ok(self.inner.graph_descendant_of(tip.oid(), commit.oid())?)
    }

    pub(super) fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, GitError> {
        Ok(object_id(self.inner.find_commit(commit.oid())?.tree_id()))
    }

    /// Every path that differs between two commits.
    ///
    /// # Errors
    /// [`FactError`] when a tree is not here or can't be read.
    pub fn differences(&self, old: ObjectId, new: ObjectId) -> Result<Differences, FactError> {
        let compare = || -> Result<Differences, FactError> {
            let tree = Tree::new(self, self.tree_of(new)?);
            let changes = tree.changes_since(
                Some(self.tree_of(old)?),
                Shape::undivided(|_| false),
                10 * MOST_PATHS,
            )?;
            if changes.len() > MOST_PATHS {
                return Err(Unknown::TooMuch.into());
            }
            Ok(changes.into_iter().map(|c| (c.path, c.new)).collect())
        };
        self.known(compare())
    }

    /// Counts the paths that differ between two commits. A renamed file counts once, detected by
    /// git's default rules.
    ///
    /// # Errors
    /// [`FactError`] when a tree or file is not here or can't be read.
    pub fn differences_with_moves(&self, old: ObjectId, new: ObjectId) -> Result<usize, FactError> {
        let count = || -> Result<usize, FactError> {
            let tree = |id: ObjectId| self.inner.find_commit(id.oid())?.tree();
            let (old, new) = (tree(old)?, tree(new)?);
            let mut diff = self.inner.diff_tree_to_tree(Some(&old), Some(&new), None)?;
            diff.find_similar(Some(git2::DiffFindOptions::new().renames(true)))?;
            Ok(diff.deltas().len())
        };
        self.known(count())
    }

    /// The message of a commit.
    ///
    /// # Errors
    /// [`GitError`] when it can't be read.
    pub fn message_of(&self, commit: ObjectId) -> Result<String, GitError> {
        let commit = self.inner.find_commit(commit.oid())?;
        Ok(String::from_utf8_lossy(commit.message_bytes()).into_owned())
    }

    /// The remote-tracking commit of a branch on `origin`.
    pub fn on_origin(&self, branch: &str) -> Option<ObjectId> {
        self.resolve(&format!("refs/remotes/origin/{branch}"))
            .ok()?
    }

    /// The commit of a branch of this repository.
    pub fn local_branch(&self, branch: &str) -> Option<ObjectId> {
        self.resolve(&format!("refs/heads/{branch}")).ok()?
    }

    /// The local branches with commits that no remote-tracking branch of `origin` has, each with
    /// their number. Empty if the clone tracks none.
    ///
    /// # Errors
    /// [`GitError`] when refs or history can't be read.
    pub fn only_here(&self) -> Result<Vec<(String, usize)>, GitError> {
        let ids = |prefix: &str| -> Result<Vec<(String, ObjectId)>, GitError> {
            let listed = self.list_refs(prefix)?.into_iter();
            let id = |(name, target): (String, Target)| match target {
                Target::Id(id) => Some((name.strip_prefix(prefix)?.to_owned(), id)),
                Target::Symbolic(_) => None,
            };
            Ok(listed.filter_map(id).collect())
        };
        let there = ids("refs/remotes/origin/")?;
        let mut found = Vec::new();
        for (name, tip) in ids("refs/heads/")?
            .into_iter()
            .filter(|_| !there.is_empty())
        {
            if there.iter().any(|(_, known)| *known == tip) {
                continue;
            }
            let mut walk = self.inner.revwalk()?;
            walk.push(tip.oid())?;
            for (_, known) in &there {
                walk.hide(known.oid())?;
            }
            let count = walk.take(MOST_COMMITS).count();
            if count > 0 {
                found.push((name, count));
            }
        }
        Ok(found)
    }

    /// Whether a refspec of `origin` fetches this branch.
    pub fn follows(&self, branch: &str) -> bool {
        let Ok(origin) = self.inner.find_remote("origin") else {
            return true;
        };
        let name = format!("refs/heads/{branch}");
        let mut refspecs = origin.refspecs();
        refspecs.any(|r| r.direction() == git2::Direction::Fetch && r.src_matches(&name))
    }

    /// The bytes of a file in a commit.
    ///
    /// # Errors
    /// [`FactError`] when the tree or the file is not here or can't be read.
    pub fn file_at(&self, commit: ObjectId, path: &str) -> Result<Option<Vec<u8>>, FactError> {
        let read = || -> Result<Option<Vec<u8>>, FactError> {
            let file = Tree::new(self, self.tree_of(commit)?).file(path)?;
            Ok(file.map(|bytes| bytes.to_vec()))
        };
        self.known(read())
    }

    /// Whether a commit is on a branch's first-parent line.
    ///
    /// # Errors
    /// [`FactError`] when history is not here or can't be read.
    pub fn is_on_line(&self, tip: ObjectId, commit: ObjectId) -> Result<bool, FactError> {
        let walk = || -> Result<bool, FactError> {
            for (count, id) in self.first_parents(tip).enumerate() {
                match id? {
                    id if id == commit => return Ok(true),
                    _ if count == MOST_COMMITS => return Err(Unknown::TooMuch.into()),
                    _ => {}
                }
            }
            if self.is_shallow() {
                Err(Unknown::Shallow.into())
            } else {
                Ok(false)
            }
        };
        self.known(walk())
    }

    /// The paths that a branch changed since one of its earlier commits: their content is neither
    /// that commit's nor the base's.
    ///
    /// # Errors
    /// [`FactError`] when history is not here or can't be read.
    pub fn paths_changed(
        &self,
        base: ObjectId,
        since: Option<ObjectId>,
        tip: ObjectId,
    ) -> Result<BTreeSet<String>, FactError> {
        let base = self.before_merge(base, tip)?;
        let fork = self.fork(base, tip)?;
        let own = self.differences(fork, tip)?;
        let Some(since) = since else {
            return Ok(own.into_keys().collect());
        };
        let new: HashMap<String, Option<ObjectId>> =
            self.differences(since, tip)?.into_iter().collect();
        Ok(own
            .into_keys()
            .filter(|path| new.contains_key(path))
            .collect())
    }
}
