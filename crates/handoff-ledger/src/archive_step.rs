//! The steps that archive ended issues and restore them, for the write path and the audit. An
//! issue's folder is never in two places.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::{Edit, Moment, ObjectId, to_second};
use handoff_git::{Change, EntryKind, GitError, MOST_ENTRIES, Repository, Shape, Tree};
use handoff_model::archive::{ensure_archivable, with_archived, without_archived};
use handoff_model::open_entry::awaiting_path;
use handoff_model::{ArchivedIssue, FileChanges, View, archive_message, layout, unarchive_message};

use super::draft::Draft;
use super::error::LedgerError;
use super::signing::{By, Demand};
use super::snapshot::{IssueFolder, SHAPE, Snapshot};

/// An issue's index line if it were archived in a step after this snapshot's commit; `None` if its
/// folder is not in the tree.
pub(super) fn line_of(
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

/// The step that archives issues, given by their index lines.
pub(super) fn archive_step(
    tip: &Snapshot<'_>,
    lines: Vec<ArchivedIssue>,
    before: Moment,
) -> Result<Draft, LedgerError> {
    let message = archive_message(lines.len(), before);
    let protocols: BTreeSet<AgentName> = lines.iter().map(|line| line.protocol.clone()).collect();
    let mut files = Vec::new();
    let mut new: BTreeMap<String, Vec<ArchivedIssue>> = BTreeMap::new();
    for line in lines {
        files.push((layout::issue_folder(&line.issue), Edit::Gone));
        // Nobody is notified of it any more.
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
    Ok(Draft::shared(files, message, demand(tip, protocols)?))
}

pub(super) fn unarchive_step(
    tip: &Snapshot<'_>,
    line: &ArchivedIssue,
) -> Result<Draft, LedgerError> {
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
    let demand = demand(tip, BTreeSet::from([line.protocol.clone()]))?;
    Ok(Draft::shared(files, unarchive_message(line), demand))
}

/// The entries of an ended issue's handoffs that an agent has yet to be notified of.
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

/// The signature of a step about issues of these protocols: by any key of the default protocol,
/// else of the first one that lists keys. No agent decides on the step, and it can be undone.
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

/// A step that changes the archive, as derived from a commit's changed paths.
pub(super) enum ArchiveStep {
    /// These issues were removed from the tip.
    Archive(Vec<IssueKey>),
    /// This issue was restored.
    Unarchive(IssueKey),
    /// No step changes the index like this.
    Other,
}

/// The archive step that makes these changes, which are from [`step_changes`]; `None` if they don't
/// concern the archive.
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

/// Derives a step of the archive again, from the commit before it and its tree. `made_at` is its
/// time, `stated` the moment in its message. `None` if no step does this.
///
/// # Errors
/// [`LedgerError`] if the step may not be made, or something can't be read.
pub(super) fn derived(
    before: &Snapshot<'_>,
    parent: ObjectId,
    step: &ArchiveStep,
    made_at: Moment,
    stated: Option<Moment>,
) -> Result<Option<Draft>, LedgerError> {
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

/// The end of the second of a step made now: issues last changed before it can be archived. The
/// step's commit stores whole seconds, the issue milliseconds.
pub fn end_of_second(now: Moment) -> Moment {
    to_second(now).later(1)
}

/// The changes between the trees of a commit and its parent: file by file, and by whole issues
/// where the archive changes.
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

/// Whether a path has the depth of an issue's folder.
fn is_issue(path: &str) -> bool {
    const DEPTH: usize = 3;
    path.starts_with(layout::ISSUES) && path.matches('/').count() == DEPTH
}
