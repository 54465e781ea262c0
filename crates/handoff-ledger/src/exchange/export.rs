//! Export: writes a folder in one of the layouts, with a log of every step.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use handoff_base::ObjectId;
use handoff_base::ids::{HandoffId, IssueKey};
use handoff_git::{GitError, Repository};
use handoff_model::{FailureContext, Refusal, Update, View};
use serde::Serialize;

use super::history::{History, Taken};
use super::layouts::Reader;
use super::line::{Header, Key, Line, STEPS, VERSION};
use super::shared_folder::SharedFolder;
use super::{ExchangeError, Layout, folders, layouts, unreadable, unwritable};
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::tally::{Tally, Work};

/// What to export.
#[derive(Clone, Copy)]
pub struct Export<'a> {
    /// The layout of the folder.
    pub layout: Layout,
    /// The only issue to export; `None` for all.
    pub issue: Option<&'a IssueKey>,
    /// Counts the steps written.
    pub tally: Option<&'a Tally>,
}

/// The result of an export.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// The number of steps.
    pub steps: usize,
    /// The number of handoffs that they started.
    pub handoffs: usize,
    /// The number of files written.
    pub files: usize,
    /// Files of other programs where an exported file would be; they stay as they are.
    pub kept: Vec<String>,
}

pub(super) struct Out {
    root: PathBuf,
    written: usize,
    pub(super) names: layouts::Names,
    /// The folder of states, which may exist already.
    shared: Option<SharedFolder>,
    /// Files of other programs where an exported file would be.
    kept: Vec<String>,
}

impl Out {
    /// Starts with a new or empty folder; a folder of states may contain files of earlier exports
    /// and of other programs.
    fn begin(root: &Path, layout: Layout, repository: &Repository) -> Result<Self, ExchangeError> {
        let is_shared = layout == Layout::Folders;
        match fs::read_dir(root) {
            Ok(mut entries) => {
                if !is_shared && entries.next().is_some() {
                    return Err(ExchangeError::NotEmpty {
                        path: root.to_owned(),
                    });
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(root).map_err(unwritable(root))?;
            }
            Err(error) => return Err(unreadable(root)(error)),
        }
        let mut out = Self {
            root: root.to_owned(),
            written: 0,
            names: layouts::Names::default(),
            shared: None,
            kept: Vec::new(),
        };
        if is_shared {
            let folder = SharedFolder::open(root, repository.common_dir())?;
            if folder.is_foreign(STEPS)? {
                let path = root.join(STEPS);
                return Err(ExchangeError::Foreign { path });
            }
            out.shared = Some(folder);
        }
        Ok(out)
    }

    /// Writes the folders of states, and adds the steps' file to the index.
    pub(super) fn states(
        &mut self,
        reader: &mut Reader<'_, '_>,
        sent: &[HandoffId],
    ) -> Result<(), ExchangeError> {
        let Some(folder) = &mut self.shared else {
            return Ok(());
        };
        let mut sent = sent.to_vec();
        let top = folder.top();
        let done = folders::write(folder, top, reader, &mut sent, false)?;
        self.written += done.written.len();
        self.kept = done.kept;
        Ok(())
    }

    fn create(&mut self, inside: &str) -> Result<(File, PathBuf), ExchangeError> {
        let path = self.root.join(inside);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritable(parent))?;
        }
        // The steps of an interrupted export are discarded and written again.
        if self.shared.is_some() && inside == part() {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unwritable(&path)(error));
                }
                _ => {}
            }
        }
        let file = File::create_new(&path).map_err(unwritable(&path))?;
        self.written += 1;
        Ok((file, path))
    }

    /// Writes a new file; in a folder that was exported to before, an immutable file may exist.
    pub(super) fn write(&mut self, inside: &str, bytes: &[u8]) -> Result<(), ExchangeError> {
        if let Some(folder) = &self.shared
            && folder.has(inside)
        {
            let path = self.root.join(inside);
            return if folder.is(inside, bytes)? {
                Ok(())
            } else {
                Err(ExchangeError::Foreign { path })
            };
        }
        let (mut file, path) = self.create(inside)?;
        file.write_all(bytes).map_err(unwritable(&path))
    }
}

/// A file with one JSON value per line.
pub(super) struct Lines {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Lines {
    pub(super) fn begin(out: &mut Out, inside: &str) -> Result<Self, ExchangeError> {
        let (file, path) = out.create(inside)?;
        let file = BufWriter::new(file);
        Ok(Self { file, path })
    }

    pub(super) fn add(&mut self, value: &impl Serialize) -> Result<(), ExchangeError> {
        let mut line = serde_json::to_vec(value).expect("stored types have string keys");
        line.push(b'\n');
        self.file.write_all(&line).map_err(unwritable(&self.path))
    }

    pub(super) fn end(mut self) -> Result<PathBuf, ExchangeError> {
        self.file.flush().map_err(unwritable(&self.path))?;
        Ok(self.path)
    }
}

/// Exports a ledger to a new or empty folder, or, for states, to an existing one. The steps' file
/// gets its name last, so that an interrupted export is not mistaken for a complete one.
///
/// # Errors
/// [`ExchangeError`]; the folder may then contain a partial export.
pub fn export(
    ledger: &Ledger<'_>,
    root: &Path,
    wanted: Export<'_>,
) -> Result<Exported, ExchangeError> {
    let snapshot = ledger.tip()?;
    let mut protocol = None;
    if let Some(key) = wanted.issue {
        let issue = snapshot.issue(key)?.issue()?;
        let none = || Refusal::no_issue(key);
        let issue = issue.ok_or_else(none).map_err(LedgerError::from)?;
        protocol = Some(issue.protocol);
    }
    // A single issue needs its protocol's rules and the shared documents.
    let covers = |key: &Key| match (key, wanted.issue, &protocol) {
        (Key::Issue(key), Some(only), _) => key == only,
        (Key::Protocol(name) | Key::Document(name, _), _, Some(only)) => name == only,
        _ => true,
    };
    // Check this before creating a folder that would have to be removed.
    let cut_off = ledger.repository().is_cut_off(snapshot.commit());
    if cut_off.map_err(LedgerError::from)? {
        return Err(ExchangeError::CutOff);
    }
    let mut out = Out::begin(root, wanted.layout, ledger.repository())?;
    let mut done = Exported::default();
    let mut sent: Vec<HandoffId> = Vec::new();
    let mut places = HashMap::new();
    let mut objects = HashSet::new();
    let mut steps = Lines::begin(&mut out, &part())?;
    steps.add(&Header {
        version: VERSION,
        default_protocol: snapshot.manifest().default_protocol.clone(),
        issue: wanted.issue.cloned(),
    })?;
    let history = Repository::open_for_history();
    let history = history.map_err(LedgerError::from)?;
    if let Some(tally) = wanted.tally {
        tally.begin(Work::Exporting, None);
    }
    History::new(&history).walk(snapshot.commit(), covers, |mut taken| {
        keep_files(&mut taken, wanted.layout, &snapshot, &mut out, &mut places)?;
        if let Some(Update::Change { arguments, .. }) = taken.line.update()
            && let Some(context) = &arguments.context
        {
            keep_context(&history, context, &mut objects, &mut out)?;
        }
        steps.add(&taken.line)?;
        done.steps += 1;
        if let Some(tally) = wanted.tally {
            tally.add(1);
        }
        done.handoffs += taken.began.len();
        sent.extend(taken.began);
        Ok(())
    })?;
    let refused = match wanted.layout {
        Layout::Log => ledger.refused(),
        _ => Vec::new(),
    };
    let told = layouts::Told {
        sent: &sent,
        refused: &refused,
    };
    layouts::write(&mut out, wanted.layout, &snapshot, told, &places)?;
    let path = steps.end()?;
    if let Some(folder) = &mut out.shared {
        folder.replace(&path, STEPS)?;
    } else {
        fs::rename(&path, root.join(STEPS)).map_err(unwritable(&path))?;
    }
    done.files = out.written;
    done.kept = out.kept;
    Ok(done)
}

/// The temporary name of the steps' file.
fn part() -> String {
    format!("{STEPS}.part")
}

/// Writes the context of a failure, object by object.
fn keep_context(
    repository: &Repository,
    context: &FailureContext,
    known: &mut HashSet<ObjectId>,
    out: &mut Out,
) -> Result<(), ExchangeError> {
    let tree = context.tree.parse().map_err(GitError::from)?;
    repository.take_out(tree, known, |id, bytes| {
        out.write(&layouts::object_place(id), bytes)
    })
}

/// Writes the files that a step's line refers to, and sets their names in it.
fn keep_files(
    taken: &mut Taken,
    layout: Layout,
    snapshot: &crate::snapshot::Snapshot<'_>,
    out: &mut Out,
    places: &mut HashMap<HandoffId, String>,
) -> Result<(), ExchangeError> {
    let first = taken.began.first();
    let number = taken.line.number();
    match &mut taken.line {
        Line::Issue(line) => {
            let file = (&mut line.contract, first, taken.files.first());
            let (Some(contract), Some(id), Some((name, bytes))) = file else {
                return Ok(());
            };
            let record = snapshot.issue(id.issue())?.record(id.number())?;
            let own = record.and_then(|record| record.contract_id);
            contract.file = layouts::contract_place(out, layout, id, own.as_deref(), name);
            out.write(&contract.file, bytes)?;
            places.insert(id.clone(), contract.file.clone());
        }
        Line::Protocol(protocol) => {
            protocol.folder = format!("{}/{}/{number}", layouts::PROTOCOLS, protocol.name);
            for (path, bytes) in &taken.files {
                out.write(&format!("{}/{path}", protocol.folder), bytes)?;
            }
        }
        Line::Document(document) => {
            let (protocol, name) = (&document.protocol, &document.name);
            document.file = format!("{}/{protocol}/{name}/{number}.json", layouts::DOCUMENTS);
            for (_, bytes) in &taken.files {
                out.write(&document.file, bytes)?;
            }
        }
    }
    Ok(())
}
