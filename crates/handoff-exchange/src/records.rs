//! Reads handoffs and their contracts, issue by issue.

use handoff::base::ids::HandoffId;
use handoff::ledger::{DamageError, IssueFolder, LedgerError, Snapshot};
use handoff::model::{Record, View, record_file};

/// Reads records; those of one issue must be read consecutively.
pub(super) struct Reader<'a, 'r> {
    pub(super) snapshot: &'a Snapshot<'r>,
    open: Option<IssueFolder<'r>>,
}

impl<'a, 'r> Reader<'a, 'r> {
    pub(super) fn new(snapshot: &'a Snapshot<'r>) -> Self {
        Self {
            snapshot,
            open: None,
        }
    }

    fn folder(&mut self, id: &HandoffId) -> Result<&IssueFolder<'r>, LedgerError> {
        let folder = match self.open.take().filter(|open| open.key() == id.issue()) {
            Some(open) => open,
            None => self.snapshot.issue(id.issue())?,
        };
        Ok(self.open.insert(folder))
    }

    pub(super) fn record(&mut self, id: &HandoffId) -> Result<Record, LedgerError> {
        let found = self.folder(id)?.record(id.number())?;
        found.ok_or_else(|| DamageError::Missing(record_file(id)).into())
    }

    pub(super) fn contract(&mut self, record: &Record) -> Result<Vec<u8>, LedgerError> {
        Ok(self.folder(&record.id)?.contract(record)?.to_vec())
    }
}
