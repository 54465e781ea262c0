//! Audits a ledger's branch and compares it with this clone's notes.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::thread;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::IssueKey;
use handoff_base::{Moment, ObjectId, to_second};
use handoff_git::Repository;
use handoff_model::{Scar, layout, trailers};

use super::auditor::Auditor;
use super::scope::{Audit, AuditScope};
use crate::archive_step::step_changes;
use crate::error::{DamageError, LedgerError, WriteError, brought_back};
use crate::ledger::Ledger;
use crate::memory::{Audited, LOOK_BACK};
use crate::quarantine::{Quarantine, quarantine_step};
use crate::session::Session;
use crate::snapshot::Snapshot;

/// The longest ledger, in commits, that a clone audits when it first gets it: 0.4 s, as `verify` of so
/// many takes (`docs/performance.md`).
const FIRST_AUDIT: usize = 1000;

impl Ledger<'_> {
    /// Audits the branch with this many threads, and reports if it lost commits that this clone
    /// saw. Notes what was found valid; with `anew`, also after the branch was rewritten.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no branch or not even the list of its commits can be read.
    pub fn audit(
        &self,
        scope: AuditScope<'_>,
        threads: usize,
        anew: bool,
    ) -> Result<Audit, LedgerError> {
        // Before the tip: a writer notes a commit only once the branch has it.
        let memory = self.memory();
        let noted = memory.seen();
        let tip = self.existing()?;
        let mut audit = Audit::run(self.repository(), tip, scope, threads)?;
        let is_rewritten = audit
            .findings
            .iter()
            .any(|f| f.code == FindingCode::HistoryRewritten);
        let seen = noted.filter(|_| !anew && !is_rewritten);
        if let Some(seen) = seen.filter(|seen| self.has_lost(tip, *seen)) {
            audit.findings.push(self.rewritten(tip, seen));
        }
        // An audit of one issue says nothing about the others.
        if audit.is_clean() && scope.issue.is_none() {
            // What another process noted meanwhile is newer.
            if memory.seen() == noted {
                memory.saw(tip);
            }
            // The part that was audited before counts as well.
            let covers_all = scope.since.is_none() || scope.since == self.verified();
            if covers_all && !audit.cut_off {
                memory.found_sound(tip);
                memory.sound_to(tip);
            }
        }
        Ok(audit)
    }

    /// Notes the result of an audit: of the whole ledger, or of a part with faults.
    pub fn note_audit(&self, audit: &Audit, scope: AuditScope<'_>, at: Moment) {
        let verified = self.verified();
        let faults = || audit.findings.iter().filter(|f| f.is_error());
        // The part that was verified before counts as well.
        let is_tip = |id: ObjectId| id.to_string() == audit.tip;
        let before = scope.since == verified || verified.is_some_and(is_tip);
        let covers_all = scope.issue.is_none() && (scope.since.is_none() || before);
        // Missing objects were not checked.
        if faults().any(|f| f.code == FindingCode::ObjectLeftOut)
            || !covers_all && faults().count() == 0
        {
            return;
        }
        self.memory()
            .note_audit(&Audited::of(audit.tip.clone(), at, &audit.findings));
    }

    /// The result of the last audit in this clone, if there was one.
    pub fn audited(&self) -> Option<Audited> {
        self.memory().audited()
    }

    /// Quarantines a commit that is not a step. Returns the later steps that are undone with it,
    /// and the new commit; `None` if it was quarantined already.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn quarantine(
        &mut self,
        session: &Session,
        request: &Quarantine,
    ) -> Result<(Vec<ObjectId>, Option<ObjectId>), LedgerError> {
        let commit = request.commit;
        self.mend(Some(commit))?;
        let written = self.write(session, |ledger, tip, at| {
            let scar = Scar {
                at,
                by: request.by.clone(),
                reason: request.reason.clone(),
                commit,
                undone: Vec::new(),
            };
            let (step, later) = quarantine_step(ledger.repository(), tip.commit(), &scar)?;
            if step.is_some() && !ledger.is_stray(commit, at)? {
                return Err(WriteError::NoStray(commit.short()).into());
            }
            if !later.is_empty() && !request.with_later {
                let later = later.iter().map(|id| id.short()).collect();
                return Err(WriteError::StoodOn {
                    commit: commit.short(),
                    later,
                }
                .into());
            }
            Ok((step, later))
        });
        self.mend(None)?;
        written
    }

    /// Whether a commit is not a step, so that it can be quarantined.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn is_stray(&self, commit: ObjectId, now: Moment) -> Result<bool, LedgerError> {
        Ok(!Auditor::faults(self.repository(), commit, now)?.is_empty())
    }

    /// Findings about the newest commits since the last one that this clone knows: that one is not
    /// a step, or that the branch was rewritten.
    fn strays(&self, now: Moment) -> Result<Vec<Finding>, LedgerError> {
        // Before the tip, as in `audit`.
        let seen = self.memory().seen();
        let tip = self.existing()?;
        let mut found = Vec::new();
        let history = |from| self.repository().first_parents(from).take(LOOK_BACK);
        let mut recent: Vec<ObjectId> = history(tip).collect::<Result<_, _>>()?;
        match recent.iter().position(|id| Some(*id) == seen) {
            Some(known) => recent.truncate(known),
            None => {
                // The ancestors of a distant commit are older than the recent ones here.
                let is_recent = |id: ObjectId| recent.contains(&id);
                let branched = |seen: ObjectId| history(seen).map_while(Result::ok).any(is_recent);
                // The repository has every commit that the branch reaches, unless history is cut
                // off.
                let is_gone = |seen| {
                    !self.repository().has(seen)
                        && matches!(self.repository().is_cut_off(tip), Ok(false))
                };
                let is_lost = |seen: &ObjectId| branched(*seen) || is_gone(*seen);
                found.extend(seen.filter(is_lost).map(|seen| self.rewritten(tip, seen)));
                recent.truncate(1);
            }
        }
        for id in recent {
            // Parsing a step's message costs a thousandth of replaying it, which `verify` does.
            let message = self.repository().commit(id)?.message;
            let says_its_step = trailers(&message).iter().any(|(name, _)| *name == "Event");
            if !says_its_step && !self.is_quarantined(tip, id) {
                found.extend(Auditor::faults(self.repository(), id, now)?);
            }
        }
        found.retain(is_certain);
        Ok(found)
    }

    fn is_quarantined(&self, tip: ObjectId, commit: ObjectId) -> bool {
        let tip = self.at(tip).ok();
        tip.is_some_and(|tip| {
            tip.manifest()
                .quarantined
                .iter()
                .any(|scar| scar.commit == commit)
        })
    }

    /// Notes the faults of commits since this clone last saw the branch. In a partial clone, which
    /// would have to fetch them, `verify` does that.
    pub(crate) fn notice_strays(&self, now: Moment) {
        if self.repository().is_partial() {
            return;
        }
        // A read error is reported where the data is needed.
        if let Ok(Some(damage)) = self.new_damage(now) {
            self.memory().note_audit(&damage);
        }
    }

    fn new_damage(&self, now: Moment) -> Result<Option<Audited>, LedgerError> {
        let found = self.strays(now)?;
        let Some(commit) = found.iter().find_map(|finding| finding.commit.clone()) else {
            return Ok(None);
        };
        Ok(Some(Audited::of(commit, now, &found)))
    }

    /// The known damage of the ledger, without an audit: from commits that are new to this clone,
    /// or from its last audit.
    pub fn damage(&self, tip: &Snapshot<'_>, now: Moment) -> Option<Audited> {
        let scars = &tip.manifest().quarantined;
        let is_there = |commit| self.repository().is_in_history(commit, tip.commit());
        let is_over = |known: &Audited| {
            let mut scars = scars.iter();
            scars.any(|scar| scar.commit.to_string() == known.commit)
                || known
                    .commit
                    .parse()
                    .is_ok_and(|id| matches!(is_there(id), Ok(false)))
        };
        let known = || {
            self.audited()
                .filter(|known| known.faults > 0 && !is_over(known))
        };
        self.new_damage(now).ok().flatten().or_else(known)
    }

    /// Why the records of an issue can't be trusted: a fault in its steps, or in those that all
    /// issues share. Audits only what no audit of this clone found sound before.
    ///
    /// # Errors
    /// [`LedgerError`] if not even the list of commits can be read.
    pub fn doubt(
        &self,
        tip: &Snapshot<'_>,
        key: &IssueKey,
        now: Moment,
    ) -> Result<Option<String>, LedgerError> {
        let seen = self.memory().seen();
        if let Some(lost) = seen.map(|seen| self.lost(seen)).transpose()?.flatten() {
            return Ok(Some(damaged(&lost, key)));
        }
        let audit = |scope| Audit::run(self.repository(), tip.commit(), scope, threads());
        let mut scope = AuditScope {
            since: self.below(tip.commit(), self.memory().sound())?,
            ..AuditScope::whole(now)
        };
        // What continues an audit is remembered, so each step is audited once. From the beginning,
        // those of one issue take a quarter of the time.
        let continued = scope.since.map(|_| audit(scope)).transpose()?;
        let audit = match continued.filter(Audit::is_clean) {
            Some(clean) => {
                if self.existing()? == tip.commit() {
                    self.memory().sound_to(tip.commit());
                }
                clean
            }
            None => {
                scope.issue = Some(key);
                audit(scope)?
            }
        };
        let changed = tip.changed_artifacts(Some(key))?;
        let mut faults = audit.findings.iter().chain(&changed);
        let first = faults.find(|finding| finding.is_error());
        Ok(first.map(|first| damaged(first, key)))
    }

    /// Audits a ledger that is new to this clone, so that what follows is checked from here on. A
    /// long one is left to `verify`.
    pub(crate) fn audit_first(&self, commits: usize, now: Moment) {
        if commits > FIRST_AUDIT || self.repository().is_partial() {
            return;
        }
        // A read error is reported where the data is needed.
        if let Ok(audit) = self.audit(AuditScope::whole(now), threads(), false) {
            self.note_audit(&audit, AuditScope::whole(now), now);
        }
    }

    /// Refuses to hand out what stands on a commit of others that is not a step: of this issue, or
    /// of the rules that all share. Each step is audited once, but after a commit that is not one
    /// again by each claim, until that is quarantined. If it is not known from where on the ledger
    /// is sound, nothing is audited.
    ///
    /// # Errors
    /// [`DamageError::NotSteps`] with the findings; [`LedgerError`] if not even the list of commits
    /// can be read.
    pub(crate) fn ensure_steps(
        &self,
        tip: &Snapshot<'_>,
        key: &IssueKey,
        now: Moment,
    ) -> Result<(), LedgerError> {
        let sound = self.below(tip.commit(), self.memory().sound())?;
        let sound = sound.filter(|id| *id != tip.commit() && !self.repository().is_partial());
        let Some(sound) = sound else {
            return Ok(());
        };
        let mut scope = AuditScope {
            since: Some(sound),
            ..AuditScope::whole(now)
        };
        if Audit::run(self.repository(), tip.commit(), scope, 1)?.is_clean() {
            if self.tip_id()? == Some(tip.commit()) && self.has_seen(tip.commit())? {
                self.memory().sound_to(tip.commit());
            }
            return Ok(());
        }
        scope.issue = Some(key);
        let mut findings = Audit::run(self.repository(), tip.commit(), scope, 1)?.findings;
        findings.retain(|one| is_certain(one) && self.concerns_readers(one).unwrap_or(true));
        let Some(first) = findings.first() else {
            return Ok(());
        };
        let commit = first.commit.clone().unwrap_or_default();
        self.memory()
            .note_audit(&Audited::of(commit, now, &findings));
        Err(DamageError::NotSteps {
            issue: key.clone(),
            findings,
        }
        .into())
    }

    /// The last commit of a history that is, or stands below, a noted one: `sync` makes offline steps
    /// again, so the noted one may be none of it any more.
    fn below(
        &self,
        tip: ObjectId,
        noted: Option<ObjectId>,
    ) -> Result<Option<ObjectId>, LedgerError> {
        let noted = noted.filter(|id| self.repository().has(*id));
        let common = noted.map(|noted| self.repository().common_ancestor(noted, tip));
        Ok(common.transpose()?.flatten())
    }

    /// The commit of a history after which somebody goes on who followed it up to another one: below
    /// that, if `sync` made it again.
    ///
    /// # Errors
    /// [`LedgerError`] if a commit can't be read.
    pub fn going_on_after(&self, commit: ObjectId, tip: ObjectId) -> Result<ObjectId, LedgerError> {
        if !self.has_seen(tip)? {
            return Ok(commit);
        }
        Ok(self.below(tip, Some(commit))?.unwrap_or(commit))
    }

    /// Whether what this clone last saw of the branch is in this history; else it was rewritten.
    fn has_seen(&self, tip: ObjectId) -> Result<bool, LedgerError> {
        Ok(match self.seen() {
            Some(seen) => self.repository().is_in_history(seen, tip)?,
            None => self.memory().seen().is_none(),
        })
    }

    /// Whether a fault is in something that commands read: not in a commit that changes the page for
    /// a browser alone, or adds a file that means nothing.
    fn concerns_readers(&self, fault: &Finding) -> Result<bool, LedgerError> {
        let Some(id) = fault.commit.as_deref().and_then(|id| id.parse().ok()) else {
            return Ok(true);
        };
        let commit = self.repository().commit(id)?;
        let [parent] = commit.parents[..] else {
            return Ok(true);
        };
        let before = self.repository().commit(parent)?.tree;
        let changes = step_changes(self.repository(), before, commit.tree)?;
        Ok(changes.iter().any(|change| layout::is_read(&change.path)))
    }

    /// Whether the tip lost a commit that this clone saw. In a shallow clone, missing commits don't
    /// count as lost.
    fn has_lost(&self, tip: ObjectId, seen: ObjectId) -> bool {
        let mut history = self.repository().first_parents(tip).map_while(Result::ok);
        !history.any(|id| id == seen) && matches!(self.repository().is_cut_off(tip), Ok(false))
    }

    /// The finding that the branch lost a commit, if it did.
    ///
    /// # Errors
    /// [`LedgerError`] if there is no branch.
    pub fn lost(&self, seen: ObjectId) -> Result<Option<Finding>, LedgerError> {
        let tip = self.existing()?;
        let is_lost = self.has_lost(tip, seen);
        Ok(is_lost.then(|| self.rewritten(tip, seen)))
    }

    fn rewritten(&self, tip: ObjectId, seen: ObjectId) -> Finding {
        let text = format!(
            "this clone saw the branch at commit {}, which is not in its history any more: commits were removed, or all of it was written anew",
            seen.short()
        );
        let mut before = self.repository().first_parents(seen).map_while(Result::ok);
        let fix = if before.any(|id| id == tip) {
            brought_back(self.branch(), tip, seen)
        } else {
            "compare with another clone; where it was meant to be, `git handoff verify --accept-rewritten`".to_owned()
        };
        let finding = Finding::error(FindingCode::HistoryRewritten, "", text).fix(fix);
        finding.in_commit(self.first_anew(tip, seen))
    }

    /// The first commit that was not there when this clone saw the branch; the tip if all were.
    fn first_anew(&self, tip: ObjectId, seen: ObjectId) -> ObjectId {
        let Ok(Some(common)) = self.repository().common_ancestor(tip, seen) else {
            return tip;
        };
        let history = self.repository().first_parents(tip).map_while(Result::ok);
        history.take_while(|id| *id != common).last().unwrap_or(tip)
    }

    /// The last commit of the branch that was written or found valid here, if the repository still
    /// has it.
    pub fn seen(&self) -> Option<ObjectId> {
        let seen = self.memory().seen();
        seen.filter(|id| self.repository().has(*id))
    }

    /// The commit up to which an audit found the ledger valid, if known. If the branch was
    /// rewritten since, it is not in its history.
    pub fn verified(&self) -> Option<ObjectId> {
        let noted = self.memory().verified();
        let verified = noted.filter(|id| self.repository().has(*id));
        let Ok(Some(tip)) = self.tip_id() else {
            return verified;
        };
        match self.has_seen(tip) {
            Ok(true) => self.below(tip, verified).ok().flatten(),
            _ => verified,
        }
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

/// Whether a fault is one wherever it is looked at. What can't be decided here, or by this clock, is
/// left to `verify`.
fn is_certain(finding: &Finding) -> bool {
    let unsure = [
        FindingCode::ObjectLeftOut,
        FindingCode::SignatureUnverified,
        FindingCode::StepPostdated,
    ];
    finding.is_error() && !unsure.contains(&finding.code)
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn damaged(finding: &Finding, key: &IssueKey) -> String {
    let message = &finding.message;
    format!("the ledger is damaged: {message}; see `git handoff verify {key}`")
}

impl Audited {
    fn of(commit: String, at: Moment, findings: &[Finding]) -> Self {
        let faults = || findings.iter().filter(|finding| finding.is_error());
        let codes: BTreeSet<&str> = faults().map(|fault| fault.code.as_str()).collect();
        Self {
            commit,
            at,
            faults: faults().count() as u64,
            codes: codes.iter().map(ToString::to_string).collect(),
        }
    }
}
