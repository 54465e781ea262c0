//! What an audit looks at, and what it found.

use std::collections::BTreeSet;

use handoff_base::finding::Finding;
use handoff_base::ids::IssueKey;
use handoff_base::{Moment, ObjectId};
use handoff_git::{Commit, Stored};
use handoff_model::layout;

use crate::error::LedgerError;
use crate::order;
use crate::tally::Tally;

/// How much of a ledger to audit; by default, all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditScope<'a> {
    /// Only the commits that touch this issue, or what all issues share.
    pub issue: Option<&'a IssueKey>,
    /// Only the commits after this one, which history must hold.
    pub since: Option<ObjectId>,
    /// Where the commits are counted that were audited.
    pub tally: Option<&'a Tally>,
}

impl AuditScope<'_> {
    /// Says whether commits that touch these issues are meant. What touches none is
    /// everyone's: it may have changed the rules.
    pub(super) fn covers(self, touched: &BTreeSet<IssueKey>) -> bool {
        self.issue
            .is_none_or(|key| touched.is_empty() || touched.contains(key))
    }
}

/// A stretch of history.
#[derive(Default)]
pub(super) struct Part {
    /// Its commits, the newest first.
    pub(super) commits: Vec<Stored>,
    /// The commit before the oldest of them, where that is known.
    pub(super) before: Option<Parent>,
}

/// What a commit's parent has to say of it.
#[derive(Clone, Copy)]
pub(super) struct Parent {
    /// Its tree.
    pub(super) tree: ObjectId,
    /// When it was recorded, where that binds those after it.
    pub(super) recorded: Option<Moment>,
}

impl Parent {
    pub(super) fn of(commit: &Commit) -> Self {
        Self {
            tree: commit.tree,
            recorded: order::recorded(commit),
        }
    }
}

/// What an audit found.
#[derive(Debug, Default)]
pub struct Audit {
    /// How many commits were checked.
    pub commits: usize,
    /// How many of them handed work on.
    pub handoffs: usize,
    /// The commit that the audit began at.
    pub tip: String,
    /// The commit after which it began; none where it began with the first.
    pub since: Option<String>,
    /// Whether older history is not in this clone.
    pub cut_off: bool,
    /// Every finding, in the order of history.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Says whether nothing speaks against the ledger.
    pub fn is_clean(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}

/// What can't be read is a finding.
pub(super) fn unreadable(error: &LedgerError) -> Finding {
    let mut text = match error {
        LedgerError::NotALedger { .. } => format!("{} is missing", layout::MANIFEST),
        _ => error.to_string(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text += &format!(": {source}");
        cause = source.source();
    }
    let path = match error {
        LedgerError::Missing { path }
        | LedgerError::Object { path, .. }
        | LedgerError::Stored { path, .. }
        | LedgerError::Schema { path, .. } => path.clone(),
        LedgerError::Protocol { name, .. } => layout::protocol_file(name, "protocol.json"),
        LedgerError::NotALedger { .. } => layout::MANIFEST.to_owned(),
        _ => String::new(),
    };
    let code = match error {
        error if error.is_left_out() => "object.left_out",
        LedgerError::Git(_) | LedgerError::Object { .. } => "object.unreadable",
        LedgerError::Missing { .. } | LedgerError::NotALedger { .. } => "file.missing",
        _ => "file.unreadable",
    };
    Finding::error(code, path, text)
}
