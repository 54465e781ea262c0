//! An audit of a ledger's branch, beside what this clone remembers of it.

use std::collections::BTreeSet;

use handoff_base::finding::Finding;
use handoff_base::{Moment, ObjectId, to_second};
use handoff_git::Repository;

use super::scope::{Audit, AuditScope};
use crate::error::LedgerError;
use crate::memory::Audited;
use crate::write::Ledger;

impl Ledger<'_> {
    /// Audits the branch with this many threads, and reports it where it no longer
    /// holds what this clone saw of it. What was found sound is remembered;
    /// `anew`, also where the branch was rewritten.
    ///
    /// # Errors
    /// [`LedgerError`] when there is no branch, or not even the list of its
    /// commits can be read.
    pub fn audit(
        &self,
        scope: AuditScope<'_>,
        threads: usize,
        anew: bool,
    ) -> Result<Audit, LedgerError> {
        let tip = self.existing()?;
        let memory = self.memory();
        let mut audit = Audit::run(self.repository(), tip, scope, threads)?;
        let told = audit.findings.iter().any(|f| f.code == "history.rewritten");
        let seen = memory.seen().filter(|_| !anew && !told);
        if let Some(seen) = seen.filter(|seen| self.has_lost(tip, *seen)) {
            let text = format!(
                "this clone saw the branch at commit {}, which is not in its history any more: commits were removed, or all of it was written anew",
                seen.short()
            );
            let fix = "compare with another clone; where it was meant to be, `git handoff verify --accept-rewritten`";
            let finding = Finding::error("history.rewritten", "", text).fix(fix);
            audit.findings.push(finding.in_commit(tip));
        }
        // An audit of one issue vouches for no other.
        if audit.is_clean() && scope.issue.is_none() {
            memory.saw(tip);
            // What was audited before is part of the whole.
            let whole = scope.since.is_none() || scope.since == memory.verified();
            if whole && !audit.cut_off {
                memory.found_sound(tip);
            }
        }
        Ok(audit)
    }

    /// Notes what an audit found, for whoever counts it: of the whole ledger, or of
    /// a part where something is wrong.
    pub fn note_audit(&self, audit: &Audit, scope: AuditScope<'_>, at: Moment) {
        let verified = self.memory().verified();
        let faults = || audit.findings.iter().filter(|f| f.is_error());
        // What was verified before is part of the whole.
        let is_tip = |id: ObjectId| id.to_string() == audit.tip;
        let before = scope.since == verified || verified.is_some_and(is_tip);
        let whole = scope.issue.is_none() && (scope.since.is_none() || before);
        // What is not here was not judged.
        if faults().any(|f| f.code == "object.left_out") || !whole && faults().count() == 0 {
            return;
        }
        let codes: BTreeSet<String> = faults().map(|f| f.code.to_string()).collect();
        self.memory().note_audit(&Audited {
            commit: audit.tip.clone(),
            at,
            faults: faults().count() as u64,
            codes: codes.into_iter().collect(),
        });
    }

    /// What the last audit in this clone found, if there was one.
    pub fn audited(&self) -> Option<Audited> {
        self.memory().audited()
    }

    /// Says whether a commit that this clone saw is not behind the tip any more.
    /// What a shallow clone doesn't hold can't be told.
    fn has_lost(&self, tip: ObjectId, seen: ObjectId) -> bool {
        let mut history = self.repository().first_parents(tip).map_while(Result::ok);
        !history.any(|id| id == seen) && matches!(self.repository().is_cut_off(tip), Ok(false))
    }

    /// The last commit of the branch that was written here or found sound, where
    /// the repository still has it.
    pub fn seen(&self) -> Option<ObjectId> {
        let seen = self.memory().seen();
        seen.filter(|id| self.repository().has(*id))
    }

    /// The commit up to which an audit found the ledger sound, if it is known.
    pub fn verified(&self) -> Option<ObjectId> {
        let verified = self.memory().verified();
        verified.filter(|id| self.repository().has(*id))
    }

    /// The newest commit that was recorded before a time; none if all are later.
    ///
    /// # Errors
    /// [`LedgerError`] when history can't be read that far.
    pub fn last_before(&self, time: Moment) -> Result<Option<ObjectId>, LedgerError> {
        for stored in self.repository().history(self.existing()?) {
            let commit = stored?.commit;
            if to_second(commit.committer.at) < time {
                return Ok(Some(commit.id));
            }
        }
        Ok(None)
    }

    /// The commit that this names, if it is one of a ledger.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be looked up.
    pub fn commit_named(&self, text: &str) -> Result<Option<ObjectId>, LedgerError> {
        let repository: &Repository = self.repository();
        let Some(id) = repository.commit_named(text)? else {
            return Ok(None);
        };
        Ok(self.at(id).ok().map(|_| id))
    }
}
