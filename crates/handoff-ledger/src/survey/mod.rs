//! A summary of every issue and handoff, archived ones too: enough for statistics, alerts and pages
//! about the whole ledger.
//!
//! All of it comes from the records; a [`Survey`] omits contracts, answers and evidence. The
//! summaries are `handoff_model`'s [`IssueSurvey`]s; `issues` encodes them, `read` reads them on
//! several threads, `note` caches the last survey.

mod issues;
mod note;
mod read;

use std::collections::HashSet;

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::{MOST_IN_ALL, Scratch, Shape, Tree};
pub use handoff_model::view::survey::{
    ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, PauseSurvey, RoundSurvey, UsageSurvey,
};
use handoff_model::{ArchivedIssue, Record, StoredError, View, layout};
use issues::Encoded;
pub use issues::Issues;
use note::Trees;
use read::Folder;
use serde::ser::Error;

use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::snapshot::{IssueFolder, Snapshot};

/// Every issue of a ledger at one commit.
#[derive(Debug)]
pub struct Survey {
    /// The commit.
    pub tip: ObjectId,
    /// Its issues.
    pub issues: Issues,
}

impl Ledger<'_> {
    /// Surveys the ledger at a commit of its branch with this many threads. Unchanged parts come
    /// from the note of the last survey.
    ///
    /// # Errors
    /// [`LedgerError`] if an issue can't be read.
    pub fn survey(&self, tip: &Snapshot<'_>, threads: usize) -> Result<Survey, LedgerError> {
        Survey::read(tip, self.memory().survey(), threads)
    }
}

/// The depth of an issue's folder in the folder of all issues.
const DEPTH: usize = 2;

impl Survey {
    /// Reads what changed since the last note, or everything, and updates the note.
    fn read(tip: &Snapshot<'_>, note: &Scratch, threads: usize) -> Result<Self, LedgerError> {
        let now = Trees {
            issues: tip.issues_folder()?,
            archived: tip.archived_folder()?,
        };
        let (before, mut issues) = note::read(note).unwrap_or_default();
        if before != now {
            let is_known = before.issues.is_some() && now.issues.is_some();
            let known = is_known.then(|| changes(tip, before, now));
            // The objects behind the note may be gone.
            let (replaced, folders) = match known {
                Some(Ok(changes)) => changes,
                _ => {
                    issues = Issues::default();
                    changes(tip, Trees::default(), now)?
                }
            };
            issues.update(&replaced, read::issues(&folders, threads)?);
            note::write(note, now, &issues);
        }
        Ok(Self {
            tip: tip.commit(),
            issues,
        })
    }
}

/// The issues that changed or were removed between two trees, and the folders of the existing ones.
fn changes(
    tip: &Snapshot<'_>,
    before: Trees,
    now: Trees,
) -> Result<(HashSet<IssueKey>, Vec<Folder>), LedgerError> {
    let archived = tip.archived_since(before.archived)?;
    tip.ensure_here(&archived)?;
    let archived = archived.into_iter().map(|line: ArchivedIssue| Folder {
        issue: line.issue,
        tree: line.tree,
        archived_in: Some(line.commit),
    });
    let mut folders: Vec<Folder> = archived.collect();
    let mut replaced: HashSet<IssueKey> = folders.iter().map(|one| one.issue.clone()).collect();
    let shape = Shape::undivided(|path| path.matches('/').count() == DEPTH);
    let repository = tip.repository();
    let changes = match now.issues {
        Some(now) => Tree::new(repository, now).changes_since(before.issues, shape, MOST_IN_ALL)?,
        None => Vec::new(),
    };
    for change in changes {
        // `verify` reports an invalid name.
        let name = change.path.rsplit('/').next().unwrap_or_default();
        let Ok(issue) = name.parse::<IssueKey>() else {
            continue;
        };
        if format!("{}/{}", layout::ISSUES, change.path) != layout::issue_folder(&issue) {
            continue;
        }
        replaced.insert(issue.clone());
        folders.extend(change.new.map(|tree| Folder {
            issue,
            tree,
            archived_in: None,
        }));
    }
    Ok((replaced, folders))
}

impl IssueFolder<'_> {
    /// A summary of the issue; `None` if nothing was sent in it.
    ///
    /// # Errors
    /// [`LedgerError`] if a record can't be read.
    pub fn survey(&self) -> Result<Option<Issues>, LedgerError> {
        Ok(self.encoded()?.map(|issue| vec![issue].into()))
    }

    fn encoded(&self) -> Result<Option<Encoded<'static>>, LedgerError> {
        let Some(issue) = self.shared_issue()? else {
            return Ok(None);
        };
        let records = (1..=issue.handoffs).map(|number| self.record(number));
        let records: Result<Vec<Record>, LedgerError> =
            records.filter_map(Result::transpose).collect();
        let records = records?;
        let survey = IssueSurvey::of(&issue, &records);
        let encoded = Encoded::new(&survey).map_err(|error| {
            let form = StoredError::Form(serde_json::Error::custom(error));
            LedgerError::stored(&layout::issue_file(self.key()), form)
        })?;
        Ok(Some(encoded))
    }
}
