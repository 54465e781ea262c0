//! Fetches what a shallow or partial clone lacks when it is read: an archived issue's folder in one
//! request, and in a partial clone whatever a command is about to read, in few requests instead of
//! one per object.
//!
//! A partial clone gets the folders and the protocols first (`ensure_frame`), then an issue
//! (`ensure_issue`) or the entries of open handoffs (`ensure_entries`). Commands that read every
//! issue get the whole commit (`ensure_all`). What can't be fetched is reported by the reader as
//! missing from a partial clone.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::{
    Below, EntryKind, GitError, Patience, Remote, RemoteError, Repository, Tree, masked,
};
use handoff_model::{ArchivedIssue, layout};

use crate::error::{LedgerError, UpstreamError};

/// The default time to wait for missing objects.
const PATIENCE: Duration = Duration::from_secs(25);

/// Never set: a read is not interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);

/// The source of objects that this clone lacks.
pub(crate) struct OnDemand {
    remote: Remote,
    /// The remote as configured.
    given: String,
    /// Without a password, if it is a URL.
    name: String,
    patience: Cell<Duration>,
    /// Whether the remote must not be contacted.
    offline: Cell<bool>,
    /// Whether this is a partial clone of the remote.
    is_promised: bool,
}

impl OnDemand {
    /// The objects of a remote, given by name or URL.
    pub(crate) fn new(repository: &Repository, name: &str, branch: &str) -> Self {
        Self {
            remote: Remote::new(repository, name, &format!("refs/heads/{branch}")),
            given: name.to_owned(),
            name: masked(name),
            patience: Cell::new(PATIENCE),
            offline: Cell::new(false),
            is_promised: repository.is_promised_by(name),
        }
    }

    /// Sets the time limit of the remote, and whether it must not be contacted.
    pub(crate) fn limit(&self, patience: Duration, offline: bool) {
        self.patience.set(patience);
        self.offline.set(offline);
    }

    /// The remote, unless it must not be contacted.
    pub(crate) fn reachable(&self) -> Option<&str> {
        (!self.offline.get()).then_some(&*self.given)
    }

    /// Fetches what a partial clone lacks to read the ledger at a commit, except issues and entries
    /// of open handoffs: the folders down to those, and the protocols.
    pub(crate) fn ensure_frame(
        &self,
        repository: &Repository,
        commit: ObjectId,
    ) -> Result<(), GitError> {
        if !self.is_promised {
            return Ok(());
        }
        let root = repository.commit(commit)?.tree;
        // Not every remote supports depths; each that serves partial clones can omit files.
        if lacks_folders(repository, root)? && self.fetch(&[root], Below::TwoLevels).is_err() {
            self.get(&[root], Below::Folders);
        }
        // With many open handoffs, their folders are split.
        let mut folders = Vec::new();
        for top in [layout::OPEN, layout::AWAITING] {
            folders.extend(missing_at(repository, root, top, Below::Folders)?);
        }
        self.get(&folders, Below::Folders);
        let mut wanted = missing_at(repository, root, layout::MANIFEST, Below::Everything)?;
        for path in [layout::PROTOCOLS, layout::PAUSED] {
            wanted.extend(missing_at(repository, root, path, Below::Everything)?);
        }
        self.get(&wanted, Below::Everything);
        Ok(())
    }

    /// Fetches the missing objects of an issue's folder, or of the archive's index if the issue may
    /// be there.
    pub(crate) fn ensure_issue(
        &self,
        repository: &Repository,
        root: ObjectId,
        key: &IssueKey,
    ) -> Result<(), GitError> {
        if !self.is_promised {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for path in [layout::issue_folder(key), layout::archived_file(key)] {
            wanted.extend(missing_at(repository, root, &path, Below::Everything)?);
        }
        self.get(&wanted, Below::Everything);
        Ok(())
    }

    /// Fetches what a partial clone lacks to read the states of issues, without their handoffs.
    pub(crate) fn ensure_states(
        &self,
        repository: &Repository,
        root: ObjectId,
        keys: &BTreeSet<IssueKey>,
    ) -> Result<(), GitError> {
        if !self.is_promised {
            return Ok(());
        }
        for below in [Below::Folders, Below::Everything] {
            let mut wanted = Vec::new();
            for key in keys {
                let path = layout::issue_file(key);
                wanted.extend(missing_at(repository, root, &path, below)?);
            }
            self.get(&wanted, below);
        }
        Ok(())
    }

    /// Fetches what a partial clone lacks below folders of open handoffs, given by their paths.
    pub(crate) fn ensure_entries(
        &self,
        repository: &Repository,
        root: ObjectId,
        folders: &[&str],
    ) -> Result<(), GitError> {
        if !self.is_promised {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for path in folders {
            wanted.extend(missing_at(repository, root, path, Below::Everything)?);
        }
        self.get(&wanted, Below::Everything);
        Ok(())
    }

    /// Fetches everything that a partial clone lacks of a commit's tree.
    pub(crate) fn ensure_all(&self, commit: ObjectId) {
        if self.is_promised && !self.offline.get() {
            // A reader of missing objects reports them.
            let _ = self.remote.fill(commit, None, &self.patience());
        }
    }

    /// Fetches objects. After a failure, the remote is not asked again.
    fn get(&self, wanted: &[ObjectId], below: Below) {
        if !wanted.is_empty() && self.fetch(wanted, below).is_err() {
            self.offline.set(true);
        }
    }

    fn patience(&self) -> Patience<'static> {
        Patience {
            deadline: Some(Instant::now() + self.patience.get()),
            interrupted: &NEVER,
        }
    }

    fn fetch(&self, wanted: &[ObjectId], below: Below) -> Result<(), String> {
        if self.offline.get() {
            return Err("the remote is not to be asked".to_owned());
        }
        let fetched = (self.remote).fetch_objects(wanted, below, &self.patience());
        fetched.map_err(|error| match error {
            RemoteError::Failed { message } => message,
            error => error.to_string(),
        })
    }
}

/// Whether the root of a ledger's tree or a folder in it is missing.
fn lacks_folders(repository: &Repository, root: ObjectId) -> Result<bool, GitError> {
    if !repository.has(root) {
        return Ok(true);
    }
    let entries = Tree::new(repository, root).list("")?;
    let mut folders = entries.iter().filter(|entry| entry.kind == EntryKind::Tree);
    Ok(folders.any(|folder| !repository.has(folder.id)))
}

/// The missing file or folder at a path, or the first missing folder on the way to it. Missing
/// files count only with [`Below::Everything`].
fn missing_at(
    repository: &Repository,
    root: ObjectId,
    path: &str,
    below: Below,
) -> Result<Vec<ObjectId>, GitError> {
    let mut here = (EntryKind::Tree, root);
    for part in path.split('/') {
        if !repository.has(here.1) {
            return Ok(vec![here.1]);
        }
        let Some(found) = Tree::new(repository, here.1).entry(part)? else {
            return Ok(Vec::new());
        };
        here = found;
    }
    match (here.0, below) {
        (EntryKind::Tree, Below::Everything) => repository.missing_below(here.1),
        (EntryKind::Tree, _) => repository.missing_folders_below(here.1),
        (_, Below::Everything) if !repository.has(here.1) => Ok(vec![here.1]),
        _ => Ok(Vec::new()),
    }
}

/// Fetches the missing folders of archived issues.
///
/// # Errors
/// [`UpstreamError::NotHere`] if that can't be done.
pub(crate) fn ensure_here(
    repository: &Repository,
    source: Option<&OnDemand>,
    archived: &[ArchivedIssue],
) -> Result<(), LedgerError> {
    let mut last = Vec::new();
    loop {
        let mut wanted = Vec::new();
        let mut first = None;
        for issue in archived {
            let missing = repository.missing_below(issue.tree)?;
            if !missing.is_empty() {
                first.get_or_insert(issue);
                wanted.extend(missing);
            }
        }
        let Some(issue) = first else {
            return Ok(());
        };
        let fetched = match source {
            None => Err("the ledger has no remote".to_owned()),
            Some(_) if wanted == last => Err("the remote does not send it".to_owned()),
            Some(source) => source.fetch(&wanted, Below::Everything),
        };
        if let Err(trouble) = fetched {
            return Err(UpstreamError::NotHere {
                issue: issue.issue.clone(),
                commit: Box::new(issue.commit),
                tree: Box::new(issue.tree),
                remote: source.map(|source| source.name.clone()),
                trouble,
            }
            .into());
        }
        last = wanted;
    }
}
