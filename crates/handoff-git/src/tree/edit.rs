//! Edits trees; the resulting folders are written, or compared with an existing tree.

use std::cmp::Ordering;
use std::rc::Rc;

use git2::{ErrorClass, ObjectType};
use handoff_base::{ObjectFormat, ObjectId};

use super::divided_folder;
use super::entry::{
    EntryKind, Made, Mode, Order, Placed, RawEntry, compare_order, ensure_depth, first_entry,
    next_difference, push, raw_entries,
};
use crate::error::GitError;
use crate::repository::Repository;

/// Which paths are treated as closed or divided folders.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Whether a folder is treated as one file.
    pub closed: fn(&str) -> bool,
    /// Whether a folder is divided when large ([`super::Divided`]): below it, there are only files.
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

/// Compares the folders with those of an existing tree.
pub(super) struct Comparer<'r> {
    pub(crate) repository: &'r Repository,
    /// The folders under way: their names, and the existing tree's folders at the same paths.
    pub(crate) open: Vec<(Vec<u8>, Option<Known>)>,
    /// The path of the first difference.
    pub(crate) difference: Option<Vec<u8>>,
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
        // If the folder is missing there, that is a difference already.
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

/// Writes a tree after setting and removing entries. Removing a folder removes its content; folders
/// that become empty are removed. Removing a missing entry is not an error.
pub(crate) fn edit(
    repository: &Repository,
    base: Option<ObjectId>,
    edits: &mut [Placed<'_>],
    shape: Shape,
) -> Result<ObjectId, GitError> {
    edits.sort_unstable_by_key(|(path, _)| *path);
    make(repository, &mut Writer(repository), base, edits, shape)
}

/// Builds a tree after setting and removing entries, sorted by path, folder by folder.
pub(crate) fn make<'e>(
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
            // A caller's path that is too deep is invalid, not damage.
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

/// Builds a divided folder; the first `skip` bytes of the edits' paths are its own path.
fn make_divided(
    repository: &Repository,
    made: &mut impl Made,
    (name, before): (&[u8], Option<ObjectId>),
    edits: &[Placed<'_>],
    skip: usize,
) -> Result<Option<(Mode, ObjectId)>, GitError> {
    let edits = edits.iter().map(|(path, file)| (&path[skip..], *file));
    // Below a divided folder there are only files: deeper paths are dropped.
    let mut edits: Vec<_> = edits.filter(|(name, _)| !name.contains(&b'/')).collect();
    edits.dedup_by_key(|(name, _)| *name);
    let node = divided_folder::edited(repository, (b"", before), &edits)?;
    let id = node.map(|node| node.make(name, made)).transpose()?;
    Ok(id.map(|id| (Mode::Folder, id)))
}

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
    /// Its bytes before the edits.
    data: Rc<[u8]>,
    /// The remaining edits below it; the first `skip` bytes of their paths are its own path.
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

    /// Applies edits to its own entries, up to the next subfolder with edits. Returns that
    /// subfolder's name, its edits, and the length of its path.
    fn next_folder(&mut self) -> Option<(&'e [u8], &'e [Placed<'e>], usize)> {
        while let Some(((path, entry), others)) = self.edits.split_first() {
            let name = &path[self.skip..];
            let Some(length) = name.iter().position(|&b| b == b'/') else {
                // Removing deletes a file or a folder of that name.
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

    /// Writes the edited bytes into `out`, replacing its content.
    fn write_edited(&mut self, out: &mut Vec<u8>, format: ObjectFormat) {
        self.changed.sort_by(|a, b| compare_order(a.0, b.0));
        let data = &*self.data;
        out.clear();
        // The offsets up to which entries were copied and scanned.
        let (mut copied, mut at) = (0, 0);
        let mut entry = first_entry(data, format);
        for (name, new) in &self.changed {
            let mut order = Ordering::Greater;
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
