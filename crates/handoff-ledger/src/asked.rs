//! What a commit of the ledger claims to be, read from the state after it and
//! the state before: who asked for what. The audit plans it again and compares,
//! an export writes it down.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use handoff_base::ObjectId;
use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_contract::Input;
use handoff_git::{Change, EntryKind, Repository, Tree};
use handoff_model::{
    Annotation, Contract, Decision, Delivery, Issue, Lease, Manifest, Record, Request, Review,
    SendRequest, Told, TraceParent, View, layout, record, review,
};
use handoff_protocol::{Event, Policy};

use super::error::LedgerError;
use super::snapshot::{IssueFolder, Rules};

/// What a commit claims to be.
pub(super) struct Asked {
    /// The agent whose step it is.
    pub(super) actor: AgentName,
    /// The file that it is about.
    pub(super) path: String,
    /// What it did.
    pub(super) what: What,
    /// The trace that it was made in, where it changed a handoff's state.
    pub(super) traceparent: Option<TraceParent>,
    /// The event from outside that it carried out.
    pub(super) delivery: Option<Delivery>,
}

/// What a commit did.
pub(super) enum What {
    /// A contract was sent, which began a handoff.
    Sent(Box<Contract>, Box<Record>),
    /// Something happened to one handoff.
    Changed(u32, Event, Box<Told>),
    /// A handoff was decided about.
    Decided(Decision),
    /// A note was added.
    Annotated(Annotation),
    /// The issue was opened again, for this reason.
    Reopened(String),
}

impl Asked {
    /// The handoff that the commit began, if it sent a contract.
    pub(super) fn sent(&self) -> Option<&Record> {
        match &self.what {
            What::Sent(_, record) => Some(record),
            _ => None,
        }
    }

    /// The request, in a ledger with this policy for contradicted claims.
    pub(super) fn request(&self, policy: Policy) -> Request<'_> {
        match &self.what {
            What::Sent(contract, record) => Request::Send(SendRequest {
                contract,
                code: record.code.as_ref(),
                artifacts: &record.artifacts,
                evidence: Some(&record.evidence),
                policy,
                answers: record.answers.as_ref().map(HandoffId::number),
                token: None,
            }),
            &What::Changed(number, event, ref told) => Request::Change {
                number,
                event,
                told: told.clone(),
            },
            What::Decided(decision) => Request::Decide {
                number: decision.id.number(),
                action: decision.action,
                why: decision.why.clone(),
            },
            What::Annotated(annotation) => Request::Annotate {
                number: annotation.id.as_ref().map(HandoffId::number),
                note: annotation.note.clone(),
                facts: annotation.facts.clone(),
            },
            What::Reopened(reason) => Request::Reopen {
                reason: reason.clone(),
            },
        }
    }
}

/// What happened to a handoff, and what went with it.
fn change(before: Option<&Record>, after: &Record, decision: Option<&Decision>) -> (Event, Told) {
    let mut told = Told {
        decision: decision.map(|d| (d.action, d.why.clone())),
        ..Told::default()
    };
    let lease = after.lease.as_ref();
    if let Some(lease) = lease {
        told.lease = lease.seconds;
    }
    // Only the lease of one who goes on working changes without an event.
    let extended = |before: &Record| {
        before.transitions.len() == after.transitions.len()
            && before.state == after.state
            && before.lease.is_some()
            && before.lease != after.lease
    };
    if before.is_some_and(extended) {
        let was = before.and_then(|r| r.lease.as_ref());
        let end = |lease: &Lease| lease.expires_at;
        if was.map(end) == lease.map(end) {
            // Any time that is no longer than what was left.
            told.lease = Some(1);
        }
        let was = was.and_then(|lease| lease.progress.as_ref());
        let progress = lease.and_then(|lease| lease.progress.clone());
        told.progress = progress.filter(|p| Some(p) != was).map(|p| p.text);
        return (Event::Extend, told);
    }
    let Some(last) = after.latest().cloned() else {
        return (Event::Claim, told);
    };
    told.reason = last.reason;
    told.failure = last.failure;
    told.context = last.context;
    told.questions = last.questions;
    told.values = last.values;
    told.receiver = last.receiver;
    told.jitter = last.jitter;
    told.allowed_secrets = last.allowed_secrets;
    // A record without an event can only be a new one.
    (last.event.unwrap_or(Event::Claim), told)
}

/// An issue before and after a commit.
pub(super) struct States<'a, 'r> {
    /// The issue before, if it was opened.
    pub(super) was: Option<&'a Issue>,
    /// The issue after.
    pub(super) is: &'a Issue,
    /// Its folder before.
    pub(super) before: &'a IssueFolder<'r>,
    /// Its folder after.
    pub(super) after: &'a IssueFolder<'r>,
}

impl States<'_, '_> {
    /// Reads from the new state what was asked for, or why nothing can have
    /// been. `rules` are those before the commit.
    ///
    /// # Errors
    /// [`LedgerError`] when a state can't be read.
    pub(super) fn asked(
        &self,
        rules: &Rules<'_>,
        changes: &[Change],
    ) -> Result<Result<Asked, Vec<Finding>>, LedgerError> {
        let Self {
            was,
            is,
            before,
            after,
        } = *self;
        let decided = was.map_or(0, |issue| issue.decisions.len());
        let decision = is.decisions.get(decided);
        let had = was.map_or(0, |issue| issue.deliveries.len());
        let delivery = is.deliveries.get(had).map(|new| Delivery {
            id: new.id.clone(),
            part: new.part.clone(),
        });
        let key = after.key();
        let handoffs = was.map_or(0, |issue| issue.handoffs);
        let number = if is.handoffs > handoffs {
            handoffs + 1
        } else if let Some(last) = is.reopened.last()
            && was.is_some_and(|issue| issue.reopened.len() < is.reopened.len())
        {
            return Ok(Ok(Asked {
                actor: last.by.clone(),
                path: layout::issue_file(key),
                what: What::Reopened(last.reason.clone()),
                traceparent: None,
                delivery,
            }));
        } else {
            match &self.about(changes)?[..] {
                [number] => *number,
                [] => {
                    if let Some(decision) = decision.cloned() {
                        return Ok(Ok(Asked {
                            actor: decision.by.clone(),
                            path: layout::issue_file(key),
                            what: What::Decided(decision),
                            traceparent: None,
                            delivery,
                        }));
                    }
                    let noted = was.map_or(0, |issue| issue.annotations.len());
                    if let Some(annotation) = is.annotations.get(noted).cloned() {
                        return Ok(Ok(Asked {
                            actor: annotation.by.clone(),
                            path: layout::issue_file(key),
                            what: What::Annotated(annotation),
                            traceparent: None,
                            delivery,
                        }));
                    }
                    let all = changes.iter().map(|change| difference(change, false));
                    return Ok(Err(all.collect()));
                }
                _ => {
                    let text = "the commit changes an issue without a step of one handoff";
                    let finding = Finding::error("step.none", layout::issue_file(key), text);
                    return Ok(Err(vec![finding]));
                }
            }
        };
        let folder = layout::issue_folder(key);
        let path = format!("{folder}/{}", layout::record_name(number));
        let Some(record) = after.record(number)? else {
            let finding = Finding::error("file.missing", path, "the record is missing");
            return Ok(Err(vec![finding]));
        };
        if number <= handoffs {
            let (event, told) = change(before.record(number)?.as_ref(), &record, decision);
            let last = match event {
                Event::Extend => None,
                _ => record.latest(),
            };
            return Ok(Ok(Asked {
                actor: last.map_or(&record.to, |t| &t.by).clone(),
                path,
                what: What::Changed(number, event, Box::new(told)),
                traceparent: last.and_then(|t| t.traceparent),
                delivery,
            }));
        }
        let bytes = after.contract(&record)?;
        let Review {
            findings, contract, ..
        } = review(rules.protocol(), rules, &Input::read(&bytes), Some(key))?;
        let Some(mut contract) = contract else {
            let file = format!("{folder}/{}", record.contract.file);
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
        let traceparent = sent.and_then(|t| t.traceparent);
        let actor = contract.from.as_ref().unwrap_or(&record.from).clone();
        Ok(Ok(Asked {
            actor,
            path,
            what: What::Sent(Box::new(contract), Box::new(record)),
            traceparent,
            delivery,
        }))
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
            // What only follows from the step has no event of its own.
            let own = |r: &Record| r.latest().is_some_and(|t| t.sent.is_none());
            let (now, then) = (self.after.record(number)?, self.before.record(number)?);
            let events = |r: &Option<Record>| r.as_ref().map(|r| r.transitions.len());
            if events(&now) != events(&then) && now.as_ref().is_none_or(own) {
                about.push(number);
            }
        }
        Ok(about)
    }
}

/// The protocols and manifests that a walk through history met, by their objects.
#[derive(Default)]
pub(super) struct KnownRules<'r> {
    protocols: HashMap<ObjectId, Rc<Rules<'r>>>,
    policies: HashMap<ObjectId, Policy>,
}

impl<'r> KnownRules<'r> {
    /// A protocol in a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] when it is missing or at fault.
    pub(super) fn read(
        &mut self,
        repository: &'r Repository,
        tree: Tree<'r>,
        name: &str,
    ) -> Result<Rc<Rules<'r>>, LedgerError> {
        let path = layout::protocol_file(name, "");
        let path = path.trim_end_matches('/').to_owned();
        let (_, id) = tree.entry(&path)?.ok_or(LedgerError::Missing { path })?;
        if let Some(rules) = self.protocols.get(&id) {
            return Ok(Rc::clone(rules));
        }
        let rules = Rc::new(Rules::read(repository, tree, name)?);
        self.protocols.insert(id, Rc::clone(&rules));
        Ok(rules)
    }

    /// What becomes of contradicted claims in a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] when its manifest is missing or can't be read.
    pub(super) fn policy(
        &mut self,
        repository: &'r Repository,
        tree: Tree<'r>,
    ) -> Result<Policy, LedgerError> {
        let path = layout::MANIFEST;
        let missing = || LedgerError::Missing {
            path: path.to_owned(),
        };
        let (_, id) = tree.entry(path)?.ok_or_else(missing)?;
        if let Some(policy) = self.policies.get(&id) {
            return Ok(*policy);
        }
        let manifest: Manifest = record::read(&repository.blob(id)?)
            .map_err(|error| LedgerError::stored(path, error))?;
        self.policies.insert(id, manifest.evidence);
        Ok(manifest.evidence)
    }
}

/// How a file differs from what a step writes.
pub(super) fn difference(change: &Change, expected: bool) -> Finding {
    let path = &change.path;
    let contract = path.contains("-to-") && path.starts_with(layout::ISSUES);
    let code = match () {
        () if !expected && change.old.is_none() => "file.stray",
        () if contract => "contract.altered",
        () if layout::is_failure_folder(path) => "failure.altered",
        () if path.starts_with(layout::OPEN) => "open.stale",
        () if path.ends_with("/issue.json") => "issue.altered",
        () if path.starts_with(layout::ISSUES) => "record.altered",
        () => "file.altered",
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

/// What a commit changes that belongs to no issue.
pub(super) enum Shared {
    /// A protocol, by its name.
    Protocol(String),
    /// A document of a protocol's issues.
    Document(String, AgentName),
}

/// The one shared thing that all changes are about.
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

/// The issues that a commit changes.
pub(super) fn issues_of(changes: &[Change]) -> BTreeSet<IssueKey> {
    changes
        .iter()
        .filter_map(|c| issue_of_path(&c.path))
        .collect()
}

/// The issue that a path belongs to.
fn issue_of_path(path: &str) -> Option<IssueKey> {
    if let Some(entry) = path.strip_prefix("open/") {
        return layout::parse_open_entry(entry).map(|(id, _)| id.issue().clone());
    }
    let key: IssueKey = path
        .strip_prefix("issues/")?
        .split('/')
        .nth(2)?
        .parse()
        .ok()?;
    path.starts_with(&format!("{}/", layout::issue_folder(&key)))
        .then_some(key)
}
