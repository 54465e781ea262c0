//! The scope and the result of an audit.

use std::collections::BTreeSet;

use handoff_base::explained::chain;
use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::ids::IssueKey;
use handoff_base::{Moment, ObjectId};
use handoff_git::{Commit, GitError, Repository, Stored};
use handoff_model::{Scar, layout};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{BranchError, DamageError, LedgerError};
use crate::order;
use crate::tally::Tally;

/// How much of a ledger to audit, and when.
#[derive(Clone, Copy, Debug)]
pub struct AuditScope<'a> {
    /// Only the commits that concern this issue, or files that all issues share.
    pub issue: Option<&'a IssueKey>,
    /// Only the commits after this one, which must be in the history.
    pub since: Option<ObjectId>,
    /// Counts the audited commits.
    pub tally: Option<&'a Tally>,
    /// The reader's time: dates more than a day later are not credible.
    pub now: Moment,
}

impl AuditScope<'_> {
    /// The whole ledger, as a reader at this time sees it.
    pub const fn whole(now: Moment) -> Self {
        Self {
            issue: None,
            since: None,
            tally: None,
            now,
        }
    }

    /// Whether commits that concern these issues are in scope. A commit that concerns no issue
    /// always is: it may have changed a protocol.
    pub(super) fn covers(self, touched: &BTreeSet<IssueKey>) -> bool {
        self.issue
            .is_none_or(|key| touched.is_empty() || touched.contains(key))
    }
}

/// A part of the history.
#[derive(Default)]
pub(super) struct Part {
    /// Its commits, the newest first.
    pub(super) commits: Vec<Stored>,
    /// The commit before the oldest of them, if known.
    pub(super) before: Option<Parent>,
}

/// The data of a parent that checking its child needs.
#[derive(Clone, Copy)]
pub(super) struct Parent {
    pub(super) id: ObjectId,
    pub(super) tree: ObjectId,
    /// The lower bound for the time of a later commit.
    pub(super) recorded: Option<Moment>,
}

impl Parent {
    /// Makes a commit the parent of the next one; `before` is its own parent.
    pub(super) fn after(commit: &Commit, before: Option<Self>, now: Moment) -> Self {
        let own = order::recorded(commit).filter(|at| !order::is_postdated(*at, now));
        Self {
            id: commit.id,
            tree: commit.tree,
            recorded: own.or(before.and_then(|before| before.recorded)),
        }
    }

    pub(super) fn read(
        repository: &Repository,
        commit: &Commit,
        now: Moment,
    ) -> Result<Self, GitError> {
        let recorded = order::recorded(commit);
        Ok(Self {
            id: commit.id,
            tree: commit.tree,
            recorded: order::limit_after(repository, commit.id, recorded, now)?,
        })
    }
}

/// The result of an audit.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Audit {
    /// How many commits were checked.
    pub commits: usize,
    /// How many handoffs were sent in them.
    pub handoffs: usize,
    /// The newest of them.
    pub tip: String,
    /// The commit after which it started, with `--since` and `--incremental`; null if it started with
    /// the first.
    pub since: Option<String>,
    /// Older history is not in this clone, and was not checked.
    pub cut_off: bool,
    /// Every finding, in the order of history; in an answer without an error, those that are not
    /// errors.
    pub findings: Vec<Finding>,
    /// The commits that sound steps quarantined, each with its scar.
    #[serde(skip)]
    pub(super) scars: Vec<(ObjectId, Scar)>,
}

impl Audit {
    /// Replaces the findings about a quarantined commit by a note.
    pub(super) fn forgive(&mut self) {
        let of = |id: &ObjectId| Some(id.to_string());
        for (step, scar) in std::mem::take(&mut self.scars) {
            let mut findings = self.findings.iter();
            if findings.any(|f| f.is_error() && f.commit == of(&step)) {
                continue;
            }
            let Scar {
                at,
                by,
                reason,
                commit,
                undone,
            } = &scar;
            let taken: Vec<_> = std::iter::once(commit).chain(undone).map(of).collect();
            self.findings
                .retain(|finding| !taken.contains(&finding.commit));
            let later = match undone.len() {
                0 => String::new(),
                n => format!("; undone with it: {n} that stood on it"),
            };
            let text =
                format!("no step of the ledger, quarantined by {by} at {at}: {reason}{later}");
            let mut note =
                Finding::error(FindingCode::HistoryQuarantined, "", text).in_commit(commit);
            note.severity = Severity::Note;
            self.findings.push(note);
        }
    }

    /// Whether there are no errors.
    pub fn is_clean(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}

/// The finding for something unreadable.
pub(super) fn unreadable(error: &LedgerError) -> Finding {
    let text = match error {
        LedgerError::Branch(BranchError::NotALedger(_)) => {
            format!("{} is missing", layout::MANIFEST)
        }
        _ => chain(error),
    };
    let path = match error {
        LedgerError::Damage(
            DamageError::Missing(path)
            | DamageError::Object { path, .. }
            | DamageError::Stored { path, .. }
            | DamageError::Schema { path, .. },
        ) => path.clone(),
        LedgerError::Damage(DamageError::Protocol { name, .. }) => {
            layout::protocol_file(name, "protocol.json")
        }
        LedgerError::Branch(BranchError::NotALedger(_)) => layout::MANIFEST.to_owned(),
        _ => String::new(),
    };
    let code = match error {
        error if error.is_left_out() => FindingCode::ObjectLeftOut,
        LedgerError::Git(_) | LedgerError::Damage(DamageError::Object { .. }) => {
            FindingCode::ObjectUnreadable
        }
        LedgerError::Damage(DamageError::Missing(_))
        | LedgerError::Branch(BranchError::NotALedger(_)) => FindingCode::FileMissing,
        _ => FindingCode::FileUnreadable,
    };
    Finding::error(code, path, text)
}
