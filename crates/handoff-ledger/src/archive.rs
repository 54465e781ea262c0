//! Archiving: issues that ended long ago are removed from the tip, and an index by key records
//! where their folders are in history. A step that writes to an archived issue restores it first.

use std::collections::BTreeMap;

use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::{Moment, ObjectId};
use handoff_model::archive::ensure_archivable;
use handoff_model::{ArchivedIssue, Issue, IssueStatus, IssueSummary, Refusal, View, layout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::archive_step::{archive_step, line_of, unarchive_step};
use super::error::LedgerError;
use super::ledger::Ledger;
use super::session::Session;
use super::snapshot::Snapshot;

/// The maximum number of tree entries that one step changes, as [`entries`] counts them: enough for
/// 2,000 issues, and below the [`MOST_ENTRIES`] that a reader accepts.
const MOST_IN_STEP: usize = 10_000;

/// The maximum number of entries changed by archiving an issue: its folder, its two parents, their
/// part of the index, and the entries of agents to be notified of its end.
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
    /// The oldest by their end, truncated to this number.
    pub limit: Option<usize>,
}

/// Issues that one step archived.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ArchiveStep")]
pub struct ArchivedTogether {
    /// The step's commit; null if nothing was written.
    pub commit: Option<ObjectId>,
    /// The moment before which their last steps were made.
    pub before: Moment,
    /// The issues, in the order of their folders.
    pub issues: Vec<IssueSummary>,
}

impl<'r> Ledger<'r> {
    /// Archives issues in as many steps as needed, and adds each step to `done`. Steps are atomic:
    /// what was archived before an error stays archived. Issues that were changed meanwhile are
    /// skipped.
    ///
    /// # Errors
    /// [`LedgerError`], also if a named issue can't be archived.
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
            // They changed meanwhile: report why they can't be archived.
            self.to_archive(request)?;
        }
        Ok(())
    }

    /// The steps that [`Self::archive`] would make now. Writes nothing.
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
            let found = part.iter().map(|key| archivable(&tip, key, request.before));
            let found: Vec<_> = found.collect::<Result<_, LedgerError>>()?;
            Ok(ArchivedTogether {
                commit: None,
                before: request.before,
                issues: found
                    .into_iter()
                    .flatten()
                    .map(|(issue, _)| issue)
                    .collect(),
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

    /// Archives as many of these issues as possible in one step; writes nothing without any.
    pub(super) fn archive_together(
        &mut self,
        session: &Session,
        keys: &[IssueKey],
        before: Moment,
    ) -> Result<ArchivedTogether, LedgerError> {
        let (issues, commit) = self.write(session, |_, tip, _| {
            let mut found = Vec::new();
            for key in keys {
                match archivable(tip, key, before) {
                    Ok(one) => found.extend(one),
                    Err(LedgerError::NotArchivable(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            let (issues, lines): (Vec<IssueSummary>, Vec<ArchivedIssue>) =
                found.into_iter().unzip();
            let step = (!lines.is_empty()).then(|| archive_step(tip, lines, before));
            Ok((step.transpose()?, issues))
        })?;
        Ok(ArchivedTogether {
            commit,
            before,
            issues,
        })
    }

    /// Restores an issue if it is archived.
    pub(super) fn unarchive(
        &mut self,
        session: &Session,
        key: &IssueKey,
    ) -> Result<(), LedgerError> {
        let written = self.write(session, |_, tip, _| {
            let line = tip.archived(key)?;
            let step = line.map(|line| unarchive_step(tip, &line)).transpose()?;
            Ok((step, ()))
        });
        written.map(drop)
    }
}

/// The members of an issue's file that tell whether it ended.
#[derive(Deserialize)]
struct Ended {
    status: IssueStatus,
    protocol: AgentName,
    updated_at: Moment,
}

/// The issues in the tip that can be archived, each with the time of its last step.
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
        // Most need not be parsed completely.
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

/// An issue and its index line if it were archived now; `None` if its folder is not in the tip.
fn archivable(
    tip: &Snapshot<'_>,
    key: &IssueKey,
    before: Moment,
) -> Result<Option<(IssueSummary, ArchivedIssue)>, LedgerError> {
    let line = line_of(tip, tip.commit(), key, before)?;
    let issue = tip.folder(key)?.issue()?;
    Ok(issue.as_ref().map(IssueSummary::from).zip(line))
}
