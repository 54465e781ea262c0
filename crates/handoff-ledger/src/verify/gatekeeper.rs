//! Checks for hooks: whether a commit that is about to be made is a legal step, and whether the
//! ledger's branch may move from one commit to another.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::{Moment, ObjectId};
use handoff_git::{GitError, Person, Repository};

use super::auditor::{Auditor, Candidate};
use super::scope::{Audit, AuditScope, Parent, unreadable};
use crate::error::LedgerError;

/// A commit that is about to be made on the ledger's branch.
pub struct NextCommit<'a> {
    /// Its parent; `None` if it starts the ledger.
    pub parent: Option<ObjectId>,
    /// Its tree, whose objects are in the repository.
    pub tree: ObjectId,
    /// Its author.
    pub author: &'a Person,
    /// Its committer, with the time of recording.
    pub committer: &'a Person,
    /// Its message, if it is written already.
    pub message: Option<&'a [u8]>,
}

impl NextCommit<'_> {
    /// Compares it with the step that git-handoff would make, by the reader's clock.
    ///
    /// # Errors
    /// [`LedgerError`] if its parent can't be read; anything else is a finding.
    pub fn findings(
        &self,
        repository: &Repository,
        now: Moment,
    ) -> Result<Vec<Finding>, LedgerError> {
        let mut auditor = Auditor::new(repository, AuditScope::whole(now));
        let candidate = Candidate {
            tree: self.tree,
            author: self.author,
            committer: Some(self.committer),
            message: self.message,
            made: None,
        };
        let judged = match self.parent {
            None => auditor.founding(&candidate),
            Some(parent) => {
                let before = Parent::read(repository, &repository.commit(parent)?, now)?;
                auditor.check(&candidate, before).map(drop)
            }
        };
        let mut findings = std::mem::take(&mut auditor.audit.findings);
        if let Err(error) = judged {
            findings.push(unreadable(&error));
        }
        if let Some(message) = auditor.message {
            let wanted = findings
                .iter_mut()
                .filter(|f| f.code == FindingCode::CommitMessage);
            wanted.for_each(|finding| {
                finding.fix = Some(format!(
                    "write exactly this:\n\n{}",
                    message.trim_end_matches('\n')
                ));
            });
        }
        Ok(findings)
    }
}

/// A move of the ledger's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchMove {
    /// Its current commit; `None` if it is being created.
    pub from: Option<ObjectId>,
    /// Its new commit; `None` if it is being deleted.
    pub to: Option<ObjectId>,
}

impl BranchMove {
    /// Findings against the move: it must continue the branch in one line, by valid steps.
    ///
    /// # Errors
    /// [`LedgerError`] if not even the list of commits can be read.
    pub fn findings(
        self,
        repository: &Repository,
        branch: &str,
        now: Moment,
        threads: usize,
    ) -> Result<Vec<Finding>, LedgerError> {
        let (from, to) = match (self.from, self.to) {
            (from, to) if from == to => return Ok(Vec::new()),
            (_, None) => {
                let text = format!("branch {branch} would be deleted, with everything it records");
                return Ok(vec![Finding::error(FindingCode::BranchDeleted, "", text)]);
            }
            (from, Some(to)) => (from, to),
        };
        if let Some(from) = from
            && let Some(finding) = rewritten(repository, branch, from, to)?
        {
            return Ok(vec![finding.in_commit(to)]);
        }
        let scope = AuditScope {
            since: from,
            ..AuditScope::whole(now)
        };
        Ok(Audit::run(repository, to, scope, threads)?.findings)
    }
}

/// The finding for a move that removes commits.
fn rewritten(
    repository: &Repository,
    branch: &str,
    from: ObjectId,
    to: ObjectId,
) -> Result<Option<Finding>, GitError> {
    if !repository.has(from) {
        let text = format!(
            "commit {} is not in this repository, where branch {branch} is: what follows it cannot be told",
            from.short()
        );
        return Ok(Some(Finding::error(FindingCode::BranchUnknown, "", text)));
    }
    let (ahead, behind) = repository.ahead_and_behind(to, from)?;
    let text = match behind {
        0 if is_on_line(repository, from, to, ahead)? => return Ok(None),
        0 => format!(
            "the steps up to {} would no longer be the line that branch {branch} follows",
            from.short()
        ),
        1 => format!(
            "step {} would be taken out of branch {branch}",
            from.short()
        ),
        _ => format!(
            "{behind} steps, the last one {}, would be taken out of branch {branch}",
            from.short()
        ),
    };
    Ok(Some(Finding::error(
        FindingCode::HistoryRewritten,
        "",
        text,
    )))
}

/// Whether a commit is on the first-parent line of another, within a limited distance.
fn is_on_line(
    repository: &Repository,
    from: ObjectId,
    to: ObjectId,
    ahead: usize,
) -> Result<bool, GitError> {
    for id in repository.first_parents(to).take(ahead + 1) {
        if id? == from {
            return Ok(true);
        }
    }
    Ok(false)
}
