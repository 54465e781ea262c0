//! Trees in their stored form: looked up, listed, compared and edited as bytes.
//!
//! libgit2's tree builder copies every entry of every folder it touches into a hash map; splicing a
//! folder of a hundred entries is cheaper.

use std::rc::Rc;

use git2::{ErrorClass, ErrorCode, ObjectType, Oid};
use handoff_base::ObjectId;

use super::error::GitError;
use super::object_id::{ToOid, object_id};
use super::repository::Repository;

/// The mode of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// A folder.
    Folder,
    /// A regular file.
    Plain,
    /// An executable file.
    Executable,
    /// A symbolic link, whose content is its target.
    Link,
}

impl Mode {
    /// The stored number.
    pub fn number(self) -> u32 {
        match self {
            Self::Folder => 0o40_000,
            Self::Plain => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Link => 0o120_000,
        }
    }

    fn stored(self) -> &'static [u8] {
        match self {
            Self::Folder => b"40000",
            Self::Plain => b"100644",
            Self::Executable => b"100755",
            Self::Link => b"120000",
        }
    }
}

/// How deep folders may nest: git's limit (`core.maxTreeDepth`).
const MAX_DEPTH: usize = 2048;

/// Refuses to go deeper. All walks keep their folders on the heap, not the stack; this limits the
/// work on a malicious tree.
fn ensure_depth(depth: usize, class: ErrorClass) -> Result<(), GitError> {
    if depth <= MAX_DEPTH {
        return Ok(());
    }
    let text = format!("a tree is nested deeper than {MAX_DEPTH} levels");
    Err(git2::Error::new(ErrorCode::Invalid, class, text).into())
}

/// A path with its new entry, or `None` to remove it.
pub(super) type Placed<'a> = (&'a [u8], Option<(Mode, ObjectId)>);

/// The kind of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Tree,
    /// A regular, not executable file.
    File,
    /// Anything else: an executable, a symbolic link, a submodule.
    Other,
}

/// One entry of a tree.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name in its folder; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Its kind.
    pub kind: EntryKind,
    /// The object it names.
    pub id: ObjectId,
}

/// A difference between two trees.
#[derive(Clone, Debug)]
pub struct Change {
    /// The file's full path.
    pub path: String,
    /// The blob before; `None` if the file is new.
    pub old: Option<ObjectId>,
    /// The blob after; `None` if the file was removed.
    pub new: Option<ObjectId>,
    /// The file's kind, before the change if it was removed.
    pub kind: EntryKind,
}

/// An entry with its full path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatEntry {
    /// Its path, as it is stored.
    pub path: Vec<u8>,
    /// Its mode, as it is stored.
    pub mode: u32,
    /// The object it names.
    pub id: ObjectId,
}

/// A folder in its stored form.
pub struct Listing(Option<Rc<[u8]>>);

impl Listing {
    fn entries(&self) -> impl Iterator<Item = RawEntry<'_>> {
        raw_entries(self.0.as_deref().unwrap_or_default())
    }

    /// The object with this name.
    ///
    /// # Errors
    /// [`GitError`] when its id is invalid.
    pub fn find(&self, name: &str) -> Result<Option<ObjectId>, GitError> {
        let found = self.entries().find(|e| e.name == name.as_bytes());
        found.map(|entry| entry.id()).transpose()
    }

    /// Every entry with a UTF-8 name, with its object.
    pub fn named(&self) -> impl Iterator<Item = (&str, ObjectId)> {
        self.entries()
            .filter_map(|e| Some((std::str::from_utf8(e.name).ok()?, e.id().ok()?)))
    }

    /// The names of an object in this folder.
    pub fn names_of(&self, id: ObjectId) -> impl Iterator<Item = String> {
        let same = self.entries().filter(move |e| e.id == id.oid().as_bytes());
        same.map(|e| String::from_utf8_lossy(e.name).into_owned())
    }
}

/// A tree of a repository, read on demand.
#[derive(Clone, Copy)]
pub struct Tree<'r> {
    repository: &'r Repository,
    id: ObjectId,
}

impl<'r> Tree<'r> {
    /// The tree with this id.
    pub fn new(repository: &'r Repository, id: ObjectId) -> Self {
        Self { repository, id }
    }

    /// The tree's id.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The entry at a path.
    ///
    /// # Errors
    /// [`GitError`] when a folder on the way can't be read.
    pub fn entry(&self, path: &str) -> Result<Option<(EntryKind, ObjectId)>, GitError> {
        let mut here = (EntryKind::Tree, self.id);
        for part in path.split('/') {
            if here.0 != EntryKind::Tree {
                return Ok(None);
            }
            let data = self.repository.object(here.1, ObjectType::Tree)?;
            let found = raw_entries(&data).find(|e| e.name == part.as_bytes());
            match found {
                Some(entry) => here = (entry.kind(), entry.id()?),
                None => return Ok(None),
            }
        }
        Ok(Some(here))
    }

    /// The content of a file.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read.
    pub fn file(&self, path: &str) -> Result<Option<Rc<[u8]>>, GitError> {
        match self.entry(path)? {
            Some((EntryKind::File | EntryKind::Other, id)) => Ok(Some(self.repository.blob(id)?)),
            _ => Ok(None),
        }
    }

    /// The folder at a path; a missing one is empty.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read.
    pub fn folder(&self, path: &str) -> Result<Listing, GitError> {
        Ok(Listing(match self.entry(path)? {
            Some((EntryKind::Tree, id)) => Some(self.repository.object(id, ObjectType::Tree)?),
            _ => None,
        }))
    }

    /// The tree's own folder.
    ///
    /// # Errors
    /// [`GitError`] when it can't be read.
    pub fn listing(&self) -> Result<Listing, GitError> {
        let data = self.repository.object(self.id, ObjectType::Tree)?;
        Ok(Listing(Some(data)))
    }

    /// The entries of the folder at a path, `""` for the root; a missing one is empty.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, GitError> {
        let id = if path.is_empty() {
            self.id
        } else {
            match self.entry(path)? {
                Some((EntryKind::Tree, id)) => id,
                _ => return Ok(Vec::new()),
            }
        };
        let data = self.repository.object(id, ObjectType::Tree)?;
        raw_entries(&data)
            .map(|entry| {
                Ok(Entry {
                    name: String::from_utf8_lossy(entry.name).into_owned(),
                    kind: entry.kind(),
                    id: entry.id()?,
                })
            })
            .collect()
    }

    /// The tree's own entries.
    ///
    /// # Errors
    /// [`GitError`] when it can't be read.
    pub(crate) fn entries(&self) -> Result<Vec<FlatEntry>, GitError> {
        let data = self.repository.object(self.id, ObjectType::Tree)?;
        let entries = raw_entries(&data).map(|entry| {
            let octal = std::str::from_utf8(entry.mode).unwrap_or_default();
            Ok(FlatEntry {
                path: entry.name.to_vec(),
                mode: u32::from_str_radix(octal, 8).unwrap_or_default(),
                id: entry.id()?,
            })
        });
        entries.collect()
    }

    /// All files, in all folders, with their modes.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read.
    pub fn files(&self) -> Result<Vec<FlatEntry>, GitError> {
        let mut found = Vec::new();
        // The folders being listed, each with its path.
        let mut open = vec![(Vec::new(), self.entries()?.into_iter())];
        while let Some((prefix, entries)) = open.last_mut() {
            let Some(mut entry) = entries.next() else {
                open.pop();
                continue;
            };
            entry.path.splice(0..0, prefix.iter().copied());
            if entry.mode == Mode::Folder.number() {
                ensure_depth(open.len(), ErrorClass::Tree)?;
                entry.path.push(b'/');
                let inside = Self::new(self.repository, entry.id).entries()?;
                open.push((entry.path, inside.into_iter()));
            } else {
                found.push(entry);
            }
        }
        Ok(found)
    }

    /// All files that differ from an older tree. A folder for which `closed` returns true counts as
    /// one file.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read.
    pub fn changes_since(
        &self,
        old: Option<ObjectId>,
        closed: fn(&str) -> bool,
    ) -> Result<Vec<Change>, GitError> {
        let mut changes = Vec::new();
        // The folders being compared, the innermost last.
        let mut open = vec![Pair::read(
            self.repository,
            String::new(),
            old,
            Some(self.id),
        )?];
        while let Some(pair) = open.last_mut() {
            let Some((before, after)) = next_difference(&pair.old, &pair.new, &mut pair.at) else {
                open.pop();
                continue;
            };
            let Some(shown) = after.as_ref().or(before.as_ref()) else {
                continue;
            };
            let path = format!("{}{}", pair.prefix, String::from_utf8_lossy(shown.name));
            let id_of = |entry: &Option<RawEntry<'_>>| entry.as_ref().map(RawEntry::id).transpose();
            let (kind, old, new) = (shown.kind(), id_of(&before)?, id_of(&after)?);
            if kind == EntryKind::Tree && !closed(&path) {
                ensure_depth(open.len(), ErrorClass::Tree)?;
                open.push(Pair::read(self.repository, format!("{path}/"), old, new)?);
            } else {
                changes.push(Change {
                    path,
                    old,
                    new,
                    kind,
                });
            }
        }
        Ok(changes)
    }
}

/// A name, and the byte that follows it in git's order.
type Order<'a> = (&'a [u8], u8);

/// A stored entry: `MODE SP NAME NUL ID`.
struct RawEntry<'a> {
    mode: &'a [u8],
    name: &'a [u8],
    id: &'a [u8],
}

impl RawEntry<'_> {
    fn kind(&self) -> EntryKind {
        match self.mode {
            b"40000" => EntryKind::Tree,
            b"100644" => EntryKind::File,
            _ => EntryKind::Other,
        }
    }

    fn id(&self) -> Result<ObjectId, GitError> {
        Ok(object_id(Oid::from_bytes(self.id)?))
    }

    /// Its size in bytes.
    fn length(&self) -> usize {
        self.mode.len() + self.name.len() + self.id.len() + 2
    }

    /// git's order: as if a folder's name ended in `/`.
    fn order(&self) -> Order<'_> {
        (
            self.name,
            if self.kind() == EntryKind::Tree {
                b'/'
            } else {
                0
            },
        )
    }
}

fn first_entry(data: &[u8]) -> Option<RawEntry<'_>> {
    const ID: usize = 20;
    let space = data.iter().position(|&b| b == b' ')?;
    let nul = space + data[space..].iter().position(|&b| b == 0)?;
    Some(RawEntry {
        mode: &data[..space],
        name: &data[space + 1..nul],
        id: data.get(nul + 1..nul + 1 + ID)?,
    })
}

fn raw_entries(mut data: &[u8]) -> impl Iterator<Item = RawEntry<'_>> {
    std::iter::from_fn(move || {
        let entry = first_entry(data)?;
        data = &data[entry.length()..];
        Some(entry)
    })
}

fn compare_order(a: Order<'_>, b: Order<'_>) -> std::cmp::Ordering {
    let shared = a.0.len().min(b.0.len());
    a.0[..shared].cmp(&b.0[..shared]).then_with(|| {
        let next = |(name, end): Order<'_>| name.get(shared).copied().unwrap_or(end);
        next(a).cmp(&next(b)).then(a.0.len().cmp(&b.0.len()))
    })
}

/// How many bytes of equal entries two trees begin with.
fn same_entries(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let shared = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let ends = raw_entries(&a[..shared]).scan(0, |end, entry| {
        *end += entry.length();
        Some(*end)
    });
    ends.last().unwrap_or(0)
}

/// Two folders being compared.
struct Pair {
    /// Their path.
    prefix: String,
    old: Rc<[u8]>,
    new: Rc<[u8]>,
    /// The offsets up to which they have been compared.
    at: (usize, usize),
}

impl Pair {
    fn read(
        repository: &Repository,
        prefix: String,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
    ) -> Result<Self, GitError> {
        let read = |id: Option<ObjectId>| match id {
            Some(id) if old != new => repository.object(id, ObjectType::Tree),
            _ => Ok(Rc::default()),
        };
        let (old, new) = (read(old)?, read(new)?);
        let same = same_entries(&old, &new);
        Ok(Self {
            prefix,
            old,
            new,
            at: (same, same),
        })
    }
}

/// The next pair of entries that differ: one, or two of the same name.
fn next_difference<'t>(
    old: &'t [u8],
    new: &'t [u8],
    at: &mut (usize, usize),
) -> Option<(Option<RawEntry<'t>>, Option<RawEntry<'t>>)> {
    loop {
        let (old, new) = (&old[at.0..], &new[at.1..]);
        // The rest is the same.
        if old == new {
            return None;
        }
        let (a, b) = (first_entry(old), first_entry(new));
        let order = match (&a, &b) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => compare_order(a.order(), b.order()),
        };
        let before = a.filter(|_| order.is_le());
        let after = b.filter(|_| order.is_ge());
        let length = |entry: &Option<RawEntry<'_>>| entry.as_ref().map_or(0, RawEntry::length);
        at.0 += length(&before);
        at.1 += length(&after);
        if let (Some(a), Some(b)) = (&before, &after)
            && a.id == b.id
            && a.mode == b.mode
        {
            continue;
        }
        return Some((before, after));
    }
}

/// Writes a tree with these entries set and removed. Folders that become empty are removed.
/// Removing a missing entry is not an error.
pub(super) fn edit(
    repository: &Repository,
    base: Option<ObjectId>,
    edits: &mut [Placed<'_>],
) -> Result<ObjectId, GitError> {
    edits.sort_unstable_by_key(|(path, _)| *path);
    let mut above: Vec<Folder<'_>> = Vec::new();
    let mut here = Folder::read(repository, base, b"", edits, 0)?;
    loop {
        if let Some((name, inside, skip)) = here.next_folder() {
            // A caller's path that is too deep is not damage.
            ensure_depth(above.len() + 1, ErrorClass::Invalid)?;
            let folder = Folder::read(repository, here.folder(name)?, name, inside, skip)?;
            above.push(std::mem::replace(&mut here, folder));
            continue;
        }
        let tree = here.edited();
        let Some(parent) = above.pop() else {
            return repository.write(ObjectType::Tree, &tree);
        };
        let name = std::mem::replace(&mut here, parent).name;
        let entry = if tree.is_empty() {
            None
        } else {
            Some((Mode::Folder, repository.write(ObjectType::Tree, &tree)?))
        };
        here.changed.push(((name, b'/'), entry));
    }
}

/// A folder being edited.
struct Folder<'e> {
    name: &'e [u8],
    /// Before its edits.
    data: Rc<[u8]>,
    /// The remaining edits in it; `skip` bytes of each path lead here.
    edits: &'e [Placed<'e>],
    skip: usize,
    /// The changed names, as folder or file, with their new entries.
    changed: Vec<(Order<'e>, Option<(Mode, ObjectId)>)>,
}

impl<'e> Folder<'e> {
    fn read(
        repository: &Repository,
        id: Option<ObjectId>,
        name: &'e [u8],
        edits: &'e [Placed<'e>],
        skip: usize,
    ) -> Result<Self, GitError> {
        Ok(Self {
            name,
            data: match id {
                Some(id) => repository.object(id, ObjectType::Tree)?,
                None => Rc::default(),
            },
            edits,
            skip,
            changed: Vec::new(),
        })
    }

    /// Applies the edits of its own entries, up to the next folder with edits. Returns that
    /// folder's name, its edits, and the length of the path that leads there.
    fn next_folder(&mut self) -> Option<(&'e [u8], &'e [Placed<'e>], usize)> {
        while let Some(((path, entry), others)) = self.edits.split_first() {
            let name = &path[self.skip..];
            let Some(length) = name.iter().position(|&b| b == b'/') else {
                let folder = matches!(entry, Some((Mode::Folder, _)));
                let order = (name, if folder { b'/' } else { 0 });
                self.changed.push((order, *entry));
                self.edits = others;
                continue;
            };
            let inside = self.skip + length + 1;
            let begin = path.get(self.skip..inside);
            let same = |(p, _): &&Placed<'_>| p.get(self.skip..inside) == begin;
            let count = self.edits.iter().take_while(same).count();
            let (group, others) = self.edits.split_at(count);
            self.edits = others;
            return Some((&name[..length], group, inside));
        }
        None
    }

    /// The folder of this name, before its edits.
    fn folder(&self, name: &[u8]) -> Result<Option<ObjectId>, GitError> {
        let is_it = |e: &RawEntry<'_>| e.name == name && e.kind() == EntryKind::Tree;
        raw_entries(&self.data)
            .find(is_it)
            .map(|e| e.id())
            .transpose()
    }

    /// Its bytes after the edits.
    fn edited(&mut self) -> Vec<u8> {
        self.changed.sort_by(|a, b| compare_order(a.0, b.0));
        let mut out = Vec::with_capacity(self.data.len() + self.changed.len() * 64);
        let mut pending = self.changed.iter().peekable();
        let mut push = |mode: &[u8], name: &[u8], id: &[u8]| {
            out.extend_from_slice(mode);
            out.push(b' ');
            out.extend_from_slice(name);
            out.push(0);
            out.extend_from_slice(id);
        };
        for entry in raw_entries(&self.data) {
            let mut replaced = false;
            while let Some((name, new)) = pending.peek() {
                let order = compare_order(*name, entry.order());
                if order.is_gt() {
                    break;
                }
                replaced |= order.is_eq();
                if let Some((mode, id)) = new {
                    push(mode.stored(), name.0, id.as_bytes());
                }
                pending.next();
            }
            if !replaced {
                push(entry.mode, entry.name, entry.id);
            }
        }
        for (name, new) in pending {
            if let Some((mode, id)) = new {
                push(mode.stored(), name.0, id.as_bytes());
            }
        }
        out
    }
}
