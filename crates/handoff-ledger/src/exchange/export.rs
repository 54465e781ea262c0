//! The way out: a folder in one of the layouts, with every step beside it.

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

use super::history::{History, Taken, begun};
use super::line::{Header, Key, LineRequest, STEPS, VERSION};
use super::{ExchangeError, Layout, layouts, unreadable, unwritable};
use crate::error::LedgerError;
use crate::tally::{Tally, Work};
use crate::write::Ledger;

/// What to export.
#[derive(Clone, Copy)]
pub struct Export<'a> {
    /// How the folder is laid out.
    pub layout: Layout,
    /// The only issue, if not all are wanted.
    pub issue: Option<&'a IssueKey>,
    /// Where the steps are counted that were written.
    pub tally: Option<&'a Tally>,
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exported {
    /// How many steps.
    pub steps: usize,
    /// How many handoffs they began.
    pub handoffs: usize,
    /// How many files were written.
    pub files: usize,
}

/// The folder that is written to.
pub(super) struct Out {
    root: PathBuf,
    written: usize,
    /// The names that are taken, in lower case: some file systems know no other.
    taken: HashSet<String>,
}

impl Out {
    /// Begins with a folder that does not exist yet, or holds nothing.
    fn begin(root: &Path) -> Result<Self, ExchangeError> {
        match fs::read_dir(root) {
            Ok(mut entries) => {
                if entries.next().is_some() {
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
        Ok(Self {
            root: root.to_owned(),
            written: 0,
            taken: HashSet::new(),
        })
    }

    /// A name that no other file of the folder has: the one that is wanted, if
    /// it can be a file's name and is free, else the other.
    pub(super) fn free(&mut self, folder: &str, wanted: Option<&str>, other: &str) -> String {
        const LONGEST: usize = 100;
        let fits = |name: &&str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
            name.len() <= LONGEST && !name.starts_with('.') && name.chars().all(plain)
        };
        let mut key = |name: &str| {
            self.taken
                .insert(format!("{folder}/{}", name.to_ascii_lowercase()))
        };
        match wanted
            .filter(fits)
            .filter(|name| !name.is_empty() && key(name))
        {
            Some(name) => name.to_owned(),
            None => {
                let mut name = other.to_owned();
                while !key(&name) {
                    name.push('_');
                }
                name
            }
        }
    }

    fn create(&mut self, inside: &str) -> Result<(File, PathBuf), ExchangeError> {
        let path = self.root.join(inside);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritable(parent))?;
        }
        let file = File::create_new(&path).map_err(unwritable(&path))?;
        self.written += 1;
        Ok((file, path))
    }

    /// Writes a file that is not there yet.
    pub(super) fn write(&mut self, inside: &str, bytes: &[u8]) -> Result<(), ExchangeError> {
        let (mut file, path) = self.create(inside)?;
        file.write_all(bytes).map_err(unwritable(&path))
    }

    /// Makes a folder, which may stay empty.
    pub(super) fn folder(&self, inside: &str) -> Result<(), ExchangeError> {
        let path = self.root.join(inside);
        fs::create_dir_all(&path).map_err(unwritable(&path))
    }
}

/// Values, one in each line of a file.
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

/// Writes a ledger into a folder that does not exist yet or is empty. The steps
/// get their name last: an export that broke off is not taken for a whole one.
///
/// # Errors
/// [`ExchangeError`]; the folder may then hold a part of the export.
pub fn export(
    ledger: &Ledger<'_>,
    root: &Path,
    wanted: Export<'_>,
) -> Result<Exported, ExchangeError> {
    let snapshot = ledger.tip()?;
    let mut protocol = None;
    if let Some(key) = wanted.issue {
        let issue = snapshot.issue(key)?.issue()?;
        let none = || Refusal::NoIssue { issue: key.clone() };
        let issue = issue.ok_or_else(none).map_err(LedgerError::from)?;
        protocol = Some(issue.protocol);
    }
    // One issue needs the rules that govern it, and what its agents shared.
    let covers = |key: &Key| match (key, wanted.issue, &protocol) {
        (Key::Issue(key), Some(only), _) => key == only,
        (Key::Protocol(name) | Key::Document(name, _), _, Some(only)) => name == only,
        _ => true,
    };
    // Before a folder is begun that would have to be removed again.
    let cut_off = ledger.repository().is_cut_off(snapshot.commit());
    if cut_off.map_err(LedgerError::from)? {
        return Err(ExchangeError::CutOff);
    }
    let mut out = Out::begin(root)?;
    let mut done = Exported::default();
    let mut sent: Vec<HandoffId> = Vec::new();
    let mut places = HashMap::new();
    let mut objects = HashSet::new();
    let part = format!("{STEPS}.part");
    let mut steps = Lines::begin(&mut out, &part)?;
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
        let begun = begun(&taken);
        keep_files(&mut taken, wanted.layout, &snapshot, &mut out, &mut places)?;
        if let LineRequest::Update(Update::Change { arguments, .. }) = &taken.line.request
            && let Some(context) = &arguments.context
        {
            keep_context(&history, context, &mut objects, &mut out)?;
        }
        steps.add(&taken.line)?;
        done.steps += 1;
        if let Some(tally) = wanted.tally {
            tally.add(1);
        }
        done.handoffs += begun.len();
        sent.extend(begun);
        Ok(())
    })?;
    layouts::write(&mut out, wanted.layout, &snapshot, &sent, &places)?;
    let path = steps.end()?;
    fs::rename(&path, root.join(STEPS)).map_err(unwritable(&path))?;
    done.files = out.written;
    Ok(done)
}

/// Writes what was kept of a failure, object by object.
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

/// Writes the files that a step's line names, and names them.
fn keep_files(
    taken: &mut Taken,
    layout: Layout,
    snapshot: &crate::snapshot::Snapshot<'_>,
    out: &mut Out,
    places: &mut HashMap<HandoffId, String>,
) -> Result<(), ExchangeError> {
    let first = begun(taken).into_iter().next();
    let step = taken.line.step;
    match &mut taken.line.request {
        LineRequest::Send(send) => {
            let (Some(id), Some((name, bytes))) = (first, taken.files.first()) else {
                return Ok(());
            };
            let record = snapshot.issue(id.issue())?.record(id.number())?;
            let own = record.and_then(|record| record.contract_id);
            send.contract = layouts::contract_place(out, layout, &id, own.as_deref(), name);
            out.write(&send.contract, bytes)?;
            places.insert(id, send.contract.clone());
        }
        LineRequest::Protocol(protocol) => {
            protocol.folder = format!("{}/{}/{step}", layouts::PROTOCOLS, protocol.name);
            for (path, bytes) in &taken.files {
                out.write(&format!("{}/{path}", protocol.folder), bytes)?;
            }
        }
        LineRequest::Document(document) => {
            let (protocol, name) = (&document.protocol, &document.name);
            document.file = format!("{}/{protocol}/{name}/{step}.json", layouts::DOCUMENTS);
            for (_, bytes) in &taken.files {
                out.write(&document.file, bytes)?;
            }
        }
        LineRequest::Update(_) => {}
    }
    Ok(())
}
