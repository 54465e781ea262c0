//! One commit at a time: what it claims to be, derived again and compared.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Audit, AuditScope, Part, unreadable};
use crate::finding::Finding;
use crate::git::{Change, Commit, Edit, EntryKind, ObjectId, Repository, Stored, Tree, to_second};
use crate::ids::{AgentName, IssueKey, quoted};
use crate::ledger::asked::{KnownRules, Shared, States, difference, issues_of, shared_of};
use crate::ledger::error::LedgerError;
use crate::ledger::layout;
use crate::ledger::planner::plan;
use crate::ledger::record::{Issue, Record};
use crate::ledger::shared::{Change as ProtocolStep, document_step, protocol_step};
use crate::ledger::snapshot::{IssueFolder, Parsed, Rules, Snapshot};
use crate::ledger::step::{Actor, Planned, Stop, View};

/// Audits commits, one after the other.
pub(super) struct Auditor<'r, 's> {
    repository: &'r Repository,
    scope: AuditScope<'s>,
    rules: KnownRules<'r>,
    parsed: Rc<Parsed>,
    pub(super) audit: Audit,
}

impl<'r, 's> Auditor<'r, 's> {
    pub(super) fn new(repository: &'r Repository, scope: AuditScope<'s>) -> Self {
        Self {
            repository,
            scope,
            rules: KnownRules::default(),
            parsed: Rc::new(Parsed::new()),
            audit: Audit::default(),
        }
    }

    fn report(&mut self, commit: ObjectId, finding: Finding) {
        self.audit.findings.push(finding.in_commit(commit));
    }

    pub(super) fn part(&mut self, part: &Part) {
        let mut before = part.before;
        for stored in part.commits.iter().rev() {
            if let Err(error) = self.check(stored, before) {
                self.report(stored.commit.id, unreadable(&error));
            }
            before = Some(stored.commit.tree);
        }
    }

    /// Checks a commit; `before` is its parent's tree.
    fn check(&mut self, stored: &Stored, before: Option<ObjectId>) -> Result<(), LedgerError> {
        let commit = &stored.commit;
        let id = commit.id;
        let tree = Tree::new(self.repository, commit.tree);
        // What a shallow clone begins with can't be compared with what was before.
        if commit.cut_off {
            return Ok(());
        }
        if commit.parents.is_empty() {
            self.audit.commits += 1;
            return self.founding(commit, tree);
        }
        // Where the parent is missing, history is broken, and that was said already.
        let Some(before) = before else {
            return Ok(());
        };
        let changes = tree.changes_since(Some(before), layout::is_failure_folder)?;
        let touched = issues_of(&changes);
        if !self.scope.covers(&touched) {
            return Ok(());
        }
        self.audit.commits += 1;
        if commit.parents.len() > 1 {
            let text = "a merge has no place in the ledger: its order is one line of steps";
            self.report(id, Finding::error("history.merge", "", text));
        }
        if touched.is_empty()
            && let Some(shared) = shared_of(&changes)
        {
            return self.shared(stored, before, &shared, &changes);
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
            self.report(id, Finding::error("step.none", path, text));
            return Ok(());
        };
        if let Some(other) = others {
            let text = format!("the commit changes issue {other} beside issue {key}");
            self.report(
                id,
                Finding::error("step.many", layout::issue_folder(&other), text),
            );
            return Ok(());
        }
        let old = Tree::new(self.repository, before);
        self.step(stored, old, tree, &key, &changes)
    }

    /// Checks the commit that starts the ledger.
    fn founding(&mut self, commit: &Commit, tree: Tree<'r>) -> Result<(), LedgerError> {
        let snapshot = Snapshot::at(self.repository, commit.id, "")?;
        let protocol = snapshot.manifest().default_protocol.to_string();
        self.rules_in(tree, &protocol)?;
        let folder = layout::protocol_file(&protocol, "");
        for change in tree.changes_since(None, layout::is_failure_folder)? {
            let expected = [layout::README, layout::MANIFEST].contains(&change.path.as_str())
                || change.path.starts_with(&folder);
            if !expected {
                let text = "a ledger starts without this file";
                self.report(commit.id, Finding::error("file.stray", change.path, text));
            } else if let Some(id) = change.new {
                self.readable(commit.id, &change.path, id);
            }
        }
        Ok(())
    }

    /// Checks a commit that changes a protocol in force or a shared document.
    fn shared(
        &mut self,
        stored: &Stored,
        before: ObjectId,
        shared: &Shared,
        changes: &[Change],
    ) -> Result<(), LedgerError> {
        let id = stored.commit.id;
        let old = Snapshot::in_tree(self.repository, before)?;
        let new = Tree::new(self.repository, stored.commit.tree);
        let (path, decided) = match shared {
            Shared::Protocol(name) => {
                let path = layout::protocol_file(name, layout::DEFINITION);
                let change = match old.rules_id(name)? {
                    Some(_) => ProtocolStep::Update,
                    None => ProtocolStep::Add,
                };
                let decided = Rules::read(self.repository, new, name)
                    .and_then(|rules| protocol_step(&old, &rules.files()?, change));
                (path, decided.map(|(step, _)| (step, None)))
            }
            Shared::Document(protocol, name) => {
                let path = layout::document(protocol, name);
                let bytes = new.file(&path)?.unwrap_or_default();
                let rules = self.rules_in(Tree::new(self.repository, before), protocol)?;
                let agent: Option<AgentName> = stored.commit.author.name.parse().ok();
                let decided = match &agent {
                    Some(agent) => document_step(&old, &rules, agent, name, &bytes),
                    None => Ok(None),
                };
                (path, decided.map(|step| (step, agent)))
            }
        };
        match decided {
            Ok((Some(step), agent)) => {
                self.compare(stored, agent.as_ref(), &step.files, &step.message, changes)
            }
            Ok((None, _)) => {
                let text = "the commit is not a step of any agent";
                self.report(id, Finding::error("step.none", path, text));
                Ok(())
            }
            Err(error) if error.is_unreadable() => Err(error),
            Err(error) => {
                let text = format!("no protocol allows this step: {error}");
                self.report(id, Finding::error("step.illegal", path, text));
                Ok(())
            }
        }
    }

    /// Reports a file whose object can't be read.
    fn readable(&mut self, commit: ObjectId, path: &str, id: ObjectId) {
        if let Err(source) = self.repository.blob(id) {
            let path = path.to_owned();
            self.report(commit, unreadable(&LedgerError::Object { path, source }));
        }
    }

    /// Reports a folder whose own object can't be read.
    fn listable(&mut self, commit: ObjectId, path: &str, id: ObjectId) {
        if let Err(source) = Tree::new(self.repository, id).list("") {
            let path = path.to_owned();
            self.report(commit, unreadable(&LedgerError::Object { path, source }));
        }
    }

    fn rules_in(&mut self, tree: Tree<'r>, name: &str) -> Result<Rc<Rules<'r>>, LedgerError> {
        self.rules.read(self.repository, tree, name)
    }

    /// Derives the step again and compares.
    fn step(
        &mut self,
        stored: &Stored,
        old: Tree<'r>,
        new: Tree<'r>,
        key: &IssueKey,
        changes: &[Change],
    ) -> Result<(), LedgerError> {
        let commit = &stored.commit;
        let before = IssueFolder::open(self.repository, old, key)?.remembering(&self.parsed);
        let after = IssueFolder::open(self.repository, new, key)?.remembering(&self.parsed);
        let (was, is) = (before.issue()?, after.issue()?);
        let Some(is) = is else {
            let text = "the issue's file is missing";
            self.report(
                commit.id,
                Finding::error("file.missing", layout::issue_file(key), text),
            );
            return Ok(());
        };
        let protocol = was
            .as_ref()
            .map_or(&is.protocol, |issue| &issue.protocol)
            .clone();
        let rules = self.rules_in(old, protocol.as_str())?;
        let states = States {
            was: was.as_ref(),
            is: &is,
            before: &before,
            after: &after,
        };
        let asked = match states.asked(&rules, changes)? {
            Ok(asked) => asked,
            Err(findings) => {
                for finding in findings {
                    self.report(commit.id, finding);
                }
                return Ok(());
            }
        };
        let actor = Actor {
            name: &asked.actor,
            at: to_second(commit.author.at),
        };
        let contract = match asked.sent() {
            Some(record) => after.object(&record.contract.file)?,
            None => None,
        };
        let view = Before {
            folder: &before,
            contract,
        };
        let planned = plan(rules.protocol(), key, &view, &actor, &asked.request());
        let step = match planned {
            Ok(Planned::Write(step)) => step,
            Ok(Planned::Repeat(_)) => {
                let text = "the step repeats one that the ledger already held";
                self.report(commit.id, Finding::error("step.repeated", asked.path, text));
                return Ok(());
            }
            Err(Stop::Refused(refusal)) => {
                let text = format!("no protocol allows this step: {refusal}");
                self.report(commit.id, Finding::error("step.illegal", asked.path, text));
                return Ok(());
            }
            Err(Stop::Unreadable(error)) => return Err(error),
        };
        let before = was.map_or(0, |issue| issue.handoffs);
        self.audit.handoffs += is.handoffs.saturating_sub(before) as usize;
        let actor = Some(&asked.actor);
        self.compare(stored, actor, &step.files, &step.message, changes)
    }

    /// Says whether a blob has these bytes; reports one that has their id and
    /// can't be read.
    fn holds(
        &mut self,
        commit: ObjectId,
        change: &Change,
        id: ObjectId,
        bytes: &[u8],
    ) -> Result<bool, LedgerError> {
        match self.repository.blob(id) {
            Ok(found) => Ok(*found == *bytes),
            Err(source) => {
                let right = ObjectId::of_blob(bytes)? == id;
                if right {
                    let path = change.path.clone();
                    self.report(commit, unreadable(&LedgerError::Object { path, source }));
                }
                Ok(right)
            }
        }
    }

    /// Compares a commit with the step that it should be.
    fn compare(
        &mut self,
        stored: &Stored,
        actor: Option<&AgentName>,
        files: &[(String, Edit)],
        told: &str,
        changes: &[Change],
    ) -> Result<(), LedgerError> {
        let commit = &stored.commit;
        let files = files.iter().map(|(path, edit)| (path.as_str(), edit));
        let mut expected: BTreeMap<&str, &Edit> = files.collect();
        for change in changes {
            let wanted = expected.remove(change.path.as_str());
            let right = match (wanted, change.new) {
                (Some(Edit::Gone), None) => true,
                (Some(Edit::Bytes(bytes)), Some(id)) if change.kind == EntryKind::File => {
                    self.holds(commit.id, change, id, bytes)?
                }
                (Some(Edit::Folder(tree)), Some(id)) if change.kind == EntryKind::Tree => {
                    self.listable(commit.id, &change.path, id);
                    *tree == id
                }
                _ => false,
            };
            if !right {
                self.report(commit.id, difference(change, wanted.is_some()));
            }
        }
        for (path, edit) in expected {
            let text = match edit {
                Edit::Bytes(_) | Edit::Folder(_) => "the step should have written this file",
                Edit::Gone => "the step should have removed this file",
            };
            self.report(commit.id, Finding::error("file.missing", path, text));
        }
        let (header, message) = stored.parts();
        // A signature is the only line that a step may have beside its own.
        let known = ["tree ", "parent ", "author ", "committer ", "gpgsig ", " "];
        let strange = header
            .lines()
            .find(|line| !known.iter().any(|start| line.starts_with(start)));
        if let Some(line) = strange {
            let text = format!("the commit has a header that no step has: {}", quoted(line));
            self.report(commit.id, Finding::error("commit.header", "", text));
        }
        let mut differs = |code: &'static str, text: String| {
            self.report(commit.id, Finding::error(code, "", text));
        };
        if message != told.as_bytes() {
            let text = "the message or its trailers do not tell what the step did";
            differs("commit.message", text.to_owned());
        }
        // What governs all issues is changed by whoever runs the program.
        let Some(actor) = actor else {
            return Ok(());
        };
        let email = format!("{actor}@handoff.invalid");
        if commit.author.name != actor.as_str() || commit.author.email != email {
            let text = format!(
                "the author is {} <{}>, and the step is {actor}'s",
                commit.author.name, commit.author.email
            );
            differs("commit.author", text);
        }
        Ok(())
    }
}

/// An issue before a step, where the object of the step's contract is known.
struct Before<'a> {
    folder: &'a IssueFolder<'a>,
    contract: Option<ObjectId>,
}

impl View<LedgerError> for Before<'_> {
    fn issue(&self) -> Result<Option<Issue>, LedgerError> {
        self.folder.issue()
    }

    fn record(&self, number: u32) -> Result<Option<Record>, LedgerError> {
        self.folder.record(number)
    }

    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, LedgerError> {
        match self.contract {
            Some(id) => Ok(self.folder.sent_as(id)),
            None => self.folder.sent_before(bytes),
        }
    }
}
