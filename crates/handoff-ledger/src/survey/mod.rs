//! A summary of every issue and handoff at the tip: enough for statistics, alerts and pages about
//! the whole ledger.
//!
//! All of it comes from the records; a [`Survey`] leaves out contracts, answers and evidence.

mod brief;
mod read;
mod remembered;
mod types;

use std::collections::HashSet;

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::{MOST_IN_ALL, Scratch, Shape, Tree};
use handoff_model::layout;
use read::Place;
use remembered::Remembered;
pub use types::{ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, RoundSurvey};

use crate::error::LedgerError;
use crate::snapshot::{IssueFolder, Snapshot};
use crate::write::Ledger;

/// Every issue of a ledger at one commit.
#[derive(Debug)]
pub struct Survey {
    /// The commit.
    pub tip: ObjectId,
    /// Its issues, sorted by number, then by name.
    pub issues: Vec<IssueSurvey>,
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
    /// Reads what changed since the last note, or everything, and writes a new note.
    fn read(tip: &Snapshot<'_>, note: &Scratch, threads: usize) -> Result<Self, LedgerError> {
        let repository = tip.repository();
        let Some(folder) = tip.issues_folder()? else {
            return Ok(Self {
                tip: tip.commit(),
                issues: Vec::new(),
            });
        };
        let known = Remembered::read(note).and_then(|known| Some((known.folder()?, known)));
        // The objects it was made from may be gone.
        let changed = known.and_then(|(old, known)| {
            let changes = Tree::new(repository, folder).changes_since(
                Some(old),
                Shape::undivided(read::is_issue),
                MOST_IN_ALL,
            );
            Some((known, changes.ok()?))
        });
        let (mut issues, places) = match changed {
            Some((known, changes)) if changes.is_empty() => {
                return Ok(Self {
                    tip: tip.commit(),
                    issues: known.issues,
                });
            }
            Some((mut known, changes)) => {
                let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
                let gone: HashSet<String> = changes.iter().map(|c| name(&c.path)).collect();
                known.issues.retain(|i| !gone.contains(i.key.as_str()));
                let new = changes.into_iter().filter_map(|change| {
                    let (path, tree) = (change.path, change.new?);
                    Some(Place { path, tree })
                });
                (known.issues, new.collect())
            }
            None => (Vec::new(), read::places(repository, folder, "")?),
        };
        issues.extend(read::read(repository, places, threads)?);
        issues.sort_unstable_by(|a, b| order(&a.key).cmp(&order(&b.key)));
        let new = Remembered::new(folder, issues);
        new.write(note);
        Ok(Self {
            tip: tip.commit(),
            issues: new.issues,
        })
    }

    /// An issue by its key.
    pub fn issue(&self, key: &IssueKey) -> Option<&IssueSurvey> {
        let found = self
            .issues
            .binary_search_by(|i| order(&i.key).cmp(&order(key)));
        self.issues.get(found.ok()?)
    }
}

impl IssueFolder<'_> {
    /// A summary of the issue; `None` if nothing was sent in it.
    ///
    /// # Errors
    /// [`LedgerError`] if a record can't be read.
    pub fn survey(&self) -> Result<Option<IssueSurvey>, LedgerError> {
        let read = |name: &str| -> Result<_, LedgerError> {
            let path = || format!("{}/{name}", layout::issue_folder(self.key()));
            Ok(self.read(name)?.map(|(_, bytes)| (bytes, path())))
        };
        let Some((bytes, path)) = read("issue.json")? else {
            return Ok(None);
        };
        let mut issue = brief::issue(&bytes).map_err(|e| LedgerError::stored(&path, e))?;
        for number in 1_u32.. {
            let Some((bytes, path)) = read(&layout::record_name(number))? else {
                break;
            };
            let handoff = brief::handoff(&bytes).map_err(|e| LedgerError::stored(&path, e))?;
            issue.handoffs.push(handoff);
        }
        Ok(Some(issue))
    }
}

/// Sorts numbers by value, then names.
fn order(key: &IssueKey) -> (usize, &str) {
    let text = key.as_str();
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    (if is_number { text.len() } else { usize::MAX }, text)
}
