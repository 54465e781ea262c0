//! Remembers the last survey, so that the next one reads only what changed.
//!
//! It is a note of this clone and may be lost at any time. It begins with a survey; each later one
//! appends what changed. Each part names the part that it follows and the trees that it leads from
//! and to, and has a checksum. A part that is incomplete, follows another part, or is of another
//! program, is ignored with all after it; then the next note is written anew.

use std::io::Read;

use handoff_base::{ObjectFormat, ObjectId};
use handoff_git::Scratch;

use super::issues::{Issues, Stored};

/// The program whose notes are used: another version may use another format.
const PROGRAM: &str = concat!("git-handoff ", env!("CARGO_PKG_VERSION"), " 12\n");

/// The largest note that is read, in bytes: that of some ten million handoffs.
const LARGEST: u64 = 1 << 30;

/// How many bytes may be appended to any note; a larger one may grow by a quarter.
const APPENDED: usize = 1 << 18;

/// The bytes before the content of a part: a checksum of the rest, the checksum of the part before,
/// the sizes of numbers and text, and the trees.
const HEAD: usize = 4 + 4 + 4 + 4 + 2 * Trees::SIZE;

/// What a survey is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Trees {
    /// The folder of all issues.
    pub(super) issues: Option<ObjectId>,
    /// The index of archived issues.
    pub(super) archived: Option<ObjectId>,
}

impl Trees {
    /// The length of an id, and the room for the longest.
    const ID: usize = 1 + ObjectFormat::Sha256.id_bytes();
    const SIZE: usize = 2 * Self::ID;

    /// A missing tree is stored as an id without bytes.
    fn stored(self) -> Vec<u8> {
        let mut stored = vec![0; Self::SIZE];
        let ids = [self.issues, self.archived];
        for (place, id) in stored.chunks_exact_mut(Self::ID).zip(ids) {
            let id = id.as_ref().map_or(&[][..], ObjectId::as_bytes);
            place[0] = id.len() as u8;
            place[1..=id.len()].copy_from_slice(id);
        }
        stored
    }

    fn read(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let id = |bytes: &[u8]| match bytes.split_first()? {
            (0, _) => Some(None),
            (length, id) => ObjectId::from_bytes(id.get(..usize::from(*length))?).map(Some),
        };
        let (issues, archived) = bytes.split_at(Self::ID);
        Some(Self {
            issues: id(issues)?,
            archived: id(archived)?,
        })
    }
}

/// A survey, and what it was made from.
pub(super) struct Remembered {
    pub(super) issues: Issues,
    pub(super) trees: Trees,
    /// The checksum of the last part.
    last: u32,
    /// Whether the note ends with that part.
    is_whole: bool,
}

impl Remembered {
    pub(super) fn read(note: &Scratch) -> Option<Self> {
        let (mut file, size) = note.open(LARGEST)?;
        let mut start = [0; PROGRAM.len()];
        file.read_exact(&mut start).ok()?;
        let mut rest = size.checked_sub(start.len() as u64)?;
        if start != PROGRAM.as_bytes() {
            return None;
        }
        let mut found: Option<Self> = None;
        while rest > 0 {
            let part = Part::read(&mut file, &mut rest);
            let Some(known) = &mut found else {
                let part = part.filter(|part| part.before == 0)?;
                let mut issues = Issues::default();
                issues.add(part.stored)?;
                found = Some(Self {
                    issues,
                    trees: part.to,
                    last: part.sum,
                    is_whole: true,
                });
                continue;
            };
            let follows = |part: &Part| part.before == known.last && part.from == known.trees;
            let added = part.filter(follows).and_then(|part| {
                known.issues.add(part.stored)?;
                (known.trees, known.last) = (part.to, part.sum);
                Some(())
            });
            if added.is_none() {
                known.is_whole = false;
                break;
            }
        }
        found
    }

    /// A survey that was made without an earlier one.
    pub(super) fn new(trees: Trees, stored: Stored, note: &Scratch) -> Option<Self> {
        let mut issues = Issues::default();
        let part = Part::new(stored, 0, (trees, trees));
        write(&part, note);
        issues.add(part.stored)?;
        Some(Self {
            issues,
            trees,
            last: part.sum,
            is_whole: true,
        })
    }

    /// Adds what changed up to these trees.
    pub(super) fn add(&mut self, trees: Trees, stored: Stored, note: &Scratch) -> Option<()> {
        let part = Part::new(stored, self.last, (self.trees, trees));
        let bytes = part.head_and_content();
        (self.trees, self.last) = (trees, part.sum);
        self.issues.add(part.stored)?;
        let (first, others) = self.issues.sizes();
        if self.is_whole && others <= APPENDED.max(first / 4) {
            // Without it, the next survey reads this again.
            let _ = note.append(&bytes);
        } else {
            write(&Part::new(self.issues.as_one(), 0, (trees, trees)), note);
        }
        Some(())
    }
}

/// Replaces the note. If that fails, the next survey just goes without it.
fn write(part: &Part, note: &Scratch) {
    let _ = note.write(&[PROGRAM.as_bytes(), &part.head_and_content()].concat());
}

/// A part of a note.
struct Part {
    sum: u32,
    /// The checksum of the part that it follows; 0 for the first.
    before: u32,
    from: Trees,
    to: Trees,
    stored: Stored,
}

impl Part {
    fn new(stored: Stored, before: u32, (from, to): (Trees, Trees)) -> Self {
        let mut part = Self {
            sum: 0,
            before,
            from,
            to,
            stored,
        };
        part.sum = part.checksum();
        part
    }

    /// Everything in the head but the checksum.
    fn head(&self) -> Vec<u8> {
        let size = |size: usize| u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
        let Stored { numbers, text } = &self.stored;
        let mut head = Vec::with_capacity(HEAD);
        head.extend(self.before.to_le_bytes());
        head.extend(size(numbers.len()));
        head.extend(size(text.len()));
        head.extend(self.from.stored());
        head.extend(self.to.stored());
        head
    }

    /// A part of another program has another checksum.
    fn checksum(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(PROGRAM.as_bytes());
        sum.update(&self.head());
        sum.update(&self.stored.numbers);
        sum.update(self.stored.text.as_bytes());
        sum.finalize()
    }

    fn head_and_content(&self) -> Vec<u8> {
        let (numbers, text) = (&self.stored.numbers, self.stored.text.as_bytes());
        let sum = self.sum.to_le_bytes();
        [&sum[..], &self.head(), numbers, text].concat()
    }

    /// Reads a part of a file, of which so many bytes are left.
    fn read(file: &mut impl Read, rest: &mut u64) -> Option<Self> {
        let mut head = [0; HEAD];
        file.read_exact(&mut head).ok()?;
        let mut fields = &head[..];
        let mut small = || {
            let (bytes, rest) = fields.split_first_chunk()?;
            fields = rest;
            Some(u32::from_le_bytes(*bytes))
        };
        let (sum, before, numbers, text) = (small()?, small()?, small()?, small()?);
        let (from, fields) = fields.split_first_chunk()?;
        let (to, _) = fields.split_first_chunk()?;
        let size = HEAD as u64 + u64::from(numbers) + u64::from(text);
        *rest = rest.checked_sub(size)?;
        let mut read = |size: u32| {
            let mut bytes = vec![0; usize::try_from(size).ok()?];
            file.read_exact(&mut bytes).ok()?;
            Some(bytes)
        };
        let (numbers, text) = (read(numbers)?, read(text)?);
        let part = Self {
            sum,
            before,
            from: Trees::read(from)?,
            to: Trees::read(to)?,
            stored: Stored {
                numbers,
                text: String::from_utf8(text).ok()?,
            },
        };
        (part.checksum() == sum).then_some(part)
    }
}
