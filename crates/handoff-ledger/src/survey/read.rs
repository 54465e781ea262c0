//! Reads issues on several threads, because unpacking objects takes most of the time.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::{Entry, EntryKind, Repository, Tree};
use handoff_model::{StoredError, layout};

use super::brief;
use super::issues::PackedIssue;
use super::packed::{Names, Packed, Table};
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

/// An issue's folder, wherever it was found.
pub(super) struct Folder {
    pub(super) issue: IssueKey,
    pub(super) tree: ObjectId,
    pub(super) is_archived: bool,
}

/// A file of an issue that a survey reads: the issue's own, as number 0, or a handoff's record.
struct File {
    /// The index of its folder.
    folder: usize,
    number: u32,
    blob: ObjectId,
}

/// The packed content of a file.
enum Content {
    Issue(IssueKey, Packed),
    Handoff(u32, Packed),
}

/// What was read of an issue so far: itself, and its handoffs by number.
#[derive(Default)]
struct Contents {
    issue: Option<(IssueKey, Packed)>,
    handoffs: Vec<(u32, Packed)>,
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

/// Every issue's folder in these places, found with this many threads, in any order.
pub(super) fn folders(
    repository: &Repository,
    mut places: Vec<Place>,
    threads: usize,
) -> Result<Vec<Folder>, LedgerError> {
    let mut folders = Vec::new();
    loop {
        let (found, level): (Vec<Place>, Vec<Place>) =
            places.into_iter().partition(|place| is_issue(&place.path));
        folders.extend(found.into_iter().filter_map(Place::folder));
        if level.is_empty() {
            return Ok(folders);
        }
        let level = in_order(repository, level, |place| place.tree);
        places = Vec::new();
        let look = || {
            |repository: &Repository, place: Place, found: &mut Vec<Place>| {
                let prefix = format!("{}/", place.path);
                found.extend(self::places(repository, place.tree, &prefix)?);
                Ok(())
            }
        };
        in_parallel(level, threads, look, |found| places.push(found))?;
    }
}

/// Reads the issues in these folders with this many threads, in any order. New names are added to
/// the table.
pub(super) fn issues(
    repository: &Repository,
    folders: Vec<Folder>,
    table: &mut Table,
    threads: usize,
) -> Result<Vec<PackedIssue>, LedgerError> {
    let indexed: Vec<(usize, ObjectId)> = (0..).zip(folders.iter().map(|f| f.tree)).collect();
    let trees = in_order(repository, indexed, |(_, tree)| *tree);
    let mut files = Vec::new();
    let list = || {
        |repository: &Repository, (folder, tree): (usize, ObjectId), found: &mut Vec<File>| {
            let listing = Tree::new(repository, tree).listing()?;
            found.extend(listing.named().filter_map(|(name, blob)| {
                let number = layout::number_of(name)?;
                Some(File {
                    folder,
                    number,
                    blob,
                })
            }));
            Ok(())
        }
    };
    in_parallel(trees, threads, list, |file| files.push(file))?;
    let files = in_order(repository, files, |file| file.blob);
    let mut contents: Vec<Contents> = Vec::new();
    contents.resize_with(folders.len(), Contents::default);
    let shared = Mutex::new(std::mem::take(table));
    let read = || {
        let mut names = Names::new(&shared);
        let folders = &folders;
        move |repository: &Repository, file: File, found: &mut Vec<(usize, Content)>| {
            let content = file.read(repository, &folders[file.folder], &mut names)?;
            found.push((file.folder, content));
            Ok(())
        }
    };
    in_parallel(files, threads, read, |(folder, content)| {
        let contents = &mut contents[folder];
        match content {
            Content::Issue(key, packed) => contents.issue = Some((key, packed)),
            Content::Handoff(number, packed) => contents.handoffs.push((number, packed)),
        }
    })?;
    *table = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Records without an issue are reported by `verify`.
    Ok(contents.into_iter().filter_map(Contents::whole).collect())
}

impl Contents {
    fn whole(self) -> Option<PackedIssue> {
        let (key, mut packed) = self.issue?;
        let mut handoffs = self.handoffs;
        handoffs.sort_unstable_by_key(|(number, _)| *number);
        packed.count(handoffs.len());
        handoffs
            .iter()
            .for_each(|(_, handoff)| packed.append(handoff));
        Some(PackedIssue { key, packed })
    }
}

/// Packs the content of an issue's files, the records by number.
pub(super) fn packed(
    issue: (IssueKey, Packed),
    handoffs: Vec<(u32, Packed)>,
) -> Option<PackedIssue> {
    let issue = Some(issue);
    Contents { issue, handoffs }.whole()
}

/// Sorts many items by where their objects are stored. To look up a few would take longer than to
/// read them.
fn in_order<T>(repository: &Repository, things: Vec<T>, id: impl Fn(&T) -> ObjectId) -> Vec<T> {
    if things.len() <= PART {
        return things;
    }
    repository.in_storage_order(things, id)
}

/// Applies some work to each item, with a worker and a repository handle for each thread. A thread
/// takes neighbouring items together; the results are unordered.
fn in_parallel<T: Send, F: Send, W>(
    things: Vec<T>,
    threads: usize,
    workers: impl Fn() -> W + Sync,
    mut take: impl FnMut(F),
) -> Result<(), LedgerError>
where
    W: FnMut(&Repository, T, &mut Vec<F>) -> Result<(), LedgerError>,
{
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
        let mut work = workers();
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
    /// The folder of the issue, unless it has an invalid name, which `verify` reports.
    pub(super) fn folder(self) -> Option<Folder> {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let issue: IssueKey = name.parse().ok()?;
        let path = format!("{}/{}", layout::ISSUES, self.path);
        let tree = self.tree;
        (path == layout::issue_folder(&issue)).then_some(Folder {
            issue,
            tree,
            is_archived: false,
        })
    }
}

impl File {
    fn read(
        &self,
        repository: &Repository,
        folder: &Folder,
        names: &mut Names<'_>,
    ) -> Result<Content, LedgerError> {
        let path = || match self.number {
            0 => layout::issue_file(&folder.issue),
            number => format!(
                "{}/{}",
                layout::issue_folder(&folder.issue),
                layout::record_name(number)
            ),
        };
        let object = |source| DamageError::Object {
            path: path(),
            source,
        };
        let stored = |error: StoredError| LedgerError::stored(&path(), error);
        let bytes = repository.blob(self.blob).map_err(object)?;
        Ok(if self.number == 0 {
            let (key, packed) = brief::issue(&bytes, folder.is_archived, names).map_err(stored)?;
            Content::Issue(key, packed)
        } else {
            let (number, packed) = brief::handoff(&bytes, names).map_err(stored)?;
            Content::Handoff(number, packed)
        })
    }
}
