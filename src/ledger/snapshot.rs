//! The ledger at one commit, read from its tree alone.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::error::LedgerError;
use super::intake::Schemas;
use super::layout;
use super::record::{self, Issue, Manifest, Record};
use super::step::View;
use crate::contract::Schema;
use crate::git::{Entry, EntryKind, ObjectId, Repository, Tree};
use crate::ids::{AgentName, HandoffId, IssueKey};
use crate::protocol::{ContractType, Protocol};

/// The ledger at one commit.
pub struct Snapshot<'r> {
    repository: &'r Repository,
    commit: ObjectId,
    tree: Tree<'r>,
    manifest: Manifest,
}

impl<'r> Snapshot<'r> {
    /// Reads the ledger at a commit.
    ///
    /// # Errors
    /// [`LedgerError::NotALedger`] when the tree has no manifest.
    pub fn at(
        repository: &'r Repository,
        commit: ObjectId,
        branch: &str,
    ) -> Result<Self, LedgerError> {
        let tree = Tree::new(repository, repository.commit(commit)?.tree);
        let not = || LedgerError::NotALedger {
            branch: branch.to_owned(),
        };
        let bytes = tree.file(layout::MANIFEST)?.ok_or_else(not)?;
        let manifest =
            record::read(&bytes).map_err(|e| LedgerError::stored(layout::MANIFEST, e))?;
        Ok(Self {
            repository,
            commit,
            tree,
            manifest,
        })
    }

    /// The commit it is at.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    /// The id of its tree.
    pub fn tree_id(&self) -> ObjectId {
        self.tree.id()
    }

    /// What the ledger is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The protocol that new issues are bound to.
    ///
    /// # Errors
    /// [`LedgerError`] when it is missing or at fault.
    pub fn default_rules(&self) -> Result<Rules<'r>, LedgerError> {
        self.rules(self.manifest.default_protocol.as_str())
    }

    /// A protocol in force.
    ///
    /// # Errors
    /// [`LedgerError`] when it is missing or at fault.
    pub fn rules(&self, name: &str) -> Result<Rules<'r>, LedgerError> {
        Rules::read(self.repository, self.tree, name)
    }

    /// Opens an issue's folder, which may be empty.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn issue(&self, key: &IssueKey) -> Result<IssueFolder<'r>, LedgerError> {
        IssueFolder::open(self.repository, self.tree, key)
    }

    /// Every open handoff with its receiver, the oldest first within an issue.
    ///
    /// # Errors
    /// [`LedgerError`] when the folder can't be read.
    pub fn open(&self) -> Result<Vec<OpenEntry>, LedgerError> {
        let entries = self.tree.list(layout::OPEN)?.into_iter();
        let mut open: Vec<OpenEntry> = entries
            .filter_map(|entry| {
                let (id, to) = layout::parse_open_entry(&entry.name)?;
                Some(OpenEntry {
                    id,
                    to,
                    blob: entry.id,
                })
            })
            .collect();
        open.sort_by(|a, b| {
            let key = |e: &OpenEntry| (e.id.issue().clone(), e.id.number());
            key(a).cmp(&key(b))
        });
        Ok(open)
    }

    /// The record that an open handoff's entry holds.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn open_record(&self, entry: &OpenEntry) -> Result<Record, LedgerError> {
        let bytes = self.repository.blob(entry.blob)?;
        record::read(&bytes)
            .map_err(|e| LedgerError::stored(&layout::open_entry(&entry.id, &entry.to), e))
    }

    /// Every issue's key, in the order of the folders.
    ///
    /// # Errors
    /// [`LedgerError`] when a folder can't be read.
    pub fn issues(&self) -> Result<Vec<IssueKey>, LedgerError> {
        let mut keys = Vec::new();
        let folders = |path: &str| -> Result<Vec<String>, LedgerError> {
            let entries = self.tree.list(path)?.into_iter();
            let trees = entries.filter(|e| e.kind == EntryKind::Tree);
            Ok(trees.map(|e| format!("{path}/{}", e.name)).collect())
        };
        for last in folders(layout::ISSUES)? {
            for before in folders(&last)? {
                let entries = self.tree.list(&before)?;
                keys.extend(
                    entries
                        .iter()
                        .filter_map(|e| e.name.parse::<IssueKey>().ok()),
                );
            }
        }
        Ok(keys)
    }
}

/// An open handoff, as the tip lists it.
#[derive(Clone, Debug)]
pub struct OpenEntry {
    /// Its id.
    pub id: HandoffId,
    /// Its receiver.
    pub to: AgentName,
    blob: ObjectId,
}

/// An issue's folder at one commit.
pub struct IssueFolder<'r> {
    repository: &'r Repository,
    key: IssueKey,
    entries: Vec<Entry>,
}

impl<'r> IssueFolder<'r> {
    /// Opens an issue's folder in a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn open(
        repository: &'r Repository,
        tree: Tree<'r>,
        key: &IssueKey,
    ) -> Result<Self, LedgerError> {
        let entries = tree.list(&layout::issue_folder(key))?;
        Ok(Self {
            repository,
            key: key.clone(),
            entries,
        })
    }

    /// The issue's key.
    pub fn key(&self) -> &IssueKey {
        &self.key
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, LedgerError> {
        match self.entries.iter().find(|e| e.name == name) {
            Some(entry) => {
                let bytes = self.repository.blob(entry.id);
                let path = || format!("{}/{name}", layout::issue_folder(&self.key));
                bytes.map(Some).map_err(|source| LedgerError::Object {
                    path: path(),
                    source,
                })
            }
            None => Ok(None),
        }
    }

    fn stored<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, LedgerError> {
        let Some(bytes) = self.read(name)? else {
            return Ok(None);
        };
        let path = || format!("{}/{name}", layout::issue_folder(&self.key));
        record::read(&bytes)
            .map(Some)
            .map_err(|e| LedgerError::stored(&path(), e))
    }

    /// Every record, the oldest first.
    ///
    /// # Errors
    /// [`LedgerError`] when one can't be read.
    pub fn records(&self) -> Result<Vec<Record>, LedgerError> {
        let handoffs = self.issue()?.map_or(0, |issue| issue.handoffs);
        let records = (1..=handoffs).map(|number| self.record(number));
        records.filter_map(Result::transpose).collect()
    }

    /// A handoff's contract, byte for byte.
    ///
    /// # Errors
    /// [`LedgerError`] when it is missing or can't be read.
    pub fn contract(&self, record: &Record) -> Result<Vec<u8>, LedgerError> {
        let path = || {
            format!(
                "{}/{}",
                layout::issue_folder(&self.key),
                record.contract.file
            )
        };
        let bytes = self.read(&record.contract.file)?;
        bytes.ok_or_else(|| LedgerError::Missing { path: path() })
    }
}

impl View<LedgerError> for IssueFolder<'_> {
    fn issue(&self) -> Result<Option<Issue>, LedgerError> {
        self.stored("issue.json")
    }

    fn record(&self, number: u32) -> Result<Option<Record>, LedgerError> {
        self.stored(&layout::record_name(number))
    }

    fn sent_before(&self, bytes: &[u8]) -> Result<Option<u32>, LedgerError> {
        let id = ObjectId::of_blob(bytes)?;
        let same = self
            .entries
            .iter()
            .filter(|e| e.id == id && e.name.contains("-to-"));
        let numbers = same.filter_map(|e| e.name.split_once('-')?.0.parse().ok());
        Ok(numbers.max())
    }
}

/// A protocol in force, with its schemas compiled as they are needed.
pub struct Rules<'r> {
    tree: Tree<'r>,
    id: ObjectId,
    protocol: Protocol,
    schemas: RefCell<HashMap<String, Rc<Schema>>>,
}

impl<'r> Rules<'r> {
    /// Reads a protocol from a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] when it is missing or at fault.
    pub fn read(
        repository: &'r Repository,
        tree: Tree<'r>,
        name: &str,
    ) -> Result<Self, LedgerError> {
        let path = layout::protocol_file(name, "protocol.json");
        let folder = path.trim_end_matches("/protocol.json");
        let missing = || LedgerError::Missing { path: path.clone() };
        let (_, id) = tree.entry(folder)?.ok_or_else(missing)?;
        let tree = Tree::new(repository, id);
        let bytes = tree.file("protocol.json")?.ok_or_else(missing)?;
        let protocol = Protocol::load(&bytes).map_err(|findings| LedgerError::Protocol {
            name: name.to_owned(),
            findings,
        })?;
        Ok(Self {
            tree,
            id,
            protocol,
            schemas: RefCell::default(),
        })
    }

    /// The protocol.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The id of the protocol's folder: the same id is the same rules.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// A file of the protocol.
    ///
    /// # Errors
    /// [`LedgerError`] when it is missing or can't be read.
    pub fn file(&self, file: &str) -> Result<Vec<u8>, LedgerError> {
        let path = || layout::protocol_file(self.protocol.name(), file);
        self.tree
            .file(file)?
            .ok_or_else(|| LedgerError::Missing { path: path() })
    }
}

impl Schemas for Rules<'_> {
    type Error = LedgerError;

    fn schema(&self, kind: &ContractType) -> Result<Rc<Schema>, LedgerError> {
        if let Some(schema) = self.schemas.borrow().get(&kind.schema) {
            return Ok(Rc::clone(schema));
        }
        let path = layout::protocol_file(self.protocol.name(), &kind.schema);
        let value = serde_json::from_slice(&self.file(&kind.schema)?)
            .map_err(|e| LedgerError::stored(&path, record::StoredError::Form(e)))?;
        let schema = Schema::compile_trusted(&value).map_err(|source| LedgerError::Schema {
            path,
            source: Box::new(source),
        })?;
        let schema = Rc::new(schema);
        self.schemas
            .borrow_mut()
            .insert(kind.schema.clone(), Rc::clone(&schema));
        Ok(schema)
    }
}
