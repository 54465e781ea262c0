//! Reads the context of a failure, or of a claim that was given back.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::{Moment, ObjectId};
use handoff_git::{
    FlatEntry, GitError, Hidden, KeptFile, MOST_ENTRIES, Mode, RawPath, Repository, Tree,
    Unfinished,
};
use handoff_model::failure::Manifest as SnapshotManifest;
use handoff_model::record::Stored;
use handoff_model::{
    Attachment, Failure, FailureContext, FailureFile, Host, Mark, Record, SnapshotFile, Stand,
    View, layout, record,
};
use handoff_protocol::{Event, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::name::{mode_of, unescape};
use crate::error::{DamageError, LedgerError};
use crate::snapshot::IssueFolder;

/// A past failure of a handoff, or a claim that was given back with its work.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PastFailure {
    /// The handoff: this one, or one that it replaces.
    pub id: HandoffId,
    /// The attempt.
    pub attempt: u32,
    /// The claim that was given back, if it is no failure: its token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<u32>,
    /// Why it was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it ended.
    pub at: Moment,
    /// The agent that worked on it.
    pub by: AgentName,
    /// What went wrong.
    pub error: Option<Failure>,
    /// Where its context is kept, if it is.
    #[serde(skip)]
    pub context: Option<FailureContext>,
    /// The content of the context; only for the newest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Box<Contents>>,
}

impl PastFailure {
    /// Its name: `attempt 1`, or `claim 3` if that was given back.
    pub fn name(&self) -> String {
        match self.claim {
            Some(claim) => format!("claim {claim}"),
            None => format!("attempt {}", self.attempt),
        }
    }

    /// How it ended.
    pub fn end(&self) -> &'static str {
        match self.claim {
            Some(_) => "was given back",
            None => "failed",
        }
    }

    fn has_work(&self) -> bool {
        let kept = self.context.as_ref();
        kept.is_some_and(|context| context.files > 0 || self.claim.is_some())
    }

    /// The newest of these with kept work, if any.
    pub fn newest_with_work(past: &[Self]) -> Option<usize> {
        past.iter().rposition(Self::has_work)
    }
}

/// An attachment, with the end of its text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Shown {
    /// Its recorded metadata.
    #[serde(flatten)]
    pub attachment: Attachment,
    /// Its text, or the last part of it; `None` if it is not text.
    pub tail: Option<String>,
    /// Whether text before that is left out.
    pub cut: bool,
}

/// A context, for the agent that continues.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Contents {
    /// The folder's path in the ledger.
    pub path: String,
    /// The machine it was made on.
    pub host: Host,
    /// The version of each tool.
    pub tools: BTreeMap<String, String>,
    /// The state of the code.
    pub code: Stand,
    /// The attached files.
    pub attachments: Vec<Shown>,
    /// The content of the snapshot, if one was made.
    pub snapshot: Option<SnapshotManifest>,
    /// The command that restores the unfinished work.
    pub restore: Option<String>,
}

/// A kept file: its path, its mode and its bytes.
pub(super) type HeldFile = (RawPath, Mode, Rc<[u8]>);

/// The maximum length of an attached text's shown end, in bytes.
const TAIL: usize = 4 * 1024;

/// The failures of a handoff, the oldest first.
pub fn failures(record: &Record) -> Vec<PastFailure> {
    let mut found = past_work(record);
    found.retain(|past| past.claim.is_none());
    found
}

/// The failures of a handoff, and the claims that were given back with their work, the oldest first.
pub fn past_work(record: &Record) -> Vec<PastFailure> {
    let (mut attempt, mut claims) = (1, 0);
    let mut found = Vec::new();
    for t in &record.transitions {
        match t.event {
            Some(Event::Retry | Event::Redrive) => attempt += 1,
            Some(Event::Reassign) if t.from == Some(State::Failed) => attempt += 1,
            Some(event) if event.is_claim() => claims += 1,
            Some(Event::Release) if t.context.is_none() => {}
            Some(event @ (Event::Fail | Event::Expire | Event::Release)) => {
                found.push(PastFailure {
                    id: record.id.clone(),
                    attempt,
                    claim: (event == Event::Release).then_some(claims),
                    reason: t.reason.clone().filter(|_| event == Event::Release),
                    at: t.at,
                    by: t.by.clone(),
                    error: t.failure.clone(),
                    context: t.context.clone(),
                    kept: None,
                })
            }
            _ => {}
        }
    }
    found
}

/// The maximum number of replaced handoffs searched for failed work.
const FAR: usize = 20;

/// Like [`past_work`], with the work of handoffs that this one replaces and that the same agent
/// gave up. The newest stored context includes its content.
///
/// # Errors
/// [`LedgerError`] if a record or the context can't be read.
pub fn past_work_in_full(
    repository: &Repository,
    folder: &IssueFolder<'_>,
    record: &Record,
) -> Result<Vec<PastFailure>, LedgerError> {
    let mut found = past_work(record);
    let mut back = record.follows.clone();
    for _ in 0..FAR {
        let Some(id) = back else { break };
        let Some(earlier) = folder.record(id.number())? else {
            break;
        };
        let given_up = [State::Failed, State::Dead, State::Cancelled];
        if earlier.to == record.to && given_up.contains(&earlier.state) {
            found.splice(0..0, past_work(&earlier));
        }
        back = earlier.follows;
    }
    // A context with files is preferred to a bare report.
    let newest = PastFailure::newest_with_work(&found);
    let newest = newest.or_else(|| found.iter().rposition(|f| f.context.is_some()));
    let newest = newest.map(|at| &mut found[at]);
    if let Some(failure) = newest
        && let Some(context) = &failure.context
    {
        let kept = Kept::open(repository, &failure.id, context)?;
        failure.kept = Some(Box::new(kept.contents()?));
    }
    Ok(found)
}

/// A stored context.
pub struct Kept<'r> {
    repository: &'r Repository,
    /// The folder's path in the ledger.
    pub path: String,
    /// Its description.
    pub file: FailureFile,
    tree: Tree<'r>,
}

impl<'r> Kept<'r> {
    /// The id of its tree.
    pub(super) fn tree(&self) -> ObjectId {
        self.tree.id()
    }

    /// Opens the folder of a context.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn open(
        repository: &'r Repository,
        id: &HandoffId,
        context: &FailureContext,
    ) -> Result<Self, LedgerError> {
        let path = layout::in_issue(id.issue(), &context.folder);
        let tree = Tree::new(repository, context.tree.parse().map_err(GitError::from)?);
        let name = layout::kept_file(&path);
        let file = stored(tree, &path, &name)?;
        let file = file.ok_or_else(|| missing(&path, &name))?;
        Ok(Self {
            repository,
            path,
            file,
            tree,
        })
    }

    /// The manifest of the snapshot, if there is one.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn manifest(&self) -> Result<Option<SnapshotManifest>, LedgerError> {
        stored(self.tree, &self.path, "snapshot.json")
    }

    /// A summary of the content.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn contents(&self) -> Result<Contents, LedgerError> {
        let file = self.file.clone();
        let attached = file.attachments.into_iter().zip(self.attachments()?);
        let snapshot = self.manifest()?;
        let (id, option) = (&file.handoff, layout::kept_option(&self.path));
        let restore = format!("git handoff restore {id} {option} --worktree DIR");
        Ok(Contents {
            path: self.path.clone(),
            host: file.host,
            tools: file.tools,
            code: file.code,
            attachments: attached
                .map(|(attachment, (_, _, bytes))| shown(attachment, &bytes))
                .collect(),
            restore: snapshot.is_some().then_some(restore),
            snapshot,
        })
    }

    /// The attachments: name, mode and bytes.
    ///
    /// # Errors
    /// [`LedgerError`] if one can't be read or has changed.
    pub fn attachments(&self) -> Result<Vec<HeldFile>, LedgerError> {
        let folder = self.tree.entry("attachments")?;
        let files = match folder {
            Some((_, id)) => Tree::new(self.repository, id).files(MOST_ENTRIES)?,
            None => Vec::new(),
        };
        let mut found = Vec::new();
        for kept in &self.file.attachments {
            let damaged = || self.damaged(&format!("attachments/{}", kept.name));
            let name = unescape(&kept.name).ok_or_else(damaged)?;
            let file = files.iter().find(|file| file.path == name);
            let bytes = self.repository.blob(file.ok_or_else(damaged)?.id)?;
            if handoff_base::digest(&bytes) != kept.sha256 {
                return Err(damaged());
            }
            found.push((name, mode_of(&kept.mode).ok_or_else(damaged)?, bytes));
        }
        Ok(found)
    }

    /// The unfinished work that a manifest lists, with each file checked against the folder.
    ///
    /// # Errors
    /// [`LedgerError`] if the two differ.
    pub fn unfinished(&self, manifest: &SnapshotManifest) -> Result<Unfinished, LedgerError> {
        let mut held: HashMap<RawPath, FlatEntry> = HashMap::new();
        for name in ["worktree", "staged", "unmerged"] {
            if let Some((_, id)) = self.tree.entry(name)? {
                for file in Tree::new(self.repository, id).files(MOST_ENTRIES)? {
                    held.insert([name.as_bytes(), b"/", &file.path].concat(), file);
                }
            }
        }
        let one = |file: &SnapshotFile| -> Option<KeptFile> {
            let entry = held.get(&unescape(&file.stored)?)?;
            let mode = mode_of(&file.mode).filter(|mode| mode.number() == entry.mode)?;
            let id: ObjectId = file.blob.parse().ok().filter(|id| *id == entry.id)?;
            Some(KeptFile {
                path: unescape(&file.path)?,
                mode,
                id,
                bytes: file.bytes,
                stage: file.stage.unwrap_or(0),
            })
        };
        let files = |files: &[SnapshotFile]| -> Result<Vec<KeptFile>, LedgerError> {
            files
                .iter()
                .map(|file| one(file).ok_or_else(|| self.damaged(&file.stored)))
                .collect()
        };
        let path = |path: &String| unescape(path).ok_or_else(|| self.damaged("snapshot.json"));
        let paths = |paths: &[String]| paths.iter().map(path).collect::<Result<Vec<_>, _>>();
        let hidden = manifest.hidden.iter().map(|(name, mark)| {
            let mark = match mark {
                Mark::AssumeUnchanged => Hidden::AssumeUnchanged,
                Mark::SkipWorktree => Hidden::SkipWorktree,
            };
            Ok((path(name)?, mark))
        });
        Ok(Unfinished {
            files: files(&manifest.files)?,
            deleted: paths(&manifest.deleted)?,
            staged: files(&manifest.staged)?,
            removed: paths(&manifest.removed)?,
            intended: paths(&manifest.intended)?,
            hidden: hidden.collect::<Result<_, LedgerError>>()?,
            sparse: usize::try_from(manifest.sparse).unwrap_or(usize::MAX),
        })
    }

    /// The bytes of a kept commit.
    pub(super) fn commit(&self, id: &str) -> Result<Option<Rc<[u8]>>, LedgerError> {
        Ok(self.tree.file(&format!("commits/{id}"))?)
    }

    pub(super) fn damaged(&self, file: &str) -> LedgerError {
        let path = format!("{}/{file}", self.path);
        DamageError::Altered(path).into()
    }
}

fn shown(attachment: Attachment, bytes: &[u8]) -> Shown {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|t| !t.contains('\0'));
    let start = text.map(|text| {
        let mut start = text.len().saturating_sub(TAIL);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        // Start with a complete line if possible.
        match text[start..].find('\n') {
            Some(end) if start > 0 && start + end + 1 < text.len() => start + end + 1,
            _ => start,
        }
    });
    Shown {
        attachment,
        tail: text
            .zip(start)
            .map(|(text, start)| text[start..].to_owned()),
        cut: start.is_some_and(|start| start > 0),
    }
}

fn missing(folder: &str, file: &str) -> LedgerError {
    let path = format!("{folder}/{file}");
    LedgerError::missing(path)
}

fn stored<T: Stored>(tree: Tree<'_>, folder: &str, file: &str) -> Result<Option<T>, LedgerError> {
    let Some(bytes) = tree.file(file)? else {
        return Ok(None);
    };
    let read = record::read(&bytes);
    read.map(Some)
        .map_err(|e| LedgerError::stored(&format!("{folder}/{file}"), e))
}
