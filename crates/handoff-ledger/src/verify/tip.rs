//! Checks the newest tree by itself: records against contracts, entries against records.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{HandoffId, IssueKey};
use handoff_base::{ObjectId, digest};
use handoff_git::Repository;
use handoff_model::{Record, View, layout};

use super::scope::{AuditScope, unreadable};
use crate::error::LedgerError;
use crate::snapshot::{IssueFolder, Snapshot};

/// Checks the consistency of one commit's tree, without its history.
pub(super) struct Tip<'r, 's> {
    repository: &'r Repository,
    tip: ObjectId,
    scope: AuditScope<'s>,
}

impl<'r, 's> Tip<'r, 's> {
    pub(super) fn new(repository: &'r Repository, tip: ObjectId, scope: AuditScope<'s>) -> Self {
        Self {
            repository,
            tip,
            scope,
        }
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if let Err(error) = self.collect(&mut found) {
            found.push(unreadable(&error));
        }
        found.into_iter().map(|f| f.in_commit(self.tip)).collect()
    }

    fn collect(&self, found: &mut Vec<Finding>) -> Result<(), LedgerError> {
        let snapshot = Snapshot::at(self.repository, self.tip, "")?;
        let keys = match self.scope.issue {
            None => snapshot.issues()?,
            Some(key) => vec![key.clone()],
        };
        let mut open: BTreeMap<String, Record> = BTreeMap::new();
        let mut unknown: BTreeSet<(IssueKey, Option<u32>)> = BTreeSet::new();
        for key in keys {
            let folder = snapshot.issue(&key)?;
            let handoffs = match folder.issue() {
                Ok(Some(issue)) => issue.handoffs,
                Ok(None) => {
                    let path = layout::issue_file(&key);
                    found.push(Finding::error(
                        FindingCode::FileMissing,
                        path,
                        "the issue's file is missing",
                    ));
                    unknown.insert((key, None));
                    continue;
                }
                Err(error) => {
                    found.push(unreadable(&error));
                    unknown.insert((key, None));
                    continue;
                }
            };
            for number in 1..=handoffs {
                match folder.record(number) {
                    Ok(Some(record)) => {
                        check_contract(&folder, &record, found);
                        if !record.state.is_terminal() {
                            open.insert(layout::open_entry(&record.id, &record.to), record);
                        }
                    }
                    Ok(None) => {
                        let id = HandoffId::new(key.clone(), number);
                        let path = layout::record_file(&id);
                        found.push(Finding::error(
                            FindingCode::FileMissing,
                            path,
                            "the record is missing",
                        ));
                        unknown.insert((key.clone(), Some(number)));
                    }
                    Err(error) => {
                        found.push(unreadable(&error));
                        unknown.insert((key.clone(), Some(number)));
                    }
                }
            }
        }
        for entry in snapshot.open()? {
            if !self
                .scope
                .covers(&BTreeSet::from([entry.id.issue().clone()]))
            {
                continue;
            }
            // Nothing is known about a handoff whose record can't be read.
            let key = entry.id.issue();
            let number = Some(entry.id.number());
            if [None, number]
                .iter()
                .any(|n| unknown.contains(&(key.clone(), *n)))
            {
                continue;
            }
            let path = layout::open_entry(&entry.id, &entry.to);
            let right = match (open.remove(&path), snapshot.open_record(&entry)) {
                (Some(record), Ok(listed)) => record == listed,
                _ => false,
            };
            if !right {
                let text = "the entry does not agree with the handoff's record";
                found.push(Finding::error(FindingCode::OpenStale, path, text));
            }
        }
        for path in open.into_keys() {
            let text = "the handoff is open, and has no entry";
            found.push(Finding::error(FindingCode::OpenMissing, path, text));
        }
        Ok(())
    }
}

fn check_contract(folder: &IssueFolder<'_>, record: &Record, found: &mut Vec<Finding>) {
    let path = format!(
        "{}/{}",
        layout::issue_folder(folder.key()),
        record.contract.file
    );
    match folder.contract(record) {
        Ok(bytes) if digest(&bytes) == record.contract.sha256 => {}
        Ok(_) => {
            let text = "the contract does not have the digest that its record states";
            found.push(Finding::error(FindingCode::ContractAltered, path, text));
        }
        Err(error) => found.push(unreadable(&error)),
    }
}
