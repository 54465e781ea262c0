//! Reads the steps of a ledger from its history, the oldest first.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{ObjectId, digest};
use handoff_git::{Change as TreeChange, Commit, Repository, Tree};
use handoff_model::{Request, layout};
use handoff_protocol::Policy;

use super::ExchangeError;
use super::line::{Document, Key, Line, LineRequest, Named, Protocol, Send};
use crate::archive_step::{ArchiveStep, archive_step_of, step_changes};
use crate::error::LedgerError;
use crate::recorded_step::{Shared, StepReader, issues_of, shared_of};
use crate::snapshot::{Rules, Snapshot};

/// A recorded step, and the files that its line refers to.
pub(super) struct Taken {
    /// The step; the paths of its files are not set yet.
    pub(super) line: Line,
    pub(super) key: Key,
    /// The files: the contract, the document, or those of the protocol.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// The handoffs that it started.
    pub(super) began: Option<RangeInclusive<u32>>,
}

/// Reads the steps of a ledger.
pub(super) struct History<'r> {
    repository: &'r Repository,
    reader: StepReader<'r>,
    /// The number of steps of each protocol and each document.
    shared: HashMap<Key, u32>,
}

impl<'r> History<'r> {
    /// Uses this handle, which should cache what it reads.
    pub(super) fn new(repository: &'r Repository) -> Self {
        Self {
            repository,
            reader: StepReader::new(repository),
            shared: HashMap::new(),
        }
    }

    /// Passes on each wanted step of the history that ends in this commit.
    ///
    /// # Errors
    /// [`ExchangeError`] if history is cut off, can't be read or holds a commit that is not a
    /// ledger step; and any error of `each`.
    pub(super) fn walk(
        mut self,
        tip: ObjectId,
        wanted: impl Fn(&Key) -> bool,
        mut each: impl FnMut(Taken) -> Result<(), ExchangeError>,
    ) -> Result<(), ExchangeError> {
        let mut ids = Vec::new();
        for id in self.repository.first_parents(tip) {
            ids.push(id.map_err(LedgerError::from)?);
        }
        let mut before: Option<ObjectId> = None;
        for id in ids.into_iter().rev() {
            let commit = self.repository.commit(id).map_err(LedgerError::from)?;
            if commit.cut_off {
                return Err(ExchangeError::CutOff);
            }
            let taken = match before {
                Some(before) => self.step(&commit, before, &wanted)?,
                None => Some(self.founding(&commit)?),
            };
            before = Some(commit.tree);
            if let Some(taken) = taken.filter(|taken| wanted(&taken.key)) {
                each(taken)?;
            }
        }
        Ok(())
    }

    fn next(&mut self, key: &Key) -> u32 {
        let count = self.shared.entry(key.clone()).or_default();
        *count += 1;
        *count
    }

    /// The first commit activates the default protocol.
    fn founding(&mut self, commit: &Commit) -> Result<Taken, ExchangeError> {
        let snapshot = Snapshot::at(self.repository, commit.id, "")?;
        let name = snapshot.manifest().default_protocol.clone();
        let tree = Tree::new(self.repository, commit.tree);
        self.protocol(commit, tree, name)
    }

    fn protocol(
        &mut self,
        commit: &Commit,
        tree: Tree<'r>,
        name: AgentName,
    ) -> Result<Taken, ExchangeError> {
        let mut files = Rules::read(self.repository, tree, name.as_str())?.files()?;
        files.sort();
        let key = Key::Protocol(name.clone());
        let named = files.iter().map(|(path, bytes)| Named {
            path: path.clone(),
            sha256: digest(bytes),
        });
        let request = LineRequest::Protocol(Protocol {
            name,
            folder: String::new(),
            files: named.collect(),
        });
        Ok(self.taken(commit, key, request, files))
    }

    /// A step outside any issue.
    fn taken(
        &mut self,
        commit: &Commit,
        key: Key,
        request: LineRequest,
        files: Vec<(String, Vec<u8>)>,
    ) -> Taken {
        Taken {
            line: Line {
                issue: None,
                step: self.next(&key),
                at: commit.author.at,
                by: commit.author.name.clone(),
                worker: None,
                traceparent: None,
                usage: Vec::new(),
                delivery: None,
                request,
            },
            key,
            files,
            began: None,
        }
    }

    /// The step of a commit; `before` is its parent's tree.
    fn step(
        &mut self,
        commit: &Commit,
        before: ObjectId,
        wanted: &impl Fn(&Key) -> bool,
    ) -> Result<Option<Taken>, ExchangeError> {
        let new = Tree::new(self.repository, commit.tree);
        let changes = step_changes(self.repository, before, commit.tree);
        let changes = changes.map_err(LedgerError::from)?;
        match archive_step_of(&changes) {
            None => {}
            // Where an issue's folder is tells nothing about the issue.
            Some(ArchiveStep::Archive(_) | ArchiveStep::Unarchive(_)) => return Ok(None),
            Some(ArchiveStep::Other) => return Err(damaged(commit, &changes)),
        }
        let touched: Vec<IssueKey> = issues_of(&changes).into_iter().collect();
        match (&touched[..], shared_of(&changes)) {
            ([], Some(Shared::Protocol(name))) => {
                let name = name.parse().map_err(|_| damaged(commit, &changes))?;
                self.protocol(commit, new, name).map(Some)
            }
            ([], Some(Shared::Document(protocol, name))) => {
                let path = layout::document(&protocol, &name);
                let bytes = new.file(&path).map_err(LedgerError::from)?;
                let bytes = bytes.ok_or_else(|| damaged(commit, &changes))?.to_vec();
                let protocol: AgentName =
                    protocol.parse().map_err(|_| damaged(commit, &changes))?;
                let key = Key::Document(protocol.clone(), name.clone());
                let request = LineRequest::Document(Document {
                    sha256: digest(&bytes),
                    file: String::new(),
                    protocol,
                    name,
                });
                let files = vec![(String::new(), bytes)];
                Ok(Some(self.taken(commit, key, request, files)))
            }
            ([key], _) => {
                let wants = wanted(&Key::Issue(key.clone()));
                let old = Tree::new(self.repository, before);
                wants
                    .then(|| self.of_issue(commit, key, old, new, &changes))
                    .transpose()
            }
            _ => Err(damaged(commit, &changes)),
        }
    }

    fn of_issue(
        &mut self,
        commit: &Commit,
        key: &IssueKey,
        old: Tree<'r>,
        new: Tree<'r>,
        changes: &[TreeChange],
    ) -> Result<Taken, ExchangeError> {
        let states = self.reader.states(key, old, new)?;
        let states = states.ok_or_else(|| damaged(commit, changes))?;
        let recorded = match states.recorded_step(&commit.message)? {
            Ok(recorded) => recorded,
            Err(findings) => {
                let findings = findings
                    .into_iter()
                    .map(|f| f.in_commit(commit.id))
                    .collect();
                return Err(ExchangeError::Damaged { findings });
            }
        };
        let mut files = Vec::new();
        let request = match recorded.request(Policy::Off) {
            Request::Send(send) => {
                let contract = send.contract;
                let name = recorded.sent().map(|r| r.contract.file.clone());
                files.push((name.unwrap_or_default(), contract.bytes.clone()));
                LineRequest::Send(Send {
                    contract: String::new(),
                    format: contract.format,
                    sha256: digest(&contract.bytes),
                    protocol: contract.protocol.clone(),
                    code: send.code.cloned(),
                    artifacts: send.artifacts.to_vec(),
                    evidence: recorded
                        .sent()
                        .map_or_else(Vec::new, |sent| sent.evidence.clone()),
                    options: send.options.clone(),
                })
            }
            Request::Update(update) => LineRequest::Update(update.clone()),
        };
        let maker = recorded.maker;
        let (first, is) = (states.handoffs_before() + 1, &states.is);
        Ok(Taken {
            line: Line {
                issue: Some(key.clone()),
                step: is.steps,
                at: maker.at.with_timezone(commit.author.at.offset()),
                by: maker.by.to_string(),
                worker: maker.worker,
                traceparent: maker.traceparent,
                usage: maker.usage,
                delivery: maker.delivery,
                request,
            },
            key: Key::Issue(key.clone()),
            files,
            began: (first <= is.handoffs).then_some(first..=is.handoffs),
        })
    }
}

/// The handoffs that a step started.
pub(super) fn begun(taken: &Taken) -> Vec<HandoffId> {
    let (Key::Issue(key), Some(began)) = (&taken.key, &taken.began) else {
        return Vec::new();
    };
    began
        .clone()
        .map(|number| HandoffId::new(key.clone(), number))
        .collect()
}

fn damaged(commit: &Commit, changes: &[TreeChange]) -> ExchangeError {
    let path = changes.first().map(|c| c.path.clone()).unwrap_or_default();
    let finding = Finding::error(
        FindingCode::StepNone,
        path,
        "the commit is not a step of one issue",
    );
    ExchangeError::Damaged {
        findings: vec![finding.in_commit(commit.id)],
    }
}
