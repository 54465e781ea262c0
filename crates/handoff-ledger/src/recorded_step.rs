//! The step that a commit records: the request, the agent and the time from its message, the
//! contract and its evidence from its tree. The audit plans it again, an export writes it, and
//! `sync` repeats it on another tip.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use handoff_base::ObjectId;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_contract::Input;
use handoff_git::{Change, EntryKind, Repository, Tree};
use handoff_model::open_entry::id_in;
use handoff_model::{
    Contract, ImportSource, Issue, Manifest, Record, Request, Review, SendRequest, Step, View,
    layout, record, review_imported,
};
use handoff_protocol::Policy;

use super::error::LedgerError;
use super::snapshot::{IssueFolder, Parsed, Rules};

/// A step as a commit records it.
#[doc(hidden)]
pub struct RecordedStep {
    /// The step.
    pub step: Step,
    /// The file that defines most of it.
    pub(super) path: String,
    /// The contract that it sent, and the handoff that it started.
    pub sent: Option<(Contract, Rc<Record>)>,
}

impl RecordedStep {
    /// The contract that it sent, with this policy for contradicted statements.
    pub(super) fn contract(&self, policy: Policy) -> Option<SendRequest<'_>> {
        let (contract, record) = self.sent.as_ref()?;
        Some(SendRequest {
            contract,
            code: record.code.as_ref(),
            artifacts: &record.artifacts,
            policy,
        })
    }
}

/// An issue before and after a commit.
#[doc(hidden)]
pub struct States<'r> {
    /// The issue before, if it existed.
    pub(super) was: Option<Rc<Issue>>,
    /// The issue after it.
    pub is: Rc<Issue>,
    pub(super) before: IssueFolder<'r>,
    pub(super) after: IssueFolder<'r>,
    /// The issue's protocol before the commit.
    pub(super) rules: Rc<Rules<'r>>,
}

/// A commit's step, or the findings if it is not one.
type Recorded = Result<RecordedStep, Vec<Finding>>;

impl States<'_> {
    /// The step that a commit with this message records, or why there is none.
    ///
    /// # Errors
    /// [`LedgerError`] if a file of the issue can't be read.
    pub fn recorded_step(&self, message: &str) -> Result<Recorded, LedgerError> {
        let step = match handoff_model::recorded(message) {
            Ok(step) => step,
            Err(why) => {
                let text = format!("the message does not tell a step: {why}");
                let finding = Finding::error(FindingCode::CommitMessage, "", text);
                return Ok(Err(vec![finding]));
            }
        };
        let key = self.after.key();
        let (path, sent) = match &step.request {
            Request::Send(options) => match self.sent(options.imported.as_ref())? {
                Ok((mut contract, record, path)) => {
                    contract
                        .allowed_secrets
                        .clone_from(&options.allowed_secrets);
                    (path, Some((contract, record)))
                }
                Err(findings) => return Ok(Err(findings)),
            },
            Request::Update(update) => match update.handoff() {
                Some(number) => {
                    let id = HandoffId::new(key.clone(), number);
                    (layout::record_file(&id), None)
                }
                None => (layout::issue_file(key), None),
            },
        };
        Ok(Ok(RecordedStep { step, path, sent }))
    }

    /// The number of handoffs before the commit.
    pub fn handoffs_before(&self) -> u32 {
        self.was.as_ref().map_or(0, |issue| issue.handoffs)
    }

    /// The findings about a contract that a commit adds; they need no message.
    pub(super) fn contract_faults(&self) -> Result<Vec<Finding>, LedgerError> {
        if self.is.handoffs <= self.handoffs_before() {
            return Ok(Vec::new());
        }
        let sent = self.sent(None)?;
        Ok(sent.err().unwrap_or_default())
    }

    /// The contract that a commit adds, or the findings about it.
    fn sent(
        &self,
        imported: Option<&ImportSource>,
    ) -> Result<Result<SentContract, Vec<Finding>>, LedgerError> {
        let (rules, key) = (&*self.rules, self.after.key());
        let number = self.handoffs_before() + 1;
        let path = layout::record_file(&HandoffId::new(key.clone(), number));
        let Some(record) = self.after.shared_record(number)? else {
            let finding = Finding::error(FindingCode::FileMissing, path, "the record is missing");
            return Ok(Err(vec![finding]));
        };
        let bytes = self.after.contract(&record)?;
        let Review {
            findings, contract, ..
        } = review_imported(
            rules.protocol(),
            rules,
            &Input::read(&bytes),
            Some(key),
            imported,
        )?;
        Ok(match contract {
            Some(contract) => Ok((contract, record, path)),
            None => {
                let file = layout::in_issue(key, &record.contract.file);
                let errors = findings.into_iter().filter(Finding::is_error);
                let found = errors.map(|finding| {
                    let text = format!("{}: {}", finding.path, finding.message);
                    let mut found = Finding::error(finding.code, file.clone(), text);
                    (found.line, found.column) = (finding.line, finding.column);
                    found
                });
                Err(found.collect())
            }
        })
    }
}

/// A contract that a commit adds, with its handoff's record and the record's path.
type SentContract = (Contract, Rc<Record>, String);

/// Reads what steps depend on during a walk through history: issues, protocols and manifests, each
/// parsed once.
#[doc(hidden)]
pub struct StepReader<'r> {
    repository: &'r Repository,
    parsed: Rc<Parsed>,
    protocols: HashMap<ObjectId, Rc<Rules<'r>>>,
    manifests: HashMap<ObjectId, (Policy, AgentName)>,
}

impl<'r> StepReader<'r> {
    /// Reads through this handle.
    pub fn new(repository: &'r Repository) -> Self {
        Self {
            repository,
            parsed: Rc::new(Parsed::new()),
            protocols: HashMap::new(),
            manifests: HashMap::new(),
        }
    }

    /// An issue before and after a commit with these trees; `None` if its file is missing
    /// afterwards.
    ///
    /// # Errors
    /// [`LedgerError`] if the issue or its protocol can't be read.
    pub fn states(
        &mut self,
        key: &IssueKey,
        old: Tree<'r>,
        new: Tree<'r>,
    ) -> Result<Option<States<'r>>, LedgerError> {
        let before = IssueFolder::open(self.repository, old, key)?.remembering(&self.parsed);
        let after = IssueFolder::open(self.repository, new, key)?.remembering(&self.parsed);
        let (was, Some(is)) = (before.shared_issue()?, after.shared_issue()?) else {
            return Ok(None);
        };
        let protocol = &was.as_ref().unwrap_or(&is).protocol;
        let rules = self.rules(old, protocol.as_str())?;
        Ok(Some(States {
            was,
            is,
            before,
            after,
            rules,
        }))
    }

    pub(super) fn rules(
        &mut self,
        tree: Tree<'r>,
        name: &str,
    ) -> Result<Rc<Rules<'r>>, LedgerError> {
        let path = layout::protocol_file(name, "");
        let path = path.trim_end_matches('/').to_owned();
        let (_, id) = tree.entry(&path)?.ok_or(LedgerError::missing(path))?;
        if let Some(rules) = self.protocols.get(&id) {
            return Ok(Rc::clone(rules));
        }
        let rules = Rc::new(Rules::read(self.repository, tree, name)?);
        self.protocols.insert(id, Rc::clone(&rules));
        Ok(rules)
    }

    /// The policy for contradicted statements in a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] when its manifest is missing or can't be read.
    pub(super) fn policy(&mut self, tree: Tree<'r>) -> Result<Policy, LedgerError> {
        Ok(self.manifest(tree)?.0)
    }

    /// The default protocol of a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] when it, or the manifest, is missing or can't be read.
    pub(super) fn default_rules(&mut self, tree: Tree<'r>) -> Result<Rc<Rules<'r>>, LedgerError> {
        let name = self.manifest(tree)?.1.clone();
        self.rules(tree, name.as_str())
    }

    fn manifest(&mut self, tree: Tree<'r>) -> Result<&(Policy, AgentName), LedgerError> {
        let path = layout::MANIFEST;
        let missing = || LedgerError::missing(path.to_owned());
        let (_, id) = tree.entry(path)?.ok_or_else(missing)?;
        match self.manifests.entry(id) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let manifest: Manifest = record::read(&self.repository.blob(id)?)
                    .map_err(|error| LedgerError::stored(path, error))?;
                Ok(new.insert((manifest.evidence, manifest.default_protocol)))
            }
        }
    }
}

/// How a file differs from the one that a step writes.
pub(super) fn difference(change: &Change, expected: bool) -> Finding {
    let path = &change.path;
    let contract = path.contains("-to-") && path.starts_with(layout::ISSUES);
    let code = match () {
        () if !expected && change.old.is_none() => FindingCode::FileStray,
        () if contract => FindingCode::ContractAltered,
        () if layout::is_kept_folder(path) => FindingCode::FailureAltered,
        () if [layout::OPEN, layout::AWAITING]
            .iter()
            .any(|f| path.starts_with(f)) =>
        {
            FindingCode::OpenStale
        }
        () if path.ends_with("/issue.json") => FindingCode::IssueAltered,
        () if path.starts_with(layout::ISSUES) => FindingCode::RecordAltered,
        () => FindingCode::FileAltered,
    };
    let text = match (expected, change.new) {
        (_, Some(_)) if change.kind == EntryKind::Other => {
            "the file is executable, a link or a module, not a plain file"
        }
        (true, Some(_)) => "the file does not say what the step says",
        (true, None) => "the step should have kept this file",
        (false, Some(_)) => "the step has no business with this file",
        (false, None) => "the step should not have removed this file",
    };
    Finding::error(code, path.clone(), text)
}

/// A part of the ledger outside issues that a commit changes.
pub(super) enum Shared {
    Protocol(String),
    Document(String, AgentName),
    /// The halts, or the default protocol.
    Manifest,
}

/// The only shared part that the changes concern.
pub(super) fn shared_of(changes: &[Change]) -> Option<Shared> {
    let first = changes.first()?.path.as_str();
    if changes.len() == 1 && first == layout::MANIFEST {
        return Some(Shared::Manifest);
    }
    let all_in = |folder: &str| changes.iter().all(|c| c.path.starts_with(folder));
    let mut parts = first.split('/');
    let (top, name) = (parts.next()?, parts.next()?);
    if top == layout::PROTOCOLS && all_in(&layout::protocol_file(name, "")) {
        return Some(Shared::Protocol(name.to_owned()));
    }
    let document = parts.next()?.strip_suffix(".json")?.parse().ok()?;
    let only = changes.len() == 1 && first == layout::document(name, &document);
    (top == layout::DOCUMENTS && only).then(|| Shared::Document(name.to_owned(), document))
}

pub(super) fn issues_of(changes: &[Change]) -> BTreeSet<IssueKey> {
    let mut found = BTreeSet::new();
    // Most paths are in the folder of the same issue.
    let mut folder = None;
    for Change { path, .. } in changes {
        let is_inside = |folder: &String| path.starts_with(folder);
        if folder.as_ref().is_some_and(is_inside) {
            continue;
        }
        if let Some(key) = issue_of_path(path) {
            folder = Some(layout::in_issue(&key, ""));
            found.insert(key);
        }
    }
    found
}

fn issue_of_path(path: &str) -> Option<IssueKey> {
    let listed = path
        .rsplit_once('/')
        .filter(|(folder, _)| layout::is_divided(folder));
    if let Some((_, name)) = listed {
        return id_in(name).map(|id| id.issue().clone());
    }
    if let Some(key) = layout::paused_at(path) {
        return Some(key);
    }
    let key: IssueKey = path
        .strip_prefix("issues/")?
        .split('/')
        .nth(2)?
        .parse()
        .ok()?;
    let inside = path.strip_prefix(layout::issue_folder(&key).as_str())?;
    (inside.is_empty() || inside.starts_with('/')).then_some(key)
}
