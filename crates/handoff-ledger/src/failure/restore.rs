//! Restores unfinished work in a new worktree or on a new branch.

use std::fs;
use std::path::{Path, PathBuf};

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint::Hint;
use handoff_base::{ObjectId, hint};
use handoff_git::{
    Mode, Obstacle, Person, RawPath, Repository, RestoreError, Unfinished, put_file,
};
use handoff_model::failure::Manifest;

use super::kept_context::Kept;
use super::name::unescape;
use crate::error::LedgerError;
use crate::session::author;

/// The file in a worktree's git directory with the id of the kept work's tree that was restored in it.
const RESTORED: &str = "handoff-restored";

/// Why work was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreFailure {
    /// The target of the worktree or the files is not empty.
    #[error("{} already exists", path.display())]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// git has a worktree registered at the target, although nothing is there.
    #[error("git knows a worktree at {}, which is gone", path.display())]
    Registered {
        /// The target.
        path: PathBuf,
    },
    /// A branch of that name exists.
    #[error("branch {name} already exists")]
    BranchExists {
        /// The name.
        name: String,
    },
    /// The name is not valid for a branch.
    #[error("{shown} is not a valid branch name")]
    BranchName {
        /// The name, for display.
        shown: String,
    },
    /// The base commit is neither here nor stored.
    #[error("the work is based on commit {commit}, which this clone does not have")]
    NoBase {
        /// The commit.
        commit: String,
    },
    /// The folder can't be created.
    #[error("{} cannot be made", path.display())]
    Folder {
        /// The target.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The work could not be written.
    #[error(transparent)]
    Write(#[from] RestoreError),
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Explained for RestoreFailure {
    fn explanation(&self) -> Explanation {
        let obstacle = match self {
            Self::Exists { .. } => {
                return ErrorCode::Exists
                    .hint("nothing was changed; name a folder that is new or empty");
            }
            Self::Registered { .. } => {
                return ErrorCode::Exists.hint(
                    "nothing was changed; name another folder, or run `git worktree prune` to remove the records of worktrees that are gone",
                );
            }
            Self::BranchExists { .. } => {
                return ErrorCode::Exists.hint("nothing was changed; give the branch another name");
            }
            Self::BranchName { .. } => return ErrorCode::Usage.into(),
            Self::NoBase { commit } => {
                return ErrorCode::NoBase.hint(hint!(
                    "nothing was changed; fetch it, for example with `git fetch origin {}`, and run the command again",
                    commit
                ));
            }
            Self::Write(RestoreError::Outside(_)) => {
                return ErrorCode::LedgerDamaged
                    .hint("`git handoff verify` shows where the damage began");
            }
            Self::Ledger(error) => return error.explanation(),
            Self::Folder { source, .. } => Obstacle::of(source),
            Self::Write(error) => error.obstacle(),
        };
        // Part or all of the work could not be written.
        let unknown = ("it was not restored", "see the error above");
        let (problem, fix) = Obstacle::explained(obstacle, unknown);
        let hint =
            Hint::from(fix).and(", and restore it to another place: what was written so far stays");
        ErrorCode::Restore.hint(hint).because(problem)
    }
}

/// Where to restore unfinished work.
pub struct Place<'a> {
    /// The folder of a new worktree.
    pub worktree: Option<&'a Path>,
    /// The name of a new branch.
    pub branch: Option<&'a str>,
    /// The committer of a commit that has to be made.
    pub committer: Person,
}

/// The result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// The commit that the worktree or the branch is at.
    pub commit: ObjectId,
    /// Whether that commit was created without history, because the real one's parents are missing
    /// here.
    pub made_base: bool,
    /// The restored work.
    pub unfinished: Unfinished,
    /// The operation that was in progress in the worktree, and whether it was continued.
    pub operation: Option<(String, bool)>,
}

/// Restores unfinished work in a new worktree or on a new branch.
///
/// # Errors
/// [`RestoreFailure`]. Refuses before anything is created, and never overwrites anything.
pub fn restore(
    repository: &Repository,
    kept: &Kept<'_>,
    manifest: &Manifest,
    place: &Place<'_>,
) -> Result<Restored, RestoreFailure> {
    let unfinished = kept.unfinished(manifest)?;
    if let Some(path) = place.worktree.filter(|path| is_taken(path)) {
        let path = path.to_owned();
        return Err(RestoreFailure::Exists { path });
    }
    if let Some(path) = place
        .worktree
        .filter(|path| repository.knows_worktree(path))
    {
        let path = path.to_owned();
        return Err(RestoreFailure::Registered { path });
    }
    if let Some(name) = place.branch {
        let refname = format!("refs/heads/{name}");
        if name.starts_with('-') || name == "HEAD" || !Repository::is_ref_name(&refname) {
            let shown = handoff_base::text::quoted(name);
            return Err(RestoreFailure::BranchName { shown });
        }
        if repository
            .resolve(&refname)
            .map_err(LedgerError::from)?
            .is_some()
        {
            let name = name.to_owned();
            return Err(RestoreFailure::BranchExists { name });
        }
    }
    for path in all_paths(&unfinished) {
        if !handoff_git::is_inside(path) {
            let shown = String::from_utf8_lossy(path).into_owned();
            return Err(RestoreError::Outside(shown).into());
        }
    }
    let (base, made_base) = base(repository, kept, manifest, place)?;
    let mut restored = Restored {
        commit: base,
        made_base,
        unfinished,
        operation: manifest.operation.clone().map(|name| (name, false)),
    };
    let Some(dir) = place.worktree else {
        let name = place.branch.unwrap_or_default();
        restored.commit = commit_work(repository, kept, &restored, place)?;
        let started = repository.start_branch(name, restored.commit, "handoff: restore");
        started.map_err(LedgerError::from)?;
        return Ok(restored);
    };
    if let Some(name) = place.branch {
        let started = repository.start_branch(name, base, "handoff: restore");
        started.map_err(LedgerError::from)?;
    }
    let made = repository.add_worktree(dir, base, place.branch)?;
    repository.put_back(dir, &restored.unfinished)?;
    if let (Some(merge), Some((_, again))) = (&manifest.merge, &mut restored.operation) {
        let heads: Option<Vec<ObjectId>> = merge.heads.iter().map(|h| h.parse().ok()).collect();
        let message = unescape(&merge.message).unwrap_or_default();
        *again = repository.continue_merge(dir, &heads.unwrap_or_default(), &message)?;
    }
    made.note(RESTORED, &kept.tree().to_string())?;
    made.finish()?;
    Ok(restored)
}

/// The id of the tree of kept work that was restored in this working tree.
pub fn restored_here(repository: &Repository) -> Option<String> {
    fs::read_to_string(repository.path().join(RESTORED)).ok()
}

/// Whether a path exists and is not an empty folder.
fn is_taken(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => path
            .read_dir()
            .map_or(true, |mut entries| entries.next().is_some()),
        Ok(_) => true,
        Err(_) => false,
    }
}

fn all_paths(unfinished: &Unfinished) -> impl Iterator<Item = &RawPath> {
    let files = unfinished.files.iter().chain(&unfinished.staged);
    let paths = [
        &unfinished.deleted,
        &unfinished.removed,
        &unfinished.intended,
    ];
    files
        .map(|file| &file.path)
        .chain(paths.into_iter().flatten())
        .chain(unfinished.hidden.keys())
}

/// The base commit of the work: this repository's, else rebuilt from its stored bytes, else a new
/// one with its tree and no history.
fn base(
    repository: &Repository,
    kept: &Kept<'_>,
    manifest: &Manifest,
    place: &Place<'_>,
) -> Result<(ObjectId, bool), RestoreFailure> {
    let parsed = |text: &Option<String>| -> Result<Option<ObjectId>, LedgerError> {
        let id = text.as_ref().map(|text| text.parse()).transpose();
        id.map_err(|_| kept.damaged("snapshot.json"))
    };
    let commit = parsed(&manifest.base.commit)?;
    if let Some(commit) = commit.filter(|id| repository.commit(*id).is_ok()) {
        return Ok((commit, false));
    }
    let mut known = Vec::new();
    for name in &manifest.commits {
        let id: ObjectId = name.parse().map_err(|_| kept.damaged("snapshot.json"))?;
        let raw = kept.commit(name)?;
        let raw = raw.ok_or_else(|| kept.damaged(&format!("commits/{name}")))?;
        let written = repository.write_raw_commit(id, &raw);
        if written.map_err(LedgerError::from)? {
            known.push(id);
        }
    }
    if let Some(commit) = commit.filter(|id| known.contains(id)) {
        return Ok((commit, false));
    }
    let (tree, message) = match (commit, parsed(&manifest.base.tree)?) {
        (Some(commit), Some(tree)) if repository.has(tree) => {
            let text = "It stands for a commit whose history is not in this clone:";
            (
                tree,
                format!("The tree of {}\n\n{text}\n{commit}\n", commit.short()),
            )
        }
        (Some(commit), _) => {
            let commit = commit.to_string();
            return Err(RestoreFailure::NoBase { commit });
        }
        (None, _) => {
            let tree = repository
                .write_tree(None, &[])
                .map_err(LedgerError::from)?;
            (
                tree,
                "Nothing yet\n\nThe work began before the first commit.\n".to_owned(),
            )
        }
    };
    let author = failed_by(kept);
    let made = repository.write_commit(tree, None, &author, &place.committer, &message);
    Ok((made.map_err(LedgerError::from)?, true))
}

/// A commit on top of the base with the restored files.
fn commit_work(
    repository: &Repository,
    kept: &Kept<'_>,
    restored: &Restored,
    place: &Place<'_>,
) -> Result<ObjectId, LedgerError> {
    let work = &restored.unfinished;
    let gone = work.deleted.iter().map(|path| (path.clone(), None));
    let files = work.files.iter();
    let files = files.map(|file| (file.path.clone(), Some((file.mode, file.id))));
    let entries: Vec<(RawPath, Option<(Mode, ObjectId)>)> = gone.chain(files).collect();
    let base = repository.commit(restored.commit)?.tree;
    let tree = repository.write_tree(Some(base), &entries)?;
    let (id, attempt) = (&kept.file.handoff, kept.file.attempt);
    let message = format!(
        "Unfinished work of {id}, attempt {attempt}\n\n{}\n\nHandoff-Id: {id}\n",
        handoff_base::text::summary_line(kept.file.why())
    );
    let parent = Some(restored.commit);
    let author = failed_by(kept);
    Ok(repository.write_commit(tree, parent, &author, &place.committer, &message)?)
}

/// The agent that did the work, as an author.
fn failed_by(kept: &Kept<'_>) -> Person {
    author(&kept.file.by, kept.file.at.fixed_offset())
}

/// Writes the attachments of a failure into a separate folder.
///
/// # Errors
/// [`RestoreFailure`] if the folder is not empty or can't be written.
pub fn restore_attachments(kept: &Kept<'_>, dir: &Path) -> Result<usize, RestoreFailure> {
    if is_taken(dir) {
        let path = dir.to_owned();
        return Err(RestoreFailure::Exists { path });
    }
    let attachments = kept.attachments()?;
    std::fs::create_dir_all(dir).map_err(|source| RestoreFailure::Folder {
        path: dir.to_owned(),
        source,
    })?;
    for (name, mode, bytes) in &attachments {
        put_file(dir, name, *mode, bytes)?;
    }
    Ok(attachments.len())
}
