//! Archiving: issues that ended long ago are taken out of the tip, and an index by key says where
//! their folders are in history. A step that writes to one of them brings it back first.
//!
//! Both are steps of their own, which the audit derives again: so no step of an issue ever finds its
//! folder in two places.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::{Edit, Moment, ObjectId, to_second};
use handoff_git::{
    Change, EntryKind, GitError, MOST_ENTRIES, MOST_IN_ALL, Repository, Shape, Tree,
};
use handoff_model::archive::{
    ensure_archivable, find_in_index, read_index, with_archived, without_archived,
};
use handoff_model::open_entry::awaiting_path;
use handoff_model::{
    ArchivedIssue, FileChanges, Issue, IssueStatus, NotArchivable, Refusal, View, archive_message,
    layout, unarchive_message,
};
use serde::Deserialize;

use super::draft::Decided;
use super::error::{DamageError, LedgerError};
use super::protocol_store::SharedStep;
use super::session::Session;
use super::signing::{By, Demand};
use super::snapshot::{IssueFolder, SHAPE, Snapshot};
use super::write::Ledger;

/// How many entries of folders one step changes at most, as [`entries`] counts them: enough for 2,000
/// issues, and less than the [`MOST_ENTRIES`] that a reader accepts.
const MOST_IN_STEP: usize = 10_000;

/// How many entries archiving an issue changes at most: its folder, the two above it, as much of the
/// index, and those of who has yet to be told of its end.
fn entries(issue: &Issue) -> usize {
    5 + issue.to_tell.len()
}

/// Which issues to archive.
#[derive(Clone, Debug)]
pub struct ArchiveRequest {
    /// Only issues whose last step was made before this moment.
    pub before: Moment,
    /// Only these; all that ended, if it is empty.
    pub issues: Vec<IssueKey>,
    /// Only issues of this protocol.
    pub protocol: Option<AgentName>,
    /// At most so many, those first that ended first.
    pub limit: Option<usize>,
}

/// Issues that one step archived.
#[derive(Debug)]
pub struct ArchivedTogether {
    /// The step's commit; `None` if nothing was written.
    pub commit: Option<ObjectId>,
    /// The moment before which their last steps were made.
    pub before: Moment,
    /// The issues, in the order of their folders.
    pub issues: Vec<ArchivedIssue>,
}

impl<'r> Ledger<'r> {
    /// Archives issues, in as many steps as that takes, and adds each to `done`. Each is whole: what
    /// was archived before an error stays archived. An issue that was written to meanwhile stays
    /// where it is.
    ///
    /// # Errors
    /// [`LedgerError`], also if issues that were named can't be archived.
    pub fn archive(
        &mut self,
        session: &Session,
        request: &ArchiveRequest,
        done: &mut Vec<ArchivedTogether>,
    ) -> Result<(), LedgerError> {
        let before = done.len();
        for part in self.to_archive(request)? {
            let together = self.archive_together(session, &part, request.before)?;
            if !together.issues.is_empty() {
                done.push(together);
            }
        }
        if done.len() == before && !request.issues.is_empty() {
            // Somebody wrote to them since they were looked at: why they stay is told.
            self.to_archive(request)?;
        }
        Ok(())
    }

    /// What [`Self::archive`] would archive now, in as many steps. Writes nothing.
    ///
    /// # Errors
    /// [`LedgerError`], also if an issue that was named can't be archived.
    pub fn would_archive(
        &self,
        request: &ArchiveRequest,
    ) -> Result<Vec<ArchivedTogether>, LedgerError> {
        let parts = self.to_archive(request)?;
        let tip = self.tip()?;
        let parts = parts.into_iter().map(|part| {
            let lines = part.iter().map(|key| archivable(&tip, key, request.before));
            let lines: Vec<_> = lines.collect::<Result<_, LedgerError>>()?;
            let issues = lines.into_iter().flatten().collect();
            Ok(ArchivedTogether {
                commit: None,
                before: request.before,
                issues,
            })
        });
        parts.collect()
    }

    /// The keys of the issues to archive, in the order of their folders, divided into steps.
    fn to_archive(&self, request: &ArchiveRequest) -> Result<Vec<Vec<IssueKey>>, LedgerError> {
        let tip = self.tip()?;
        let mut ended = Vec::new();
        for key in &request.issues {
            match tip.folder(key)?.issue()? {
                Some(issue) => {
                    ensure_archivable(&issue, request.before)?;
                    ended.push((issue.updated_at, key.clone(), entries(&issue)));
                }
                None if tip.archived(key)?.is_some() => {}
                None => return Err(Refusal::no_issue(key).into()),
            }
        }
        if request.issues.is_empty() {
            ended = ended_before(&tip, request)?;
        }
        if let Some(limit) = request.limit {
            ended.sort();
            ended.truncate(limit);
        }
        let by_folder: BTreeMap<String, (IssueKey, usize)> = ended
            .into_iter()
            .map(|(_, key, entries)| (layout::issue_folder(&key), (key, entries)))
            .collect();
        let (mut parts, mut met): (Vec<Vec<IssueKey>>, usize) = (Vec::new(), 0);
        for (key, entries) in by_folder.into_values() {
            match parts.last_mut() {
                Some(part) if met + entries <= MOST_IN_STEP => {
                    part.push(key);
                    met += entries;
                }
                _ => {
                    parts.push(vec![key]);
                    met = entries;
                }
            }
        }
        Ok(parts)
    }

    /// Archives those of these issues that can be, in one step; nothing, if none can.
    pub(super) fn archive_together(
        &mut self,
        session: &Session,
        keys: &[IssueKey],
        before: Moment,
    ) -> Result<ArchivedTogether, LedgerError> {
        let (issues, commit) = self.write(session, |_, tip, _| {
            let mut lines = Vec::new();
            for key in keys {
                match archivable(tip, key, before) {
                    Ok(line) => lines.extend(line),
                    Err(LedgerError::NotArchivable(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            if lines.is_empty() {
                return Ok(Decided::Nothing(lines));
            }
            let step = archive_step(tip, lines.clone(), before)?;
            Ok(Decided::Write(step.draft(None), lines))
        })?;
        Ok(ArchivedTogether {
            commit,
            before,
            issues,
        })
    }

    /// Brings an archived issue back; nothing, if it is not archived.
    pub(super) fn unarchive(
        &mut self,
        session: &Session,
        key: &IssueKey,
    ) -> Result<(), LedgerError> {
        let written = self.write(session, |_, tip, _| {
            Ok(match tip.archived(key)? {
                None => Decided::Nothing(()),
                Some(line) => Decided::Write(unarchive_step(tip, &line)?.draft(None), ()),
            })
        });
        written.map(drop)
    }
}

/// What of an issue's file tells whether it ended.
#[derive(Deserialize)]
struct Ended {
    status: IssueStatus,
    protocol: AgentName,
    updated_at: Moment,
}

/// The issues in the tip that can be archived, each with when its last step was made.
fn ended_before(
    tip: &Snapshot<'_>,
    request: &ArchiveRequest,
) -> Result<Vec<(Moment, IssueKey, usize)>, LedgerError> {
    let before = request.before;
    let wants = |issue: &Ended| {
        let protocol = request.protocol.as_ref();
        issue.status != IssueStatus::Open
            && issue.updated_at < before
            && protocol.is_none_or(|protocol| *protocol == issue.protocol)
    };
    let mut found = Vec::new();
    for key in tip.issues()? {
        let folder = tip.folder(&key)?;
        let Some((_, bytes)) = folder.read("issue.json")? else {
            continue;
        };
        // Most need not be read as a whole.
        if serde_json::from_slice(&bytes).is_ok_and(|issue| !wants(&issue)) {
            continue;
        }
        let Some(issue) = folder.issue()? else {
            continue;
        };
        if ensure_archivable(&issue, before).is_ok() {
            found.push((issue.updated_at, key, entries(&issue)));
        }
    }
    Ok(found)
}

/// An issue's line in the index, were it archived now; `None` if its folder is not in the tip.
fn archivable(
    tip: &Snapshot<'_>,
    key: &IssueKey,
    before: Moment,
) -> Result<Option<ArchivedIssue>, LedgerError> {
    line_of(tip, tip.commit(), key, before)
}

/// The same, were it archived in a step on this commit, whose tree the snapshot has.
fn line_of(
    tree: &Snapshot<'_>,
    commit: ObjectId,
    key: &IssueKey,
    before: Moment,
) -> Result<Option<ArchivedIssue>, LedgerError> {
    let folder = tree.folder(key)?;
    let (Some(id), Some(issue)) = (folder.id(), folder.issue()?) else {
        return Ok(None);
    };
    ensure_archivable(&issue, before)?;
    Ok(Some(ArchivedIssue::new(issue, commit, id)))
}

/// The step that archives issues, given by their lines in the index.
fn archive_step(
    tip: &Snapshot<'_>,
    lines: Vec<ArchivedIssue>,
    before: Moment,
) -> Result<SharedStep, LedgerError> {
    let message = archive_message(lines.len(), before);
    let protocols: BTreeSet<AgentName> = lines.iter().map(|line| line.protocol.clone()).collect();
    let mut files = Vec::new();
    let mut new: BTreeMap<String, Vec<ArchivedIssue>> = BTreeMap::new();
    for line in lines {
        files.push((layout::issue_folder(&line.issue), Edit::Gone));
        // Nobody is told of it any more.
        let told = to_tell(&IssueFolder::of_archived(tip.repository(), &line)?)?;
        files.extend(told.into_iter().map(|(path, _)| (path, Edit::Gone)));
        let file = layout::archived_file(&line.issue);
        new.entry(file).or_default().push(line);
    }
    for (path, lines) in new {
        let known = tip.file(&path)?.unwrap_or_default();
        let bytes = with_archived(&known, lines);
        let bytes = bytes.map_err(|error| LedgerError::stored(&path, error))?;
        files.push((path, Edit::Bytes(bytes)));
    }
    Ok(SharedStep {
        files,
        message,
        demand: demand(tip, protocols)?,
    })
}

/// The step that brings an issue back.
pub(super) fn unarchive_step(
    tip: &Snapshot<'_>,
    line: &ArchivedIssue,
) -> Result<SharedStep, LedgerError> {
    let path = layout::archived_file(&line.issue);
    let known = tip.file(&path)?.unwrap_or_default();
    let left = without_archived(&known, &line.issue);
    let left = left.map_err(|error| LedgerError::stored(&path, error))?;
    let index = if left.is_empty() {
        Edit::Gone
    } else {
        Edit::Bytes(left)
    };
    let folder = (layout::issue_folder(&line.issue), Edit::Folder(line.tree));
    let mut files = vec![folder, (path, index)];
    tip.ensure_here(std::slice::from_ref(line))?;
    files.extend(to_tell(&IssueFolder::of_archived(tip.repository(), line)?)?);
    Ok(SharedStep {
        files,
        message: unarchive_message(line),
        demand: demand(tip, BTreeSet::from([line.protocol.clone()]))?,
    })
}

/// The entries of an ended issue's handoffs of which somebody has yet to be told.
fn to_tell(folder: &IssueFolder<'_>) -> Result<FileChanges, LedgerError> {
    let issue = folder.issue()?;
    let all = issue.map(|issue| issue.to_tell).unwrap_or_default();
    let entries = all.into_iter().map(|one| {
        let name = layout::record_name(one.id.number());
        let record = folder.read(&name)?;
        let (_, bytes) =
            record.ok_or_else(|| LedgerError::missing(layout::record_file(&one.id)))?;
        let path = awaiting_path(&one.id, &one.agent);
        Ok((path, Edit::Bytes(bytes.to_vec())))
    });
    entries.collect()
}

/// The signature of a step about issues of these protocols: by any key of the default protocol, else
/// of the first of them that lists keys. No agent decides on the step, and it can be undone.
fn demand(
    tip: &Snapshot<'_>,
    protocols: BTreeSet<AgentName>,
) -> Result<Option<Demand>, LedgerError> {
    let default = tip.manifest().default_protocol.clone();
    for name in std::iter::once(default).chain(protocols) {
        let demand = Demand::of(&tip.rules(name.as_str())?, By::Anybody)?;
        if demand.is_some() {
            return Ok(demand);
        }
    }
    Ok(None)
}

/// A step that changes the archive, as the paths that a commit changes tell.
pub(super) enum ArchiveStep {
    /// These issues were taken out of the tip.
    Archive(Vec<IssueKey>),
    /// This issue was brought back.
    Unarchive(IssueKey),
    /// No step changes the index like this.
    Other,
}

/// The step of the archive that a commit with these changes is; `None` if it leaves the archive
/// alone. They are from [`step_changes`].
pub(super) fn archive_step_of(changes: &[Change]) -> Option<ArchiveStep> {
    let index = format!("{}/", layout::ARCHIVED);
    let of_index = |change: &&Change| change.path.starts_with(&index);
    changes.iter().find(of_index)?;
    let (mut gone, mut back) = (Vec::new(), Vec::new());
    for change in changes.iter().filter(|c| c.kind == EntryKind::Tree) {
        let Some(key) = layout::issue_at(&change.path) else {
            continue;
        };
        match (change.old, change.new) {
            (Some(_), None) => gone.push(key),
            (None, Some(_)) => back.push(key),
            _ => return Some(ArchiveStep::Other),
        }
    }
    Some(match (gone.is_empty(), back.pop()) {
        (false, None) => ArchiveStep::Archive(gone),
        (true, Some(key)) if back.is_empty() => ArchiveStep::Unarchive(key),
        _ => ArchiveStep::Other,
    })
}

/// Derives a step of the archive again, on the commit before it and its tree. `made_at` is when the
/// step says it was made, `stated` the moment that its message names. `None` if no step does this.
///
/// # Errors
/// [`LedgerError`] if the step may not be made, or something can't be read.
pub(super) fn derived(
    before: &Snapshot<'_>,
    parent: ObjectId,
    step: &ArchiveStep,
    made_at: Moment,
    stated: Option<Moment>,
) -> Result<Option<SharedStep>, LedgerError> {
    match step {
        ArchiveStep::Other => Ok(None),
        ArchiveStep::Unarchive(key) => match before.archived(key)? {
            Some(line) => unarchive_step(before, &line).map(Some),
            None => Ok(None),
        },
        ArchiveStep::Archive(keys) => {
            let latest = end_of_second(made_at);
            let limit = stated.map_or(latest, |stated| stated.min(latest));
            let mut lines = Vec::new();
            for key in keys {
                lines.extend(line_of(before, parent, key, limit)?);
            }
            if lines.len() < keys.len() {
                return Ok(None);
            }
            archive_step(before, lines, limit).map(Some)
        }
    }
}

/// The moment before which an issue must have been written to for a step that is made now: the step's
/// commit has whole seconds, the issue milliseconds.
pub fn end_of_second(now: Moment) -> Moment {
    to_second(now).later(1)
}

/// How the trees of a commit and its parent differ: file by file, and by whole issues where the
/// archive changes.
pub(super) fn step_changes(
    repository: &Repository,
    old: ObjectId,
    new: ObjectId,
) -> Result<Vec<Change>, GitError> {
    const OF_ARCHIVE: Shape = Shape {
        closed: |path| layout::is_closed(path) || is_issue(path),
        ..SHAPE
    };
    let shape = if changes_archive(repository, old, new)? {
        OF_ARCHIVE
    } else {
        SHAPE
    };
    Tree::new(repository, new).changes_since(Some(old), shape, MOST_ENTRIES)
}

/// Whether the index of the archive differs between two trees.
pub(super) fn changes_archive(
    repository: &Repository,
    old: ObjectId,
    new: ObjectId,
) -> Result<bool, GitError> {
    let index = |tree| Tree::new(repository, tree).entry(layout::ARCHIVED);
    Ok(index(old)? != index(new)?)
}

/// Whether a path is as deep as an issue's folder.
fn is_issue(path: &str) -> bool {
    const DEPTH: usize = 3;
    path.starts_with(layout::ISSUES) && path.matches('/').count() == DEPTH
}

impl<'r> Snapshot<'r> {
    /// An issue's folder in this tree, which may be empty: also if the issue is archived.
    pub(super) fn folder(&self, key: &IssueKey) -> Result<IssueFolder<'r>, LedgerError> {
        self.ensure_issue(key)?;
        IssueFolder::open(self.repository(), self.tree(), key)
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
    pub(super) fn archived_folder(&self) -> Result<Option<ObjectId>, LedgerError> {
        let found = self.tree().entry(layout::ARCHIVED)?;
        Ok(found.map(|(_, id)| id))
    }

    /// The lines of the index that an earlier one does not have.
    pub(super) fn archived_since(
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
pub(super) fn archived_in(
    tree: Tree<'_>,
    key: &IssueKey,
) -> Result<Option<ArchivedIssue>, LedgerError> {
    let path = layout::archived_file(key);
    let Some(bytes) = tree.file(&path)? else {
        return Ok(None);
    };
    find_in_index(&bytes, key).map_err(|error| LedgerError::stored(&path, error))
}

impl From<NotArchivable> for LedgerError {
    fn from(why: NotArchivable) -> Self {
        Self::NotArchivable(Box::new(why))
    }
}
