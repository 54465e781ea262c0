//! Audits a ledger's branch and compares it with what this clone remembers of it.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::{Moment, ObjectId, to_second};
use handoff_git::Repository;

use super::scope::{Audit, AuditScope};
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::memory::Audited;

impl Ledger<'_> {
    /// Audits the branch with this many threads, and reports if it lost commits that this clone
    /// saw. Remembers what was found valid; with `anew`, also after the branch was rewritten.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no branch or not even the list of its commits can be read.
    pub fn audit(
        &self,
        scope: AuditScope<'_>,
        threads: usize,
        anew: bool,
    ) -> Result<Audit, LedgerError> {
        let tip = self.existing()?;
        let memory = self.memory();
        let mut audit = Audit::run(self.repository(), tip, scope, threads)?;
        let is_rewritten = audit
            .findings
            .iter()
            .any(|f| f.code == FindingCode::HistoryRewritten);
        let seen = memory.seen().filter(|_| !anew && !is_rewritten);
        if let Some(seen) = seen.filter(|seen| self.has_lost(tip, *seen)) {
            let text = format!(
                "this clone saw the branch at commit {}, which is not in its history any more: commits were removed, or all of it was written anew",
                seen.short()
            );
            let fix = "compare with another clone; where it was meant to be, `git handoff verify --accept-rewritten`";
            let finding = Finding::error(FindingCode::HistoryRewritten, "", text).fix(fix);
            audit.findings.push(finding.in_commit(tip));
        }
        // An audit of one issue says nothing about the others.
        if audit.is_clean() && scope.issue.is_none() {
            memory.saw(tip);
            // The part that was audited before counts as well.
            let covers_all = scope.since.is_none() || scope.since == memory.verified();
            if covers_all && !audit.cut_off {
                memory.found_sound(tip);
            }
        }
        Ok(audit)
    }

    /// Notes the result of an audit for later reports: of the whole ledger, or of a part that has
    /// faults.
    pub fn note_audit(&self, audit: &Audit, scope: AuditScope<'_>, at: Moment) {
        let verified = self.memory().verified();
        let faults = || audit.findings.iter().filter(|f| f.is_error());
        // The part that was verified before counts as well.
        let is_tip = |id: ObjectId| id.to_string() == audit.tip;
        let before = scope.since == verified || verified.is_some_and(is_tip);
        let covers_all = scope.issue.is_none() && (scope.since.is_none() || before);
        // Objects that are not here were not checked.
        if faults().any(|f| f.code == FindingCode::ObjectLeftOut)
            || !covers_all && faults().count() == 0
        {
            return;
        }
        let codes: BTreeSet<&str> = faults().map(|f| f.code.as_str()).collect();
        self.memory().note_audit(&Audited {
            commit: audit.tip.clone(),
            at,
            faults: faults().count() as u64,
            codes: codes.iter().map(ToString::to_string).collect(),
        });
    }

    /// The result of the last audit in this clone, if there was one.
    pub fn audited(&self) -> Option<Audited> {
        self.memory().audited()
    }

    /// Whether the tip no longer contains a commit that this clone saw. In a shallow clone, missing
    /// commits don't count as lost.
    fn has_lost(&self, tip: ObjectId, seen: ObjectId) -> bool {
        let mut history = self.repository().first_parents(tip).map_while(Result::ok);
        !history.any(|id| id == seen) && matches!(self.repository().is_cut_off(tip), Ok(false))
    }

    /// The last commit of the branch that was written or found valid here, if the repository still
    /// has it.
    pub fn seen(&self) -> Option<ObjectId> {
        let seen = self.memory().seen();
        seen.filter(|id| self.repository().has(*id))
    }

    /// The commit up to which an audit found the ledger valid, if known.
    pub fn verified(&self) -> Option<ObjectId> {
        let verified = self.memory().verified();
        verified.filter(|id| self.repository().has(*id))
    }

    /// The newest commit recorded before a time; `None` if all are later.
    ///
    /// # Errors
    /// [`LedgerError`] if history can't be read that far.
    pub fn last_before(&self, time: Moment) -> Result<Option<ObjectId>, LedgerError> {
        for stored in self.repository().history(self.existing()?) {
            let commit = stored?.commit;
            if to_second(commit.committer.at) < time {
                return Ok(Some(commit.id));
            }
        }
        Ok(None)
    }

    /// The commit that a text names, if it belongs to a ledger.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be looked up.
    pub fn commit_named(&self, text: &str) -> Result<Option<ObjectId>, LedgerError> {
        let repository: &Repository = self.repository();
        let Some(id) = repository.commit_named(text)? else {
            return Ok(None);
        };
        Ok(self.at(id).ok().map(|_| id))
    }
}
