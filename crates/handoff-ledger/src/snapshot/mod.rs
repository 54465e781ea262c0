//! The ledger at one commit, read from its tree alone.

mod archive;
mod on_demand;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use handoff_base::finding::{Finding, Severity};
use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff_base::{Moment, ObjectFormat, ObjectId};
use handoff_contract::Schema;
use handoff_git::{
    CodeStore, Divided, Entry, EntryKind, GitError, Listing, MOST_IN_ALL, Recent, Repository,
    Shape, Tree, blob_id,
};
use handoff_model::layout::DEFINITION;
use handoff_model::open_entry::id_in;
use handoff_model::{
    ArchivedIssue, DaySpending, FileChanges, Halt, Issue, IssueStatus, Manifest, OpenEntry, Paused,
    Record, Schemas, View, has_settings, is_set, layout, only_setting_changed, record,
};
use handoff_protocol::{Protocol, SIGNERS, Signers};

use super::error::{BranchError, DamageError, LedgerError, ProtocolError};
use super::order;

pub(super) use archive::archived_in;
pub(super) use on_demand::{OnDemand, ensure_here};

/// The storage of a ledger's folders.
pub(super) const SHAPE: Shape = Shape {
    closed: layout::is_closed,
    divided: layout::is_divided,
};

/// The ledger at one commit.
pub struct Snapshot<'r> {
    repository: &'r Repository,
    commit: ObjectId,
    tree: Tree<'r>,
    manifest: Manifest,
    recorded: Option<Moment>,
    known: KnownProtocols,
    /// The worker for whom commands are printed, if it is known.
    reader: Option<WorkerId>,
    /// The source of objects that this clone lacks.
    on_demand: Option<Rc<OnDemand>>,
    /// The archived issues whose folders were opened.
    from_archive: RefCell<BTreeMap<IssueKey, ArchivedIssue>>,
    /// The files of the paused issues, once they are listed.
    paused: OnceCell<BTreeMap<IssueKey, ObjectId>>,
    /// The store in which commits of the code are compared, once it is needed.
    code: OnceCell<CodeStore>,
}

/// A cache of protocols, by the id of their folder: checking one costs as much as writing an
/// object.
pub(super) type KnownProtocols = Rc<RefCell<HashMap<ObjectId, Arc<Protocol>>>>;

impl<'r> Snapshot<'r> {
    /// Reads the ledger at a commit.
    ///
    /// # Errors
    /// [`BranchError::NotALedger`] if the tree has no manifest.
    pub fn at(
        repository: &'r Repository,
        commit: ObjectId,
        branch: &str,
    ) -> Result<Self, LedgerError> {
        let stored = repository.commit(commit)?;
        let mut snapshot = Self::read(repository, commit, stored.tree, branch)?;
        snapshot.recorded = order::recorded(&stored);
        Ok(snapshot)
    }

    /// The ledger at a commit, with the settings of another one.
    pub(super) fn standing_in(
        repository: &'r Repository,
        commit: ObjectId,
        sound: ObjectId,
    ) -> Result<Self, LedgerError> {
        let stored = repository.commit(commit)?;
        Ok(Self {
            commit,
            tree: Tree::new(repository, stored.tree),
            recorded: order::recorded(&stored),
            ..Self::at(repository, sound, "")?
        })
    }

    fn read(
        repository: &'r Repository,
        commit: ObjectId,
        tree: ObjectId,
        branch: &str,
    ) -> Result<Self, LedgerError> {
        let tree = Tree::new(repository, tree);
        let not = || BranchError::NotALedger(branch.to_owned());
        let bytes = tree.file(layout::MANIFEST)?.ok_or_else(not)?;
        if bytes.len() > MOST_OF_MANIFEST {
            return Err(DamageError::TooLarge(layout::MANIFEST.to_owned()).into());
        }
        let manifest =
            record::read(&bytes).map_err(|e| LedgerError::stored(layout::MANIFEST, e))?;
        Ok(Self {
            repository,
            commit,
            tree,
            manifest,
            recorded: None,
            known: KnownProtocols::default(),
            reader: None,
            on_demand: None,
            from_archive: RefCell::default(),
            paused: OnceCell::new(),
            code: OnceCell::new(),
        })
    }

    /// Shares a cache of protocols with other snapshots.
    pub(super) fn sharing(mut self, known: &KnownProtocols) -> Self {
        self.known = Rc::clone(known);
        self
    }

    /// Reads for this worker.
    pub(super) fn read_for(mut self, reader: Option<&WorkerId>) -> Self {
        self.reader = reader.cloned();
        self
    }

    /// Fetches missing objects from this source.
    pub(super) fn completed_by(mut self, on_demand: Option<&Rc<OnDemand>>) -> Self {
        self.on_demand = on_demand.cloned();
        self
    }

    /// The store in which commits of the code are compared; missing objects are fetched from the
    /// ledger's remote.
    ///
    /// # Errors
    /// Why there is no such store, in words.
    pub fn code_store(&self) -> Result<&CodeStore, String> {
        if let Some(store) = self.code.get() {
            return Ok(store);
        }
        let on_demand = self.on_demand.as_ref();
        let remote = on_demand.and_then(|on_demand| on_demand.reachable());
        let store = CodeStore::new(self.repository, remote)
            .map_err(|error| format!("there is no place to compare commits in: {error}"))?;
        Ok(self.code.get_or_init(|| store))
    }

    /// Fetches the folders of archived issues if they are missing.
    pub(super) fn ensure_here(&self, archived: &[ArchivedIssue]) -> Result<(), LedgerError> {
        ensure_here(self.repository, self.on_demand.as_deref(), archived)
    }

    /// Fetches all missing objects, for a command that reads every issue.
    pub(super) fn ensure_all(&self) {
        if let Some(on_demand) = &self.on_demand {
            on_demand.ensure_all(self.commit);
        }
    }

    /// Fetches the missing objects of an issue.
    pub(super) fn ensure_issue(&self, key: &IssueKey) -> Result<(), LedgerError> {
        if let Some(on_demand) = &self.on_demand {
            on_demand.ensure_issue(self.repository, self.tree_id(), key)?;
        }
        Ok(())
    }

    /// Fetches the missing objects of folders of open handoffs.
    fn ensure_entries(&self, folders: &[&str]) -> Result<(), LedgerError> {
        if let Some(on_demand) = &self.on_demand {
            on_demand.ensure_entries(self.repository, self.tree_id(), folders)?;
        }
        Ok(())
    }

    /// Reads the ledger in a tree, without a commit.
    ///
    /// # Errors
    /// [`BranchError::NotALedger`] if the tree has no manifest.
    pub(super) fn in_tree(repository: &'r Repository, tree: ObjectId) -> Result<Self, LedgerError> {
        Self::read(repository, tree, tree, "")
    }

    /// The repository that it is in.
    pub fn repository(&self) -> &'r Repository {
        self.repository
    }

    /// The commit it is at.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    /// The lower bound for the time of a later commit, for a reader's clock.
    pub(super) fn limit(&self, now: Moment) -> Result<Option<Moment>, GitError> {
        order::limit_after(self.repository, self.commit, self.recorded, now)
    }

    /// The warning that its commit is dated too far ahead of the reader's clock.
    pub(super) fn misdated(&self, now: Moment) -> Option<Finding> {
        self.recorded.filter(|at| order::is_postdated(*at, now))?;
        let commit = self.repository.commit(self.commit).ok()?;
        let mut finding = order::misdated(&commit.committer, now)?.in_commit(self.commit);
        finding.severity = Severity::Warning;
        Some(finding)
    }

    /// The id of its tree.
    pub fn tree_id(&self) -> ObjectId {
        self.tree.id()
    }

    pub(super) fn tree(&self) -> Tree<'r> {
        self.tree
    }

    /// The ledger's settings.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// A file's bytes, if it exists.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    #[doc(hidden)]
    pub fn file(&self, path: &str) -> Result<Option<Rc<[u8]>>, LedgerError> {
        Ok(self.tree.file(path)?)
    }

    /// The protocol of new issues.
    ///
    /// # Errors
    /// [`LedgerError`] if it is missing or invalid.
    pub fn default_rules(&self) -> Result<Rules<'r>, LedgerError> {
        self.rules(self.manifest.default_protocol.as_str())
    }

    /// The id of the folder of a protocol in force.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn rules_id(&self, name: &str) -> Result<Option<ObjectId>, LedgerError> {
        let path = layout::protocol_file(name, "");
        let found = self.tree.entry(path.trim_end_matches('/'))?;
        Ok(found.map(|(_, id)| id))
    }

    /// The folder of all issues, if there is an issue; fetches all of it.
    pub(super) fn issues_folder(&self) -> Result<Option<ObjectId>, LedgerError> {
        self.ensure_all();
        let found = self.tree.entry(layout::ISSUES)?;
        Ok(found.map(|(_, id)| id))
    }

    /// The names of the protocols in force, the default one first.
    ///
    /// # Errors
    /// [`LedgerError`] when the folder can't be read.
    pub fn protocols(&self) -> Result<Vec<String>, LedgerError> {
        let default = self.manifest.default_protocol.as_str();
        let entries = self.tree.list(layout::PROTOCOLS)?.into_iter();
        let mut names: Vec<String> = entries.map(|entry| entry.name).collect();
        names.sort_by_key(|name| (name != default, name.clone()));
        Ok(names)
    }

    /// An issue in which one of these agents sent these bytes. Reads every issue's folder, also
    /// archived ones.
    ///
    /// # Errors
    /// [`LedgerError`] if a folder or a record can't be read.
    #[doc(hidden)]
    pub fn sent_anywhere(
        &self,
        bytes: &[u8],
        senders: &[AgentName],
    ) -> Result<Option<IssueKey>, LedgerError> {
        let id = blob_id(bytes, self.repository.format())?;
        if !self.repository.has(id) {
            return Ok(None);
        }
        let archived = self.all_archived()?.into_iter().map(|line| line.issue);
        for key in self.issues()?.into_iter().chain(archived) {
            let folder = self.issue(&key)?;
            for number in folder.sent_as(id) {
                let record = folder.record(number)?;
                if record.is_some_and(|r| senders.contains(&r.from)) {
                    return Ok(Some(key));
                }
            }
        }
        Ok(None)
    }

    /// A protocol in force.
    ///
    /// # Errors
    /// [`LedgerError`] if it is missing or invalid.
    pub fn rules(&self, name: &str) -> Result<Rules<'r>, LedgerError> {
        Rules::knowing(self.repository, self.tree, name, &self.known)
    }

    /// The rules of a protocol that a user named.
    ///
    /// # Errors
    /// [`ProtocolError::Unknown`] if no such protocol is in force.
    pub(super) fn named_rules(&self, name: &str) -> Result<Rules<'r>, LedgerError> {
        if self.rules_id(name)?.is_some() {
            return self.rules(name);
        }
        let (name, known) = (name.to_owned(), self.protocols()?);
        Err(ProtocolError::Unknown { name, known }.into())
    }

    /// Opens an issue's folder, which may be empty. An archived issue's is found in history.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn issue(&self, key: &IssueKey) -> Result<IssueFolder<'r>, LedgerError> {
        let folder = self.folder(key)?;
        if folder.id.is_some() {
            return Ok(folder);
        }
        let Some(line) = self.archived(key)? else {
            return Ok(folder);
        };
        self.ensure_here(std::slice::from_ref(&line))?;
        let mut folder = IssueFolder::of_archived(self.repository, &line)?;
        folder.reader.clone_from(&self.reader);
        self.from_archive.borrow_mut().insert(key.clone(), line);
        Ok(folder)
    }

    /// Fetches the missing objects for the states of issues in one request.
    pub(super) fn ensure_states(&self, keys: &BTreeSet<IssueKey>) -> Result<(), LedgerError> {
        if let Some(on_demand) = self.on_demand.as_ref().filter(|_| !keys.is_empty()) {
            on_demand.ensure_states(self.repository, self.tree_id(), keys)?;
        }
        Ok(())
    }

    /// The states of these issues, by key, except those that are not in the tip.
    pub(super) fn states(&self, keys: &BTreeSet<IssueKey>) -> Result<Vec<Issue>, LedgerError> {
        self.ensure_states(keys)?;
        let state = |key| IssueFolder::open(self.repository, self.tree, key)?.issue();
        keys.iter()
            .filter_map(|key| state(key).transpose())
            .collect()
    }

    /// The first archived issue opened here that these edits write to.
    pub(super) fn archived_under(&self, files: &FileChanges) -> Option<ArchivedIssue> {
        let opened = self.from_archive.borrow();
        let mut opened = opened.iter();
        opened.find_map(|(key, line)| {
            let folder = format!("{}/", layout::issue_folder(key));
            let is_inside = files.iter().any(|(path, _)| path.starts_with(&folder));
            is_inside.then(|| line.clone())
        })
    }

    /// Every open handoff with its receiver, by issue, the oldest first.
    ///
    /// # Errors
    /// [`LedgerError`] when a folder can't be read.
    pub fn open(&self) -> Result<Vec<Listed>, LedgerError> {
        self.listed(layout::OPEN)
    }

    /// Every ended handoff that awaits an agent, with that agent, by issue, the oldest first.
    ///
    /// # Errors
    /// [`LedgerError`] when a folder can't be read.
    pub fn awaiting(&self) -> Result<Vec<Listed>, LedgerError> {
        self.listed(layout::AWAITING)
    }

    fn listed(&self, top: &str) -> Result<Vec<Listed>, LedgerError> {
        // Callers read all of them next.
        self.ensure_entries(&[layout::OPEN, layout::AWAITING])?;
        let mut listed = Vec::new();
        for agent in self.agents_in(top)? {
            listed.extend(self.listed_with(top, &agent)?);
        }
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(listed)
    }

    /// The paused issues, with their files.
    pub(super) fn paused_issues(&self) -> Result<&BTreeMap<IssueKey, ObjectId>, LedgerError> {
        if let Some(known) = self.paused.get() {
            return Ok(known);
        }
        let mut found = BTreeMap::new();
        for entry in self.tree.list(layout::PAUSED)? {
            let path = format!("{}/{}", layout::PAUSED, entry.name);
            found.extend(layout::paused_at(&path).map(|key| (key, entry.id)));
        }
        if !found.is_empty() {
            self.ensure_entries(&[layout::PAUSED])?;
        }
        Ok(self.paused.get_or_init(|| found))
    }

    /// The pause of an issue, if it is paused. Reads only the issues whose end it waits for.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn paused(&self, key: &IssueKey) -> Result<Option<Paused>, LedgerError> {
        let Some(paused) = self.recorded_pause(key)? else {
            return Ok(None);
        };
        let lasts = self.issue(key)?.lasts(&paused)?;
        Ok(Some(paused).filter(|_| lasts))
    }

    /// The recorded pause of an issue, which may be over.
    pub(super) fn recorded_pause(&self, key: &IssueKey) -> Result<Option<Paused>, LedgerError> {
        let Some(id) = self.paused_issues()?.get(key) else {
            return Ok(None);
        };
        let bytes = self.repository.blob(*id)?;
        let paused = record::read(&bytes);
        let path = || layout::paused_file(key);
        Ok(Some(paused.map_err(|e| LedgerError::stored(&path(), e))?))
    }

    /// The pauses among these issues.
    ///
    /// # Errors
    /// [`LedgerError`] when one can't be read.
    pub fn paused_among<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k IssueKey>,
    ) -> Result<BTreeMap<IssueKey, Paused>, LedgerError> {
        let mut found = BTreeMap::new();
        for key in keys {
            if !found.contains_key(key) {
                found.extend(self.paused(key)?.map(|paused| (key.clone(), paused)));
            }
        }
        Ok(found)
    }

    /// Whether a pause keeps work of an issue from an agent.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn holds_back(&self, key: &IssueKey, agent: &AgentName) -> Result<bool, LedgerError> {
        for halt in &self.manifest.paused {
            // Only such a pause requires the issue to be read.
            let issue = match halt.scope.protocol {
                Some(_) => self.issue(key)?.shared_issue()?,
                None => None,
            };
            let protocol = issue.as_ref().map_or("", |issue| issue.protocol.as_str());
            if halt.holds_back(agent, protocol) {
                return Ok(true);
            }
        }
        self.is_paused_for(key, agent)
    }

    /// Whether the issue's own pause keeps its work from an agent.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn is_paused_for(&self, key: &IssueKey, agent: &AgentName) -> Result<bool, LedgerError> {
        let paused = self.paused(key)?;
        Ok(paused.is_some_and(|paused| paused.holds_back(agent)))
    }

    /// The usage of the claims that began on a day.
    ///
    /// # Errors
    /// [`LedgerError`] when the file can't be read.
    pub fn spent_on(&self, day: &str) -> Result<DaySpending, LedgerError> {
        Ok(spent_on(&self.tree, day)?.unwrap_or_default())
    }

    /// The agents that have a folder in [`layout::OPEN`] or [`layout::AWAITING`].
    pub(super) fn agents_in(&self, top: &str) -> Result<Vec<AgentName>, LedgerError> {
        let entries = self.tree.list(top)?.into_iter();
        let folders = entries.filter(|entry| entry.kind == EntryKind::Tree);
        Ok(folders.filter_map(|e| e.name.parse().ok()).collect())
    }

    /// An agent's entries in [`layout::OPEN`] or [`layout::AWAITING`].
    pub(super) fn listed_with(
        &self,
        top: &str,
        agent: &AgentName,
    ) -> Result<Vec<Listed>, LedgerError> {
        let folder = format!("{top}/{agent}");
        let mut listed = Vec::new();
        for entry in self.tree.divided(&folder)?.from("") {
            let (name, blob) = entry?;
            listed.extend(id_in(&name).map(|id| Listed {
                id,
                to: agent.clone(),
                path: format!("{folder}/{name}"),
                blob,
            }));
        }
        Ok(listed)
    }

    /// The handoffs that an agent holds.
    ///
    /// # Errors
    /// [`LedgerError`] if they can't be read.
    pub fn held_by(&self, agent: &AgentName) -> Result<Vec<Record>, LedgerError> {
        let listed = self.listed_with(layout::OPEN, agent)?;
        let records = listed.iter().map(|entry| self.open_record(entry));
        let is_held = |record: &Result<Record, _>| {
            record
                .as_ref()
                .map_or(true, |record| record.lease.is_some())
        };
        records.filter(is_held).collect()
    }

    /// The handoffs that others cancelled while an agent worked on them, until it acts in their issue.
    ///
    /// # Errors
    /// [`LedgerError`] if they can't be read.
    pub fn cancelled_under(&self, agent: &AgentName) -> Result<Vec<Record>, LedgerError> {
        let listed = self.listed_with(layout::AWAITING, agent)?;
        let records: Result<Vec<Record>, _> =
            listed.iter().map(|entry| self.open_record(entry)).collect();
        let mut records = records?;
        records.retain(|record| record.cancelled_under() == Some(agent));
        Ok(records)
    }

    /// The open handoffs that are with an agent.
    pub(super) fn open_with(&self, agent: &AgentName) -> Result<OpenFolder<'r>, LedgerError> {
        let path = format!("{}/{agent}", layout::OPEN);
        let entries = self.tree.divided(&path)?;
        Ok(OpenFolder { path, entries })
    }

    /// Other open issues, at most `most`.
    pub(super) fn some_open_issues(
        &self,
        besides: &IssueKey,
        most: usize,
    ) -> Result<BTreeSet<IssueKey>, LedgerError> {
        let mut keys = BTreeSet::new();
        for agent in self.agents_in(layout::OPEN)? {
            for entry in self.open_with(&agent)?.from("") {
                let (entry, _) = entry?;
                if entry.id.issue() != besides {
                    keys.insert(entry.id.issue().clone());
                }
                if keys.len() == most {
                    return Ok(keys);
                }
            }
        }
        Ok(keys)
    }

    /// An agent's canonical name, if the given one is an alias in a protocol in force. `None` for a
    /// name that is an agent's own in some protocol, or that is ambiguous.
    ///
    /// # Errors
    /// [`LedgerError`] if a protocol can't be read.
    pub fn own_name(&self, name: &str) -> Result<Option<AgentName>, LedgerError> {
        let (names, quoted) = (self.protocols()?, format!("\"{name}\""));
        let mut called = BTreeSet::new();
        for protocol in &names {
            // Most protocols have no aliases, and are not parsed for that.
            let path = layout::protocol_file(protocol, DEFINITION);
            let Some((_, id)) = self.tree.entry(&path)? else {
                continue;
            };
            let file = match self.repository.shipped(id) {
                Some(bytes) => bytes.into(),
                None => self.repository.blob(id)?,
            };
            let text = String::from_utf8_lossy(&file);
            if text.contains("\"aliases\"") && text.contains(&quoted) {
                let rules = self.rules(protocol)?;
                called.extend(rules.protocol().agent(name).map(|agent| agent.id.clone()));
            }
        }
        let [own] = &Vec::from_iter(called)[..] else {
            return Ok(None);
        };
        for protocol in &names {
            let rules = self.rules(protocol)?;
            let mut agents = rules.protocol().definition().agents.iter();
            if agents.any(|agent| agent.id.as_str() == name) {
                return Ok(None);
            }
        }
        Ok(Some(own.clone()))
    }

    /// The keys that were set in a protocol since its author's version, without those that were
    /// taken back, and that version's definition. Reads history back to the commit that put it in
    /// force; `None` if the clone is too shallow.
    ///
    /// # Errors
    /// [`LedgerError`] if a commit or a definition can't be read.
    pub(crate) fn set_in(
        &self,
        protocol: &str,
    ) -> Result<Option<(BTreeSet<String>, String)>, LedgerError> {
        let path = layout::protocol_file(protocol, DEFINITION);
        let mut keys = BTreeSet::new();
        let mut newest = String::new();
        let mut newer: Option<(ObjectId, String)> = None;
        let mut is_whole = false;
        for id in self.repository.first_parents(self.commit) {
            let commit = self.repository.commit(id?)?;
            let entry = Tree::new(self.repository, commit.tree).entry(&path)?;
            let Some((_, id)) = entry else {
                is_whole = true;
                break;
            };
            if newer.as_ref().is_some_and(|(known, _)| *known == id) {
                continue;
            }
            let blob = self.repository.blob(id)?;
            let text = String::from_utf8_lossy(&blob).into_owned();
            match &newer {
                Some((_, after)) => {
                    keys.extend(only_setting_changed(&text, after).map(|(key, _)| key));
                }
                None => newest.clone_from(&text),
            }
            newer = Some((id, text));
            if !Protocol::load(&blob).is_ok_and(|p| has_settings(&p.definition().version)) {
                is_whole = true;
                break;
            }
        }
        let author = newer.map(|(_, text)| text).unwrap_or_default();
        keys.retain(|key| is_set(key, &author, &newest));
        let is_whole = is_whole || !self.repository.is_cut_off(self.commit)?;
        Ok(is_whole.then_some((keys, author)))
    }

    /// The rules of a protocol when it last had this version, if it had.
    ///
    /// # Errors
    /// [`LedgerError`] if a commit or a definition can't be read.
    pub(crate) fn rules_of(
        &self,
        protocol: &str,
        version: &str,
    ) -> Result<Option<Rules<'r>>, LedgerError> {
        let path = layout::protocol_file(protocol, DEFINITION);
        let mut newer = None;
        for id in self.repository.first_parents(self.commit) {
            let tree = Tree::new(self.repository, self.repository.commit(id?)?.tree);
            let Some((_, id)) = tree.entry(&path)? else {
                break;
            };
            if newer.replace(id) == Some(id) {
                continue;
            }
            let blob = self.repository.blob(id)?;
            let definition: serde_json::Value = serde_json::from_slice(&blob).unwrap_or_default();
            if definition["version"] == version {
                let rules = Rules::knowing(self.repository, tree, protocol, &self.known)?;
                return Ok(Some(rules));
            }
        }
        Ok(None)
    }

    /// The name under which an agent receives handoffs.
    ///
    /// # Errors
    /// [`LedgerError`] if a protocol can't be read.
    pub fn receiver(&self, agent: &AgentName) -> Result<AgentName, LedgerError> {
        Ok(self.own_name(agent.as_str())?.unwrap_or(agent.clone()))
    }

    /// The record of a listed handoff.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn open_record(&self, entry: &Listed) -> Result<Record, LedgerError> {
        if self.on_demand.is_some() && !self.repository.has(entry.blob) {
            let of_agent =
                [layout::OPEN, layout::AWAITING].map(|top| format!("{top}/{}", entry.to));
            self.ensure_entries(&of_agent.each_ref().map(String::as_str))?;
        }
        let bytes = self.repository.blob(entry.blob)?;
        record::read(&bytes).map_err(|e| LedgerError::stored(&entry.path, e))
    }

    /// Every issue's key, in the order of the folders.
    ///
    /// # Errors
    /// [`LedgerError`] when a folder can't be read.
    pub fn issues(&self) -> Result<Vec<IssueKey>, LedgerError> {
        self.ensure_all();
        self.issues_within(MOST_IN_ALL)
    }

    /// Like [`Self::issues`], but without fetching, and only if at most this many folders must be
    /// read.
    ///
    /// # Errors
    /// [`LedgerError`] when there are more, or a folder can't be read.
    pub fn issues_within(&self, most: usize) -> Result<Vec<IssueKey>, LedgerError> {
        let mut keys = Vec::new();
        let met = Cell::new(0);
        let list = |path: &str| -> Result<Vec<Entry>, LedgerError> {
            let entries = self.tree.list(path)?;
            met.set(met.get() + entries.len());
            if met.get() > most {
                return Err(DamageError::TooLarge(path.to_owned()).into());
            }
            Ok(entries)
        };
        let folders = |path: &str| -> Result<Vec<String>, LedgerError> {
            let entries = list(path)?.into_iter();
            let trees = entries.filter(|e| e.kind == EntryKind::Tree);
            Ok(trees.map(|e| format!("{path}/{}", e.name)).collect())
        };
        for last in folders(layout::ISSUES)? {
            for before in folders(&last)? {
                let entries = list(&before)?;
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

/// A handoff that is open or awaits an agent, as listed at the tip.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its id.
    pub id: HandoffId,
    /// Its receiver, or the agent that it awaits.
    pub to: AgentName,
    /// The path of its entry.
    pub(super) path: String,
    blob: ObjectId,
}

impl Listed {
    /// The object of its entry, which identifies an unchanged record.
    pub fn content(&self) -> ObjectId {
        self.blob
    }
}

/// The open handoffs that are with one agent.
pub(super) struct OpenFolder<'r> {
    path: String,
    entries: Divided<'r>,
}

impl<'r> OpenFolder<'r> {
    /// The entries whose names are at least this text, in the order of their names. Reads lazily.
    pub(super) fn from<'s>(
        &'s self,
        start: &str,
    ) -> impl Iterator<Item = Result<(OpenEntry, Listed), LedgerError>> + use<'s, 'r> {
        self.entries.from(start).filter_map(|entry| {
            let (name, blob) = match entry {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            // No step writes another name; the audit reports it.
            let entry: OpenEntry = name.parse().ok()?;
            let (_, agent) = self.path.split_once('/')?;
            let listed = Listed {
                id: entry.id.clone(),
                to: agent.parse().ok()?,
                path: format!("{}/{name}", self.path),
                blob,
            };
            Some(Ok((entry, listed)))
        })
    }
}

/// A file's object id and its bytes.
pub(super) type Blob = (ObjectId, Rc<[u8]>);

/// An issue's folder at one commit.
pub struct IssueFolder<'r> {
    repository: &'r Repository,
    key: IssueKey,
    /// The ledger's tree; `None` for an archived issue.
    top: Option<Tree<'r>>,
    /// Its own tree, if the issue was opened.
    id: Option<ObjectId>,
    /// The commit that contains it, if the issue is archived.
    archived_in: Option<ObjectId>,
    listing: Listing,
    parsed: Option<Rc<Parsed>>,
    /// The worker for whom commands are printed, if it is known.
    reader: Option<WorkerId>,
}

/// A cache of parsed files that are likely to be needed again.
pub(super) struct Parsed {
    issues: RefCell<Recent<Rc<Issue>>>,
    records: RefCell<Recent<Rc<Record>>>,
}

impl Parsed {
    pub(super) fn new() -> Self {
        /// In bytes of JSON; the parsed form takes about three times as much.
        const LIMIT: usize = 1 << 20;
        Self {
            issues: RefCell::new(Recent::new(LIMIT)),
            records: RefCell::new(Recent::new(LIMIT)),
        }
    }
}

impl<'r> IssueFolder<'r> {
    /// The repository.
    pub(crate) fn repository(&self) -> &'r Repository {
        self.repository
    }

    /// The issue, without a pause that is over: that stays on record until the next claim.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn current_issue(&self) -> Result<Option<Issue>, LedgerError> {
        let Some(mut issue) = self.issue()? else {
            return Ok(None);
        };
        if let Some(paused) = &issue.paused
            && !self.lasts(paused)?
        {
            issue.paused = None;
        }
        Ok(Some(issue))
    }

    /// Whether a pause lasts: one until other issues end is over once they have.
    pub(super) fn lasts(&self, paused: &Paused) -> Result<bool, LedgerError> {
        let mut lasts = paused.after.is_empty();
        for before in &paused.after {
            lasts |= self.ended(before)? != Some(true);
        }
        Ok(lasts)
    }

    /// Opens an issue's folder in a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] when it can't be read.
    pub fn open(
        repository: &'r Repository,
        tree: Tree<'r>,
        key: &IssueKey,
    ) -> Result<Self, LedgerError> {
        let found = tree.entry(&layout::issue_folder(key))?;
        let id = found.and_then(|(kind, id)| (kind == EntryKind::Tree).then_some(id));
        let listing = match id {
            Some(id) => Tree::new(repository, id).listing()?,
            None => Listing::default(),
        };
        Ok(Self {
            repository,
            key: key.clone(),
            top: Some(tree),
            id,
            archived_in: None,
            listing,
            parsed: None,
            reader: None,
        })
    }

    pub(super) fn of_archived(
        repository: &'r Repository,
        line: &ArchivedIssue,
    ) -> Result<Self, LedgerError> {
        Self::at(repository, &line.issue, line.tree, Some(line.commit))
    }

    /// Opens an issue's folder by its tree, in the tip or in an archived issue's commit.
    pub(super) fn at(
        repository: &'r Repository,
        key: &IssueKey,
        tree: ObjectId,
        archived_in: Option<ObjectId>,
    ) -> Result<Self, LedgerError> {
        let listing = Tree::new(repository, tree).listing();
        let listing = listing.map_err(|source| DamageError::Object {
            path: layout::issue_folder(key),
            source,
        })?;
        Ok(Self {
            repository,
            key: key.clone(),
            top: None,
            id: Some(tree),
            archived_in,
            listing,
            parsed: None,
            reader: None,
        })
    }

    /// Shares a cache of parsed files.
    pub(super) fn remembering(mut self, parsed: &Rc<Parsed>) -> Self {
        self.parsed = Some(Rc::clone(parsed));
        self
    }

    /// Its tree, if the issue was opened.
    pub(super) fn id(&self) -> Option<ObjectId> {
        self.id
    }

    /// The last commit whose tree has the folder, if the issue is archived.
    pub fn archived_in(&self) -> Option<ObjectId> {
        self.archived_in
    }

    /// The issue's key.
    pub fn key(&self) -> &IssueKey {
        &self.key
    }

    /// A file's object id and its bytes, if it exists.
    pub(super) fn read(&self, name: &str) -> Result<Option<Blob>, LedgerError> {
        let Some(id) = self.listing.find(name)? else {
            return Ok(None);
        };
        let bytes = self.repository.blob(id);
        let bytes = bytes.map_err(|source| self.unreadable(name, source))?;
        Ok(Some((id, bytes)))
    }

    fn unreadable(&self, name: &str, source: GitError) -> DamageError {
        let path = layout::in_issue(&self.key, name);
        DamageError::Object { path, source }
    }

    fn stored<T: handoff_model::record::Stored + Clone>(
        &self,
        name: &str,
        parsed: Option<&RefCell<Recent<Rc<T>>>>,
    ) -> Result<Option<Rc<T>>, LedgerError> {
        let Some(id) = self.listing.find(name)? else {
            return Ok(None);
        };
        if let Some(known) = parsed.and_then(|parsed| parsed.borrow_mut().get(id)) {
            return Ok(Some(known));
        }
        let bytes = self.repository.derived_blob(id);
        let bytes = bytes.map_err(|source| self.unreadable(name, source))?;
        let path = || layout::in_issue(&self.key, name);
        let value: T = record::read(&bytes).map_err(|e| LedgerError::stored(&path(), e))?;
        let value = Rc::new(value);
        if let Some(parsed) = parsed {
            parsed.borrow_mut().put(id, Rc::clone(&value), bytes.len());
        }
        Ok(Some(value))
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
}

impl IssueFolder<'_> {
    /// The folder's tree, if there is one.
    pub(super) fn tree(&self) -> Option<ObjectId> {
        self.id
    }

    /// The file's object id, if it exists.
    pub(super) fn object(&self, name: &str) -> Result<Option<ObjectId>, LedgerError> {
        Ok(self.listing.find(name)?)
    }

    /// The handoffs whose contract is this object, the newest first.
    pub(super) fn sent_as(&self, id: ObjectId) -> Vec<u32> {
        let names = self.listing.names_of(id).filter(|n| n.contains("-to-"));
        let numbers = names.filter_map(|name| name.split_once('-')?.0.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers
    }
}

impl View<LedgerError> for IssueFolder<'_> {
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, LedgerError> {
        self.stored("issue.json", self.parsed.as_ref().map(|p| &p.issues))
    }

    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, LedgerError> {
        let parsed = self.parsed.as_ref().map(|p| &p.records);
        self.stored(&layout::record_name(number), parsed)
    }

    fn reader(&self) -> Option<&WorkerId> {
        self.reader.as_ref()
    }

    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, LedgerError> {
        Ok(self.sent_as(blob_id(bytes, self.repository.format())?))
    }

    fn twin(&self) -> Result<Option<IssueKey>, LedgerError> {
        let folder = layout::issue_folder(&self.key);
        let (Some(top), Some((shared, own))) = (&self.top, folder.rsplit_once('/')) else {
            return Ok(None);
        };
        let others = top.list(shared)?.into_iter();
        let mut twins = others.filter(|one| one.name != own && one.name.eq_ignore_ascii_case(own));
        Ok(twins.find_map(|one| one.name.parse().ok()))
    }

    fn spent_on(&self, day: &str) -> Result<Option<DaySpending>, LedgerError> {
        self.top.as_ref().map_or(Ok(None), |top| spent_on(top, day))
    }

    fn ended(&self, key: &IssueKey) -> Result<Option<bool>, LedgerError> {
        let Some(top) = self.top else {
            return Ok(None);
        };
        let issue = Self::open(self.repository, top, key)?.shared_issue()?;
        match issue {
            Some(issue) => Ok(Some(issue.status != IssueStatus::Open)),
            // Only ended issues are archived.
            None => Ok(archived_in(top, key)?.map(|_| true)),
        }
    }

    fn halts(&self) -> Result<Vec<Halt>, LedgerError> {
        // Nothing is open in an archived issue.
        let Some(bytes) = self
            .top
            .map(|top| top.file(layout::MANIFEST))
            .transpose()?
            .flatten()
        else {
            return Ok(Vec::new());
        };
        let read = record::read(&bytes).map(|manifest: Manifest| manifest.paused);
        read.map_err(|error| LedgerError::stored(layout::MANIFEST, error))
    }

    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, LedgerError> {
        let file = &record.contract.file;
        let path = || layout::in_issue(&self.key, file);
        let found = self.read(file)?;
        found
            .map(|(_, bytes)| bytes)
            .ok_or_else(|| LedgerError::missing(path()))
    }
}

/// The usage on a day, from a ledger's tree.
fn spent_on(tree: &Tree<'_>, day: &str) -> Result<Option<DaySpending>, LedgerError> {
    let path = layout::spent_file(day);
    let Some(bytes) = tree.file(&path)? else {
        return Ok(None);
    };
    let spent = record::read(&bytes).map_err(|error| LedgerError::stored(&path, error))?;
    Ok(Some(spent))
}

/// A protocol in force, whose schemas are compiled when needed.
pub struct Rules<'r> {
    repository: &'r Repository,
    tree: Tree<'r>,
    protocol: Arc<Protocol>,
    signers: OnceCell<Option<Rc<Signers>>>,
    schemas: RefCell<HashMap<String, Rc<Schema>>>,
}

/// A built-in protocol, read once per process.
fn shipped(id: ObjectId, bytes: &[u8]) -> Result<Arc<Protocol>, Vec<Finding>> {
    static READ: Mutex<BTreeMap<ObjectId, Arc<Protocol>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(protocol) = read.get(&id) {
        return Ok(Arc::clone(protocol));
    }
    let protocol = Arc::new(Protocol::sound(bytes)?);
    read.insert(id, Arc::clone(&protocol));
    Ok(protocol)
}

/// The maximum size of `ledger.json`, in bytes: every command reads it.
const MOST_OF_MANIFEST: usize = 64 * 1024;

/// The maximum size of all files of a protocol, in bytes.
const MOST_OF_PROTOCOL: usize = 64 * 1024 * 1024;

impl<'r> Rules<'r> {
    /// Reads a protocol from a ledger's tree.
    ///
    /// # Errors
    /// [`LedgerError`] if it is missing or invalid.
    pub fn read(
        repository: &'r Repository,
        tree: Tree<'r>,
        name: &str,
    ) -> Result<Self, LedgerError> {
        Self::knowing(repository, tree, name, &KnownProtocols::default())
    }

    fn knowing(
        repository: &'r Repository,
        tree: Tree<'r>,
        name: &str,
        known: &KnownProtocols,
    ) -> Result<Self, LedgerError> {
        let path = layout::protocol_file(name, DEFINITION);
        let folder = path.trim_end_matches("/protocol.json");
        let missing = || LedgerError::missing(path.clone());
        let (_, id) = tree.entry(folder)?.ok_or_else(missing)?;
        let tree = Tree::new(repository, id);
        let found = known.borrow().get(&id).cloned();
        let protocol = match found {
            Some(protocol) => protocol,
            None => {
                let (_, definition) = tree.entry(DEFINITION)?.ok_or_else(missing)?;
                let loaded = match repository.shipped(definition) {
                    Some(bytes) => shipped(definition, bytes),
                    None => Protocol::load(&repository.blob(definition)?).map(Arc::new),
                };
                let protocol = loaded.map_err(|findings| DamageError::Protocol {
                    name: name.to_owned(),
                    findings,
                })?;
                known.borrow_mut().insert(id, Arc::clone(&protocol));
                protocol
            }
        };
        Ok(Self {
            repository,
            tree,
            protocol,
            signers: OnceCell::new(),
            schemas: RefCell::default(),
        })
    }

    /// The protocol's definition.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The keys that may sign, if steps under the protocol must be signed.
    ///
    /// # Errors
    /// [`LedgerError`] if the list can't be read.
    pub fn signers(&self) -> Result<Option<Rc<Signers>>, LedgerError> {
        if let Some(known) = self.signers.get() {
            return Ok(known.clone());
        }
        let signers = match self.tree.file(SIGNERS)? {
            None => None,
            Some(bytes) => match Signers::parse(&bytes) {
                (signers, found) if found.is_empty() => {
                    Some(Rc::new(signers)).filter(|signers| !signers.is_empty())
                }
                (_, findings) => {
                    let name = self.protocol.name().to_owned();
                    return Err(DamageError::Protocol { name, findings }.into());
                }
            },
        };
        Ok(self.signers.get_or_init(|| signers).clone())
    }

    /// All files of the protocol, by path in its folder.
    ///
    /// # Errors
    /// [`LedgerError`] when one can't be read.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LedgerError> {
        let (mut files, mut total) = (Vec::new(), 0);
        for folder in ["", "schemas/", "templates/"] {
            let entries = self.tree.list(folder.trim_end_matches('/'))?;
            let own = |name: &str| !folder.is_empty() || layout::is_protocol_file(name);
            let files_here = entries.iter().filter(|e| e.kind != EntryKind::Tree);
            for entry in files_here.filter(|e| own(&e.name)) {
                let path = format!("{folder}{}", entry.name);
                let bytes = self.bytes(&path)?.to_vec();
                total += bytes.len();
                if total > MOST_OF_PROTOCOL {
                    let path = layout::protocol_file(self.protocol.name(), &path);
                    return Err(DamageError::TooLarge(path).into());
                }
                files.push((path, bytes));
            }
        }
        Ok(files)
    }

    /// Whether it equals the version that the program ships, apart from its list of keys.
    pub(super) fn is_shipped(&self) -> Result<bool, LedgerError> {
        for (path, bytes) in self.files()? {
            let id = blob_id(&bytes, ObjectFormat::Sha1)?;
            if path != SIGNERS && self.repository.shipped(id).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A file of the protocol.
    ///
    /// # Errors
    /// [`LedgerError`] when it is missing or can't be read.
    pub fn bytes(&self, file: &str) -> Result<Rc<[u8]>, LedgerError> {
        let path = || layout::protocol_file(self.protocol.name(), file);
        self.tree
            .file(file)?
            .ok_or_else(|| LedgerError::missing(path()))
    }
}

impl Schemas for Rules<'_> {
    type Error = LedgerError;

    fn file(&self, file: &str) -> Result<Rc<Schema>, LedgerError> {
        if let Some(schema) = self.schemas.borrow().get(file) {
            return Ok(Rc::clone(schema));
        }
        let path = layout::protocol_file(self.protocol.name(), file);
        let form = |error| LedgerError::stored(&path, record::StoredError::Form(error));
        let (_, id) = self
            .tree
            .entry(file)?
            .ok_or_else(|| LedgerError::missing(path.clone()))?;
        let compiled = match self.repository.shipped(id) {
            Some(bytes) => Schema::sound(serde_json::from_slice(bytes).map_err(form)?),
            None => {
                let bytes = self.repository.blob(id)?;
                Schema::compile_trusted(&serde_json::from_slice(&bytes).map_err(form)?)
            }
        };
        let schema = compiled.map_err(|source| DamageError::Schema {
            path,
            source: Box::new(source),
        })?;
        let schema = Rc::new(schema);
        self.schemas
            .borrow_mut()
            .insert(file.to_owned(), Rc::clone(&schema));
        Ok(schema)
    }

    fn names(&self) -> Result<Vec<String>, LedgerError> {
        let entries = self.tree.list("schemas")?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }
}
