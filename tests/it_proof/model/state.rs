//! An issue's files as the ledger's tip has them, in memory.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use handoff::base::Edit;
use handoff::model::{DaySpending, FileChanges, Issue, Record, View, layout, record};

/// The files of one issue and what they say.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// Each file by its path; a failure's folder has the id of its tree.
    pub(crate) files: BTreeMap<Rc<str>, Rc<[u8]>>,
    pub(crate) issue: Option<Rc<Issue>>,
    pub(crate) records: Vec<Rc<Record>>,
    /// The contracts, with the numbers of their handoffs.
    sent: Vec<(u32, Rc<[u8]>)>,
    /// A hash of the files.
    pub(crate) digest: u64,
}

impl View<Infallible> for State {
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, Infallible> {
        Ok(self.issue.clone())
    }

    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, Infallible> {
        let at = (number as usize).checked_sub(1);
        Ok(at.and_then(|at| self.records.get(at)).cloned())
    }

    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, Infallible> {
        let mut same = self.sent.iter().rev().filter(|(_, sent)| **sent == *bytes);
        Ok(same.by_ref().map(|(number, _)| *number).collect())
    }

    fn spent_on(&self, day: &str) -> Result<Option<DaySpending>, Infallible> {
        let file = self.files.get(layout::spent_file(day).as_str());
        Ok(file.map(|bytes| record::read(bytes).unwrap()))
    }

    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, Infallible> {
        let folder = layout::issue_folder(record.id.issue());
        let path = format!("{folder}/{}", record.contract.file);
        Ok(Rc::clone(&self.files[path.as_str()]))
    }
}

impl State {
    /// The files after a step.
    ///
    /// # Errors
    /// If an edit changes nothing, or what was written does not read back.
    pub(crate) fn after(&self, edits: &FileChanges) -> Result<Self, String> {
        let mut new = self.clone();
        for (path, edit) in edits {
            let bytes: Option<Rc<[u8]>> = match edit {
                Edit::Bytes(bytes) => Some(bytes.as_slice().into()),
                Edit::Folder(tree) => Some(tree.as_bytes().into()),
                Edit::Gone => None,
            };
            if self.files.get(path.as_str()) == bytes.as_ref() {
                return Err(format!("the step changes nothing of {path}"));
            }
            if let Some(was) = new.files.remove(path.as_str()) {
                new.digest ^= hash(path, &was);
            }
            if let Some(bytes) = bytes {
                new.digest ^= hash(path, &bytes);
                new.read(path, &bytes)?;
                new.files.insert(path.as_str().into(), bytes);
            }
        }
        Ok(new)
    }

    /// Takes in what a new file says.
    fn read(&mut self, path: &str, bytes: &Rc<[u8]>) -> Result<(), String> {
        let Some(path) = path.strip_prefix(layout::ISSUES) else {
            return Ok(());
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let unreadable = |error: &dyn std::fmt::Display| format!("{path}: {error}");
        match layout::number_of(name) {
            Some(0) => {
                let issue: Issue = record::read(bytes).map_err(|e| unreadable(&e))?;
                is_same(path, &record::write(&issue), bytes)?;
                self.issue = Some(Rc::new(issue));
            }
            Some(number) => {
                let record: Record = record::read(bytes).map_err(|e| unreadable(&e))?;
                is_same(path, &record::write(&record), bytes)?;
                let at = number as usize - 1;
                if at == self.records.len() {
                    self.records.push(Rc::new(record));
                } else if let Some(known) = self.records.get_mut(at) {
                    *known = Rc::new(record);
                } else {
                    return Err(format!("{path}: there is none before it"));
                }
            }
            None if name.contains("-to-") => {
                let number = name.split('-').next().and_then(|n| n.parse().ok());
                let number = number.ok_or_else(|| format!("{path}: an odd name"))?;
                self.sent.push((number, Rc::clone(bytes)));
            }
            None => {}
        }
        Ok(())
    }

    /// What it looks like apart from times, texts and who it was: how much of what there is.
    pub(crate) fn shape(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for record in &self.records {
            let lease = record.lease.as_ref();
            let lease = lease.map(|lease| (&lease.worker, lease.expires_at.is_some()));
            let paused = record.not_before.is_some();
            (record.state, record.attempt, &record.to, lease, paused).hash(&mut hasher);
            (&record.contract_type, &record.waits_for, &record.parts).hash(&mut hasher);
        }
        if let Some(issue) = &self.issue {
            (issue.status as u8, &issue.unfollowed).hash(&mut hasher);
            for one in issue.awaiting.iter().chain(&issue.to_tell) {
                (&one.id, &one.agent).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

fn hash(path: &str, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, bytes).hash(&mut hasher);
    hasher.finish()
}

fn is_same(path: &str, again: &[u8], bytes: &[u8]) -> Result<(), String> {
    if again == bytes {
        return Ok(());
    }
    Err(format!("{path} is written differently once it is read"))
}
