//! What a commit of the ledger claims to be, read from the state after it and
//! the state before: who asked for what. The audit plans it again and compares,
//! an export writes it down.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::error::LedgerError;
use super::intake::{Contract, Review, review};
use super::layout;
use super::record::{Issue, Record, Transition};
use super::snapshot::{IssueFolder, Rules};
use super::step::{Request, Told, View};
use crate::finding::Finding;
use crate::git::{Change, EntryKind, ObjectId, Repository, Tree};
use crate::ids::{AgentName, IssueKey};
use crate::protocol::Event;

/// What a commit claims to be.
pub(super) struct Asked {
    /// The agent whose step it is.
    pub(super) actor: AgentName,
    /// The file that it is about.
    pub(super) path: String,
    /// The contract that was sent, if one was.
    pub(super) contract: Option<Box<Contract>>,
    /// The handoff that it is about; none where the issue was opened again.
    pub(super) record: Option<Record>,
    reason: String,
}

impl Asked {
    /// The request.
    pub(super) fn request(&self) -> Request<'_> {
        match (&self.contract, &self.record) {
            (Some(contract), record) => {
                let code = record.as_ref().and_then(|r| r.code.clone());
                let artifacts = record.as_ref().map(|r| r.artifacts.clone());
                Request::Send {
                    contract,
                    code,
                    artifacts: artifacts.unwrap_or_default(),
                    answers: record
                        .as_ref()
                        .and_then(|r| Some(r.answers.as_ref()?.number())),
                }
            }
            (None, Some(record)) => {
                let last = record.latest();
                Request::Change {
                    number: record.id.number(),
                    // A record without an event can only be a new one.
                    event: last.and_then(|t| t.event).unwrap_or(Event::Claim),
                    told: Box::new(last.map(told).unwrap_or_default()),
                }
            }
            (None, None) => Request::Reopen {
                reason: self.reason.clone(),
            },
        }
    }
}

/// What went with a change of state.
fn told(transition: &Transition) -> Told {
    let transition = transition.clone();
    Told {
        reason: transition.reason,
        failure: transition.failure,
        context: transition.context,
        questions: transition.questions,
        values: transition.values,
        receiver: transition.receiver,
        jitter: transition.jitter,
        ..Told::default()
    }
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
            before: _,
            after,
        } = *self;
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
                contract: None,
                record: None,
                reason: last.reason.clone(),
            }));
        } else {
            match &self.about(changes)?[..] {
                [number] => *number,
                [] => {
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
        let reason = String::new();
        if number <= handoffs {
            let actor = record.latest().map_or(&record.to, |t| &t.by).clone();
            return Ok(Ok(Asked {
                actor,
                path,
                contract: None,
                record: Some(record),
                reason,
            }));
        }
        let bytes = after.contract(&record)?;
        let Review {
            findings, contract, ..
        } = review(rules.protocol(), rules, &bytes, Some(key))?;
        let Some(contract) = contract else {
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
        let actor = contract.from.as_ref().unwrap_or(&record.from).clone();
        Ok(Ok(Asked {
            actor,
            path,
            contract: Some(Box::new(contract)),
            record: Some(record),
            reason,
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

/// The protocols that a walk through history met, by their folders' objects.
#[derive(Default)]
pub(super) struct KnownRules<'r>(HashMap<ObjectId, Rc<Rules<'r>>>);

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
        if let Some(rules) = self.0.get(&id) {
            return Ok(Rc::clone(rules));
        }
        let rules = Rc::new(Rules::read(repository, tree, name)?);
        self.0.insert(id, Rc::clone(&rules));
        Ok(rules)
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
