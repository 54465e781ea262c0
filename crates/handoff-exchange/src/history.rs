//! Reads the steps of a ledger from its history, oldest first.

use std::collections::{HashMap, HashSet};

use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::{ObjectId, digest};
use handoff::git::{Change as TreeChange, Commit, Repository, Tree};
use handoff::ledger::{Gathered, LedgerError, Rules, Snapshot, StepKind, StepReader};
use handoff::model::layout;

use super::ExchangeError;
use super::line::{DocumentLine, IssueLine, Key, Line, Named, ProtocolLine, SentContract};

/// A recorded step, and the files that its line refers to.
pub(super) struct Taken {
    /// The step; the paths of its files are not set yet.
    pub(super) line: Line,
    /// The files: the contract, the document, or those of the protocol.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// The handoffs that it started.
    pub(super) began: Vec<HandoffId>,
}

/// Reads the steps of a ledger.
pub(super) struct History<'r> {
    repository: &'r Repository,
    reader: StepReader<'r>,
    /// The number of steps of each protocol and each document.
    shared: HashMap<Key, u32>,
}

impl<'r> History<'r> {
    /// Reads through this handle, which should cache objects.
    pub(super) fn new(repository: &'r Repository) -> Self {
        Self {
            repository,
            reader: StepReader::new(repository),
            shared: HashMap::new(),
        }
    }

    /// Passes on each wanted step of the history of this commit.
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
        // Quarantined commits, and the steps that quarantined them, are skipped.
        let tip = Snapshot::at(self.repository, tip, "")?;
        let scars = tip.manifest().quarantined.iter();
        let scars: HashSet<ObjectId> = scars
            .flat_map(|scar| std::iter::once(scar.commit).chain(scar.undone.iter().copied()))
            .collect();
        let mut before: Option<ObjectId> = None;
        for id in ids.into_iter().rev() {
            let commit = self.repository.commit(id).map_err(LedgerError::from)?;
            if commit.cut_off {
                return Err(ExchangeError::CutOff);
            }
            let taken = match before {
                Some(_) if scars.contains(&id) => None,
                Some(before) => self.step(&commit, before, &wanted)?,
                None => Some(self.founding(&commit)?),
            };
            before = Some(commit.tree);
            if let Some(taken) = taken.filter(|taken| wanted(&taken.line.key())) {
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

    /// The first commit puts the default protocol in force.
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
        let line = Line::Protocol(ProtocolLine {
            name,
            number: self.next(&key),
            at: commit.author.at.into(),
            zone: zone(commit),
            by: commit.author.name.clone(),
            folder: String::new(),
            files: named.collect(),
        });
        Ok(Taken {
            line,
            files,
            began: Vec::new(),
        })
    }

    fn document(
        &mut self,
        commit: &Commit,
        tree: Tree<'r>,
        (protocol, name): (&str, AgentName),
    ) -> Result<Option<Taken>, LedgerError> {
        let bytes = tree.file(&layout::document(protocol, &name))?;
        let parsed = (protocol.parse::<AgentName>(), commit.author.name.parse());
        let (Some(bytes), (Ok(protocol), Ok(by))) = (bytes, parsed) else {
            return Ok(None);
        };
        let key = Key::Document(protocol.clone(), name.clone());
        let line = Line::Document(DocumentLine {
            number: self.next(&key),
            at: commit.author.at.into(),
            zone: zone(commit),
            by,
            sha256: digest(&bytes),
            file: String::new(),
            protocol,
            name,
        });
        Ok(Some(Taken {
            line,
            files: vec![(String::new(), bytes.to_vec())],
            began: Vec::new(),
        }))
    }

    /// The step of a commit; `before` is its parent's tree.
    fn step(
        &mut self,
        commit: &Commit,
        before: ObjectId,
        wanted: &impl Fn(&Key) -> bool,
    ) -> Result<Option<Taken>, ExchangeError> {
        let new = Tree::new(self.repository, commit.tree);
        let kind = StepKind::of(self.repository, (before, commit.tree));
        let (kind, changes) = kind.map_err(LedgerError::from)?;
        match kind {
            // Archiving moves an issue's folder and changes nothing in it; a pause is not exported,
            // nor is what is the default protocol.
            StepKind::Quarantine(_)
            | StepKind::Archive(_)
            | StepKind::Unarchive(_)
            | StepKind::Manifest => Ok(None),
            StepKind::Protocol(name) => {
                let name = name.parse().map_err(|_| damaged(commit, &changes))?;
                self.protocol(commit, new, name).map(Some)
            }
            StepKind::Document(protocol, name) => {
                let taken = self.document(commit, new, (&protocol, name))?;
                taken.ok_or_else(|| damaged(commit, &changes)).map(Some)
            }
            StepKind::Issue(key) => {
                let wants = wanted(&Key::Issue(key.clone()));
                let old = Tree::new(self.repository, before);
                wants
                    .then(|| self.of_issue(commit, &key, old, new, &changes))
                    .transpose()
            }
            StepKind::Other => Err(damaged(commit, &changes)),
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
        let contract = recorded.sent.map(|(contract, record)| {
            let sent = SentContract {
                file: String::new(),
                format: contract.format,
                sha256: digest(&contract.bytes),
                protocol: contract.protocol,
                gathered: Gathered::of(&record),
            };
            files.push((record.contract.file.clone(), contract.bytes));
            sent
        });
        let (first, is) = (states.handoffs_before() + 1, &states.is);
        let id = |number| HandoffId::new(key.clone(), number);
        Ok(Taken {
            line: Line::Issue(Box::new(IssueLine {
                key: key.clone(),
                number: is.steps,
                zone: zone(commit),
                step: recorded.step,
                contract,
            })),
            files,
            began: (first..=is.handoffs).map(id).collect(),
        })
    }
}

/// The time zone of a commit, in minutes east of UTC.
fn zone(commit: &Commit) -> i32 {
    commit.author.at.offset().local_minus_utc() / 60
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
