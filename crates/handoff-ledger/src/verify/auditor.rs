//! Audits one commit at a time: derives its step again and compares.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::text::quoted;
use handoff_base::{Edit, Moment, ObjectId, to_second};
use handoff_contract::Input;
use handoff_git::{Change, EntryKind, MOST_ENTRIES, Person, Repository, Stored, Tree, blob_id};
use handoff_model::{
    DaySpending, Halt, Issue, Planned, PlannedStep, ProtocolScope, Record, Scar, Stop, View,
    archived_before, layout, plan,
};
use handoff_protocol::{Event, Policy};

use super::scope::{Audit, AuditScope, Parent, Part, unreadable};
use crate::archive_step::{ArchiveStep, archive_step_of, derived, step_changes};
use crate::authority::with_recorded_policies;
use crate::default_protocol::{default_step, new_default};
use crate::draft::Draft;
use crate::error::{DamageError, LedgerError, WriteError};
use crate::evidence::again;
use crate::founding::first_message;
use crate::halt::{HaltChange, halt_step};
use crate::order;
use crate::origin::without_origin;
use crate::protocol_store::{PutMode, document_step, protocol_step};
use crate::quarantine::{quarantine_step, scar_of};
use crate::recorded_step::{
    RecordedStep, Shared, States, StepReader, difference, issues_of, shared_of,
};
use crate::session::agent_of;
use crate::signing::{Demand, judge};
use crate::snapshot::{IssueFolder, Rules, SHAPE, Snapshot, archived_in};

/// A commit to compare with the expected step: one of the history, or one that is about to be made.
pub(super) struct Candidate<'a> {
    pub(super) tree: ObjectId,
    /// The author of the step, with its time.
    pub(super) author: &'a Person,
    /// The committer, with the time of recording, if known.
    pub(super) committer: Option<&'a Person>,
    pub(super) message: Option<&'a [u8]>,
    /// The commit itself with its signature, if it exists already.
    pub(super) made: Option<&'a Stored>,
}

impl<'a> Candidate<'a> {
    fn of(stored: &'a Stored) -> Self {
        Self {
            tree: stored.commit.tree,
            author: &stored.commit.author,
            committer: Some(&stored.commit.committer),
            message: Some(stored.message()),
            made: Some(stored),
        }
    }
}

/// Audits a sequence of commits.
pub(super) struct Auditor<'r, 's> {
    repository: &'r Repository,
    scope: AuditScope<'s>,
    reader: StepReader<'r>,
    current: Option<ObjectId>,
    /// Whether quarantined commits are audited, too.
    looks_at_strays: bool,
    /// The expected message of the last commit, if it differs.
    pub(super) message: Option<String>,
    pub(super) audit: Audit,
}

impl<'r, 's> Auditor<'r, 's> {
    pub(super) fn new(repository: &'r Repository, scope: AuditScope<'s>) -> Self {
        Self {
            repository,
            scope,
            reader: StepReader::new(repository),
            current: None,
            looks_at_strays: true,
            message: None,
            audit: Audit::default(),
        }
    }

    /// The findings about a commit that has a parent.
    pub(super) fn faults(
        repository: &Repository,
        commit: ObjectId,
        now: Moment,
    ) -> Result<Vec<Finding>, LedgerError> {
        let mut auditor = Auditor::new(repository, AuditScope::whole(now));
        auditor.looks_at_strays = false;
        let stored = repository.history(commit).next().transpose()?;
        let Some(stored) = stored.filter(|stored| !stored.commit.cut_off) else {
            return Ok(Vec::new());
        };
        let parent = stored
            .commit
            .parents
            .first()
            .map(|id| repository.commit(*id));
        let parent = parent.transpose()?;
        let before = parent.map(|parent| Parent::read(repository, &parent, now));
        auditor.part(&Part {
            before: before.transpose()?,
            commits: vec![stored],
        });
        Ok(auditor.audit.findings)
    }

    fn report(&mut self, finding: Finding) {
        self.audit.findings.push(match self.current {
            Some(commit) => finding.in_commit(commit),
            None => finding,
        });
    }

    pub(super) fn part(&mut self, part: &Part) {
        let mut before = part.before;
        for stored in part.commits.iter().rev() {
            self.current = Some(stored.commit.id);
            if let Err(error) = self.commit(stored, before) {
                self.report(unreadable(&error));
            }
            before = Some(Parent::after(&stored.commit, before, self.scope.now));
        }
    }

    fn commit(&mut self, stored: &Stored, before: Option<Parent>) -> Result<(), LedgerError> {
        let commit = &stored.commit;
        // The first commits of a shallow clone can't be compared with their parents.
        if commit.cut_off {
            return Ok(());
        }
        if commit.parents.is_empty() {
            self.audit.commits += 1;
            self.signature(stored, None, String::new());
            self.form(stored);
            let misdated = order::misdated(&commit.committer, self.scope.now);
            misdated
                .into_iter()
                .for_each(|finding| self.report(finding));
            return self.founding(&Candidate::of(stored));
        }
        // A missing parent means broken history, which was already reported.
        let Some(before) = before else {
            return Ok(());
        };
        if self.check(&Candidate::of(stored), before)? && commit.parents.len() > 1 {
            let text = "a merge has no place in the ledger: its order is one line of steps";
            self.report(Finding::error(FindingCode::HistoryMerge, "", text));
        }
        Ok(())
    }

    /// Compares a commit with the expected step, if it is in scope; returns whether it is.
    pub(super) fn check(
        &mut self,
        candidate: &Candidate<'_>,
        before: Parent,
    ) -> Result<bool, LedgerError> {
        let changes = step_changes(self.repository, before.tree, candidate.tree)?;
        let touched = issues_of(&changes);
        if !self.scope.covers(&touched) {
            return Ok(false);
        }
        self.audit.commits += 1;
        let place = match touched.first() {
            Some(key) => layout::issue_file(key),
            None => changes.first().map(|c| c.path.clone()).unwrap_or_default(),
        };
        let scar = scar_of(self.repository, (before.tree, candidate.tree), &changes);
        let expected = match archive_step_of(&changes) {
            _ if let Some(scar) = &scar => self.quarantine(candidate, before, scar)?,
            Some(step) => self.archive(candidate, before, &step, &changes)?,
            None => self.expected(candidate, before.tree, touched, &changes)?,
        };
        let previous = expected.as_ref().and_then(|e| e.previous);
        if let Some(made) = candidate.made {
            let demand = expected.as_ref().and_then(|e| e.demand.as_ref());
            self.signature(made, demand, place.clone());
            self.form(made);
        }
        self.times(candidate, before.recorded, previous, place);
        if let Some(expected) = expected {
            self.compare(candidate, before.tree, &expected, &changes)?;
        }
        Ok(true)
    }

    /// The step that quarantines a commit.
    fn quarantine(
        &mut self,
        candidate: &Candidate<'_>,
        before: Parent,
        scar: &Scar,
    ) -> Result<Option<Draft>, LedgerError> {
        let decided = quarantine_step(self.repository, before.id, scar);
        let is_dated = to_second(scar.at) == to_second(candidate.author.at);
        let (code, text) = match decided {
            Ok((Some(_), _))
                if self.looks_at_strays
                    && Self::faults(self.repository, scar.commit, scar.at)?.is_empty() =>
            {
                let refused = WriteError::NoStray(scar.commit.short());
                (
                    FindingCode::StepIllegal,
                    format!("no protocol allows this step: {refused}"),
                )
            }
            Ok((Some(step), _)) if is_dated => {
                let id = candidate.made.map(|made| made.commit.id);
                self.audit.scars.extend(id.map(|id| (id, scar.clone())));
                return Ok(Some(step));
            }
            Ok(_) => {
                let text = "the commit is not a step of any agent".to_owned();
                (FindingCode::StepNone, text)
            }
            Err(error) if error.is_unreadable() => return Err(error),
            Err(error @ LedgerError::Write(WriteError::CutOff(_))) => {
                (FindingCode::ObjectLeftOut, error.to_string())
            }
            Err(error) => (
                FindingCode::StepIllegal,
                format!("no protocol allows this step: {error}"),
            ),
        };
        self.report(Finding::error(code, layout::MANIFEST, text));
        Ok(None)
    }

    /// Reports a commit that is not stored like a step.
    fn form(&mut self, made: &Stored) {
        if let Some(line) = made.difference() {
            let text = format!(
                "the commit is not in a step's canonical form: {}",
                quoted(&line)
            );
            self.report(Finding::error(FindingCode::CommitHeader, "", text));
        }
    }

    /// Reports the faults of a commit's signature.
    fn signature(&mut self, made: &Stored, demand: Option<&Demand>, place: String) {
        if let Some(mut finding) = judge(self.repository, made, demand) {
            finding.path = place;
            if matches!(
                finding.code,
                FindingCode::SignatureMissing
                    | FindingCode::SignatureUnknown
                    | FindingCode::SignatureOtherAgent
                    | FindingCode::SignatureNotValid
            ) {
                finding.fix = Some("find out who made the commit".to_owned());
            }
            self.report(finding);
        }
    }

    /// Reports decreasing times. `parent` is the recording of the parent, `previous` the time of
    /// the issue's previous step.
    fn times(
        &mut self,
        candidate: &Candidate<'_>,
        parent: Option<Moment>,
        previous: Option<Moment>,
        place: String,
    ) {
        let Some(committer) = candidate.committer else {
            return;
        };
        if let Some(finding) = order::misdated(committer, self.scope.now) {
            self.report(Finding {
                path: place.clone(),
                ..finding
            });
        }
        let (at, recorded) = (to_second(candidate.author.at), to_second(committer.at));
        if order::is_postdated(at, recorded) {
            let text = format!("the step is dated {at}, and was recorded {recorded}");
            self.report(Finding::error(
                FindingCode::StepPostdated,
                place.clone(),
                text,
            ));
        }
        let text = match (parent, previous) {
            (Some(parent), _) if recorded < parent => {
                format!("the commit is dated {recorded}, and the one before it {parent}")
            }
            (_, Some(previous)) if order::is_backdated(at, Some(previous), recorded, parent) => {
                format!("the step is dated {at}, and the one before it in its issue {previous}")
            }
            _ => return,
        };
        self.report(Finding::error(FindingCode::StepBackdated, place, text));
    }

    /// The expected step of a commit; `None` if it can't be a step.
    fn expected(
        &mut self,
        candidate: &Candidate<'_>,
        before: ObjectId,
        touched: BTreeSet<IssueKey>,
        changes: &[Change],
    ) -> Result<Option<Draft>, LedgerError> {
        if touched.is_empty()
            && let Some(shared) = shared_of(changes)
        {
            return self.shared(candidate, before, &shared, changes);
        }
        let mut keys = touched.into_iter();
        let (key, others) = (keys.next(), keys.next());
        let Some(key) = key else {
            let path = changes.first().map(|c| c.path.clone()).unwrap_or_default();
            let text = if changes.is_empty() {
                "the commit changes nothing"
            } else {
                "the commit is not a step: it changes no issue"
            };
            self.report(Finding::error(FindingCode::StepNone, path, text));
            return Ok(None);
        };
        if let Some(other) = others {
            let text = format!("the commit changes issue {other} beside issue {key}");
            let folder = layout::issue_folder(&other);
            self.report(Finding::error(FindingCode::StepMany, folder, text));
            return Ok(None);
        }
        self.step(candidate, before, &key, changes)
    }

    /// Checks the commit that starts the ledger.
    pub(super) fn founding(&mut self, candidate: &Candidate<'_>) -> Result<(), LedgerError> {
        let snapshot = Snapshot::in_tree(self.repository, candidate.tree)?;
        let tree = Tree::new(self.repository, candidate.tree);
        let protocol = snapshot.manifest().default_protocol.to_string();
        self.reader.rules(tree, &protocol)?;
        let folder = layout::protocol_file(&protocol, "");
        let changes = tree.changes_since(None, SHAPE, MOST_ENTRIES)?;
        let known = self.audit.findings.len();
        for change in &changes {
            let path = change.path.clone();
            let expected = [layout::README, layout::MANIFEST].contains(&path.as_str())
                || path.starts_with(&folder);
            if !expected {
                let text = "a ledger starts without this file";
                self.report(Finding::error(FindingCode::FileStray, path, text));
            } else if let Some(id) = change.new {
                self.readable(&path, id);
            }
        }
        if self.audit.findings.len() == known {
            self.tree(candidate.tree, None, &changes)?;
        }
        self.author(candidate, None);
        let message = first_message(&snapshot.manifest().default_protocol);
        self.told(candidate, &message);
        Ok(())
    }

    /// The step of a commit that changes a protocol in force or a shared document.
    fn shared(
        &mut self,
        candidate: &Candidate<'_>,
        before: ObjectId,
        shared: &Shared,
        changes: &[Change],
    ) -> Result<Option<Draft>, LedgerError> {
        let old = Snapshot::in_tree(self.repository, before)?;
        let new = Tree::new(self.repository, candidate.tree);
        let (path, decided) = match shared {
            Shared::Protocol(name) => {
                let definition = layout::protocol_file(name, layout::DEFINITION);
                let own = changes.iter().find(|change| change.path == definition);
                let path = own
                    .or(changes.first())
                    .map_or(definition, |c| c.path.clone());
                let change = PutMode::of(&old, name)?;
                let by = agent_of(candidate.author);
                let decided = Rules::read(self.repository, new, name)
                    // A weaker one says so in its message, which is compared.
                    .and_then(|rules| {
                        let files = rules.files()?;
                        let by = (true, by.as_ref());
                        protocol_step(&old, &files, change, by, ProtocolScope::OnRecord)
                    });
                let as_recorded = |step: Draft| match candidate.message {
                    Some(recorded) => Draft {
                        message: with_recorded_policies(step.message, recorded),
                        ..step
                    },
                    None => step,
                };
                (path, decided.map(|(step, _)| step.map(as_recorded)))
            }
            Shared::Document(protocol, name) => {
                let path = layout::document(protocol, name);
                let bytes = new.file(&path)?.unwrap_or_default();
                let rules = self
                    .reader
                    .rules(Tree::new(self.repository, before), protocol)?;
                let agent: Option<AgentName> = candidate.author.name.parse().ok();
                let decided = match &agent {
                    Some(agent) => document_step(&old, &rules, agent, name, &Input::read(&bytes)),
                    None => Ok(None),
                };
                (path, decided)
            }
            Shared::Manifest => {
                let after = Snapshot::in_tree(self.repository, candidate.tree)?;
                let decided = self.of_manifest(candidate, (&old, &after));
                (layout::MANIFEST.to_owned(), decided)
            }
        };
        match decided {
            Ok(Some(step)) => Ok(Some(step)),
            Ok(None) => {
                let text = "the commit is not a step of any agent";
                self.report(Finding::error(FindingCode::StepNone, path, text));
                Ok(None)
            }
            Err(error) if error.is_unreadable() => Err(error),
            Err(error) => {
                let text = format!("no protocol allows this step: {error}");
                self.report(Finding::error(FindingCode::StepIllegal, path, text));
                Ok(None)
            }
        }
    }

    /// The step of a commit that changes the manifest.
    fn of_manifest(
        &self,
        candidate: &Candidate<'_>,
        (old, new): (&Snapshot<'_>, &Snapshot<'_>),
    ) -> Result<Option<Draft>, LedgerError> {
        if let Some(name) = new_default(old.manifest(), new.manifest()) {
            let by = agent_of(candidate.author);
            // A weaker one says so in its message, which is compared.
            let (step, _) = default_step(old, name.as_str(), (true, by.as_ref()))?;
            return Ok(step);
        }
        let change = HaltChange::between(old.manifest(), new.manifest());
        let own = |change: &HaltChange| to_second(change.at) == to_second(candidate.author.at);
        match change.filter(own) {
            Some(change) => Ok(halt_step(old, &change)?.0),
            None => Ok(None),
        }
    }

    /// The step of a commit that changes the archive.
    fn archive(
        &mut self,
        candidate: &Candidate<'_>,
        before: Parent,
        step: &ArchiveStep,
        changes: &[Change],
    ) -> Result<Option<Draft>, LedgerError> {
        let old = Snapshot::in_tree(self.repository, before.tree)?;
        let message = candidate.message.map(String::from_utf8_lossy);
        let stated = message.and_then(|message| archived_before(&message));
        let made_at = to_second(candidate.author.at);
        let (code, text) = match derived(&old, before.id, step, made_at, stated) {
            Ok(Some(step)) => return Ok(Some(step)),
            Ok(None) => {
                let text = "the commit changes the archive, and neither archives issues nor brings one back";
                (FindingCode::StepNone, text.to_owned())
            }
            Err(error) if error.is_unreadable() => return Err(error),
            Err(error) => {
                let text = format!("no step archives this: {error}");
                (FindingCode::StepIllegal, text)
            }
        };
        let path = match step {
            ArchiveStep::Unarchive(key) => layout::issue_folder(key),
            _ => changes.first().map(|c| c.path.clone()).unwrap_or_default(),
        };
        self.report(Finding::error(code, path, text));
        Ok(None)
    }

    /// Reports a file if its object can't be read.
    fn readable(&mut self, path: &str, id: ObjectId) {
        if let Err(source) = self.repository.blob(id) {
            let path = path.to_owned();
            self.report(unreadable(&DamageError::Object { path, source }.into()));
        }
    }

    /// Reports a folder if its object can't be read.
    fn listable(&mut self, path: &str, id: ObjectId) {
        if let Err(source) = self.repository.ensure_tree(id) {
            let path = path.to_owned();
            self.report(unreadable(&DamageError::Object { path, source }.into()));
        }
    }

    /// Derives an issue's step again.
    fn step(
        &mut self,
        candidate: &Candidate<'_>,
        before: ObjectId,
        key: &IssueKey,
        changes: &[Change],
    ) -> Result<Option<Draft>, LedgerError> {
        let old = Tree::new(self.repository, before);
        let new = Tree::new(self.repository, candidate.tree);
        let Some(states) = self.reader.states(key, old, new)? else {
            let text = "the issue's file is missing";
            let file = layout::issue_file(key);
            self.report(Finding::error(FindingCode::FileMissing, file, text));
            return Ok(None);
        };
        if states.was.is_none() && archived_in(old, key)?.is_some() {
            let text = "the issue is archived: a step on it brings its folder back first";
            let file = layout::issue_file(key);
            self.report(Finding::error(FindingCode::StepIllegal, file, text));
            return Ok(None);
        }
        let Some(message) = candidate.message else {
            for finding in states.contract_faults()? {
                self.report(finding);
            }
            return Ok(None);
        };
        let recorded = match states.recorded_step(&String::from_utf8_lossy(message))? {
            Ok(recorded) => recorded,
            Err(findings) => {
                // Without a step, no file has a reason to change.
                let none = [FindingCode::CommitMessage, FindingCode::FileMissing];
                if findings.iter().any(|f| none.contains(&f.code)) {
                    let all = changes.iter().map(|change| difference(change, false));
                    all.for_each(|finding| self.report(finding));
                }
                findings
                    .into_iter()
                    .for_each(|finding| self.report(finding));
                return Ok(None);
            }
        };
        let policy = self.reader.policy(old)?;
        let at = recorded.step.at;
        if to_second(at) != to_second(candidate.author.at) {
            let dated = to_second(candidate.author.at);
            let text = format!("the step is of {at}, and its commit is dated {dated}");
            self.report(Finding::error(FindingCode::CommitMessage, "", text));
        }
        if let Some(update) = recorded.step.request.update()
            && update.event() == Some(Event::Expire)
            && let (Some(number), Some(committer)) = (update.handoff(), candidate.committer)
            && let Some(record) = states.before.shared_record(number)?
            && let Err(refusal) = order::ensure_ran_out(&record, at, to_second(committer.at))
        {
            let text = format!("no protocol allows this step: {refusal}");
            self.report(Finding::error(
                FindingCode::StepIllegal,
                recorded.path,
                text,
            ));
            return Ok(None);
        }
        let step = match planned(&states, &recorded, policy)? {
            Ok(step) => step,
            Err(finding) => {
                self.report(finding);
                return Ok(None);
            }
        };
        self.evidence(&states, &recorded, &step.receipt.record)?;
        let default = match states.was {
            Some(_) => None,
            None => Some(self.reader.default_rules(old)?),
        };
        let started = states.is.handoffs.saturating_sub(states.handoffs_before());
        self.audit.handoffs += started as usize;
        let draft = Draft::of(&states.rules, default.as_deref(), recorded.step, *step)?;
        Ok(Some(draft.0))
    }

    /// Reports the checks of a sent contract that are recorded as passed but fail.
    fn evidence(
        &mut self,
        states: &States<'_>,
        recorded: &RecordedStep,
        record: &Record,
    ) -> Result<(), LedgerError> {
        if let Some((contract, _)) = &recorded.sent
            && !record.evidence.is_empty()
        {
            let held = match &record.follows {
                Some(id) => states.before.shared_record(id.number())?,
                None => None,
            };
            let (protocol, held) = (states.rules.protocol(), held.as_deref());
            let path = &recorded.path;
            let found = again(self.repository, protocol, contract, record, held, path)?;
            found.into_iter().for_each(|finding| self.report(finding));
        }
        Ok(())
    }

    /// Whether a blob has these bytes; reports an unreadable blob with their id.
    fn holds(&mut self, change: &Change, id: ObjectId, bytes: &[u8]) -> Result<bool, LedgerError> {
        match self.repository.derived_blob(id) {
            Ok(found) => Ok(*found == *bytes),
            Err(source) => {
                let right = blob_id(bytes, id.format())? == id;
                if right {
                    let path = change.path.clone();
                    self.report(unreadable(&DamageError::Object { path, source }.into()));
                }
                Ok(right)
            }
        }
    }

    /// Compares a commit with the expected step.
    fn compare(
        &mut self,
        candidate: &Candidate<'_>,
        before: ObjectId,
        expected: &Draft,
        changes: &[Change],
    ) -> Result<(), LedgerError> {
        let known = self.audit.findings.len();
        let files = expected
            .files
            .iter()
            .map(|(path, edit)| (path.as_str(), edit));
        let mut files: BTreeMap<&str, &Edit> = files.collect();
        for change in changes {
            let wanted = files.remove(change.path.as_str());
            let right = match (wanted, change.new) {
                (Some(Edit::Gone), None) => true,
                (Some(Edit::Bytes(bytes)), Some(id)) if change.kind == EntryKind::File => {
                    self.holds(change, id, bytes)?
                }
                (Some(Edit::Folder(tree)), Some(id)) if change.kind == EntryKind::Tree => {
                    self.listable(&change.path, id);
                    *tree == id
                }
                _ => false,
            };
            if !right {
                self.report(difference(change, wanted.is_some()));
            }
        }
        for (path, edit) in files {
            let text = match edit {
                Edit::Bytes(_) | Edit::Folder(_) => "the step should have written this file",
                Edit::Gone => "the step should have removed this file",
            };
            self.report(Finding::error(FindingCode::FileMissing, path, text));
        }
        if self.audit.findings.len() == known {
            self.tree(candidate.tree, Some(before), changes)?;
        }
        self.told(candidate, &expected.message);
        self.author(candidate, expected.author.as_ref());
        Ok(())
    }

    /// Reports a tree with the step's files that is stored differently from how a step writes it.
    fn tree(
        &mut self,
        tree: ObjectId,
        before: Option<ObjectId>,
        changes: &[Change],
    ) -> Result<(), LedgerError> {
        if let Some(path) = Tree::new(self.repository, tree).difference(before, changes, SHAPE)? {
            let text = "no step writes its folders like this";
            self.report(Finding::error(FindingCode::CommitTree, path, text));
        }
        Ok(())
    }

    /// Reports a message other than the step's.
    fn told(&mut self, candidate: &Candidate<'_>, wanted: &str) {
        let format = self.repository.format();
        let is_other = |m| without_origin(m, format) != wanted.as_bytes();
        if candidate.message.is_some_and(is_other) {
            let text = "the message or its trailers do not tell what the step did";
            self.report(Finding::error(FindingCode::CommitMessage, "", text));
            self.message = Some(wanted.to_owned());
        }
    }

    /// Reports an author other than the step's agent. Changes outside issues have the person who
    /// runs the program as author.
    fn author(&mut self, candidate: &Candidate<'_>, actor: Option<&AgentName>) {
        let (name, email) = (&candidate.author.name, &candidate.author.email);
        let whose = match (actor, candidate.committer) {
            (Some(actor), _) => {
                if name == actor.as_str() && *email == format!("{actor}@handoff.invalid") {
                    return;
                }
                format!("the step is {actor}'s")
            }
            (None, Some(person)) if (name, email) != (&person.name, &person.email) => {
                format!("{} <{}> made the commit", person.name, person.email)
            }
            (None, _) => return,
        };
        let text = format!("the author is {name} <{email}>, and {whose}");
        self.report(Finding::error(FindingCode::CommitAuthor, "", text));
    }
}

/// Plans a recorded step again, or finds why it was illegal.
fn planned(
    states: &States<'_>,
    recorded: &RecordedStep,
    policy: Policy,
) -> Result<Result<Box<PlannedStep>, Finding>, LedgerError> {
    let contract = match &recorded.sent {
        Some((_, record)) => states.after.object(&record.contract.file)?,
        None => None,
    };
    let view = Before {
        folder: &states.before,
        contract,
    };
    let (protocol, key) = (states.rules.protocol(), states.after.key());
    let contract = recorded.contract(policy);
    let planned = plan(protocol, key, &view, &recorded.step, contract.as_ref());
    let proved = planned.and_then(|mut planned| {
        if let (Planned::Write(step), Some((_, record))) = (&mut planned, &recorded.sent) {
            step.prove(record.evidence.clone())?;
        }
        Ok(planned)
    });
    let (code, text) = match proved {
        Ok(Planned::Write(step)) => return Ok(Ok(step)),
        Ok(Planned::Repeat(_)) => (
            FindingCode::StepRepeated,
            "the step repeats one that the ledger already held".to_owned(),
        ),
        Err(Stop::Refused(refusal)) => (
            FindingCode::StepIllegal,
            format!("no protocol allows this step: {refusal}"),
        ),
        Err(Stop::Unreadable(error)) => return Err(error),
    };
    Ok(Err(Finding::error(code, recorded.path.clone(), text)))
}

/// An issue before a step. If the object of the step's contract is known, earlier handoffs with the
/// same contract are found by its id.
struct Before<'a> {
    folder: &'a IssueFolder<'a>,
    contract: Option<ObjectId>,
}

impl View<LedgerError> for Before<'_> {
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, LedgerError> {
        self.folder.shared_issue()
    }

    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, LedgerError> {
        self.folder.shared_record(number)
    }

    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, LedgerError> {
        match self.contract {
            Some(id) => Ok(self.folder.sent_as(id)),
            None => self.folder.sent_before(bytes),
        }
    }

    fn twin(&self) -> Result<Option<IssueKey>, LedgerError> {
        self.folder.twin()
    }

    fn spent_on(&self, day: &str) -> Result<Option<DaySpending>, LedgerError> {
        self.folder.spent_on(day)
    }

    fn ended(&self, key: &IssueKey) -> Result<Option<bool>, LedgerError> {
        self.folder.ended(key)
    }

    fn halts(&self) -> Result<Vec<Halt>, LedgerError> {
        self.folder.halts()
    }

    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, LedgerError> {
        self.folder.contract(record)
    }
}
