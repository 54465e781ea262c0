//! Checks the newest tree by itself: records against contracts, entries against records.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{HandoffId, IssueKey};
use handoff_base::{ObjectId, digest};
use handoff_git::Repository;
use handoff_model::open_entry::{awaiting_path, open_path};
use handoff_model::{Paused, Record, View, layout};

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
        for line in snapshot.all_archived()? {
            let key = &line.issue;
            let is_covered = self.scope.covers(&BTreeSet::from([key.clone()]));
            if is_covered && snapshot.folder(key)?.id().is_some() {
                let path = layout::archived_file(key);
                let text = format!("issue {key} is listed as archived, and is not");
                found.push(Finding::error(FindingCode::FileAltered, path, text));
            }
        }
        let mut handoffs = Handoffs::default();
        for key in keys {
            handoffs.read(&snapshot.issue(&key)?, found);
        }
        let Handoffs {
            mut open,
            mut awaiting,
            paused,
            unknown,
        } = handoffs;
        self.pauses(&snapshot, paused, &unknown, found)?;
        let listed = snapshot.open()?.into_iter().map(|entry| (true, entry));
        let ended = snapshot.awaiting()?.into_iter().map(|entry| (false, entry));
        for (is_open, entry) in listed.chain(ended) {
            let key = entry.id.issue();
            if !self.scope.covers(&BTreeSet::from([key.clone()])) {
                continue;
            }
            // Nothing is known about a handoff whose record can't be read.
            let number = Some(entry.id.number());
            if [None, number]
                .iter()
                .any(|n| unknown.contains(&(key.clone(), *n)))
            {
                continue;
            }
            let expected = if is_open { &mut open } else { &mut awaiting };
            let right = match (expected.remove(&entry.path), snapshot.open_record(&entry)) {
                (Some(record), Ok(listed)) => record == listed,
                _ => false,
            };
            if !right {
                let text = "the entry does not agree with the handoff's record";
                found.push(Finding::error(FindingCode::OpenStale, entry.path, text));
            }
        }
        for path in open.into_keys() {
            let text = "the handoff is open, and has no entry";
            found.push(Finding::error(FindingCode::OpenMissing, path, text));
        }
        for path in awaiting.into_keys() {
            let text = "the handoff awaits somebody, and has no entry";
            found.push(Finding::error(FindingCode::OpenMissing, path, text));
        }
        Ok(())
    }
}

impl Tip<'_, '_> {
    /// Compares the files of paused issues with the issues.
    fn pauses(
        &self,
        snapshot: &Snapshot<'_>,
        mut paused: BTreeMap<IssueKey, Paused>,
        unknown: &BTreeSet<(IssueKey, Option<u32>)>,
        found: &mut Vec<Finding>,
    ) -> Result<(), LedgerError> {
        for key in snapshot.paused_issues()?.keys() {
            let is_covered = self.scope.covers(&BTreeSet::from([key.clone()]));
            if !is_covered || unknown.contains(&(key.clone(), None)) {
                continue;
            }
            let right = match (paused.remove(key), snapshot.recorded_pause(key)) {
                (Some(known), Ok(Some(listed))) => known == listed,
                _ => false,
            };
            if !right {
                let text = "the file does not agree with the issue's pause";
                let path = layout::paused_file(key);
                found.push(Finding::error(FindingCode::FileAltered, path, text));
            }
        }
        for key in paused.into_keys() {
            let text = "the issue is paused, and the file that says so is missing";
            let path = layout::paused_file(&key);
            found.push(Finding::error(FindingCode::FileMissing, path, text));
        }
        Ok(())
    }
}

/// The handoffs and pauses of all issues.
#[derive(Default)]
struct Handoffs {
    /// The open ones, by the path of their entry.
    open: BTreeMap<String, Record>,
    paused: BTreeMap<IssueKey, Paused>,
    /// Ended handoffs that await an agent, by the path of their entry.
    awaiting: BTreeMap<String, Record>,
    /// The unreadable ones; without a number, all of an issue's.
    unknown: BTreeSet<(IssueKey, Option<u32>)>,
}

impl Handoffs {
    /// Reads the records of an issue and compares them with their contracts.
    fn read(&mut self, folder: &IssueFolder<'_>, found: &mut Vec<Finding>) {
        let key = folder.key();
        let missing = |path, text| Finding::error(FindingCode::FileMissing, path, text);
        let (handoffs, awaiting) = match folder.issue() {
            Ok(Some(issue)) => {
                let paused = issue.paused.map(|paused| (key.clone(), paused));
                self.paused.extend(paused);
                (issue.handoffs, [issue.awaiting, issue.to_tell].concat())
            }
            other => {
                found.push(match other {
                    Err(error) => unreadable(&error),
                    Ok(_) => missing(layout::issue_file(key), "the issue's file is missing"),
                });
                self.unknown.insert((key.clone(), None));
                return;
            }
        };
        for number in 1..=handoffs {
            match folder.record(number) {
                Ok(Some(record)) => {
                    check_contract(folder, &record, found);
                    for one in awaiting.iter().filter(|one| one.id == record.id) {
                        let path = awaiting_path(&one.id, &one.agent);
                        self.awaiting.insert(path, record.clone());
                    }
                    self.open
                        .extend(open_path(&record).map(|path| (path, record)));
                }
                other => {
                    let path = || layout::record_file(&HandoffId::new(key.clone(), number));
                    found.push(match other {
                        Err(error) => unreadable(&error),
                        Ok(_) => missing(path(), "the record is missing"),
                    });
                    self.unknown.insert((key.clone(), Some(number)));
                }
            }
        }
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
