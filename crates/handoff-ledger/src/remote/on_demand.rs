//! Folders of archived issues that a light clone lacks: fetched when they are read, each with
//! everything below it in one request.

use std::cell::Cell;
use std::time::{Duration, Instant};

use handoff_base::ObjectId;
use handoff_git::{Patience, Remote, RemoteError, Repository, masked};
use handoff_model::ArchivedIssue;

use super::NEVER;
use crate::error::{LedgerError, UpstreamError};

/// How long a command that sets no time waits for what it lacks.
const PATIENCE: Duration = Duration::from_secs(25);

/// Where to get what this clone lacks of archived issues.
pub(crate) struct OnDemand {
    remote: Remote,
    /// Without a password, if it is an address.
    name: String,
    patience: Cell<Duration>,
    /// Whether the remote is not to be contacted.
    offline: Cell<bool>,
}

impl OnDemand {
    /// From a remote, given by name or address.
    pub(crate) fn new(repository: &Repository, name: &str, branch: &str) -> Self {
        Self {
            remote: Remote::new(repository, name, &format!("refs/heads/{branch}")),
            name: masked(name),
            patience: Cell::new(PATIENCE),
            offline: Cell::new(false),
        }
    }

    /// Sets how long the remote may take, and whether it is not to be asked.
    pub(crate) fn limit(&self, patience: Duration, offline: bool) {
        self.patience.set(patience);
        self.offline.set(offline);
    }

    fn fetch(&self, wanted: &[ObjectId]) -> Result<(), String> {
        if self.offline.get() {
            return Err("the remote is not to be asked".to_owned());
        }
        let patience = Patience {
            deadline: Some(Instant::now() + self.patience.get()),
            interrupted: &NEVER,
        };
        let fetched = self.remote.fetch_objects(wanted, &patience);
        fetched.map_err(|error| match error {
            RemoteError::Failed { message } => message,
            error => error.to_string(),
        })
    }
}

/// Fetches what is missing of the folders of archived issues.
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
            Some(source) => source.fetch(&wanted),
        };
        if let Err(trouble) = fetched {
            return Err(UpstreamError::NotHere {
                issue: issue.issue.clone(),
                commit: issue.commit,
                tree: issue.tree,
                remote: source.map(|source| source.name.clone()),
                trouble,
            }
            .into());
        }
        last = wanted;
    }
}
