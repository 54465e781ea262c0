//! Divided folders: large folders stored as a prefix tree, so that edits rewrite little and
//! searches read little, whatever the number of files.
//!
//! Callers see one folder of files, sorted by name. Up to 128 files are stored flat. Beyond that,
//! the folder holds one subfolder (group) for each set of files with a common prefix, named by it:
//! one byte longer than the prefix that all files share. Files keep their full names, and groups
//! are divided in the same way. The stored form depends only on the names, not on the order of
//! insertion, so the audit can reproduce it.

use std::cmp::Ordering;
use std::rc::Rc;

use git2::ObjectType;
use handoff_base::{ObjectFormat, ObjectId};

use super::entry::{
    Change, EntryKind, FlatEntry, MOST_ENTRIES, MOST_IN_ALL, Made, Mode, Placed, RawEntry,
    ensure_few, entries_of, first_entry, same_entries, stored,
};
use crate::error::GitError;
use crate::repository::Repository;

/// The maximum number of files in an undivided folder.
const MOST: usize = 128;

/// A folder that may be divided.
#[derive(Clone, Copy)]
pub struct Divided<'r> {
    repository: &'r Repository,
    id: Option<ObjectId>,
}

impl<'r> Divided<'r> {
    pub(crate) fn new(repository: &'r Repository, id: Option<ObjectId>) -> Self {
        Self { repository, id }
    }

    /// The files from the name `start` on, in order. Reads only the folders on the way to the files
    /// taken.
    pub fn from(&self, start: &str) -> Files<'r> {
        Files {
            repository: self.repository,
            start: start.as_bytes().to_vec(),
            ahead: self.id.map(Item::root).into_iter().collect(),
            met: 0,
        }
    }
}

/// Iterates over a divided folder's files, by name.
pub struct Files<'r> {
    repository: &'r Repository,
    start: Vec<u8>,
    /// A stack of what comes next, the nearest on top.
    ahead: Vec<Item>,
    met: usize,
}

impl Iterator for Files<'_> {
    type Item = Result<(String, ObjectId), GitError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(item) = self.ahead.pop() {
            match item {
                Item::Group(folder) => {
                    let start = &self.start;
                    let is_ahead = |item: &Item| {
                        let name = &item.entry().path;
                        *name >= *start || item.is_group() && start.starts_with(name)
                    };
                    match opened(self.repository, &folder, &mut self.met, MOST_IN_ALL) {
                        Ok(items) => self.ahead.extend(items.into_iter().rev().filter(is_ahead)),
                        Err(error) => {
                            self.ahead.clear();
                            return Some(Err(error));
                        }
                    }
                }
                Item::Other(entry) if is_folder(&entry) => {}
                Item::Other(entry) => {
                    // Other names are never written; the audit reports them.
                    if let Ok(name) = String::from_utf8(entry.path) {
                        return Some(Ok((name, entry.id)));
                    }
                }
            }
        }
        None
    }
}

/// An entry of a divided folder.
enum Item {
    /// A group: files whose names start with its name.
    Group(FlatEntry),
    /// A file, or a folder that no step writes, which is not opened.
    Other(FlatEntry),
}

impl Item {
    /// A folder as the root of a walk.
    fn root(id: ObjectId) -> Self {
        Self::Group(folder(b"", id))
    }

    fn entry(&self) -> &FlatEntry {
        match self {
            Self::Group(entry) | Self::Other(entry) => entry,
        }
    }

    fn is_group(&self) -> bool {
        matches!(self, Self::Group(_))
    }
}

fn folder(name: &[u8], id: ObjectId) -> FlatEntry {
    FlatEntry {
        path: name.to_vec(),
        mode: Mode::Folder.number(),
        id,
    }
}

fn is_folder(entry: &FlatEntry) -> bool {
    entry.mode == Mode::Folder.number()
}

/// Whether an entry of a group is itself a group. Names get longer on the way down, so no tree can
/// contain itself.
fn is_group(above: &[u8], name: &[u8], mode: u32) -> bool {
    let is_longer = name.len() > above.len() && name.starts_with(above);
    is_longer && mode == Mode::Folder.number()
}

/// The entries of a group.
fn opened(
    repository: &Repository,
    group: &FlatEntry,
    met: &mut usize,
    most: usize,
) -> Result<Vec<Item>, GitError> {
    let entries = entries_of(repository, group.id)?;
    *met += entries.len();
    ensure_few(*met, most)?;
    let item = |entry: FlatEntry| {
        if is_group(&group.path, &entry.path, entry.mode) {
            Item::Group(entry)
        } else {
            Item::Other(entry)
        }
    };
    Ok(entries.into_iter().map(item).collect())
}

/// An open group in one of two compared folders.
struct Open {
    name: Vec<u8>,
    data: Rc<[u8]>,
    format: ObjectFormat,
    /// The offset of its next entry.
    at: usize,
}

impl Open {
    fn read(repository: &Repository, name: &[u8], id: ObjectId) -> Result<Self, GitError> {
        Ok(Self {
            name: name.to_vec(),
            data: repository.object(id, ObjectType::Tree)?,
            format: repository.format(),
            at: 0,
        })
    }

    fn rest(&self) -> &[u8] {
        &self.data[self.at..]
    }

    /// Its next entry.
    fn entry(&self) -> Option<RawEntry<'_>> {
        first_entry(self.rest(), self.format)
    }
}

/// The next entry in the open groups, the innermost last; and whether it is a group.
fn next_in(open: &mut Vec<Open>) -> Result<Option<Next<'_>>, GitError> {
    while open.pop_if(|last| last.entry().is_none()).is_some() {}
    let Some((last, entry)) = open.last().and_then(|last| Some((last, last.entry()?))) else {
        return Ok(None);
    };
    Ok(Some(Next {
        name: entry.name,
        mode: entry.mode_number(),
        id: entry.id()?,
        is_group: is_group(&last.name, entry.name, entry.mode_number()),
        length: entry.length(),
    }))
}

#[derive(Clone, Copy)]
struct Next<'a> {
    name: &'a [u8],
    mode: u32,
    id: ObjectId,
    is_group: bool,
    length: usize,
}

/// Advances past the compared entry.
fn pass(open: &mut [Open], length: usize) {
    if let Some(last) = open.last_mut() {
        last.at += length;
    }
}

/// The files that differ between two folders, wherever each is stored. `most` limits the number of
/// entries visited.
pub(crate) fn changes(
    repository: &Repository,
    folder: &str,
    (old, new): (Option<ObjectId>, Option<ObjectId>),
    met: &mut usize,
    most: usize,
) -> Result<Vec<Change>, GitError> {
    let open = |id: Option<ObjectId>| -> Result<Vec<Open>, GitError> {
        let id = id.filter(|_| old != new);
        let root = id.map(|id| Open::read(repository, b"", id)).transpose()?;
        Ok(root.into_iter().collect())
    };
    let (mut olds, mut news) = (open(old)?, open(new)?);
    let mut found = Vec::new();
    loop {
        if let (Some(old), Some(new)) = (olds.last_mut(), news.last_mut())
            && old.name == new.name
        {
            if old.rest() == new.rest() {
                olds.pop();
                news.pop();
                continue;
            }
            let same = same_entries(old.rest(), new.rest(), old.format);
            old.at += same;
            new.at += same;
        }
        let (old, new) = (next_in(&mut olds)?, next_in(&mut news)?);
        let lengths = [&old, &new].map(|next| next.as_ref().map_or(0, |next| next.length));
        let groups = [&old, &new].map(|next| next.filter(|next| next.is_group));
        *met += 1;
        ensure_few(*met, most)?;
        if let [Some(old), Some(new)] = &groups
            && old.id == new.id
        {
            pass(&mut olds, lengths[0]);
            pass(&mut news, lengths[1]);
            continue;
        }
        // The larger group is opened first: it may contain the other.
        let shortest = groups.iter().flatten().map(|group| group.name.len()).min();
        if let Some(shortest) = shortest {
            let inside = groups.map(|group| {
                let group = group.filter(|group| group.name.len() == shortest)?;
                Some(Open::read(repository, group.name, group.id))
            });
            for ((open, length), inside) in
                [&mut olds, &mut news].into_iter().zip(lengths).zip(inside)
            {
                if let Some(inside) = inside.transpose()? {
                    pass(open, length);
                    open.push(inside);
                }
            }
            continue;
        }
        let order = match (&old, &new) {
            (None, None) => return Ok(found),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.name.cmp(b.name),
        };
        let (before, after) = (old.filter(|_| order.is_le()), new.filter(|_| order.is_ge()));
        let stored = |next: Option<Next<'_>>| next.map(|next| (next.mode, next.id));
        if let Some(shown) = after.or(before)
            && stored(before) != stored(after)
        {
            found.push(Change {
                path: format!("{folder}/{}", String::from_utf8_lossy(shown.name)),
                kind: EntryKind::of(shown.mode),
                old: before.map(|entry| entry.id),
                new: after.map(|entry| entry.id),
            });
        }
        if order.is_le() {
            pass(&mut olds, lengths[0]);
        }
        if order.is_ge() {
            pass(&mut news, lengths[1]);
        }
    }
}

/// The new stored form of a folder.
pub(super) enum Node {
    /// Unchanged.
    Kept(ObjectId),
    /// Undivided.
    Files(Vec<FlatEntry>),
    /// Divided.
    Folders(Vec<(Vec<u8>, Node)>),
}

/// A group after edits, which are sorted by name; `None` if it is empty.
pub(crate) fn edited(
    repository: &Repository,
    group: (&[u8], Option<ObjectId>),
    edits: &[Placed<'_>],
) -> Result<Option<Node>, GitError> {
    let (name, base) = group;
    let Some(id) = base.filter(|_| !edits.is_empty()) else {
        let new = || of_files(merged(Vec::new(), edits), name.len());
        return Ok(base.map(Node::Kept).or_else(new));
    };
    let items = opened(repository, &folder(name, id), &mut 0, MOST_ENTRIES)?;
    let length = group_length(&items);
    // The length of the prefix shared by all remaining and new files.
    let shared = length.and_then(|length| {
        let known = &items[0].entry().path[..length - 1];
        let added = edits.iter().filter(|(_, file)| file.is_some());
        let shared = added.map(|(name, _)| shared_length(name, known));
        let shared = shared.fold(length - 1, usize::min);
        edits
            .iter()
            .all(|(name, _)| name.len() > shared)
            .then_some(shared)
    });
    let (Some(length), Some(shared)) = (length, shared) else {
        let files = merged(collected(repository, items)?, edits);
        return Ok(of_files(files, name.len()));
    };
    let mut children = Vec::new();
    if shared + 1 < length {
        // All existing entries move into one of the new groups.
        let own = &items[0].entry().path[..=shared];
        let first = edits.partition_point(|(name, _)| name[..=shared] < *own);
        let last = edits.partition_point(|(name, _)| name[..=shared] <= *own);
        children.extend(new_groups(&edits[..first], shared));
        let inside = edited(repository, (name, base), &edits[first..last])?;
        children.extend(inside.map(|node| (own.to_vec(), node)));
        children.extend(new_groups(&edits[last..], shared));
    } else {
        let mut known = items
            .into_iter()
            .map(|item| item.entry().clone())
            .peekable();
        for edits in edits.chunk_by(|a, b| a.0[..length] == b.0[..length]) {
            let name = &edits[0].0[..length];
            while let Some(other) = known.next_if(|group| *group.path < *name) {
                children.push((other.path, Node::Kept(other.id)));
            }
            let own = known.next_if(|group| group.path == name);
            let node = edited(repository, (name, own.map(|group| group.id)), edits)?;
            children.extend(node.map(|node| (name.to_vec(), node)));
        }
        children.extend(known.map(|other| (other.path, Node::Kept(other.id))));
    }
    if edits.iter().all(|(_, file)| file.is_some()) {
        return Ok(Some(Node::Folders(children)));
    }
    joined(repository, children, name.len())
}

/// The length of the groups' names in a divided folder; `None` if it is not divided, or not as a
/// step writes it.
fn group_length(items: &[Item]) -> Option<usize> {
    let length = items.first()?.entry().path.len();
    let is_like_it = |item: &Item| item.is_group() && item.entry().path.len() == length;
    items.iter().all(is_like_it).then_some(length)
}

/// Groups of new files only, whose names share this many bytes with the others.
fn new_groups(edits: &[Placed<'_>], shared: usize) -> impl Iterator<Item = (Vec<u8>, Node)> {
    let groups = edits.chunk_by(move |a, b| a.0[..=shared] == b.0[..=shared]);
    groups.filter_map(move |group| {
        let node = of_files(merged(Vec::new(), group), shared + 1)?;
        Some((group[0].0[..=shared].to_vec(), node))
    })
}

/// The length of two names' common prefix.
fn shared_length(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// All files of a folder that is not in canonical form, by name.
fn collected(repository: &Repository, items: Vec<Item>) -> Result<Vec<FlatEntry>, GitError> {
    let (mut files, mut ahead, mut met) = (Vec::new(), items, 0);
    ahead.reverse();
    while let Some(item) = ahead.pop() {
        match item {
            Item::Group(folder) => {
                let inside = opened(repository, &folder, &mut met, MOST_ENTRIES)?;
                ahead.extend(inside.into_iter().rev());
            }
            Item::Other(entry) if is_folder(&entry) => {}
            Item::Other(entry) => files.push(entry),
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Merges files with edits; both are sorted by name.
fn merged(files: Vec<FlatEntry>, edits: &[Placed<'_>]) -> Vec<FlatEntry> {
    let mut merged = Vec::with_capacity(files.len() + edits.len());
    let mut files = files.into_iter().peekable();
    for (name, file) in edits {
        while let Some(other) = files.next_if(|entry| *entry.path < **name) {
            merged.push(other);
        }
        while files.next_if(|entry| entry.path == **name).is_some() {}
        merged.extend(file.map(|(mode, id)| FlatEntry {
            path: name.to_vec(),
            mode: mode.number(),
            id,
        }));
    }
    merged.extend(files);
    merged
}

/// Divides these files, sorted by name, as a group whose own name has this length.
fn of_files(files: Vec<FlatEntry>, length: usize) -> Option<Node> {
    /// No step writes a longer name.
    const LONGEST: usize = 512;
    let (first, last) = (files.first()?, files.last()?);
    let shared = shared_length(&first.path, &last.path);
    if files.len() <= MOST || first.path.len() == shared || length > LONGEST {
        return Some(Node::Files(files));
    }
    let groups = files.chunk_by(|a, b| a.path[..=shared] == b.path[..=shared]);
    let group = |files: &[FlatEntry]| {
        let node = of_files(files.to_vec(), shared + 1)?;
        Some((files[0].path[..=shared].to_vec(), node))
    };
    Some(Node::Folders(groups.filter_map(group).collect()))
}

/// Rebuilds a group from its groups, some of which lost files: it may now be divided elsewhere, or
/// not at all.
fn joined(
    repository: &Repository,
    mut groups: Vec<(Vec<u8>, Node)>,
    length: usize,
) -> Result<Option<Node>, GitError> {
    if groups.len() < 2 {
        return Ok(groups.pop().map(|(_, node)| node));
    }
    let is_divided = |(_, node): &(Vec<u8>, Node)| matches!(node, Node::Folders(_));
    if groups.len() > MOST || groups.iter().any(is_divided) {
        return Ok(Some(Node::Folders(groups)));
    }
    let mut files = Vec::new();
    for (name, node) in &groups {
        match node {
            Node::Kept(id) => {
                let items = opened(repository, &folder(name, *id), &mut 0, MOST_ENTRIES)?;
                if items.len() > MOST || items.iter().any(|item| is_folder(item.entry())) {
                    return Ok(Some(Node::Folders(groups)));
                }
                files.extend(items.into_iter().map(|item| item.entry().clone()));
            }
            Node::Files(own) => files.extend(own.iter().cloned()),
            Node::Folders(_) => {}
        }
        if files.len() > MOST {
            return Ok(Some(Node::Folders(groups)));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(of_files(files, length))
}

impl Node {
    /// Writes the folder and returns its id.
    pub(crate) fn make(&self, name: &[u8], made: &mut impl Made) -> Result<ObjectId, GitError> {
        if let Self::Kept(id) = self {
            return Ok(*id);
        }
        made.begin(name)?;
        let bytes = match self {
            Self::Folders(folders) => {
                let mut entries = Vec::with_capacity(folders.len());
                for (name, node) in folders {
                    entries.push(FlatEntry {
                        path: name.clone(),
                        mode: Mode::Folder.number(),
                        id: node.make(name, made)?,
                    });
                }
                stored(&entries)
            }
            Self::Files(files) => stored(files),
            Self::Kept(_) => Vec::new(),
        };
        made.end(&bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use git2::ObjectType;
    use proptest::prelude::*;

    use super::*;
    use crate::tree::{Shape, Tree, edit};

    const SHAPE: Shape = Shape {
        closed: |_| false,
        divided: |path| path == "d",
    };

    struct Fixture {
        repository: Repository,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let repository = git2::Repository::init_bare(folder.path()).unwrap();
            let repository = Repository::of(repository).unwrap();
            repository.keep_new_objects_in_memory().unwrap();
            Self {
                repository,
                _folder: folder,
            }
        }

        fn blob(&self, text: &str) -> ObjectId {
            self.repository
                .write(ObjectType::Blob, text.as_bytes())
                .unwrap()
        }

        fn edited(&self, base: Option<ObjectId>, edits: &[(String, Option<ObjectId>)]) -> ObjectId {
            let paths: Vec<String> = edits.iter().map(|(name, _)| format!("d/{name}")).collect();
            let edits = paths.iter().zip(edits).map(|(path, (_, id))| {
                let file = id.map(|id| (Mode::Plain, id));
                (path.as_bytes(), file)
            });
            edit(
                &self.repository,
                base,
                &mut edits.collect::<Vec<_>>(),
                SHAPE,
            )
            .unwrap()
        }

        fn files(&self, tree: ObjectId, start: &str) -> Vec<(String, ObjectId)> {
            let folder = Tree::new(&self.repository, tree).divided("d").unwrap();
            folder.from(start).map(Result::unwrap).collect()
        }

        fn changes(&self, old: ObjectId, new: ObjectId) -> Vec<Change> {
            let new = Tree::new(&self.repository, new);
            new.changes_since(Some(old), SHAPE, 100_000).unwrap()
        }
    }

    /// Names with common prefixes, some of them long, none a prefix of another.
    fn names() -> impl Strategy<Value = String> {
        let number = prop_oneof![0..40_u32, 0..4_000_u32];
        (0..3_usize, number).prop_map(|(kind, number)| match kind {
            0 => format!("ready.{number:04}.json"),
            1 => format!("ready.00000000{number}.json"),
            _ => format!("held.{number:04}.json"),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

        /// The folder is canonical: it depends only on its files, not on the order of edits; its
        /// changes are those of its files; a rebuilt one is identical.
        #[test]
        fn the_stored_form_follows_from_the_files(
            rounds in prop::collection::vec(
                prop::collection::vec((names(), prop::option::weighted(0.6, 0..3_u8)), 1..120),
                1..12,
            ),
            start in names(),
        ) {
            let fixture = Fixture::new();
            let mut is: BTreeMap<String, ObjectId> = BTreeMap::new();
            let mut tree = fixture.edited(None, &[]);
            for round in rounds {
                let edits: BTreeMap<String, Option<ObjectId>> = round
                    .into_iter()
                    .map(|(name, text)| (name, text.map(|text| fixture.blob(&text.to_string()))))
                    .collect();
                let edits: Vec<_> = edits.into_iter().collect();
                let before = (tree, is.clone());
                tree = fixture.edited(Some(tree), &edits);
                for (name, file) in &edits {
                    match file {
                        Some(id) => is.insert(name.clone(), *id),
                        None => is.remove(name),
                    };
                }
                let all: Vec<_> = is.iter().map(|(n, id)| (n.clone(), Some(*id))).collect();
                prop_assert_eq!(tree, fixture.edited(None, &all));
                let wanted: Vec<_> = is.clone().into_iter().collect();
                prop_assert_eq!(&fixture.files(tree, ""), &wanted);
                let later: Vec<_> = wanted.iter().filter(|(n, _)| *n >= start).cloned().collect();
                prop_assert_eq!(fixture.files(tree, &start), later);
                let changes = fixture.changes(before.0, tree);
                let told: Vec<_> = changes.iter().map(|c| (c.path.clone(), c.old, c.new)).collect();
                let names = before.1.keys().chain(is.keys()).collect::<std::collections::BTreeSet<_>>();
                let differ = names.into_iter().filter(|n| before.1.get(*n) != is.get(*n));
                let differ: Vec<_> = differ
                    .map(|n| (format!("d/{n}"), before.1.get(n).copied(), is.get(n).copied()))
                    .collect();
                prop_assert_eq!(told, differ);
                let new = Tree::new(&fixture.repository, tree);
                prop_assert_eq!(new.difference(Some(before.0), &changes, SHAPE).unwrap(), None);
            }
        }
    }

    #[test]
    fn an_edit_of_very_many_files_reads_and_writes_little() {
        let fixture = Fixture::new();
        let id = fixture.blob("x");
        let name = |number: u32| format!("ready.{number:06}.json");
        let all: Vec<_> = (0..20_000).map(|n| (name(2 * n), Some(id))).collect();
        let tree = fixture.edited(None, &all);
        let after = fixture.edited(Some(tree), &[(name(20_001), Some(id))]);
        let made = |tree| {
            let entries = Tree::new(&fixture.repository, tree).divided("d").unwrap();
            let mut ahead = vec![entries.id.unwrap()];
            let mut made = BTreeMap::new();
            while let Some(folder) = ahead.pop() {
                let entries = entries_of(&fixture.repository, folder).unwrap();
                ahead.extend(entries.iter().filter(|e| is_folder(e)).map(|e| e.id));
                made.insert(folder, entries.len());
            }
            made
        };
        let (before, after) = (made(tree), made(after));
        let new: Vec<usize> = after
            .iter()
            .filter(|(id, _)| !before.contains_key(id))
            .map(|(_, n)| *n)
            .collect();
        assert!(
            new.len() <= 5 && new.iter().sum::<usize>() <= 200,
            "{new:?}"
        );
    }

    #[test]
    fn a_folder_that_is_stored_otherwise_is_told() {
        let fixture = Fixture::new();
        let id = fixture.blob("x");
        let file = |name: &str| FlatEntry {
            path: name.into(),
            mode: Mode::Plain.number(),
            id,
        };
        let tree = |entries: &[FlatEntry]| {
            fixture
                .repository
                .write(ObjectType::Tree, &stored(entries))
                .unwrap()
        };
        // Divided despite having two files; a dead-end folder; a folder in itself.
        let inner = tree(&[file("a1"), file("a2")]);
        let own = tree(&[
            folder(b"a", inner),
            folder(b"b", tree(&[folder(b"b", inner)])),
        ]);
        let forged = tree(&[folder(b"d", own)]);
        let right = fixture.edited(None, &[("a1".into(), Some(id)), ("a2".into(), Some(id))]);
        assert_eq!(fixture.files(forged, "").len(), 2);
        let changes = fixture.changes(right, forged);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(
            (changes[0].path.as_str(), changes[0].kind),
            ("d/b", EntryKind::Tree)
        );
        let changes = fixture.changes(right, tree(&[folder(b"d", inner)]));
        assert!(changes.is_empty(), "{changes:?}");
        let other = tree(&[folder(b"d", tree(&[folder(b"a", inner)]))]);
        let other = Tree::new(&fixture.repository, other);
        assert_eq!(
            other
                .difference(Some(right), &[], SHAPE)
                .unwrap()
                .as_deref(),
            Some("d")
        );
    }
}
