//! The audit: runs every commit through [`plan`] again, on the tree of its parent, and compares the
//! result with the recorded one.
//!
//! A commit is checked only against its parent's tree. So damage is reported where it is and does
//! not spread, and history can be split among threads.

mod auditor;
mod gatekeeper;
mod ledger_audit;
mod scope;
mod tip;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use auditor::Auditor;
pub use gatekeeper::{BranchMove, NextCommit};
pub use scope::{Audit, AuditScope};
use scope::{Parent, Part};
use tip::Tip;

use super::error::LedgerError;
use super::tally::Work;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::{Moment, ObjectId};
use handoff_git::{GitError, Repository};

/// How many commits an auditor takes at once; the first parts are smaller, so that a short history
/// is shared too.
const PART: usize = 2048;

/// The size of the first part; each following one is twice as large.
const FIRST_PART: usize = 32;

impl Audit {
    /// Audits the history that ends in a commit, with this many threads.
    ///
    /// # Errors
    /// [`LedgerError`] if not even the list of commits can be read; all other damage is a finding.
    pub fn run(
        repository: &Repository,
        tip: ObjectId,
        scope: AuditScope<'_>,
        threads: usize,
    ) -> Result<Self, LedgerError> {
        let mut audit = Self {
            tip: tip.to_string(),
            since: scope.since.map(|id| id.to_string()),
            ..Self::default()
        };
        if let Some(tally) = scope.tally {
            tally.begin(Work::Verifying, None);
        }
        audit.cut_off = repository.is_cut_off(tip).unwrap_or_default();
        let parts = audit.in_parallel(tip, scope, threads.max(1))?;
        for part in parts {
            audit.commits += part.commits;
            audit.handoffs += part.handoffs;
            audit.findings.extend(part.findings);
            audit.scars.extend(part.scars);
        }
        // If every step from the first commit is valid, the tip is exactly their result. It needs a
        // separate check only after damage, or if the beginning of history is missing.
        if scope.since.is_none() && (audit.cut_off || !audit.findings.is_empty()) {
            let repository = Repository::open_for_history()?;
            for finding in Tip::new(&repository, tip, scope).findings() {
                // The tip has what an earlier commit did to a file, and is not to blame.
                let of_path = |f: &&Finding| !f.path.is_empty() && f.path == finding.path;
                let mut known = audit.findings.iter().filter(of_path).peekable();
                let is_earlier = |f: &Finding| f.is_error() && f.commit != finding.commit;
                let is_of_earlier = known.peek().is_some() && known.all(is_earlier);
                let is_known = |f: &Finding| {
                    (&f.code, &f.path, &f.commit) == (&finding.code, &finding.path, &finding.commit)
                };
                if !is_of_earlier && !audit.findings.iter().any(is_known) {
                    audit.findings.push(finding);
                }
            }
        }
        audit.forgive();
        Ok(audit)
    }

    /// Walks history on this thread and audits it on others at the same time. Returns their
    /// results, oldest part first.
    fn in_parallel(
        &mut self,
        tip: ObjectId,
        scope: AuditScope<'_>,
        threads: usize,
    ) -> Result<Vec<Self>, LedgerError> {
        let (send, receive) = mpsc::sync_channel(threads);
        // Each auditor owns the queue, so that it ends with the last of them.
        let queue = Arc::new(Mutex::new(receive));
        let audited = thread::scope(|scope_of_threads| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    let queue = Arc::clone(&queue);
                    scope_of_threads.spawn(move || -> Result<Vec<(usize, Self)>, GitError> {
                        // libgit2's handles must not be shared between threads.
                        let handle = Repository::open_for_history()?;
                        let mut auditor = Auditor::new(&handle, scope);
                        let mut audited = Vec::new();
                        loop {
                            let next = queue.lock().expect("an auditor does not panic").recv();
                            let Ok((number, part)) = next else {
                                return Ok(audited);
                            };
                            auditor.part(&part);
                            if let Some(tally) = scope.tally {
                                tally.add(part.commits.len());
                            }
                            audited.push((number, std::mem::take(&mut auditor.audit)));
                        }
                    })
                })
                .collect();
            drop(queue);
            let walked = Repository::open_for_history();
            if let Ok(repository) = &walked {
                self.walk(repository, tip, (scope.since, scope.now), &send);
            }
            drop(send);
            let audited = workers
                .into_iter()
                .map(|w| w.join().expect("an auditor does not panic"))
                .collect::<Result<Vec<_>, GitError>>();
            walked.and(audited)
        })?;
        let mut audited: Vec<_> = audited.into_iter().flatten().collect();
        audited.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        Ok(audited.into_iter().map(|(_, audit)| audit).collect())
    }

    /// Reads history from the tip and sends it off in parts.
    fn walk(
        &mut self,
        repository: &Repository,
        tip: ObjectId,
        (since, now): (Option<ObjectId>, Moment),
        send: &mpsc::SyncSender<(usize, Part)>,
    ) {
        let mut met = false;
        let mut part = Part::default();
        let mut number = 0;
        let mut most = FIRST_PART;
        for stored in repository.history(tip) {
            let stored = match stored {
                Ok(stored) => stored,
                Err(error) => {
                    let text = format!("history cannot be followed further: {error}");
                    let last = part.commits.last().map(|last| last.commit.id.to_string());
                    let finding = Finding::error(FindingCode::HistoryBroken, "", text);
                    let finding = finding.in_commit(last.unwrap_or_default());
                    self.findings.push(finding);
                    met = true;
                    break;
                }
            };
            let parent = || Parent::read(repository, &stored.commit, now).ok();
            if Some(stored.commit.id) == since {
                part.before = parent();
                met = true;
                break;
            }
            if part.commits.len() == most {
                part.before = parent();
                // An auditor that could not start reports that when it is joined.
                if send.send((number, std::mem::take(&mut part))).is_err() {
                    return;
                }
                number += 1;
                most = PART.min(2 * most);
            }
            met |= stored.commit.cut_off;
            part.commits.push(stored);
        }
        if let Some(since) = since.filter(|_| !met) {
            let text = format!(
                "commit {} is not in the history any more: the branch was rewritten",
                since.short()
            );
            let finding = Finding::error(FindingCode::HistoryRewritten, "", text);
            self.findings.push(finding.in_commit(tip));
        }
        let _ = send.send((number, part));
    }
}
