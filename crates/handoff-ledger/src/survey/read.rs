//! Reads issues on several threads, because unpacking objects takes most of the time.

use std::sync::{Mutex, mpsc};
use std::thread;

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::{Entry, EntryKind, Repository, Tree};
use handoff_model::{StoredError, layout};

use super::brief;
use super::types::{HandoffSurvey, IssueSurvey};
use crate::error::{DamageError, LedgerError};

/// The depth of an issue's folder in the folder of all issues.
const DEPTH: usize = 2;

/// How many items a thread takes at once.
const PART: usize = 512;

/// Whether a path in the folder of all issues is that of an issue.
pub(super) fn is_issue(path: &str) -> bool {
    path.matches('/').count() == DEPTH
}

/// A folder in the folder of all issues: one issue's, or one that contains issues.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Its path relative to that folder.
    pub(super) path: String,
    pub(super) tree: ObjectId,
}

/// The files of an issue that a survey reads: the issue's own, as number 0, and the handoffs'
/// records.
struct Folder {
    issue: IssueKey,
    files: Vec<(u32, ObjectId)>,
}

/// A file of an issue.
struct File {
    /// The index of its folder.
    folder: usize,
    number: u32,
    blob: ObjectId,
}

/// The parsed content of a file.
enum Content {
    Issue(IssueSurvey),
    Handoff(HandoffSurvey),
}

/// The folders in a folder.
pub(super) fn places(
    repository: &Repository,
    tree: ObjectId,
    prefix: &str,
) -> Result<Vec<Place>, LedgerError> {
    let entries = Tree::new(repository, tree).list("")?.into_iter();
    let folders = entries.filter(|entry| entry.kind == EntryKind::Tree);
    let place = |entry: Entry| Place {
        path: format!("{prefix}{}", entry.name),
        tree: entry.id,
    };
    Ok(folders.map(place).collect())
}

/// The content of a folder.
enum Found {
    Place(Place),
    Folder(Folder),
}

/// Reads every issue in these places with this many threads, in any order.
pub(super) fn read(
    repository: &Repository,
    mut places: Vec<Place>,
    threads: usize,
) -> Result<Vec<IssueSurvey>, LedgerError> {
    let mut folders = Vec::new();
    while !places.is_empty() {
        let level = repository.in_storage_order(places, |place| place.tree);
        places = Vec::new();
        in_parallel(level, threads, Place::look, |found| match found {
            Found::Place(place) => places.push(place),
            Found::Folder(folder) => folders.push(folder),
        })?;
    }
    let mut files = Vec::new();
    for (folder, Folder { files: own, .. }) in folders.iter_mut().enumerate() {
        let own = std::mem::take(own).into_iter();
        files.extend(own.map(|(number, blob)| File {
            folder,
            number,
            blob,
        }));
    }
    let files = repository.in_storage_order(files, |file| file.blob);
    let mut issues: Vec<(Option<IssueSurvey>, Vec<HandoffSurvey>)> = Vec::new();
    issues.resize_with(folders.len(), Default::default);
    let work = |repository: &Repository, file: File, found: &mut Vec<_>| {
        let content = file.read(repository, &folders[file.folder].issue)?;
        found.push((file.folder, content));
        Ok(())
    };
    in_parallel(files, threads, work, |(folder, content)| match content {
        Content::Issue(issue) => issues[folder].0 = Some(issue),
        Content::Handoff(handoff) => issues[folder].1.push(handoff),
    })?;
    let surveys = issues.into_iter().filter_map(|(issue, mut handoffs)| {
        // Records without an issue are reported by `verify`.
        let issue = issue?;
        handoffs.sort_unstable_by_key(|handoff| handoff.number);
        handoffs.shrink_to_fit();
        Some(IssueSurvey { handoffs, ..issue })
    });
    Ok(surveys.collect())
}

/// Applies some work to each item with a repository handle per thread. Each thread takes
/// neighbouring items together; the results are unordered.
fn in_parallel<T: Send, F: Send>(
    things: Vec<T>,
    threads: usize,
    work: impl Fn(&Repository, T, &mut Vec<F>) -> Result<(), LedgerError> + Sync,
    mut take: impl FnMut(F),
) -> Result<(), LedgerError> {
    let threads = threads.clamp(1, things.len().div_ceil(PART).max(1));
    let (send, receive) = mpsc::channel();
    let queue = Mutex::new(things.into_iter());
    let next = || -> Vec<T> {
        let queue = queue.lock().ok();
        queue.map_or_else(Vec::new, |mut queue| queue.by_ref().take(PART).collect())
    };
    let worker = |send: &mpsc::Sender<_>| -> Result<(), LedgerError> {
        // libgit2's handles must not be shared between threads.
        let repository = Repository::open_for_survey()?;
        loop {
            let (part, mut found) = (next(), Vec::new());
            if part.is_empty() {
                return Ok(());
            }
            for thing in part {
                work(&repository, thing, &mut found)?;
            }
            // The receiver is gone once another thread has failed.
            if send.send(Ok(found)).is_err() {
                return Ok(());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            let (send, worker) = (send.clone(), &worker);
            scope.spawn(move || {
                if let Err(error) = worker(&send) {
                    let _ = send.send(Err(error));
                }
            });
        }
        drop(send);
        for found in receive {
            found?.into_iter().for_each(&mut take);
        }
        Ok(())
    })
}

impl Place {
    fn look(
        repository: &Repository,
        place: Self,
        found: &mut Vec<Found>,
    ) -> Result<(), LedgerError> {
        if !is_issue(&place.path) {
            let prefix = format!("{}/", place.path);
            let inside = places(repository, place.tree, &prefix)?;
            found.extend(inside.into_iter().map(Found::Place));
            return Ok(());
        }
        // A folder with an invalid name is reported by `verify`.
        let name = place.path.rsplit('/').next().unwrap_or_default();
        let Ok(issue) = name.parse::<IssueKey>() else {
            return Ok(());
        };
        if format!("{}/{}", layout::ISSUES, place.path) != layout::issue_folder(&issue) {
            return Ok(());
        }
        let listing = Tree::new(repository, place.tree).listing()?;
        let named = listing.named();
        let files = named.filter_map(|(name, blob)| Some((layout::number_of(name)?, blob)));
        let files = files.collect();
        found.push(Found::Folder(Folder { issue, files }));
        Ok(())
    }
}

impl File {
    fn read(&self, repository: &Repository, issue: &IssueKey) -> Result<Content, LedgerError> {
        let path = || match self.number {
            0 => layout::issue_file(issue),
            number => format!(
                "{}/{}",
                layout::issue_folder(issue),
                layout::record_name(number)
            ),
        };
        let object = |source| DamageError::Object {
            path: path(),
            source,
        };
        let stored = |error: StoredError| LedgerError::stored(&path(), error);
        let bytes = repository.blob(self.blob).map_err(object)?;
        Ok(match self.number {
            0 => Content::Issue(brief::issue(&bytes).map_err(stored)?),
            _ => Content::Handoff(brief::handoff(&bytes).map_err(stored)?),
        })
    }
}
