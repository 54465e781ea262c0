//! The archived issues of a tree.

use std::collections::BTreeMap;

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::{MOST_IN_ALL, Shape, Tree};
use handoff_model::archive::{find_in_index, read_index};
use handoff_model::{ArchivedIssue, layout};

use super::{IssueFolder, Snapshot};
use crate::error::{DamageError, LedgerError};

impl<'r> Snapshot<'r> {
    /// An issue's folder in this tree; empty if the issue does not exist or is archived.
    pub(crate) fn folder(&self, key: &IssueKey) -> Result<IssueFolder<'r>, LedgerError> {
        self.ensure_issue(key)?;
        let mut folder = IssueFolder::open(self.repository(), self.tree(), key)?;
        folder.reader.clone_from(&self.reader);
        Ok(folder)
    }

    /// An archived issue.
    ///
    /// # Errors
    /// [`LedgerError`] when the index can't be read.
    pub fn archived(&self, key: &IssueKey) -> Result<Option<ArchivedIssue>, LedgerError> {
        self.ensure_issue(key)?;
        archived_in(self.tree(), key)
    }

    /// Every archived issue, in the order of the index.
    ///
    /// # Errors
    /// [`LedgerError`] when the index can't be read.
    pub fn all_archived(&self) -> Result<Vec<ArchivedIssue>, LedgerError> {
        self.archived_since(None)
    }

    /// Whether any issue is archived.
    ///
    /// # Errors
    /// [`LedgerError`] when the index can't be looked up.
    pub fn has_archived(&self) -> Result<bool, LedgerError> {
        Ok(self.archived_folder()?.is_some())
    }

    /// The index of archived issues, if there is one.
    pub(crate) fn archived_folder(&self) -> Result<Option<ObjectId>, LedgerError> {
        let found = self.tree().entry(layout::ARCHIVED)?;
        Ok(found.map(|(_, id)| id))
    }

    /// The index lines that an earlier index lacks.
    pub(crate) fn archived_since(
        &self,
        before: Option<ObjectId>,
    ) -> Result<Vec<ArchivedIssue>, LedgerError> {
        let Some(now) = self.archived_folder()? else {
            return Ok(Vec::new());
        };
        let tree = Tree::new(self.repository(), now);
        let changes = tree.changes_since(before, Shape::undivided(|_| false), MOST_IN_ALL)?;
        let mut found = Vec::new();
        for change in changes {
            let path = || format!("{}/{}", layout::ARCHIVED, change.path);
            let lines = |id: Option<ObjectId>| -> Result<Vec<ArchivedIssue>, LedgerError> {
                let Some(id) = id else {
                    return Ok(Vec::new());
                };
                let bytes = self.repository().blob(id)?;
                read_index(&bytes).map_err(|error| LedgerError::stored(&path(), error))
            };
            let old = lines(change.old)?.into_iter();
            let old: BTreeMap<IssueKey, ArchivedIssue> =
                old.map(|line| (line.issue.clone(), line)).collect();
            let new = lines(change.new)?.into_iter();
            found.extend(new.filter(|line| old.get(&line.issue) != Some(line)));
            if found.len() > MOST_IN_ALL {
                return Err(DamageError::TooLarge(path()).into());
            }
        }
        Ok(found)
    }
}

/// An archived issue, in a ledger's tree.
pub(crate) fn archived_in(
    tree: Tree<'_>,
    key: &IssueKey,
) -> Result<Option<ArchivedIssue>, LedgerError> {
    let path = layout::archived_file(key);
    let Some(bytes) = tree.file(&path)? else {
        return Ok(None);
    };
    find_in_index(&bytes, key).map_err(|error| LedgerError::stored(&path, error))
}
