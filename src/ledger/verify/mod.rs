//! The audit: every commit is run through [`plan`] again, on the tree of its
//! parent, and compared with what the step would have written.
//!
//! A commit is checked against its parent's tree alone, so damage in one place
//! is reported there and does not spread, and history can be split among
//! threads.

mod auditor;
mod tip;

use std::collections::BTreeSet;
use std::thread;

use auditor::Auditor;
use tip::Tip;

use super::error::LedgerError;
use super::layout;
use crate::finding::Finding;
use crate::git::{ObjectId, Repository};
use crate::ids::IssueKey;

/// How much of a ledger to audit.
#[derive(Clone, Copy)]
pub enum AuditScope<'a> {
    /// All of it.
    All,
    /// The commits that touch one issue.
    Issue(&'a IssueKey),
}

impl AuditScope<'_> {
    fn covers(self, touched: &BTreeSet<IssueKey>) -> bool {
        match self {
            Self::All => true,
            Self::Issue(key) => touched.contains(key),
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
    /// Whether older history is not in this clone.
    pub cut_off: bool,
    /// Every finding, in the order of history.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Audits the history that ends in a commit, with this many threads.
    ///
    /// # Errors
    /// [`LedgerError`] when not even the list of commits can be read; all other
    /// damage is a finding.
    pub fn run(
        repository: &Repository,
        tip: ObjectId,
        scope: AuditScope<'_>,
        threads: usize,
    ) -> Result<Self, LedgerError> {
        let mut audit = Self {
            tip: tip.to_string(),
            ..Self::default()
        };
        let mut history = Vec::new();
        for id in repository.first_parents(tip) {
            match id {
                Ok(id) => history.push(id),
                Err(error) => {
                    let text = format!("history cannot be followed further: {error}");
                    let at = history.last().map(ToString::to_string).unwrap_or_default();
                    audit
                        .findings
                        .push(Finding::error("history.broken", "", text).in_commit(at));
                    break;
                }
            }
        }
        history.reverse();
        audit.cut_off = repository.is_shallow();

        let size = history.len().div_ceil(threads.max(1)).max(1);
        let parts: Vec<Result<Self, LedgerError>> = thread::scope(|scope_of_threads| {
            let chunks = history.chunks(size);
            let workers: Vec<_> = chunks
                .map(|chunk| {
                    // libgit2's handles belong to one thread each.
                    let handle = repository.reopen();
                    scope_of_threads.spawn(move || {
                        let handle = handle?;
                        let mut auditor = Auditor::new(&handle, scope);
                        chunk.iter().for_each(|&id| auditor.commit(id));
                        Ok(auditor.audit)
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|w| w.join().expect("an auditor does not panic"))
                .collect()
        });
        for part in parts {
            let part = part?;
            audit.commits += part.commits;
            audit.handoffs += part.handoffs;
            audit.findings.extend(part.findings);
        }
        // Where every step was legal from the first commit on, the tip is what
        // the steps made it. Only damage, or a beginning that is out of sight,
        // leaves something to find there.
        if audit.cut_off || !audit.findings.is_empty() {
            for finding in Tip::new(repository, tip, scope).findings() {
                let said = |f: &Finding| {
                    (&f.code, &f.path, &f.commit) == (&finding.code, &finding.path, &finding.commit)
                };
                if !audit.findings.iter().any(said) {
                    audit.findings.push(finding);
                }
            }
        }
        Ok(audit)
    }

    /// Says whether nothing speaks against the ledger.
    pub fn is_clean(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}

fn unreadable(error: &LedgerError) -> Finding {
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
        LedgerError::Git(_) | LedgerError::Object { .. } => "object.unreadable",
        LedgerError::Missing { .. } | LedgerError::NotALedger { .. } => "file.missing",
        _ => "file.unreadable",
    };
    Finding::error(code, path, text)
}
