//! Trees in their stored form: looked up, listed, compared and edited as bytes.
//!
//! libgit2's tree builder copies every entry of every folder it touches into a hash map; splicing a
//! folder of a hundred entries is cheaper.

use std::borrow::Cow;
use std::rc::Rc;

use git2::{ErrorClass, ErrorCode, ObjectType};
use handoff_base::{ObjectFormat, ObjectId};

use super::divided::{self, Divided};
use super::error::GitError;
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

/// How many entries a walk may meet that is about one step, one failure or one comparison: many
/// times what a step writes. A tree of a few hundred bytes can name itself a billion times.
pub const MOST_ENTRIES: usize = 20_000;

/// The same for a walk through a whole ledger or through the code.
pub const MOST_IN_ALL: usize = 20_000_000;

/// Refuses to go on after so many entries.
pub(super) fn ensure_few(met: usize, most: usize) -> Result<(), GitError> {
    if met <= most {
        return Ok(());
    }
    let text = format!("a tree has more than {most} entries here");
    Err(git2::Error::new(ErrorCode::Invalid, ErrorClass::Tree, text).into())
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

impl EntryKind {
    /// The kind of an entry with this mode.
    pub(super) fn of(mode: u32) -> Self {
        match mode {
            mode if mode == Mode::Folder.number() => Self::Tree,
            mode if mode == Mode::Plain.number() => Self::File,
            _ => Self::Other,
        }
    }
}

/// How a walk and an edit treat folders, by their paths.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Whether a folder counts as one file.
    pub closed: fn(&str) -> bool,
    /// Whether a folder is divided while it is large ([`Divided`]): each path in it is that of the
    /// folder and a file's name.
    pub divided: fn(&str) -> bool,
}

impl Shape {
    /// No folder is divided.
    pub const fn undivided(closed: fn(&str) -> bool) -> Self {
        Self {
            closed,
            divided: |_| false,
        }
    }
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

impl Change {
    /// The edit that makes it. Only folders and plain files are made.
    fn placed(&self) -> Placed<'_> {
        let mode = match self.kind {
            EntryKind::Tree => Mode::Folder,
            EntryKind::File | EntryKind::Other => Mode::Plain,
        };
        (self.path.as_bytes(), self.new.map(|id| (mode, id)))
    }
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

/// A folder in its stored form; a missing one is empty.
#[derive(Default)]
pub struct Listing(Option<(Rc<[u8]>, ObjectFormat)>);

impl Listing {
    fn entries(&self) -> impl Iterator<Item = RawEntry<'_>> {
        let entries = |(data, format)| raw_entries(data, format);
        let stored = self.0.as_ref().map(|(data, format)| (&**data, *format));
        stored.into_iter().flat_map(entries)
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
        let same = self.entries().filter(move |e| e.id == id.as_bytes());
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
            let found = self.raw_entries(&data).find(|e| e.name == part.as_bytes());
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
            Some((EntryKind::Tree, id)) => Some(self.stored(id)?),
            _ => None,
        }))
    }

    /// The folder at a path, which may be divided; a missing one is empty.
    ///
    /// # Errors
    /// [`GitError`] when a folder on the way can't be read.
    pub fn divided(&self, path: &str) -> Result<Divided<'r>, GitError> {
        let folder = self
            .entry(path)?
            .filter(|(kind, _)| *kind == EntryKind::Tree);
        Ok(Divided::new(self.repository, folder.map(|(_, id)| id)))
    }

    /// The tree's own folder.
    ///
    /// # Errors
    /// [`GitError`] when it can't be read.
    pub fn listing(&self) -> Result<Listing, GitError> {
        Ok(Listing(Some(self.stored(self.id)?)))
    }

    fn stored(&self, id: ObjectId) -> Result<(Rc<[u8]>, ObjectFormat), GitError> {
        let data = self.repository.object(id, ObjectType::Tree)?;
        Ok((data, self.repository.format()))
    }

    fn raw_entries<'d>(&self, data: &'d [u8]) -> impl Iterator<Item = RawEntry<'d>> + use<'d> {
        raw_entries(data, self.repository.format())
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
        self.raw_entries(&data)
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
        let entries = self.raw_entries(&data).map(|entry| {
            Ok(FlatEntry {
                path: entry.name.to_vec(),
                mode: entry.mode_number(),
                id: entry.id()?,
            })
        });
        entries.collect()
    }

    /// All files, in all folders, with their modes.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read, or there are more entries than `most`.
    pub fn files(&self, most: usize) -> Result<Vec<FlatEntry>, GitError> {
        let mut found = Vec::new();
        let mut met = 0;
        // The folders being listed, each with its path.
        let mut open = vec![(Vec::new(), self.entries()?.into_iter())];
        while let Some((prefix, entries)) = open.last_mut() {
            let Some(mut entry) = entries.next() else {
                open.pop();
                continue;
            };
            met += 1;
            ensure_few(met, most)?;
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

    /// All files that differ from an older tree.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read, or more entries than `most` differ.
    pub fn changes_since(
        &self,
        old: Option<ObjectId>,
        shape: Shape,
        most: usize,
    ) -> Result<Vec<Change>, GitError> {
        let mut changes = Vec::new();
        let mut met = 0;
        // The folders being compared, the innermost last.
        let mut open = vec![Pair::read(
            self.repository,
            String::new(),
            old,
            Some(self.id),
        )?];
        while let Some(pair) = open.last_mut() {
            let Pair { old, new, at, .. } = pair;
            let Some((before, after)) = next_difference(old, new, at, pair.format) else {
                open.pop();
                continue;
            };
            let Some(shown) = after.as_ref().or(before.as_ref()) else {
                continue;
            };
            met += 1;
            ensure_few(met, most)?;
            let name = String::from_utf8_lossy(shown.name);
            let mut path = String::with_capacity(pair.prefix.len() + name.len() + 1);
            path.extend([pair.prefix.as_str(), &name]);
            let id_of = |entry: &Option<RawEntry<'_>>| entry.as_ref().map(RawEntry::id).transpose();
            let (kind, old, new) = (shown.kind(), id_of(&before)?, id_of(&after)?);
            if kind == EntryKind::Tree && (shape.divided)(&path) {
                let folders = (old, new);
                let found = divided::changes(self.repository, &path, folders, &mut met, most)?;
                changes.extend(found);
            } else if kind == EntryKind::Tree && !(shape.closed)(&path) {
                ensure_depth(open.len(), ErrorClass::Tree)?;
                path.push('/');
                open.push(Pair::read(self.repository, path, old, new)?);
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

    /// Makes this tree again from an older one and the files that differ, and compares each changed
    /// folder byte for byte. Returns the path of what is not as this program writes it: an empty
    /// folder, a name that holds a slash, an order, a mode, a second entry of one name.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read.
    pub fn difference(
        &self,
        old: Option<ObjectId>,
        changes: &[Change],
        shape: Shape,
    ) -> Result<Option<String>, GitError> {
        let mut edits: Vec<Placed<'_>> = changes.iter().map(Change::placed).collect();
        edits.sort_unstable_by_key(|(path, _)| *path);
        let mut comparer = Comparer {
            repository: self.repository,
            open: vec![(Vec::new(), Some((self.id, self.stored(self.id)?.0)))],
            difference: None,
        };
        make(self.repository, &mut comparer, old, &edits, shape)?;
        let path = comparer.difference;
        Ok(path.map(|path| String::from_utf8_lossy(&path).into_owned()))
    }
}

/// A name, and the byte that follows it in git's order.
type Order<'a> = (&'a [u8], u8);

/// A stored entry: `MODE SP NAME NUL ID`.
pub(super) struct RawEntry<'a> {
    mode: &'a [u8],
    pub(super) name: &'a [u8],
    id: &'a [u8],
}

impl RawEntry<'_> {
    /// The number of its mode, in whatever form it is stored.
    pub(super) fn mode_number(&self) -> u32 {
        match self.mode {
            b"40000" => Mode::Folder.number(),
            b"100644" => Mode::Plain.number(),
            other => {
                let octal = std::str::from_utf8(other).unwrap_or_default();
                u32::from_str_radix(octal, 8).unwrap_or_default()
            }
        }
    }

    fn kind(&self) -> EntryKind {
        match self.mode {
            b"40000" => EntryKind::Tree,
            b"100644" => EntryKind::File,
            _ => EntryKind::Other,
        }
    }

    pub(super) fn id(&self) -> Result<ObjectId, GitError> {
        ObjectId::from_bytes(self.id).ok_or_else(|| {
            let text = "a tree's entry has an id of an unknown length";
            git2::Error::new(ErrorCode::Invalid, ErrorClass::Tree, text).into()
        })
    }

    /// Its size in bytes.
    pub(super) fn length(&self) -> usize {
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

#[inline]
pub(super) fn first_entry(data: &[u8], format: ObjectFormat) -> Option<RawEntry<'_>> {
    // All modes but a folder's have six digits.
    let space = match data {
        [_, _, _, _, _, b' ', ..] => 5,
        [_, _, _, _, _, _, b' ', ..] => 6,
        _ => data.iter().position(|&b| b == b' ')?,
    };
    let rest = &data[space + 1..];
    // Names are too short for a search by blocks.
    let name = &rest[..rest.iter().position(|&b| b == 0)?];
    let id = space + 1 + name.len() + 1;
    Some(RawEntry {
        mode: &data[..space],
        name,
        id: data.get(id..id + format.id_bytes())?,
    })
}

fn raw_entries(mut data: &[u8], format: ObjectFormat) -> impl Iterator<Item = RawEntry<'_>> {
    std::iter::from_fn(move || {
        let entry = first_entry(data, format)?;
        data = &data[entry.length()..];
        Some(entry)
    })
}

/// A folder's bytes.
pub(super) fn stored(entries: &[FlatEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * 96);
    for entry in entries {
        let mode = match EntryKind::of(entry.mode) {
            EntryKind::Tree => Cow::Borrowed(Mode::Folder.stored()),
            EntryKind::File => Cow::Borrowed(Mode::Plain.stored()),
            EntryKind::Other => Cow::Owned(format!("{:o}", entry.mode).into_bytes()),
        };
        push(&mut out, &mode, &entry.path, entry.id.as_bytes());
    }
    out
}

fn push(out: &mut Vec<u8>, mode: &[u8], name: &[u8], id: &[u8]) {
    for part in [mode, b" ", name, b"\0", id] {
        out.extend_from_slice(part);
    }
}

fn compare_order(a: Order<'_>, b: Order<'_>) -> std::cmp::Ordering {
    let shared = a.0.len().min(b.0.len());
    a.0[..shared].cmp(&b.0[..shared]).then_with(|| {
        let next = |(name, end): Order<'_>| name.get(shared).copied().unwrap_or(end);
        next(a).cmp(&next(b)).then(a.0.len().cmp(&b.0.len()))
    })
}

/// How many bytes of equal entries two trees begin with.
pub(super) fn same_entries(a: &[u8], b: &[u8], format: ObjectFormat) -> usize {
    const BLOCK: usize = 64;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let shared = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let ends = raw_entries(&a[..shared], format).scan(0, |end, entry| {
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
    format: ObjectFormat,
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
        let format = repository.format();
        let same = same_entries(&old, &new, format);
        Ok(Self {
            prefix,
            old,
            new,
            format,
            at: (same, same),
        })
    }
}

/// A pair of entries that differ: one, or two of the same name.
type Difference<'t> = (Option<RawEntry<'t>>, Option<RawEntry<'t>>);

/// The next pair of entries that differ.
fn next_difference<'t>(
    old: &'t [u8],
    new: &'t [u8],
    at: &mut (usize, usize),
    format: ObjectFormat,
) -> Option<Difference<'t>> {
    loop {
        let (old, new) = (&old[at.0..], &new[at.1..]);
        // The rest is the same.
        if old == new {
            return None;
        }
        let (a, b) = (first_entry(old, format), first_entry(new, format));
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

/// Where the folders go that an edit makes.
pub(super) trait Made {
    /// A folder of this name begins, in the one that was begun last and has not ended.
    fn begin(&mut self, name: &[u8]) -> Result<(), GitError>;

    /// It ends, with these bytes. Returns its id.
    fn end(&mut self, bytes: &[u8]) -> Result<ObjectId, GitError>;

    /// It ends, and is empty: it does not exist.
    fn drop(&mut self);
}

/// Writes them.
struct Writer<'r>(&'r Repository);

impl Made for Writer<'_> {
    fn begin(&mut self, _: &[u8]) -> Result<(), GitError> {
        Ok(())
    }

    fn end(&mut self, bytes: &[u8]) -> Result<ObjectId, GitError> {
        self.0.write(ObjectType::Tree, bytes)
    }

    fn drop(&mut self) {}
}

/// A folder's id and bytes.
type Known = (ObjectId, Rc<[u8]>);

/// Compares them with those of a tree.
struct Comparer<'r> {
    repository: &'r Repository,
    /// The folders that have begun: their names, and what the tree has in their place.
    open: Vec<(Vec<u8>, Option<Known>)>,
    /// The path of what differs.
    difference: Option<Vec<u8>>,
}

impl Made for Comparer<'_> {
    fn begin(&mut self, name: &[u8]) -> Result<(), GitError> {
        let above = self.open.last().and_then(|(_, folder)| folder.as_ref());
        let id = match above {
            Some((_, data)) => folder_in(data, name, self.repository.format())?,
            None => None,
        };
        let own = match id {
            Some(id) => Some((id, self.repository.object(id, ObjectType::Tree)?)),
            None => None,
        };
        self.open.push((name.to_vec(), own));
        Ok(())
    }

    fn end(&mut self, bytes: &[u8]) -> Result<ObjectId, GitError> {
        let (_, own) = self.open.last().expect("each end has its beginning");
        // What stands in for a missing folder is a difference itself.
        let format = self.repository.format();
        let missing = || (ObjectId::zero(format), Rc::default());
        let (id, data) = own.clone().unwrap_or_else(missing);
        if *data != *bytes && self.difference.is_none() {
            let open = self.open.iter().skip(1);
            let mut path: Vec<&[u8]> = open.map(|(name, _)| name.as_slice()).collect();
            let other = next_difference(bytes, &data, &mut (0, 0), format);
            let other = other.and_then(|(wanted, found)| found.or(wanted));
            path.extend(other.iter().map(|entry| entry.name));
            self.difference = Some(path.join(&b'/'));
        }
        self.open.pop();
        Ok(id)
    }

    fn drop(&mut self) {
        self.open.pop();
    }
}

/// Writes a tree with these entries set and removed. A folder is removed with all that is in it, and
/// so is one that becomes empty. Removing a missing entry is not an error.
pub(super) fn edit(
    repository: &Repository,
    base: Option<ObjectId>,
    edits: &mut [Placed<'_>],
    shape: Shape,
) -> Result<ObjectId, GitError> {
    edits.sort_unstable_by_key(|(path, _)| *path);
    make(repository, &mut Writer(repository), base, edits, shape)
}

/// Makes a tree with these entries set and removed, which are sorted by path, folder by folder.
fn make<'e>(
    repository: &Repository,
    made: &mut impl Made,
    base: Option<ObjectId>,
    edits: &'e [Placed<'e>],
    shape: Shape,
) -> Result<ObjectId, GitError> {
    let mut above: Vec<Folder<'_>> = Vec::new();
    let mut here = Folder::read(repository, base, b"", edits, 0)?;
    let mut tree = Vec::new();
    loop {
        if let Some((name, inside, skip)) = here.next_folder() {
            let path = inside[0].0.get(..skip - 1).unwrap_or_default();
            if std::str::from_utf8(path).is_ok_and(shape.divided) {
                let before = folder_in(&here.data, name, repository.format())?;
                let entry = make_divided(repository, made, (name, before), inside, skip)?;
                here.changed.push(((name, b'/'), entry));
                continue;
            }
            // A caller's path that is too deep is not damage.
            ensure_depth(above.len() + 1, ErrorClass::Invalid)?;
            made.begin(name)?;
            let before = folder_in(&here.data, name, repository.format())?;
            let folder = Folder::read(repository, before, name, inside, skip)?;
            above.push(std::mem::replace(&mut here, folder));
            continue;
        }
        here.write_edited(&mut tree, repository.format());
        let Some(parent) = above.pop() else {
            return made.end(&tree);
        };
        let name = std::mem::replace(&mut here, parent).name;
        let entry = if tree.is_empty() {
            made.drop();
            None
        } else {
            Some((Mode::Folder, made.end(&tree)?))
        };
        here.changed.push(((name, b'/'), entry));
    }
}

/// Makes a divided folder, with edits whose paths have its own and a name after `skip` bytes.
fn make_divided(
    repository: &Repository,
    made: &mut impl Made,
    (name, before): (&[u8], Option<ObjectId>),
    edits: &[Placed<'_>],
    skip: usize,
) -> Result<Option<(Mode, ObjectId)>, GitError> {
    let edits = edits.iter().map(|(path, file)| (&path[skip..], *file));
    // There is no folder in a divided one but those that divide it.
    let mut edits: Vec<_> = edits.filter(|(name, _)| !name.contains(&b'/')).collect();
    edits.dedup_by_key(|(name, _)| *name);
    let node = divided::edited(repository, (b"", before), &edits)?;
    let id = node.map(|node| node.make(name, made)).transpose()?;
    Ok(id.map(|id| (Mode::Folder, id)))
}

/// The folder of this name in a folder.
fn folder_in(data: &[u8], name: &[u8], format: ObjectFormat) -> Result<Option<ObjectId>, GitError> {
    let is_it = |e: &RawEntry<'_>| e.name == name && e.kind() == EntryKind::Tree;
    raw_entries(data, format)
        .find(is_it)
        .map(|e| e.id())
        .transpose()
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
                // A removal is of whatever has the name.
                let is_folder = matches!(entry, Some((Mode::Folder, _)));
                if !is_folder {
                    self.changed.push(((name, 0), *entry));
                }
                if is_folder || entry.is_none() {
                    self.changed.push(((name, b'/'), *entry));
                }
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

    /// Writes its bytes after the edits, in place of what is in `out`.
    fn write_edited(&mut self, out: &mut Vec<u8>, format: ObjectFormat) {
        self.changed.sort_by(|a, b| compare_order(a.0, b.0));
        let data = &*self.data;
        out.clear();
        // What is copied already, and what has been looked at.
        let (mut copied, mut at) = (0, 0);
        let mut entry = first_entry(data, format);
        for (name, new) in &self.changed {
            let mut order = std::cmp::Ordering::Greater;
            while let Some(here) = &entry {
                order = compare_order(here.order(), *name);
                if order.is_ge() {
                    break;
                }
                at += here.length();
                entry = first_entry(&data[at..], format);
            }
            out.extend_from_slice(&data[copied..at]);
            copied = at;
            if let Some((mode, id)) = new {
                push(out, mode.stored(), name.0, id.as_bytes());
            }
            if let Some(replaced) = entry.take_if(|_| order.is_eq()) {
                at += replaced.length();
                copied = at;
                entry = first_entry(&data[at..], format);
            }
        }
        out.extend_from_slice(&data[copied..]);
    }
}
