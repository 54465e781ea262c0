//! Trees in their stored form: looked up, listed, compared and edited as bytes.
//!
//! libgit2's tree builder copies every entry of each touched folder into a hash map; splicing bytes
//! is cheaper for a folder of a hundred entries.

mod divided_folder;
mod edit;
mod entry;
mod transfer;

pub use divided_folder::Divided;
pub use edit::Shape;
pub(crate) use edit::edit;
pub(crate) use entry::Placed;
pub use entry::{Change, EntryKind, FlatEntry, MOST_ENTRIES, MOST_IN_ALL, Mode};

use std::rc::Rc;

use git2::{ErrorClass, ObjectType};
use handoff_base::{ObjectFormat, ObjectId};

use self::edit::{Comparer, make};
use self::entry::{
    RawEntry, ensure_depth, ensure_few, entries_of, next_difference, raw_entries, same_entries,
};
use crate::error::GitError;
use crate::repository::Repository;

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

/// A folder in its stored form; a missing one is empty.
#[derive(Default)]
pub struct Listing(Option<(Rc<[u8]>, ObjectFormat)>);

impl Listing {
    fn entries(&self) -> impl Iterator<Item = RawEntry<'_>> {
        let entries = |(data, format)| raw_entries(data, format);
        let stored = self.0.as_ref().map(|(data, format)| (&**data, *format));
        stored.into_iter().flat_map(entries)
    }

    /// The object of this name.
    ///
    /// # Errors
    /// [`GitError`] when its id is invalid.
    pub fn find(&self, name: &str) -> Result<Option<ObjectId>, GitError> {
        let found = self.entries().find(|e| e.name == name.as_bytes());
        found.map(|entry| entry.id()).transpose()
    }

    /// The names of an object in this folder.
    pub fn names_of(&self, id: ObjectId) -> impl Iterator<Item = String> {
        let same = self.entries().filter(move |e| e.id == id.as_bytes());
        same.map(|e| String::from_utf8_lossy(e.name).into_owned())
    }
}

/// A repository's tree, read on demand.
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
            let mut entries = raw_entries(&data, self.repository.format());
            let found = entries.find(|e| e.name == part.as_bytes());
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

    /// The root folder.
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

    /// The entries of the folder at a path, `""` for the root; a missing one is empty.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, GitError> {
        let listing = match path {
            "" => self.listing()?,
            path => self.folder(path)?,
        };
        let entries = listing.entries().map(|entry| {
            Ok(Entry {
                name: String::from_utf8_lossy(entry.name).into_owned(),
                kind: entry.kind(),
                id: entry.id()?,
            })
        });
        entries.collect()
    }

    /// All files in all folders, with their modes.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read, or there are more entries than `most`.
    pub fn files(&self, most: usize) -> Result<Vec<FlatEntry>, GitError> {
        let mut found = Vec::new();
        let mut met = 0;
        // The folders being listed, each with its path.
        let mut open = vec![(
            Vec::new(),
            entries_of(self.repository, self.id)?.into_iter(),
        )];
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
                let inside = entries_of(self.repository, entry.id)?;
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
                let found =
                    divided_folder::changes(self.repository, &path, folders, &mut met, most)?;
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

    /// Rebuilds this tree from an older one and the changed files, and compares each changed folder
    /// byte for byte. Returns the path of the first folder that is not canonical: empty, or with a
    /// slash in a name, a wrong order or mode, or a duplicate name.
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

/// Two folders being compared.
struct Pair {
    /// Their path.
    prefix: String,
    old: Rc<[u8]>,
    new: Rc<[u8]>,
    format: ObjectFormat,
    /// The offsets up to which both were compared.
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
