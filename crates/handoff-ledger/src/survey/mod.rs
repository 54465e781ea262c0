//! A summary of every issue and handoff, archived ones too: enough for statistics, alerts and pages about
//! the whole ledger.
//!
//! All of it comes from the records; a [`Survey`] leaves out contracts, answers and evidence.
//! `brief` parses what is kept of the stored files and packs it, `packed` is the form, `issues` all of
//! them; `read` finds and reads files on several threads, `note` keeps the last survey.

mod brief;
mod issues;
mod note;
mod packed;
mod read;
mod types;

use std::sync::{Mutex, PoisonError};

use handoff_base::ObjectId;
use handoff_git::{MOST_IN_ALL, Scratch, Shape, Tree};
use handoff_model::{ArchivedIssue, layout};
pub use issues::Issues;
use issues::Stored;
use note::{Remembered, Trees};
use packed::{Names, Table};
use read::{Folder, Place};
pub use types::{
    ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, PauseSurvey, RoundSurvey, UsageSurvey,
};

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
    /// Surveys the ledger at a commit of its branch with this many threads. Parts that this clone
    /// remembers from the last survey are not read again.
    ///
    /// # Errors
    /// [`LedgerError`] if an issue can't be read.
    pub fn survey(&self, tip: &Snapshot<'_>, threads: usize) -> Result<Survey, LedgerError> {
        Survey::read(tip, self.memory().survey(), threads)
    }
}

impl Survey {
    /// Reads what changed since the last note, or everything, and notes it.
    fn read(tip: &Snapshot<'_>, note: &Scratch, threads: usize) -> Result<Self, LedgerError> {
        let whole = |issues: Issues| Self {
            tip: tip.commit(),
            issues,
        };
        let trees = Trees {
            issues: tip.issues_folder()?,
            archived: tip.archived_folder()?,
        };
        if let Some(mut known) = Remembered::read(note)
            && (known.trees == trees || known.update(tip, trees, note, threads)?.is_some())
        {
            return Ok(whole(known.issues));
        }
        let repository = tip.repository();
        let places = match trees.issues {
            Some(folder) => read::places(repository, folder, "")?,
            None => Vec::new(),
        };
        let mut folders = read::folders(repository, places, threads)?;
        folders.extend(found_in_history(tip, tip.all_archived()?)?);
        let stored = stored(tip, folders, &[], &Table::default(), threads)?;
        let known = Remembered::new(trees, stored, note);
        Ok(whole(known.map(|known| known.issues).unwrap_or_default()))
    }
}

/// The folders of archived issues, whose content is here.
fn found_in_history(
    tip: &Snapshot<'_>,
    archived: Vec<ArchivedIssue>,
) -> Result<Vec<Folder>, LedgerError> {
    tip.ensure_here(&archived)?;
    let folder = |line: ArchivedIssue| Folder {
        issue: line.issue,
        tree: line.tree,
        is_archived: true,
    };
    Ok(archived.into_iter().map(folder).collect())
}

impl Remembered {
    /// Reads what changed since; `None` if that can't be found out.
    fn update(
        &mut self,
        tip: &Snapshot<'_>,
        trees: Trees,
        note: &Scratch,
        threads: usize,
    ) -> Result<Option<()>, LedgerError> {
        let (Some(before), Some(now)) = (self.trees.issues, trees.issues) else {
            return Ok(None);
        };
        let changes = Tree::new(tip.repository(), now).changes_since(
            Some(before),
            Shape::undivided(read::is_issue),
            MOST_IN_ALL,
        );
        // The objects that the note was made from may be gone.
        let (Ok(changes), Ok(archived)) = (changes, tip.archived_since(self.trees.archived)) else {
            return Ok(None);
        };
        let (mut gone, mut folders) = (Vec::new(), found_in_history(tip, archived)?);
        for change in changes {
            let name = change.path.rsplit('/').next().unwrap_or_default();
            gone.push(name.to_owned());
            if let Some(tree) = change.new {
                let path = change.path;
                folders.extend(Place { path, tree }.folder());
            }
        }
        let stored = stored(tip, folders, &gone, self.issues.table(), threads)?;
        Ok(self.add(trees, stored, note))
    }
}

/// Reads the issues in these folders into a part that follows others, which have the names of a
/// table.
fn stored(
    tip: &Snapshot<'_>,
    folders: Vec<Folder>,
    gone: &[String],
    before: &Table,
    threads: usize,
) -> Result<Stored, LedgerError> {
    let mut table = before.clone();
    let issues = read::issues(tip.repository(), folders, &mut table, threads)?;
    Ok(Stored::new((before, &table), gone, issues))
}

impl IssueFolder<'_> {
    /// A summary of the issue; `None` if nothing was sent in it.
    ///
    /// # Errors
    /// [`LedgerError`] if a record can't be read.
    pub fn survey(&self) -> Result<Option<Issues>, LedgerError> {
        let read = |name: &str| -> Result<_, LedgerError> {
            let path = || layout::in_issue(self.key(), name);
            Ok(self.read(name)?.map(|(_, bytes)| (bytes, path())))
        };
        let Some((bytes, path)) = read("issue.json")? else {
            return Ok(None);
        };
        let table = Mutex::new(Table::default());
        let mut names = Names::new(&table);
        let is_archived = self.archived_in().is_some();
        let issue = brief::issue(&bytes, is_archived, &mut names)
            .map_err(|e| LedgerError::stored(&path, e))?;
        let mut handoffs = Vec::new();
        for number in 1_u32.. {
            let Some((bytes, path)) = read(&layout::record_name(number))? else {
                break;
            };
            let handoff = brief::handoff(&bytes, &mut names);
            handoffs.push(handoff.map_err(|e| LedgerError::stored(&path, e))?);
        }
        let issue = read::packed(issue, handoffs).into_iter().collect();
        let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut issues = Issues::default();
        issues.add(Stored::new((&Table::default(), &table), &[], issue));
        Ok(Some(issues))
    }
}
