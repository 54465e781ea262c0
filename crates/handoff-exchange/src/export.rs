//! Export: writes a folder in one of the layouts, with a log of every step.

use std::collections::{HashMap, HashSet};
use std::fs;

use std::path::Path;

use handoff::base::ObjectId;
use handoff::base::ids::{HandoffId, IssueKey};
use handoff::git::{GitError, Repository};
use handoff::ledger::{Ledger, LedgerError, Tally, Work};
use handoff::model::{FailureContext, Refusal, Update, View};

use super::history::{History, Taken};
use super::line::{Header, Key, Line, STEPS, VERSION};
use super::out::{Lines, Out, part};
use super::{ExchangeError, Layout, layouts, places, unwritable};

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

/// Writes the context of a failure, object by object.
fn keep_context(
    repository: &Repository,
    context: &FailureContext,
    known: &mut HashSet<ObjectId>,
    out: &mut Out,
) -> Result<(), ExchangeError> {
    let tree = context.tree.parse().map_err(GitError::from)?;
    repository.take_out(tree, known, |id, bytes| {
        out.write(&places::object_place(id), bytes)
    })
}

/// Writes the files that a step's line refers to, and sets their names in it.
fn keep_files(
    taken: &mut Taken,
    layout: Layout,
    snapshot: &handoff::ledger::Snapshot<'_>,
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
            protocol.folder = format!("{}/{}/{number}", places::PROTOCOLS, protocol.name);
            for (path, bytes) in &taken.files {
                out.write(&format!("{}/{path}", protocol.folder), bytes)?;
            }
        }
        Line::Document(document) => {
            let (protocol, name) = (&document.protocol, &document.name);
            document.file = format!("{}/{protocol}/{name}/{number}.json", places::DOCUMENTS);
            for (_, bytes) in &taken.files {
                out.write(&document.file, bytes)?;
            }
        }
    }
    Ok(())
}
