//! Stores the context of a failure, or of a claim that is given back, in a single tree.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::{Moment, ObjectId, digest};
use handoff_contract::Allowance;
use handoff_git::{
    Caps, CaptureError, GitError, Hidden, KeptFile, Mode, Position, RawPath, Repository, Tree,
    Unfinished,
};
use handoff_model::failure::Manifest;
use handoff_model::record::VERSION;
use handoff_model::screening::Screen;
use handoff_model::{
    Attachment, EventArgs, FailureContext, FailureFile, Host, Mark, Merge, Record, SnapshotFile,
    Stand, Summary, layout, record,
};
use handoff_protocol::{Event, Protocol};
use serde_json::json;

use super::name::{escape, folded, mode_text, stored};
use crate::error::LedgerError;

/// Limits on the stored part of a worktree: what git hosts accept, and a person can still look
/// through.
pub const CAPS: Caps = Caps {
    file: 10 * 1024 * 1024,
    total: 100 * 1024 * 1024,
    files: 10_000,
};

/// The maximum number of kept commits that no remote has.
pub const MOST_COMMITS: usize = 200;

/// A file to store with the context.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The path that was given.
    pub path: Vec<u8>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

impl Attached {
    /// The path that was given, escaped.
    pub fn name(&self) -> String {
        escape(&self.path)
    }
}

/// What to store in the context.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The machine.
    pub host: Host,
    /// The version of each tool.
    pub tools: BTreeMap<String, String>,
    /// The attached files.
    pub attached: Vec<Attached>,
    /// Whether to keep the worktree's unfinished work.
    pub snapshot: bool,
}

/// An entry of the folder.
type Placed = (RawPath, Option<(Mode, ObjectId)>);

/// The folder under construction.
struct Folder<'r> {
    repository: &'r Repository,
    entries: Vec<Placed>,
    /// The paths of the snapshot.
    paths: BTreeSet<RawPath>,
    files: u64,
    bytes: u64,
}

impl Folder<'_> {
    fn place(&mut self, path: RawPath, mode: Mode, id: ObjectId) {
        self.entries.push((path, Some((mode, id))));
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), GitError> {
        let id = self.repository.write_blob(bytes)?;
        self.place(path.into(), Mode::Plain, id);
        Ok(())
    }

    fn keep(&mut self, folder: &str, file: &KeptFile) -> SnapshotFile {
        let path = [folder.as_bytes(), b"/", &stored(&file.path)].concat();
        let kept = SnapshotFile {
            path: escape(&file.path),
            mode: mode_text(file.mode),
            bytes: file.bytes,
            blob: file.id.to_string(),
            stage: (file.stage > 0).then_some(file.stage),
            stored: escape(&path),
        };
        self.place(path, file.mode, file.id);
        // What is staged of a file is no other file.
        if self.paths.insert(file.path.clone()) {
            self.files += 1;
            self.bytes += file.bytes;
        }
        kept
    }
}

/// Writes the folder of a context, not yet referenced. `record` is the one after the event.
/// Screens the content for secrets first, and returns the allowed matches. `None` if a claim is given
/// back and there is nothing to store.
pub(super) fn keep(
    repository: &Repository,
    record: &Record,
    at: Moment,
    options: &Keep,
    mut screen: Screen,
) -> Result<(Option<FailureContext>, Vec<Allowance>), LedgerError> {
    let unfolded = || LedgerError::missing(layout::record_file(&record.id));
    let last = record.latest().ok_or_else(unfolded)?;
    let place = last.event.and_then(|event| record.kept_folder(event));
    let place = place.ok_or_else(unfolded)?;
    let position = repository.position()?;
    // Check everything that can refuse first, so that a refusal leaves nothing behind.
    let mut unfinished = None;
    if options.snapshot {
        let mut accept = |path: &[u8], bytes: &[u8]| {
            screen.file(&escape(path), bytes);
            screen.is_clean()
        };
        let head = position.head.map(|(_, tree)| tree);
        unfinished = match repository.unfinished(head, CAPS, &mut accept) {
            Err(CaptureError::NotAccepted) => None,
            other => Some(other?),
        };
    }
    let allowed = screen.finish()?;
    let mut folder = Folder {
        repository,
        entries: Vec::new(),
        paths: BTreeSet::new(),
        files: 0,
        bytes: 0,
    };
    let attachments = attach(&mut folder, &options.attached)?;
    let snapshot = match &unfinished {
        Some(unfinished) => Some(snapshot(&mut folder, unfinished, &position)?),
        None => None,
    };
    let has_work = !attachments.is_empty() || snapshot.as_ref().is_some_and(|(_, is)| *is);
    if last.event == Some(Event::Release) && !has_work {
        return Ok((None, allowed));
    }
    let file = FailureFile {
        version: VERSION,
        handoff: record.id.clone(),
        attempt: record.attempt,
        at,
        by: last.by.clone(),
        error: last.failure.clone(),
        reason: last.reason.clone().filter(|_| last.failure.is_none()),
        host: options.host.clone(),
        tools: options.tools.clone(),
        code: stand(&position),
        attachments,
        snapshot: snapshot.map(|(summary, _)| summary),
    };
    folder.write(&layout::kept_file(&place), &record::write(&file))?;
    // Several commits may have the same tree.
    folder.entries.sort();
    folder.entries.dedup();
    let tree = repository.write_tree(None, &folder.entries)?;
    let context = FailureContext {
        folder: place,
        tree: tree.to_string(),
        files: folder.files,
        bytes: folder.bytes,
    };
    Ok((Some(context), allowed))
}

/// Rewrites a stored context for this record's event: only the file that names the handoff and the
/// attempt changes.
///
/// # Errors
/// [`LedgerError`] when the folder can't be read, or an object not written.
pub(crate) fn kept_for(
    repository: &Repository,
    context: &FailureContext,
    record: &Record,
    event: Event,
) -> Result<FailureContext, LedgerError> {
    let kept_folder = record.kept_folder(event);
    let Some(folder) = kept_folder.filter(|folder| *folder != context.folder) else {
        return Ok(context.clone());
    };
    let name = layout::kept_file(&folder);
    let path = || format!("{}/{name}", context.folder);
    let tree: ObjectId = context.tree.parse().map_err(GitError::from)?;
    let bytes = Tree::new(repository, tree).file(&name)?;
    let bytes = bytes.ok_or_else(|| LedgerError::missing(path()))?;
    let mut file: FailureFile =
        record::read(&bytes).map_err(|error| LedgerError::stored(&path(), error))?;
    file.handoff = record.id.clone();
    file.attempt = record.attempt;
    let id = repository.write_blob(&record::write(&file))?;
    let entries = [(name.into(), Some((Mode::Plain, id)))];
    let tree = repository.write_tree(Some(tree), &entries)?;
    Ok(FailureContext {
        folder,
        tree: tree.to_string(),
        ..context.clone()
    })
}

fn stand(position: &Position) -> Stand {
    Stand {
        branch: position.branch.clone(),
        commit: position.head.map(|(commit, _)| commit.to_string()),
        tree: position.head.map(|(_, tree)| tree.to_string()),
    }
}

fn attach(folder: &mut Folder<'_>, attached: &[Attached]) -> Result<Vec<Attachment>, LedgerError> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut attachments = Vec::new();
    for file in attached {
        let base = file.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let numbered = (2..).map(|n| [format!("{n}-").as_bytes(), base].concat());
        let mut candidates = std::iter::once(base.to_vec()).chain(numbered);
        let name = candidates.find_map(|name| {
            let name = stored(&name);
            names.insert(folded(&name)).then_some(name)
        });
        let name = name.unwrap_or_default();
        let mode = if file.executable {
            Mode::Executable
        } else {
            Mode::Plain
        };
        let id = folder.repository.write_blob(&file.bytes)?;
        folder.place([b"attachments/", &name[..]].concat(), mode, id);
        folder.files += 1;
        folder.bytes += file.bytes.len() as u64;
        attachments.push(Attachment {
            name: escape(&name),
            path: file.name(),
            bytes: file.bytes.len() as u64,
            sha256: digest(&file.bytes),
            mode: mode_text(mode),
        });
    }
    Ok(attachments)
}

/// Stores the worktree's work; also returns whether there is any that is only here.
fn snapshot(
    folder: &mut Folder<'_>,
    unfinished: &Unfinished,
    position: &Position,
) -> Result<(Summary, bool), LedgerError> {
    let repository = folder.repository;
    let (heads, message) = repository.merging();
    let tips = position.head.iter().map(|(commit, _)| *commit);
    let tips: Vec<ObjectId> = tips.chain(heads.iter().copied()).collect();
    let unpublished = repository.unpublished(&tips, MOST_COMMITS)?;
    for &commit in &unpublished.commits {
        let raw = repository.raw_commit(commit)?;
        folder.write(&format!("commits/{commit}"), &raw)?;
        let tree = repository.commit(commit)?.tree;
        folder.place(format!("trees/{tree}").into(), Mode::Folder, tree);
    }
    let paths = |paths: &[RawPath]| paths.iter().map(|path| escape(path)).collect();
    let files = unfinished.files.iter();
    let files: Vec<SnapshotFile> = files.map(|file| folder.keep("worktree", file)).collect();
    let staged = unfinished.staged.iter().map(|file| match file.stage {
        0 => folder.keep("staged", file),
        stage => folder.keep(&format!("unmerged/{stage}"), file),
    });
    let manifest = Manifest {
        version: VERSION,
        base: stand(position),
        operation: repository.operation().map(str::to_owned),
        merge: (!heads.is_empty()).then(|| Merge {
            heads: heads.iter().map(ToString::to_string).collect(),
            message: escape(&message),
        }),
        staged: staged.collect(),
        files,
        deleted: paths(&unfinished.deleted),
        removed: paths(&unfinished.removed),
        intended: paths(&unfinished.intended),
        hidden: unfinished
            .hidden
            .iter()
            .map(|(path, mark)| {
                let mark = match mark {
                    Hidden::AssumeUnchanged => Mark::AssumeUnchanged,
                    Hidden::SkipWorktree => Mark::SkipWorktree,
                };
                (escape(path), mark)
            })
            .collect(),
        sparse: unfinished.sparse as u64,
        commits: unpublished
            .commits
            .iter()
            .map(ToString::to_string)
            .collect(),
        more_commits: unpublished.more,
    };
    folder.write("snapshot.json", &record::write(&manifest))?;
    let summary = Summary {
        files: unfinished.files.len() as u64,
        bytes: unfinished.bytes(),
        staged: unfinished.staged.len() as u64,
        deleted: unfinished.deleted.len() as u64,
        base: position.head.map(|(commit, _)| commit.to_string()),
        commits: unpublished.commits.len() as u64,
    };
    let is_clean = unfinished.is_empty() && heads.is_empty() && !unpublished.missing;
    Ok((summary, !is_clean))
}

/// Starts the screening of a failure, with its texts and attached files.
pub(super) fn screen_failure(
    protocol: &Protocol,
    args: &EventArgs,
    attached: &[Attached],
) -> Screen {
    let mut screen = Screen::new(protocol.definition(), &args.allow);
    screen.value(&json!(args));
    for file in attached {
        screen.file(&file.name(), &file.bytes);
    }
    screen
}
