//! Installing and uninstalling a harness's files: all changes are planned first, then applied.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use handoff::base::codes::ErrorCode;
use handoff::base::explained::{Explained, Explanation};
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::text::counted_as;
use handoff::contract::edit::{self, EditError, Leaf};
use handoff::git::{git_directory_of, led_to, read_regular};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::placement::{Placed, TEXT_FILE, installed_names, placements};
use super::table::{Table, TableFault};
use super::{Acts, ExpectedHook, HARNESSES, Harness, Mcp, SKILL, guide, is_installed, leftovers};
use handoff_cli::hooks::{Found, WriteError, read_path, replace_as};

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AgentFileAction")]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The file is new.
    Create,
    /// The file is modified.
    Change,
    /// The file is deleted.
    Remove,
    /// The file is up to date.
    Keep,
}

impl Action {
    /// The word for it in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Remove => "remove",
            Self::Keep => "keep",
        }
    }
}

/// Why changes were not applied, or not all of them.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// Files prevent it.
    #[error("nothing was changed: {} in the way", counted_as(findings.len(), "file", [" is", "s are"]))]
    Refused {
        /// The reasons, and how to proceed.
        findings: Vec<Finding>,
    },
    /// A file can't be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file can't be written.
    #[error(transparent)]
    Write(WriteError),
}

impl Explained for AgentsError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Refused { findings } => ErrorCode::AgentsRefused
                .hint("fix what the findings name, and run the same command again")
                .findings(findings),
            Self::Write(WriteError::Changed(_)) => {
                ErrorCode::AgentsChanged.hint("nothing was changed; run the same command again")
            }
            Self::Write(WriteError::Io { .. }) | Self::Read { .. } => ErrorCode::AgentsFile.hint(
                "the file is unchanged; check it with `ls -ld`, and run the same command again",
            ),
        }
    }
}

/// The change of one file.
#[derive(Debug)]
pub struct Change {
    /// The path in the worktree.
    pub path: String,
    file: PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl Change {
    /// The kind of change.
    pub fn action(&self) -> Action {
        match (&self.before, &self.after) {
            (before, after) if before == after => Action::Keep,
            (None, _) => Action::Create,
            (_, None) => Action::Remove,
            _ => Action::Change,
        }
    }

    /// The difference as lines that begin with `+` or `-`.
    pub fn difference(&self) -> String {
        if self.action() == Action::Keep {
            return String::new();
        }
        handoff_cli::hooks::difference(self.before.as_deref(), self.after.as_deref())
    }
}

/// Planned changes.
#[must_use = "nothing changes unless the plan is carried out"]
#[derive(Debug)]
pub struct Plan {
    root: PathBuf,
    changes: Vec<Change>,
}

/// A plan under construction.
struct Draft<'a> {
    root: &'a Path,
    /// By resolved path, because several paths may link to one file.
    files: BTreeMap<PathBuf, Change>,
    refused: Vec<Finding>,
}

impl Plan {
    /// Plans the installation for these harnesses, with an optional agent and branch.
    ///
    /// # Errors
    /// [`AgentsError`] with everything that prevents it.
    pub fn install(
        root: &Path,
        harnesses: &[&Harness],
        acts: &Acts,
        mcp: bool,
    ) -> Result<Self, AgentsError> {
        let mut draft = Draft::new(root);
        let mut names = installed_names(root);
        names.extend(harnesses.iter().map(|harness| harness.name.clone()));
        draft.guides(&names)?;
        for harness in harnesses {
            if let Some(path) = &harness.skill {
                draft.own_file(path, Some(SKILL))?;
            }
            if let Some(hooks) = &harness.hooks {
                for expected in harness.entries(acts) {
                    let by_hand = (&expected.at[..], &expected.entry);
                    draft.config(&hooks.file, &hooks.empty, by_hand, |text| {
                        with_hook(text, &expected)
                    })?;
                }
            }
            if let Some((mcp, server)) = harness.server(acts).filter(|_| mcp) {
                draft.server(harness, mcp, &server)?;
            }
        }
        draft.plan()
    }

    /// Plans the removal of everything that was installed.
    ///
    /// # Errors
    /// [`AgentsError`] with everything that prevents it.
    pub fn uninstall(root: &Path, harnesses: &[&Harness]) -> Result<Self, AgentsError> {
        let mut draft = Draft::new(root);
        let mut names = installed_names(root);
        names.retain(|name| !harnesses.iter().any(|gone| gone.name == *name));
        draft.guides(&names)?;
        for harness in harnesses {
            let was_installed = is_installed(harness, root);
            let is_left = |other: &&Harness| !harnesses.iter().any(|gone| gone.name == other.name);
            let mut sharing = HARNESSES
                .iter()
                .filter(|other| other.skill == harness.skill);
            let is_shared = sharing.any(|other| is_left(&other) && is_installed(other, root));
            if let Some(path) = harness.skill.as_ref().filter(|_| !is_shared) {
                draft.own_file(path, None)?;
            }
            // Remove in the reverse order of installing, since both may be in one file. If nothing
            // else was installed, a server may be the user's own.
            if let Some(mcp) = harness.mcp.as_ref().filter(|_| was_installed) {
                draft.without_server(harness, mcp)?;
            }
            if let Some(hooks) = &harness.hooks {
                for expected in harness.entries(&Acts::default()).iter().rev() {
                    let by_hand = (&expected.at[..], &expected.entry);
                    draft.remove_from(&hooks.file, &hooks.empty, by_hand, |text| {
                        without_hook(text, expected)
                    })?;
                }
            }
        }
        draft.plan()
    }

    /// The change of each file.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Applies all changes or none: if a file can't be written, or was modified since planning,
    /// earlier changes are reverted. Locking is the caller's job.
    ///
    /// # Errors
    /// [`AgentsError::Write`] with the file that could not be written.
    pub fn carry_out(&self) -> Result<(), AgentsError> {
        for leftover in self.changes.iter().flat_map(|c| leftovers::beside(&c.file)) {
            // `doctor` reports those that can't be removed.
            let _ = std::fs::remove_file(leftover);
        }
        let changes = || self.changes.iter().filter(|c| c.action() != Action::Keep);
        let (gone, written): (Vec<_>, Vec<_>) = changes().partition(|c| c.after.is_none());
        let all = [written, gone].concat();
        for (done, change) in all.iter().enumerate() {
            let (before, after) = (change.before.as_deref(), change.after.as_deref());
            let Err(error) = replace_as(&change.file, before, after, MODE) else {
                continue;
            };
            for change in all[..done].iter().rev() {
                let (before, after) = (change.before.as_deref(), change.after.as_deref());
                // If somebody has modified the file since, that version stays.
                let _ = replace_as(&change.file, after, before, MODE);
            }
            changes().for_each(|change| self.remove_empty_folders(change));
            return Err(AgentsError::Write(error));
        }
        changes().for_each(|change| self.remove_empty_folders(change));
        Ok(())
    }

    /// Removes the folders of a deleted file that are now empty.
    fn remove_empty_folders(&self, change: &Change) {
        let mut folder = change.file.parent().filter(|_| !change.file.exists());
        while let Some(path) = folder.filter(|f| **f != *self.root && f.starts_with(&self.root)) {
            if std::fs::remove_dir(path).is_err() {
                break;
            }
            folder = path.parent();
        }
    }
}

/// The mode of new files, before the umask.
const MODE: u32 = 0o666;

const SERVER: &str = "git-handoff";

/// A new, empty configuration.
const EMPTY: &str = "{\n}\n";

/// A configuration with a hook added, or in place of our earlier one. Everything else stays.
fn with_hook(text: &str, expected: &ExpectedHook<'_>) -> Result<String, EditError> {
    let config = edit::read(text)?;
    let handlers = expected.handlers(&config);
    let ours = handlers
        .iter()
        .find(|(_, handler)| expected.acts(handler).is_some());
    match ours {
        // If the hook is unchanged, keep its formatting.
        Some((_, handler)) if *handler == expected.handler() => Ok(text.to_owned()),
        Some((path, handler)) => {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let is_it = |_: Option<&str>, value: &Value| value == *handler;
            let replaced = edit::replace(text, &path, is_it, expected.handler())?;
            Ok(replaced.unwrap_or_else(|| text.to_owned()))
        }
        None => edit::add(text, &expected.at, Leaf::Element(&expected.entry)),
    }
}

/// A configuration with these members added, unless names are taken.
fn with_members(text: &str, members: &Map<String, Value>) -> Result<String, EditError> {
    let config = edit::read(text)?;
    let missing = members.iter().filter(|(key, _)| config.get(key).is_none());
    missing
        .into_iter()
        .try_fold(text.to_owned(), |text, (key, value)| {
            edit::add(&text, &[], Leaf::Member(key, value))
        })
}

/// A configuration with these members removed.
fn without_members(text: &str, members: &Map<String, Value>) -> Result<String, EditError> {
    members
        .iter()
        .try_fold(text.to_owned(), |text, (name, own)| {
            let is_it = |key: Option<&str>, value: &Value| key == Some(name) && value == own;
            Ok(edit::remove(&text, &[], is_it)?.unwrap_or(text))
        })
}

/// A configuration with our hooks removed; `None` if there are none.
fn without_hook(text: &str, expected: &ExpectedHook<'_>) -> Result<Option<String>, EditError> {
    let mut left = None;
    loop {
        let text = left.as_deref().unwrap_or(text);
        let whole = edit::remove(text, &expected.at, |_, value| expected.is_whole(value))?;
        let next = match whole {
            Some(next) => next,
            None => {
                let config = edit::read(text)?;
                let mut handlers = expected.handlers(&config).into_iter();
                let Some((path, ours)) = handlers.find(|(_, h)| expected.acts(h).is_some()) else {
                    return Ok(left);
                };
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                match edit::remove(text, &path, |_, value| value == ours)? {
                    Some(next) => next,
                    None => return Ok(left),
                }
            }
        };
        left = Some(next);
    }
}

impl<'a> Draft<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            files: BTreeMap::new(),
            refused: Vec::new(),
        }
    }

    /// The current draft of a file; `None` if it can't be edited.
    fn file(&mut self, path: &str) -> Result<Option<&mut Change>, AgentsError> {
        let read = |file: &Path, source| AgentsError::Read {
            path: file.to_owned(),
            source,
        };
        let named = self.root.join(path);
        let file = match named.canonicalize() {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => named.clone(),
            Err(source) => return Err(read(&named, source)),
        };
        // A link may lead elsewhere in the worktree, but not out of it.
        let above = named
            .ancestors()
            .skip(1)
            .find_map(|folder| folder.canonicalize().ok());
        let inside = |path: &Path| path.starts_with(self.root);
        let leads = led_to(&named);
        if !inside(&file)
            || !inside(&leads)
            || !above.as_deref().is_some_and(inside)
            || named.is_symlink() && !named.exists()
        {
            let text = format!("{path} is a link that leads out of the worktree, or nowhere");
            self.refuse(
                FindingCode::AgentsLink,
                path,
                text,
                "put a file in its place, or write what it leads to yourself",
            );
            return Ok(None);
        }
        // Nor may it lead into the git directory, whose files may be executed.
        if let Some(folder) = git_directory_of(&leads, self.root) {
            let text = format!("{path} leads into the git directory {}", folder.display());
            let fix = "remove the link, or put a file in its place";
            self.refuse(FindingCode::AgentsLink, path, text, fix);
            return Ok(None);
        }
        if !self.files.contains_key(&file) {
            let bytes = match read_path(&file).map_err(|source| read(&file, source))? {
                Found::Nothing => None,
                Found::File(bytes, metadata) => {
                    if metadata.permissions().readonly() {
                        let text = format!("{path} may only be read");
                        self.refuse(
                            FindingCode::AgentsReadOnly,
                            path,
                            text,
                            "give it back its write permission",
                        );
                        return Ok(None);
                    }
                    Some(bytes)
                }
                Found::Link(_) | Found::Other => {
                    let text = format!("{path} is not a regular file");
                    self.refuse(
                        FindingCode::AgentsLink,
                        path,
                        text,
                        "move it out of the way",
                    );
                    return Ok(None);
                }
            };
            let change = Change {
                path: path.to_owned(),
                file: file.clone(),
                before: bytes.clone(),
                after: bytes,
            };
            self.files.insert(file.clone(), change);
        }
        Ok(self.files.get_mut(&file))
    }

    fn refuse(&mut self, code: FindingCode, path: &str, text: String, fix: &str) {
        let finding = Finding::error(code, path, text).fix(fix);
        if !self.refused.contains(&finding) {
            self.refused.push(finding);
        }
    }

    /// Places the text for these harnesses so that each reads it once.
    fn guides(&mut self, names: &BTreeSet<String>) -> Result<(), AgentsError> {
        let placed = placements(self.root, names);
        let imports = |placed: &Placed| placed.import.is_some() && !placed.names.is_empty();
        let imported = placed.iter().any(imports);
        for placed in placed {
            self.guide(&placed)?;
        }
        let text = guide::imported();
        self.own_file(TEXT_FILE, imported.then_some(&*text))
    }

    fn guide(&mut self, placed: &Placed) -> Result<(), AgentsError> {
        let path = &placed.path;
        let bytes = read_regular(&self.root.join(path)).unwrap_or_default();
        let known = guide::names(&bytes);
        if placed.names.is_empty() && matches!(known, Ok(None)) {
            return Ok(());
        }
        let Some(file) = self.file(path)? else {
            return Ok(());
        };
        match guide::with(
            file.after.as_deref(),
            &placed.names,
            placed.import.as_deref(),
        ) {
            Ok(after) => file.after = after,
            Err(fault) => {
                let text = format!("the block in {path} has no clear boundaries: {fault}");
                self.refuse(
                    FindingCode::AgentsMarker,
                    path,
                    text,
                    "put the missing line back, or take the block out by hand",
                );
            }
        }
        Ok(())
    }

    /// A file that is entirely ours, as its last line shows.
    fn own_file(&mut self, path: &str, text: Option<&str>) -> Result<(), AgentsError> {
        let Some(file) = self.file(path)? else {
            return Ok(());
        };
        let mark = SKILL.lines().last().unwrap_or_default().as_bytes();
        let before = file.before.as_deref();
        let foreign = before.is_some_and(|bytes| !bytes.trim_ascii_end().ends_with(mark));
        match (foreign, text) {
            (true, Some(_)) => {
                let text = format!(
                    "{path} is a file of the same name that was not written by this program"
                );
                self.refuse(
                    FindingCode::AgentsSkill,
                    path,
                    text,
                    "rename it, or put back its last line, and run the same again",
                );
            }
            (true, None) => {}
            (false, Some(text)) if before.is_some_and(|bytes| guide::is_same(bytes, text)) => {}
            (false, text) => file.after = text.map(|text| text.as_bytes().to_vec()),
        }
        Ok(())
    }

    fn config(
        &mut self,
        path: &str,
        empty: &str,
        by_hand: (&[&str], &Value),
        edit: impl Fn(&str) -> Result<String, EditError>,
    ) -> Result<(), AgentsError> {
        let Some(file) = self.file(path)? else {
            return Ok(());
        };
        let text = match file.after.as_deref() {
            None => Ok(empty.to_owned()),
            Some(bytes) => text_of(bytes),
        };
        match text.and_then(|text| edit(&text)) {
            Ok(text) => file.after = Some(text.into_bytes()),
            Err(fault) => self.unclear(path, &fault, by_hand),
        }
        Ok(())
    }

    fn remove_from(
        &mut self,
        path: &str,
        empty: &str,
        by_hand: (&[&str], &Value),
        edit: impl Fn(&str) -> Result<Option<String>, EditError>,
    ) -> Result<(), AgentsError> {
        let Some(file) = self.file(path)? else {
            return Ok(());
        };
        let Some(bytes) = file.after.as_deref() else {
            return Ok(());
        };
        match text_of(bytes).and_then(|text| edit(&text)) {
            Ok(None) => {}
            // A file that equals the initial content has nothing of the user's.
            Ok(Some(text)) if text.replace("\r\n", "\n") == empty => file.after = None,
            Ok(Some(text)) => file.after = Some(text.into_bytes()),
            Err(fault) => self.unclear(path, &fault, by_hand),
        }
        Ok(())
    }

    /// Adds a server to a TOML configuration, or removes ours.
    fn table(
        &mut self,
        harness: &Harness,
        mcp: &Mcp,
        server: Option<&Value>,
    ) -> Result<(), AgentsError> {
        let Some(file) = self.file(&mcp.file)? else {
            return Ok(());
        };
        let table = Table {
            at: &mcp.at,
            name: SERVER,
        };
        let is_ours = |server: &Value| harness.is_our_server(server);
        let after = match server {
            Some(server) => table.with(file.after.as_deref(), server, is_ours),
            None => table.without(file.after.as_deref(), is_ours),
        };
        let by_hand = server.map(|server| table.text(server)).unwrap_or_default();
        match after {
            Ok(after) => file.after = after,
            Err(TableFault::Foreign) => self.foreign_server(&mcp.file, &by_hand),
            Err(fault) => {
                let text = format!("{} can't be edited: {fault}", mcp.file);
                let fix = format!("fix it and run the same again, or add this by hand: {by_hand}");
                self.refuse(FindingCode::AgentsConfig, &mcp.file, text, &fix);
            }
        }
        Ok(())
    }

    fn server(&mut self, harness: &Harness, mcp: &Mcp, server: &Value) -> Result<(), AgentsError> {
        if mcp.is_toml() {
            return self.table(harness, mcp, Some(server));
        }
        let at: Vec<&str> = mcp.at.iter().map(String::as_str).collect();
        let own = self.current_server(&mcp.file, &at);
        if own.is_some_and(|own| own != *server && !harness.is_our_server(&own)) {
            self.foreign_server(&mcp.file, &server.to_string());
            return Ok(());
        }
        let named = serde_json::json!({ SERVER: server });
        self.config(&mcp.file, EMPTY, (&at, &named), |text| {
            let text = &with_members(text, &mcp.with)?;
            let own = |key: Option<&str>, _: &Value| key == Some(SERVER);
            let is_same = |key: Option<&str>, value: &Value| own(key, value) && value == server;
            if edit::replace(text, &at, is_same, server)?.is_some() {
                return Ok(text.to_owned());
            }
            match edit::replace(text, &at, own, server)? {
                Some(replaced) => Ok(replaced),
                None => edit::add(text, &at, Leaf::Member(SERVER, server)),
            }
        })
    }

    fn without_server(&mut self, harness: &Harness, mcp: &Mcp) -> Result<(), AgentsError> {
        if mcp.is_toml() {
            return self.table(harness, mcp, None);
        }
        let at: Vec<&str> = mcp.at.iter().map(String::as_str).collect();
        let named = serde_json::json!({ SERVER: mcp.value });
        self.remove_from(&mcp.file, EMPTY, (&at, &named), |text| {
            let server = edit::remove(text, &at, |key, value| {
                key == Some(SERVER) && harness.is_our_server(value)
            })?;
            let without = server.map(|text| without_members(&text, &mcp.with));
            without.transpose()
        })
    }

    fn foreign_server(&mut self, path: &str, ours: &str) {
        let text = format!("{path} has a server `{SERVER}` that was not written by this program");
        let fix = format!("leave --mcp out, or put this in its place: {ours}");
        self.refuse(FindingCode::AgentsServer, path, text, &fix);
    }

    fn unclear(&mut self, path: &str, fault: &EditError, (at, entry): (&[&str], &Value)) {
        let text = format!("{path} can't be edited: {fault}");
        let fix = format!(
            "fix it and take comments out of it, and run the same again; or do it by hand: under `{}`, {entry}",
            at.join(".")
        );
        self.refuse(FindingCode::AgentsConfig, path, text, &fix);
    }

    /// The current server with our name in a configuration.
    fn current_server(&self, path: &str, at: &[&str]) -> Option<Value> {
        let bytes = String::from_utf8(read_regular(&self.root.join(path)).ok()?).ok()?;
        let config = edit::read(&bytes).ok()?;
        let list = at.iter().try_fold(&config, |value, key| value.get(*key))?;
        list.get(SERVER).cloned()
    }

    fn plan(self) -> Result<Plan, AgentsError> {
        if !self.refused.is_empty() {
            return Err(AgentsError::Refused {
                findings: self.refused,
            });
        }
        Ok(Plan {
            root: self.root.to_owned(),
            changes: self.files.into_values().collect(),
        })
    }
}

fn text_of(bytes: &[u8]) -> Result<String, EditError> {
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|_| EditError::Syntax("it is not UTF-8".to_owned()))
}
