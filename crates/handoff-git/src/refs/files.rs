//! Refs stored as files, through libgit2.

use std::path::{Path, PathBuf};
use std::{fs, io};

use git2::{ErrorClass, ErrorCode, Reference};
use handoff_base::ObjectId;

use super::{LOGGED, git_command};
use crate::error::{GitError, PublishError};
use crate::files::{SharedModes, replace};
use crate::objects::{ToOid, object_id};
use crate::repository::Repository;
use crate::repository::{RefStore, RefUpdate, Target};

/// The files backend: loose refs and `packed-refs`.
pub(super) struct RefFiles;

impl RefStore for RefFiles {
    fn read(&self, repository: &Repository, refname: &str) -> Result<Option<Target>, GitError> {
        match repository.inner.find_reference(refname) {
            Ok(found) => Ok(target(&found)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn list(
        &self,
        repository: &Repository,
        prefix: &str,
    ) -> Result<Vec<(String, Target)>, GitError> {
        if is_crowded(repository) {
            return git_command::list(repository, prefix, GitError::of_git);
        }
        let mut found = Vec::new();
        for reference in repository.inner.references_glob(&format!("{prefix}*"))? {
            let reference = reference?;
            if let Some(target) = target(&reference) {
                let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
                found.push((name, target));
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    fn update(&self, repository: &Repository, update: &RefUpdate<'_>) -> Result<(), PublishError> {
        if is_crowded(repository) {
            return self.update_git_command(repository, update);
        }
        let _modes = SharedModes::begin();
        let before = update.from.unwrap_or(ObjectId::zero(repository.format()));
        let done = match update.to {
            Some(to) => {
                let (to, before) = (to.oid(), before.oid());
                let inner = &repository.inner;
                inner
                    .reference_matching(update.refname, to, true, before, update.reflog)
                    .map(drop)
            }
            None => delete(repository, update.refname, before),
        };
        done.map_err(|error| match error.code() {
            ErrorCode::Modified | ErrorCode::NotFound | ErrorCode::Exists => PublishError::Moved,
            ErrorCode::Locked => {
                let lock = format!("{}.lock", update.refname);
                PublishError::Locked(repository.common_dir().join(lock))
            }
            _ => PublishError::Git(error.into()),
        })
    }

    fn discardable(&self, repository: &Repository, folder: &str) -> io::Result<Vec<String>> {
        let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(repository.common_dir().join(&folder)) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for entry in entries {
                let entry = entry?;
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                if entry.file_type()?.is_dir() {
                    folders.push(name);
                } else if Repository::is_ref_name(&name) {
                    found.push(name);
                }
            }
        }
        Ok(found)
    }

    /// Holds the ref's lock. Keeps the log, which libgit2 would remove.
    fn discard(&self, repository: &Repository, refname: &str) -> Result<(), PublishError> {
        let lock = repository.common_dir().join(format!("{refname}.lock"));
        let remove = || {
            let removed = match fs::remove_file(repository.common_dir().join(refname)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                done => done,
            };
            fs::remove_file(&lock)?;
            removed
        };
        match fs::File::create_new(&lock).and_then(|_| remove()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(PublishError::Locked(lock))
            }
            done => Ok(done.map_err(|error| GitError::unwritable(&lock, &error))?),
        }
    }

    fn logged(&self, repository: &Repository, refname: &str) -> Vec<ObjectId> {
        let log = fs::read(repository.log_of(refname)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let values = log.lines().rev().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            words.next()?.parse().ok()
        });
        values.take(LOGGED).collect()
    }

    fn forget_logged(
        &self,
        repository: &Repository,
        refname: &str,
        lost: &[ObjectId],
    ) -> io::Result<()> {
        let path = repository.log_of(refname);
        let log = match fs::read(&path) {
            Ok(log) => String::from_utf8_lossy(&log).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
        let mut kept = String::with_capacity(log.len());
        let mut before: Option<&str> = None;
        for line in log.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(was), Some(is), Some(rest)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if !lost.iter().any(|id| id == is) {
                // Each entry starts where the one before it ends.
                let was = before.replace(is).unwrap_or(was);
                kept += &format!("{was} {is} {rest}\n");
            }
        }
        replace(&path, kept.as_bytes())
    }

    /// The lock file contains the commit, or a prefix of it.
    fn remove_abandoned_lock(&self, repository: &Repository, refname: &str, commit: &str) {
        let path = repository.common_dir().join(format!("{refname}.lock"));
        let ours = |text: String| commit.starts_with(text.trim_end());
        if fs::read_to_string(&path).is_ok_and(ours) {
            let _ = fs::remove_file(&path);
        }
    }

    fn checked_out_at(&self, repository: &Repository, refname: &str) -> Option<PathBuf> {
        repository.worktree_where(|git_dir| {
            let head = fs::read_to_string(git_dir.join("HEAD"));
            head.is_ok_and(|head| head.strip_prefix("ref:").map(str::trim) == Some(refname))
        })
    }

    fn start_head(&self, _: &Repository, git_dir: &Path, head: &Target) -> Result<(), GitError> {
        let text = match head {
            Target::Id(id) => format!("{id}\n"),
            Target::Symbolic(name) => format!("ref: {name}\n"),
        };
        let head = git_dir.join("HEAD");
        fs::write(&head, text).map_err(|error| GitError::unwritable(&head, &error))
    }

    fn watched(&self, refname: &str) -> PathBuf {
        refname.into()
    }
}

/// The maximum size of `packed-refs` at which libgit2 lists and writes refs: it reads the whole
/// file, half a second for a million refs, where git bisects.
const MOST_PACKED: u64 = 1 << 18;

/// Whether there are so many packed refs that git reads faster.
fn is_crowded(repository: &Repository) -> bool {
    let packed = repository.common_dir().join("packed-refs");
    fs::metadata(packed).is_ok_and(|found| found.len() > MOST_PACKED)
}

impl RefFiles {
    fn update_git_command(
        &self,
        repository: &Repository,
        update: &RefUpdate<'_>,
    ) -> Result<(), PublishError> {
        let ended = git_command::update_ref(repository, update)?;
        if ended.status.success() {
            return Ok(());
        }
        if self.read(repository, update.refname)? != update.from.map(Target::Id) {
            return Err(PublishError::Moved);
        }
        let lock = repository
            .common_dir()
            .join(format!("{}.lock", update.refname));
        if lock.exists() {
            return Err(PublishError::Locked(lock));
        }
        Err(GitError::of_git(&ended).into())
    }
}

/// A ref's target; `None` if it is neither direct nor symbolic.
fn target(reference: &Reference<'_>) -> Option<Target> {
    let name = reference.symbolic_target_bytes();
    let name = name.map(|name| Target::Symbolic(String::from_utf8_lossy(name).into_owned()));
    name.or_else(|| Some(Target::Id(object_id(reference.target()?))))
}

/// Deletes a ref that is still at this object: libgit2 compares with the value that it found.
fn delete(repository: &Repository, refname: &str, at: ObjectId) -> Result<(), git2::Error> {
    let mut found = repository.inner.find_reference(refname)?;
    if found.target() != Some(at.oid()) {
        let text = format!("{refname} moved");
        return Err(git2::Error::new(
            ErrorCode::Modified,
            ErrorClass::Reference,
            text,
        ));
    }
    found.delete()
}
