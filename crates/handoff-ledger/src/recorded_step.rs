//! Reads the step that a commit records from the states before and after it: the agent and the
//! request. The audit plans it again and compares, an export writes it down, and `sync` repeats it
//! on another tip.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use chrono::{DateTime, FixedOffset};
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff_base::{ObjectId, to_second};
use handoff_contract::Input;
use handoff_git::{Change, EntryKind, Repository, Tree};
use handoff_model::open_entry::id_in;
use handoff_model::{
    Contract, Delivery, Issue, Manifest, ModelUsage, Record, Request, Review, SendRequest,
    TraceParent, Update, View, layout, record, recorded_change, recorded_update, review_imported,
};
use handoff_protocol::{Event, Policy};

use super::error::LedgerError;
use super::snapshot::{IssueFolder, Parsed, Rules};

/// A step as a commit records it.
pub(super) struct RecordedStep {
    /// The agent that made the step.
    pub(super) actor: AgentName,
    /// The worker that made it as that agent, if it changed or approved a handoff.
    pub(super) worker: Option<WorkerId>,
    pub(super) path: String,
    pub(super) request: RecordedRequest,
    /// The trace that it belongs to, if it changed a handoff's state.
    pub(super) traceparent: Option<TraceParent>,
    /// What the work took, as far as it was reported with the step.
    pub(super) usage: Vec<ModelUsage>,
    /// The outside event that it carried out.
    pub(super) delivery: Option<Delivery>,
}

/// An owned [`Request`].
pub(super) enum RecordedRequest {
    /// A contract was sent, which started this handoff.
    Sent(Box<Contract>, Rc<Record>),
    /// Anything else.
    Update(Update),
}

impl RecordedStep {
    /// The handoff that the commit started, if it sent a contract.
    pub(super) fn sent(&self) -> Option<&Record> {
        match &self.request {
            RecordedRequest::Sent(_, record) => Some(record),
            RecordedRequest::Update(_) => None,
        }
    }

    /// The request, in a ledger with this policy for contradicted statements.
    pub(super) fn request(&self, policy: Policy) -> Request<'_> {
        match &self.request {
            RecordedRequest::Sent(contract, record) => Request::Send(SendRequest {
                contract,
                code: record.code.as_ref(),
                artifacts: &record.artifacts,
                evidence: Some(&record.evidence),
                policy,
                answers: record.answers.as_ref().map(HandoffId::number),
                replaces: record.replaces.as_ref().map(HandoffId::number),
                token: None,
            }),
            RecordedRequest::Update(update) => Request::Update(update),
        }
    }
}

/// An issue before and after a commit.
pub(super) struct States<'r> {
    /// The issue before, if it was opened.
    pub(super) was: Option<Rc<Issue>>,
    pub(super) is: Rc<Issue>,
    pub(super) before: IssueFolder<'r>,
    pub(super) after: IssueFolder<'r>,
    /// The issue's protocol before the commit.
    pub(super) rules: Rc<Rules<'r>>,
}

/// A commit's step, or why it can't be any.
type Recorded = Result<RecordedStep, Vec<Finding>>;

impl States<'_> {
    /// When the step was made: what it wrote has the milliseconds, its commit only the second. If
    /// they contradict each other, the commit's date counts.
    pub(super) fn made_at(&self, commit: DateTime<FixedOffset>) -> DateTime<FixedOffset> {
        let written = self.is.updated_at.with_timezone(commit.offset());
        if to_second(written) == to_second(commit) {
            written
        } else {
            commit
        }
    }

    /// Derives from the new state which step was made, or why no step can have been.
    ///
    /// # Errors
    /// [`LedgerError`] when a state can't be read.
    pub(super) fn recorded_step(&self, changes: &[Change]) -> Result<Recorded, LedgerError> {
        let key = self.after.key();
        let handoffs = self.handoffs_before();
        let number = if self.is.handoffs > handoffs {
            handoffs + 1
        } else {
            match &self.about(changes)?[..] {
                // Handoffs have their time to be claimed again.
                _ if self.is_resumed() => return Ok(self.issue_update(changes)),
                [number] if self.is_annotated() => {
                    let record = self.after.shared_record(*number)?;
                    let old = self.before.shared_record(*number)?;
                    let usage = record.map(|record| reported(old.as_deref(), &record));
                    let step = self.issue_update(changes);
                    return Ok(step.map(|step| RecordedStep {
                        usage: usage.unwrap_or_default(),
                        ..step
                    }));
                }
                [number] => *number,
                [] => return Ok(self.issue_update(changes)),
                _ => {
                    let text = "the commit changes an issue without a step of one handoff";
                    let finding =
                        Finding::error(FindingCode::StepNone, layout::issue_file(key), text);
                    return Ok(Err(vec![finding]));
                }
            }
        };
        let path = layout::record_file(&HandoffId::new(key.clone(), number));
        let Some(record) = self.after.shared_record(number)? else {
            let finding = Finding::error(FindingCode::FileMissing, path, "the record is missing");
            return Ok(Err(vec![finding]));
        };
        if number > handoffs {
            self.sending(record, path)
        } else {
            self.handoff_update(&record, path).map(Ok)
        }
    }

    pub(super) fn handoffs_before(&self) -> u32 {
        self.was.as_ref().map_or(0, |issue| issue.handoffs)
    }

    /// Whether the step added a note.
    fn is_annotated(&self) -> bool {
        let had = self.was.as_ref().map_or(0, |issue| issue.annotations.len());
        self.is.annotations.len() > had
    }

    /// Whether the step resumed the issue.
    fn is_resumed(&self) -> bool {
        let had = self.was.as_ref().map_or(0, |issue| issue.resumed.len());
        self.is.resumed.len() > had
    }

    /// The outside event that the step carried out.
    fn delivery(&self) -> Option<Delivery> {
        let had = self.was.as_ref().map_or(0, |issue| issue.deliveries.len());
        self.is.deliveries.get(had).map(|new| Delivery {
            id: new.id.clone(),
            part: new.part.clone(),
        })
    }

    /// The step of a commit that changes the issue alone.
    fn issue_update(&self, changes: &[Change]) -> Recorded {
        let Some((actor, update)) = recorded_update(self.was.as_deref(), &self.is) else {
            let all = changes.iter().map(|change| difference(change, false));
            return Err(all.collect());
        };
        let approved = self.is_annotated().then(|| self.is.annotations.last());
        Ok(RecordedStep {
            actor,
            worker: approved.flatten().and_then(|note| note.worker.clone()),
            path: layout::issue_file(self.after.key()),
            request: RecordedRequest::Update(update),
            traceparent: None,
            usage: Vec::new(),
            delivery: self.delivery(),
        })
    }

    /// The step of a commit that changes a handoff.
    fn handoff_update(&self, record: &Record, path: String) -> Result<RecordedStep, LedgerError> {
        let old = self.before.shared_record(record.id.number())?;
        let update = recorded_change(old.as_deref(), record, self.was.as_deref(), &self.is);
        let last = match update.event() {
            Some(Event::Extend) => None,
            _ => record.latest(),
        };
        Ok(RecordedStep {
            actor: last.map_or(&record.to, |t| &t.by).clone(),
            worker: match last {
                Some(last) => last.worker.clone(),
                None => record.lease.as_ref().map(|lease| lease.worker.clone()),
            },
            path,
            traceparent: last.and_then(|t| t.traceparent),
            usage: reported(old.as_deref(), record),
            request: RecordedRequest::Update(update),
            delivery: self.delivery(),
        })
    }

    /// The step of a commit that sends a contract.
    fn sending(&self, record: Rc<Record>, path: String) -> Result<Recorded, LedgerError> {
        let (rules, key) = (&*self.rules, self.after.key());
        let bytes = self.after.contract(&record)?;
        let Review {
            findings, contract, ..
        } = {
            let (input, imported) = (Input::read(&bytes), record.imported.as_ref());
            review_imported(rules.protocol(), rules, &input, Some(key), imported)?
        };
        let Some(mut contract) = contract else {
            let file = layout::in_issue(key, &record.contract.file);
            let errors = findings.into_iter().filter(Finding::is_error);
            let found = errors.map(|finding| {
                let text = format!("{}: {}", finding.path, finding.message);
                let mut found = Finding::error(finding.code, file.clone(), text);
                (found.line, found.column) = (finding.line, finding.column);
                found
            });
            return Ok(Err(found.collect()));
        };
        let sent = record.transitions.first();
        contract.allowed_secrets = sent.map_or_else(Vec::new, |t| t.allowed_secrets.clone());
        Ok(Ok(RecordedStep {
            actor: contract.from.as_ref().unwrap_or(&record.from).clone(),
            worker: sent.and_then(|t| t.worker.clone()),
            path,
            traceparent: sent.and_then(|t| t.traceparent),
            usage: self.reported_with(&record)?,
            request: RecordedRequest::Sent(Box::new(contract), record),
            delivery: self.delivery(),
        }))
    }

    /// What was reported with a contract: of the handoff that its sender held, or of its own.
    fn reported_with(&self, sent: &Record) -> Result<Vec<ModelUsage>, LedgerError> {
        let Some(held) = sent.follows.as_ref().filter(|_| sent.usage.is_empty()) else {
            return Ok(reported(None, sent));
        };
        let before = self.before.shared_record(held.number())?;
        let after = self.after.shared_record(held.number())?;
        let found = after.map(|after| reported(before.as_deref(), &after));
        Ok(found.unwrap_or_default())
    }

    /// The numbers of the handoffs that a commit without a contract is about.
    fn about(&self, changes: &[Change]) -> Result<Vec<u32>, LedgerError> {
        let folder = format!("{}/", layout::issue_folder(self.after.key()));
        let numbers = changes.iter().filter_map(|change| {
            change
                .path
                .strip_prefix(&folder)?
                .strip_suffix(".json")?
                .parse()
                .ok()
        });
        let numbers: Vec<u32> = numbers.collect();
        if numbers.len() < 2 {
            return Ok(numbers);
        }
        let mut about = Vec::new();
        for &number in &numbers {
            // A change that only follows from the step has no event.
            let own = |r: &Record| r.latest().is_some_and(|t| t.sent.is_none());
            let (now, then) = (
                self.after.shared_record(number)?,
                self.before.shared_record(number)?,
            );
            let events = |r: &Option<Rc<Record>>| r.as_ref().map(|r| r.transitions.len());
            if events(&now) != events(&then) && now.as_deref().is_none_or(own) {
                about.push(number);
            }
        }
        Ok(about)
    }
}

/// What a step reported of a handoff that it changed.
fn reported(before: Option<&Record>, after: &Record) -> Vec<ModelUsage> {
    let usage = after.usage_since(before);
    usage.map_or_else(Vec::new, |usage| usage.models.clone())
}

/// Reads what steps depend on during a walk through history: issues, protocols and manifests, each
/// of which is parsed once.
pub(super) struct StepReader<'r> {
    repository: &'r Repository,
    parsed: Rc<Parsed>,
    protocols: HashMap<ObjectId, Rc<Rules<'r>>>,
    manifests: HashMap<ObjectId, (Policy, AgentName)>,
}

impl<'r> StepReader<'r> {
    pub(super) fn new(repository: &'r Repository) -> Self {
        Self {
            repository,
            parsed: Rc::new(Parsed::new()),
            protocols: HashMap::new(),
            manifests: HashMap::new(),
        }
    }

    /// An issue before and after a commit with these trees; `None` if its file is missing after it.
    ///
    /// # Errors
    /// [`LedgerError`] when a state or the issue's protocol can't be read.
    pub(super) fn states(
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

/// How a file differs from what a step writes.
pub(super) fn difference(change: &Change, expected: bool) -> Finding {
    let path = &change.path;
    let contract = path.contains("-to-") && path.starts_with(layout::ISSUES);
    let code = match () {
        () if !expected && change.old.is_none() => FindingCode::FileStray,
        () if contract => FindingCode::ContractAltered,
        () if layout::is_failure_folder(path) => FindingCode::FailureAltered,
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

/// A part of the ledger outside any issue that a commit changes.
pub(super) enum Shared {
    Protocol(String),
    Document(String, AgentName),
}

/// The one shared part that all changes are about.
pub(super) fn shared_of(changes: &[Change]) -> Option<Shared> {
    let first = changes.first()?.path.as_str();
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
