//! Tree entries in their stored form: parsing, comparing and writing; and limits on how many a walk
//! may visit.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ffi::CStr;

use git2::{ErrorClass, ErrorCode, ObjectType};
use handoff_base::{ObjectFormat, ObjectId};

use crate::error::GitError;
use crate::repository::Repository;

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
    /// The mode's number.
    pub fn number(self) -> u32 {
        match self {
            Self::Folder => 0o40_000,
            Self::Plain => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Link => 0o120_000,
        }
    }

    pub(crate) fn stored(self) -> &'static [u8] {
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

/// Refuses to descend deeper. Walks keep their folders on the heap, not the stack; this bounds the
/// work on a malicious tree.
pub(super) fn ensure_depth(depth: usize, class: ErrorClass) -> Result<(), GitError> {
    if depth <= MAX_DEPTH {
        return Ok(());
    }
    let text = format!("a tree is nested deeper than {MAX_DEPTH} levels");
    Err(git2::Error::new(ErrorCode::Invalid, class, text).into())
}

/// The maximum number of entries visited for one step, failure or comparison: far more than a step
/// writes. A tree of a few hundred bytes can reference itself a billion times.
pub const MOST_ENTRIES: usize = 20_000;

/// The maximum number of entries visited in a walk through a whole ledger or the code.
pub const MOST_IN_ALL: usize = 20_000_000;

/// Fails beyond this number of entries.
pub(super) fn ensure_few(met: usize, most: usize) -> Result<(), GitError> {
    if met <= most {
        return Ok(());
    }
    let text = format!("a tree has more than {most} entries here");
    Err(git2::Error::new(ErrorCode::Invalid, ErrorClass::Tree, text).into())
}

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
    pub(crate) fn of(mode: u32) -> Self {
        match mode {
            mode if mode == Mode::Folder.number() => Self::Tree,
            mode if mode == Mode::Plain.number() => Self::File,
            _ => Self::Other,
        }
    }
}

/// An entry with its full path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatEntry {
    /// Its path in stored form.
    pub path: Vec<u8>,
    /// Its mode in stored form.
    pub mode: u32,
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
    /// The edit that produces the new state. Only folders and plain files are written.
    pub(crate) fn placed(&self) -> Placed<'_> {
        let mode = match self.kind {
            EntryKind::Tree => Mode::Folder,
            EntryKind::File | EntryKind::Other => Mode::Plain,
        };
        (self.path.as_bytes(), self.new.map(|id| (mode, id)))
    }
}

/// A path with its new entry; `None` to remove it.
pub(crate) type Placed<'a> = (&'a [u8], Option<(Mode, ObjectId)>);

/// A name with the byte that follows it in git's sort order.
pub(super) type Order<'a> = (&'a [u8], u8);

/// A stored entry: `MODE SP NAME NUL ID`.
pub(super) struct RawEntry<'a> {
    mode: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(super) id: &'a [u8],
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

    pub(crate) fn kind(&self) -> EntryKind {
        match self.mode {
            b"40000" => EntryKind::Tree,
            b"100644" => EntryKind::File,
            _ => EntryKind::Other,
        }
    }

    pub(crate) fn id(&self) -> Result<ObjectId, GitError> {
        ObjectId::from_bytes(self.id).ok_or_else(|| {
            let text = "a tree's entry has an id of an unknown length";
            git2::Error::new(ErrorCode::Invalid, ErrorClass::Tree, text).into()
        })
    }

    /// Its size in bytes.
    pub(crate) fn length(&self) -> usize {
        self.mode.len() + self.name.len() + self.id.len() + 2
    }

    /// git's sort order, in which a folder's name ends in `/`.
    pub(crate) fn order(&self) -> Order<'_> {
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
    let name = CStr::from_bytes_until_nul(rest).ok()?.to_bytes();
    let id = space + 1 + name.len() + 1;
    Some(RawEntry {
        mode: &data[..space],
        name,
        id: data.get(id..id + format.id_bytes())?,
    })
}

pub(super) fn raw_entries(
    mut data: &[u8],
    format: ObjectFormat,
) -> impl Iterator<Item = RawEntry<'_>> {
    std::iter::from_fn(move || {
        let entry = first_entry(data, format)?;
        data = &data[entry.length()..];
        Some(entry)
    })
}

/// The entries of a folder.
///
/// # Errors
/// [`GitError`] when it can't be read.
pub(super) fn entries_of(
    repository: &Repository,
    id: ObjectId,
) -> Result<Vec<FlatEntry>, GitError> {
    let data = repository.object(id, ObjectType::Tree)?;
    let entries = raw_entries(&data, repository.format()).map(|entry| {
        Ok(FlatEntry {
            path: entry.name.to_vec(),
            mode: entry.mode_number(),
            id: entry.id()?,
        })
    });
    entries.collect()
}

/// A folder's bytes.
pub(crate) fn stored(entries: &[FlatEntry]) -> Vec<u8> {
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

pub(crate) fn push(out: &mut Vec<u8>, mode: &[u8], name: &[u8], id: &[u8]) {
    for part in [mode, b" ", name, b"\0", id] {
        out.extend_from_slice(part);
    }
}

pub(super) fn compare_order(a: Order<'_>, b: Order<'_>) -> Ordering {
    let shared = a.0.len().min(b.0.len());
    a.0[..shared].cmp(&b.0[..shared]).then_with(|| {
        let next = |(name, end): Order<'_>| name.get(shared).copied().unwrap_or(end);
        next(a).cmp(&next(b)).then(a.0.len().cmp(&b.0.len()))
    })
}

/// The length of two trees' common prefix of equal entries.
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

/// A pair of differing entries: only one, or two of the same name.
pub(super) type Difference<'t> = (Option<RawEntry<'t>>, Option<RawEntry<'t>>);

pub(super) fn next_difference<'t>(
    old: &'t [u8],
    new: &'t [u8],
    at: &mut (usize, usize),
    format: ObjectFormat,
) -> Option<Difference<'t>> {
    loop {
        let (old, new) = (&old[at.0..], &new[at.1..]);
        // The rest is identical.
        if old == new {
            return None;
        }
        let (a, b) = (first_entry(old, format), first_entry(new, format));
        let order = match (&a, &b) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
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

/// A consumer of the folders that an edit produces.
pub(super) trait Made {
    /// Begins a folder of this name, inside the innermost open one.
    fn begin(&mut self, name: &[u8]) -> Result<(), GitError>;

    /// Ends it with these bytes. Returns its id.
    fn end(&mut self, bytes: &[u8]) -> Result<ObjectId, GitError>;

    /// Ends it as empty: it does not exist.
    fn drop(&mut self);
}
