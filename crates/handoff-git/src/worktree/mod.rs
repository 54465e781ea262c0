//! Captures the uncommitted changes of a working tree without touching it.
//!
//! The index is compared with HEAD, and the files with the index, like `git status`; the index is
//! not refreshed. Differences are written as blobs, byte for byte.
//!
//! `index` reads the files of the next commit, `position` the branch and the operation in progress;
//! `restore` writes only into a worktree that it just created.

mod capture;
mod disk;
mod index;
mod position;
mod restore;

pub use capture::{CaptureError, RawPath};
pub use index::{IndexError, PathMatch, PathPatterns, StagedFile};
pub use position::{Position, Unpublished};
pub use restore::{NewWorktree, RestoreError, put_file};

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use git2::{
    Delta, DiffOptions, ErrorClass, IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, ObjectType,
    Oid,
};
use handoff_base::ObjectId;

use self::disk::{Found, find, on_disk, shown};
use crate::error::GitError;
use crate::files::is_inside;
use crate::objects::{ToOid, object_id};
use crate::program::Program;
use crate::repository::Repository;
use crate::tree::{FlatEntry, MOST_IN_ALL, Mode, Tree};

/// Limits on captured files.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// The maximum size of a file, in bytes.
    pub file: u64,
    /// The maximum size of all files, in bytes.
    pub total: u64,
    /// The maximum number of files.
    pub files: usize,
}

/// A captured file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Its path.
    pub path: RawPath,
    /// Its mode.
    pub mode: Mode,
    /// Its blob; a link's content is its target.
    pub id: ObjectId,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its stage in the index: 0, or 1 to 3 in a conflict.
    pub stage: u16,
}

/// A flag that hides a file's changes from `git status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hidden {
    /// `git update-index --assume-unchanged`.
    AssumeUnchanged,
    /// `git update-index --skip-worktree`, or outside a sparse checkout.
    SkipWorktree,
}

/// The uncommitted changes of a working tree and its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Changed, added and untracked files.
    pub files: Vec<KeptFile>,
    /// Paths in HEAD or the index whose file is missing.
    pub deleted: Vec<RawPath>,
    /// Entries of the index that differ from HEAD.
    pub staged: Vec<KeptFile>,
    /// Paths in HEAD that are not in the index.
    pub removed: Vec<RawPath>,
    /// Paths added with `git add --intent-to-add`.
    pub intended: Vec<RawPath>,
    /// Index flags on files that differ from it.
    pub hidden: BTreeMap<RawPath, Hidden>,
    /// The number of files that a sparse checkout left out.
    pub sparse: usize,
}

impl Unfinished {
    /// Whether nothing is uncommitted.
    pub fn is_empty(&self) -> bool {
        let sparse = self.sparse;
        *self
            == Self {
                sparse,
                ..Self::default()
            }
    }

    /// The total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().chain(&self.staged).map(|f| f.bytes).sum()
    }
}

/// How often a working tree that keeps changing is read.
const TRIES: u32 = 3;

#[derive(Default)]
struct Entries {
    /// Stage 0 without submodules, sorted by path.
    plain: Vec<IndexEntry>,
    /// Conflicts: path, mode, id and stage.
    stages: Vec<(RawPath, u32, Oid, u16)>,
    submodules: BTreeMap<RawPath, Oid>,
    intended: BTreeSet<RawPath>,
    marked: BTreeMap<RawPath, Hidden>,
}

const GITLINK: u32 = 0o160_000;

fn mode_of(mode: u32) -> Mode {
    match mode {
        0o120_000 => Mode::Link,
        0o100_755 => Mode::Executable,
        _ => Mode::Plain,
    }
}

impl Repository {
    /// Captures the changes in a working tree and its index relative to a tree, HEAD's, and writes
    /// the files as blobs. Every file is passed to `accept` before any is written.
    ///
    /// # Errors
    /// [`CaptureError`]; nothing is written if a file is refused.
    pub fn unfinished(
        &self,
        head: Option<ObjectId>,
        caps: Caps,
        accept: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Unfinished, CaptureError> {
        let root = self.workdir().ok_or(CaptureError::Bare)?;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.capture(root, head, caps, accept) {
                Err(CaptureError::Changing { .. }) if tries < TRIES => {}
                other => return other,
            }
        }
    }

    fn capture(
        &self,
        root: &Path,
        head: Option<ObjectId>,
        caps: Caps,
        accept: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Unfinished, CaptureError> {
        // HEAD's files are listed in parallel with reading the index.
        let listed = head.map(|tree| {
            std::thread::spawn(move || {
                Tree::new(&Self::open_here().ok()?, tree)
                    .files(MOST_IN_ALL)
                    .ok()
            })
        });
        let index = self.index_to_compare()?;
        let mut scan = Scan {
            repository: self,
            root,
            entries: Entries::read(&index),
            files: BTreeMap::new(),
            deleted: BTreeSet::new(),
            state: Unfinished::default(),
        };
        scan.compare_with_index(&index)?;
        scan.add_flagged()?;
        let listed = listed.and_then(|thread| thread.join().ok().flatten());
        let listed = match (listed, head) {
            (Some(listed), _) => listed,
            (None, Some(tree)) => Tree::new(self, tree).files(MOST_IN_ALL)?,
            (None, None) => Vec::new(),
        };
        scan.compare_with_head(listed)?;
        scan.check(caps)?;
        scan.write(accept)
    }

    /// The index to compare with. If libgit2 does not support its format, git writes a plain copy.
    fn index_to_compare(&self) -> Result<git2::Index, CaptureError> {
        let read = || {
            let mut index = self.inner.index()?;
            index.read(false)?;
            ensure_paths(&index)?;
            Ok(index)
        };
        read().or_else(|error: git2::Error| {
            let plain = self.plain_index().and_then(|mut index| {
                // libgit2 reads the repository's index for submodules, too.
                let set = ensure_paths(&index).and_then(|()| self.inner.set_index(&mut index));
                set.map_err(io::Error::other).map(|()| index)
            });
            plain.map_err(|_| CaptureError::Index(error.into()))
        })
    }

    fn size_of(&self, id: Oid) -> Result<u64, GitError> {
        Ok(self.inner.odb()?.read_header(id)?.0 as u64)
    }

    fn staged(&self, path: &RawPath, mode: u32, id: Oid, stage: u16) -> Result<KeptFile, GitError> {
        Ok(KeptFile {
            path: path.clone(),
            mode: mode_of(mode),
            id: object_id(id),
            bytes: self.size_of(id)?,
            stage,
        })
    }
}

/// A working tree being compared with its index and HEAD.
struct Scan<'a> {
    repository: &'a Repository,
    root: &'a Path,
    entries: Entries,
    files: BTreeMap<RawPath, Metadata>,
    deleted: BTreeSet<RawPath>,
    state: Unfinished,
}

impl Scan<'_> {
    /// Adds a path, as a file or as deleted.
    fn add(&mut self, path: RawPath) -> Result<(), CaptureError> {
        match find(self.root, &path)? {
            Some(metadata) => {
                self.files.insert(path, metadata);
            }
            None => {
                self.deleted.insert(path);
            }
        }
        Ok(())
    }

    /// Adds the files that differ from the index, by libgit2's comparison.
    fn compare_with_index(&mut self, index: &git2::Index) -> Result<(), CaptureError> {
        let mut options = DiffOptions::new();
        options
            .include_untracked(true)
            .recurse_untracked_dirs(true)
            .include_typechange(true)
            .include_unreadable(true)
            // libgit2 counts nested repositories as ignored.
            .include_ignored(true)
            .update_index(false);
        let repository = &self.repository.inner;
        let diff = match repository.diff_index_to_workdir(Some(index), Some(&mut options)) {
            // If a file was replaced between lookup and hashing, its size differs.
            Err(error)
                if error.class() == ErrorClass::Os
                    && are_readable(self.root, &self.entries.plain) =>
            {
                let shown = "a file".to_owned();
                return Err(CaptureError::Changing { shown });
            }
            other => other?,
        };
        diff.deltas().try_for_each(|delta| self.add_delta(&delta))
    }

    fn add_delta(&mut self, delta: &git2::DiffDelta<'_>) -> Result<(), CaptureError> {
        let path = delta.new_file().path_bytes();
        let path = path.or(delta.old_file().path_bytes()).unwrap_or_default();
        let folder = path.strip_suffix(b"/");
        let plain = folder.unwrap_or(path);
        if self.entries.submodules.contains_key(plain) {
            // libgit2 reports every submodule with reftables as changed.
            let path = on_disk(Path::new(""), plain);
            if Program::has_same(self.repository, &path).unwrap_or(false) {
                return Ok(());
            }
            let shown = shown(plain);
            return Err(CaptureError::Submodule { shown });
        }
        if delta.status() == Delta::Ignored || folder.is_some() {
            let within = on_disk(self.root, plain).join(".git");
            let is_ignored = |path| {
                let path = on_disk(Path::new(""), path);
                self.repository.inner.is_path_ignored(path)
            };
            if within.symlink_metadata().is_ok() && !is_ignored(path)? {
                let shown = shown(plain);
                return Err(CaptureError::Nested { shown });
            }
            return Ok(());
        }
        if self.entries.is_special(path) {
            return Ok(());
        }
        if delta.status() == Delta::Deleted {
            self.deleted.insert(path.to_owned());
            return Ok(());
        }
        match find(self.root, path)? {
            Some(metadata) => {
                self.files.insert(path.to_owned(), metadata);
            }
            // Replaced by a folder, or deleted meanwhile.
            None if self.entries.get(path).is_some() => {
                self.deleted.insert(path.to_owned());
            }
            None => {}
        }
        Ok(())
    }

    /// Adds the files that libgit2 does not compare, or compares differently: conflicts,
    /// intent-to-add, and files with index flags.
    fn add_flagged(&mut self) -> Result<(), CaptureError> {
        let in_conflict = self.entries.stages.iter().map(|(path, ..)| path);
        let paths: BTreeSet<RawPath> = in_conflict.chain(&self.entries.intended).cloned().collect();
        for path in paths {
            self.add(path)?;
        }
        for (path, mark) in &self.entries.marked {
            match (find(self.root, path)?, mark) {
                (Some(metadata), _) => {
                    if !self.is_in_index(path, &metadata)? {
                        self.files.insert(path.clone(), metadata);
                        self.state.hidden.insert(path.clone(), *mark);
                    }
                }
                (None, Hidden::SkipWorktree) => self.state.sparse += 1,
                (None, Hidden::AssumeUnchanged) => {
                    self.deleted.insert(path.clone());
                    self.state.hidden.insert(path.clone(), *mark);
                }
            }
        }
        Ok(())
    }

    /// Whether a file has the mode and content of its index entry.
    fn is_in_index(&self, path: &RawPath, metadata: &Metadata) -> Result<bool, CaptureError> {
        let (mode, id) = self.entries.get(path).unwrap_or_else(|| {
            let none = ObjectId::zero(self.repository.format());
            (0, none.oid())
        });
        if self.repository.size_of(id)? != metadata.len() && !metadata.is_symlink() {
            return Ok(false);
        }
        let found = Found {
            path: path.clone(),
            metadata: metadata.clone(),
        };
        let (kind, bytes) = found.read(self.root)?;
        Ok(kind == mode_of(mode) && self.repository.hash(ObjectType::Blob, &bytes)?.oid() == id)
    }

    /// Adds staged and removed entries.
    fn compare_with_head(&mut self, head: Vec<FlatEntry>) -> Result<(), CaptureError> {
        let (entries, state) = (&self.entries, &mut self.state);
        // Both are sorted by path.
        let mut known: BTreeMap<RawPath, (u32, Oid)> = BTreeMap::new();
        let mut head = head.into_iter().peekable();
        for entry in &entries.plain {
            while let Some(file) = head.next_if(|file| file.path < entry.path) {
                known.insert(file.path, (file.mode, file.id.oid()));
            }
            let same = head.next_if(|file| file.path == entry.path);
            let same =
                same.is_some_and(|file| (file.mode, file.id.oid()) == (entry.mode, entry.id));
            if !same && !entries.intended.contains(&entry.path) {
                let (path, mode, id) = (&entry.path, entry.mode, entry.id);
                state
                    .staged
                    .push(self.repository.staged(path, mode, id, 0)?);
            }
        }
        known.extend(head.map(|file| (file.path, (file.mode, file.id.oid()))));
        for (path, id) in &entries.submodules {
            if known.remove(path) != Some((GITLINK, *id)) {
                let shown = shown(path);
                return Err(CaptureError::Submodule { shown });
            }
        }
        for (path, mode, id, stage) in &entries.stages {
            known.remove(path);
            if *mode == GITLINK {
                let shown = shown(path);
                return Err(CaptureError::Submodule { shown });
            }
            state
                .staged
                .push(self.repository.staged(path, *mode, *id, *stage)?);
        }
        if let Some((path, _)) = known.iter().find(|(_, (mode, _))| *mode == GITLINK) {
            let shown = shown(path);
            return Err(CaptureError::Submodule { shown });
        }
        state.removed = known.into_keys().collect();
        // A staged file differs from HEAD, even if it equals the index.
        let staged: Vec<RawPath> = state.staged.iter().map(|file| file.path.clone()).collect();
        for path in staged {
            if !self.files.contains_key(&path) && !self.deleted.contains(&path) {
                self.add(path)?;
            }
        }
        let removed = self.state.removed.iter();
        let removed = removed.filter(|path| !self.files.contains_key(*path));
        self.deleted.extend(removed.cloned());
        Ok(())
    }

    /// Checks the limits, and that the files could exist at the same time.
    fn check(&self, caps: Caps) -> Result<(), CaptureError> {
        within(&self.files, &self.state.staged, caps)?;
        let state = &self.state;
        let lists = [&state.removed, &state.intended].into_iter().flatten();
        let staged = state.staged.iter().map(|file| &file.path);
        let mut all = self
            .files
            .keys()
            .chain(&self.deleted)
            .chain(lists)
            .chain(staged);
        if let Some(path) = all.find(|path| !is_inside(path)) {
            return Err(CaptureError::GitsOwn { shown: shown(path) });
        }
        // A file and a folder of the same name could not.
        for path in self.files.keys() {
            let mut above = path.iter().enumerate().filter(|(_, b)| **b == b'/');
            if above.any(|(end, _)| self.files.contains_key(&path[..end])) {
                return Err(CaptureError::Changing { shown: shown(path) });
            }
        }
        Ok(())
    }

    /// Writes the files. All are read before the first is written, so that a refusal leaves nothing
    /// behind.
    fn write(
        self,
        accept: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Unfinished, CaptureError> {
        let mut contents = Vec::with_capacity(self.files.len());
        let mut accepted = true;
        for (path, metadata) in self.files {
            let found = Found { path, metadata };
            let (mode, bytes) = found.read(self.root)?;
            accepted &= accept(&found.path, &bytes);
            contents.push((found.path, mode, bytes));
        }
        for file in &self.state.staged {
            accepted &= accept(&file.path, &self.repository.blob(file.id)?);
        }
        if !accepted {
            return Err(CaptureError::NotAccepted);
        }
        let mut state = self.state;
        state.deleted = self.deleted.into_iter().collect();
        state.intended = self.entries.intended.into_iter().collect();
        for (path, mode, bytes) in contents {
            state.files.push(KeptFile {
                id: self.repository.write(ObjectType::Blob, &bytes)?,
                path,
                mode,
                bytes: bytes.len() as u64,
                stage: 0,
            });
        }
        Ok(state)
    }
}

impl Entries {
    fn read(index: &git2::Index) -> Self {
        let mut entries = Self::default();
        for entry in index.iter() {
            let extended = IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended);
            let flags = IndexEntryFlag::from_bits_truncate(entry.flags);
            let stage = (entry.flags >> 12) & 3;
            if stage > 0 {
                let (mode, id) = (entry.mode, entry.id);
                entries.stages.push((entry.path, mode, id, stage));
                continue;
            }
            if entry.mode == GITLINK {
                entries.submodules.insert(entry.path, entry.id);
                continue;
            }
            let path = || entry.path.clone();
            if extended.contains(IndexEntryExtendedFlag::INTENT_TO_ADD) {
                entries.intended.insert(path());
            } else if extended.contains(IndexEntryExtendedFlag::SKIP_WORKTREE) {
                entries.marked.insert(path(), Hidden::SkipWorktree);
            } else if flags.contains(IndexEntryFlag::VALID) {
                entries.marked.insert(path(), Hidden::AssumeUnchanged);
            }
            entries.plain.push(entry);
        }
        // With `core.ignoreCase`, libgit2 sorts differently.
        entries.plain.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    fn get(&self, path: &[u8]) -> Option<(u32, Oid)> {
        let at = self.plain.binary_search_by(|e| e.path.as_slice().cmp(path));
        at.ok().map(|at| (self.plain[at].mode, self.plain[at].id))
    }

    /// Whether a path is handled separately (see `add_flagged`).
    fn is_special(&self, path: &[u8]) -> bool {
        self.intended.contains(path)
            || self.marked.contains_key(path)
            || self.stages.iter().any(|(p, ..)| p == path)
    }
}

/// Refuses an index with an invalid path: libgit2 and git might parse truncated data as entries.
fn ensure_paths(index: &git2::Index) -> Result<(), git2::Error> {
    if index.iter().any(|entry| entry.path.contains(&0)) {
        return Err(git2::Error::from_str("the index has an invalid path"));
    }
    Ok(())
}

/// Whether the current user may read all files.
fn are_readable(root: &Path, entries: &[IndexEntry]) -> bool {
    let is_kept = |path: &Path| {
        let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        let failed = is_file.then(|| File::open(path)).and_then(Result::err);
        failed.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let mut paths = entries.iter().map(|entry| on_disk(root, &entry.path));
    !paths.any(|path| is_kept(&path))
}

/// Checks the limits.
fn within(
    files: &BTreeMap<RawPath, Metadata>,
    staged: &[KeptFile],
    caps: Caps,
) -> Result<(), CaptureError> {
    let found = files.iter().map(|(path, found)| (path, found.len()));
    let staged = staged.iter().map(|file| (&file.path, file.bytes));
    let all: Vec<(&RawPath, u64)> = found.chain(staged).collect();
    let Some(&(path, bytes)) = all.iter().max_by_key(|(_, bytes)| *bytes) else {
        return Ok(());
    };
    let shown = || shown(path);
    if bytes > caps.file {
        let limit = caps.file;
        return Err(CaptureError::TooLarge {
            shown: shown(),
            bytes,
            limit,
        });
    }
    if all.iter().map(|(_, bytes)| bytes).sum::<u64>() > caps.total {
        let limit = caps.total;
        return Err(CaptureError::TooMuch {
            shown: shown(),
            bytes,
            limit,
        });
    }
    if all.len() > caps.files {
        let mut folders: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (path, _) in &all {
            let end = path.iter().position(|&b| b == b'/').unwrap_or(0);
            *folders.entry(&path[..end]).or_default() += 1;
        }
        let most = folders.iter().max_by_key(|(_, count)| **count);
        let most = most.map(|(folder, _)| *folder).filter(|f| !f.is_empty());
        return Err(CaptureError::TooMany {
            shown: self::shown(most.unwrap_or(b".")),
            count: all.len(),
            limit: caps.files,
        });
    }
    Ok(())
}
