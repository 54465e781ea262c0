//! One table of refs: a file that never changes, with records sorted by name in blocks, and an
//! index above them once there are several (git's `Documentation/technical/reftable.adoc`).
//!
//! Only refs are read, and only the blocks that a name leads to: a table may have a million refs.

use std::fs::File;
use std::io;
use std::path::Path;

use handoff_base::{ObjectFormat, ObjectId};

use crate::files::{invalid, read_at};
use crate::repository::Target;

/// The kinds of blocks that are read.
const REFS: u8 = b'r';
const INDEX: u8 = b'i';

/// How many bytes are read at once of a table without blocks of one size.
const GUESS: usize = 4096;

/// The largest block that the format can have.
const MOST: usize = 1 << 24;

/// An open table.
pub(super) struct Table {
    file: File,
    format: ObjectFormat,
    /// The size of the table's header, which the first block begins with.
    header: usize,
    /// The size that blocks are filled up to; 0 if they are not.
    block_size: usize,
    /// Where the index of refs is; 0 if there is none.
    index: u64,
    /// Where the blocks end.
    end: u64,
}

/// A ref's record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The ref was deleted since an older table was written.
    Deleted,
    /// What the ref says.
    Is(Target),
}

/// Why a table can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum TableError {
    /// It is of a version that came later.
    #[error("it has version {0} of the format, and this program reads 1 and 2")]
    Newer(u8),
    /// It is not one, or damaged.
    #[error("it is corrupted")]
    Corrupted,
    /// It is listed, and there is no such file.
    #[error("it is missing, and git's list of tables names it")]
    Missing,
    /// The folder of the tables is not there.
    #[error("it is missing")]
    AgentFailed,
    /// The file can't be read.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for TableError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Self::Corrupted,
            _ => Self::Io(error),
        }
    }
}

impl Table {
    pub(super) fn open(path: &Path, format: ObjectFormat) -> Result<Self, TableError> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut start = [0; 8];
        read_at(&file, &mut start, 0)?;
        let (magic, version) = (&start[..4], start[4]);
        if magic != b"REFT" {
            return Err(TableError::Corrupted);
        }
        let (header, footer) = match version {
            1 => (24, 68),
            2 => (28, 72),
            newer => return Err(TableError::Newer(newer)),
        };
        let end = size.checked_sub(footer as u64).ok_or_else(invalid)?;
        let mut last = vec![0; footer];
        read_at(&file, &mut last, end)?;
        let (checked, sum) = last.split_at(footer - 4);
        let mut crc = crc32fast::Hasher::new();
        crc.update(checked);
        // The footer repeats the header, which says how ids are written from version 2 on.
        let is_format = match format {
            ObjectFormat::Sha1 => version == 1 || &checked[24..28] == b"sha1",
            ObjectFormat::Sha256 => version == 2 && &checked[24..28] == b"s256",
        };
        if crc.finalize().to_be_bytes() != *sum || !is_format || checked[..8] != start {
            return Err(TableError::Corrupted);
        }
        let index = checked[header..header + 8].try_into();
        Ok(Self {
            file,
            format,
            header,
            block_size: number(&start[5..8]),
            index: u64::from_be_bytes(index.map_err(|_| invalid())?),
            end,
        })
    }

    /// Waits until the table is on the disk.
    pub(super) fn write_through(&self) -> Result<(), TableError> {
        Ok(self.file.sync_all()?)
    }

    /// A ref's record, if this table has one.
    pub(super) fn find(&self, name: &[u8]) -> Result<Option<Record>, TableError> {
        let mut found = None;
        self.visit(name, |key, record| {
            found = (key == name).then_some(record);
            false
        })?;
        Ok(found)
    }

    /// Visits the records from a name on, until the visitor returns false.
    pub(super) fn visit(
        &self,
        name: &[u8],
        mut visit: impl FnMut(&[u8], Record) -> bool,
    ) -> Result<(), TableError> {
        let mut at = self.start(name)?;
        while let Some(block) = self.block(at)?.filter(|block| block.kind == REFS) {
            let mut records = block.records();
            while let Some(rest) = records.next()? {
                let record = records.record(rest, self.format)?;
                if &*records.key >= name && !visit(&records.key, record) {
                    return Ok(());
                }
            }
            at = block.next;
        }
        Ok(())
    }

    /// Where the first block is that may have a name or one after it; beyond all blocks if none has.
    fn start(&self, name: &[u8]) -> Result<u64, TableError> {
        if self.index == 0 {
            return Ok(0);
        }
        let mut at = self.index;
        // Each level of the index is before the one above it.
        while let Some(block) = self.block(at)?.filter(|block| block.kind == INDEX) {
            let mut records = block.records();
            let mut below = None;
            while records.next()?.is_some() {
                let position = records.varint()?;
                if &*records.key >= name {
                    below = Some(position);
                    break;
                }
            }
            at = match below {
                Some(below) if below < at => below,
                Some(_) => return Err(TableError::Corrupted),
                // The highest level may have several blocks.
                None => block.next,
            };
        }
        Ok(at)
    }

    /// Reads the block at a position; `None` at the end.
    fn block(&self, at: u64) -> Result<Option<Block>, TableError> {
        let left = self.end.saturating_sub(at);
        let left = usize::try_from(left).unwrap_or(MOST).min(MOST);
        let start = if at == 0 { self.header } else { 0 };
        if left < start + 4 {
            return Ok(None);
        }
        let guess = if self.block_size == 0 {
            GUESS
        } else {
            self.block_size
        };
        let mut bytes = vec![0; guess.min(left).max(start + 4)];
        read_at(&self.file, &mut bytes, at)?;
        let kind = bytes[start];
        let length = number(&bytes[start + 1..start + 4]);
        if ![REFS, INDEX].contains(&kind) {
            return Ok(Some(Block {
                kind,
                start,
                end: start,
                next: self.end,
                bytes,
            }));
        }
        if length > left || length < start + 4 + 2 {
            return Err(TableError::Corrupted);
        }
        if length > bytes.len() {
            bytes.resize(length, 0);
            read_at(&self.file, &mut bytes, at)?;
        }
        // After the last block of a section, there may be no filling.
        let is_filled = length < bytes.len() && bytes[length] == 0 && self.block_size > 0;
        let taken = if is_filled {
            self.block_size.max(length)
        } else {
            length
        };
        let restarts = number(&bytes[length - 2..length]);
        let end = (length - 2)
            .checked_sub(restarts * 3)
            .filter(|end| *end >= start + 4);
        Ok(Some(Block {
            kind,
            start: start + 4,
            end: end.ok_or(TableError::Corrupted)?,
            next: at + taken as u64,
            bytes,
        }))
    }
}

/// A block with its records.
struct Block {
    kind: u8,
    bytes: Vec<u8>,
    /// Where its records start and end.
    start: usize,
    end: usize,
    /// Where the next block of the table is.
    next: u64,
}

impl Block {
    fn records(&self) -> Records<'_> {
        Records {
            bytes: &self.bytes[self.start..self.end],
            key: Vec::new(),
        }
    }
}

/// The records of a block, one after the other.
struct Records<'a> {
    bytes: &'a [u8],
    /// The name of the last record, of which the next one repeats the beginning.
    key: Vec<u8>,
}

impl<'a> Records<'a> {
    /// Reads the next record's name, and returns the kind of its value.
    fn next(&mut self) -> Result<Option<u64>, TableError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let kept = self.varint()?;
        let rest = self.varint()?;
        let kept = usize::try_from(kept).map_err(|_| TableError::Corrupted)?;
        if kept > self.key.len() {
            return Err(TableError::Corrupted);
        }
        self.key.truncate(kept);
        let more = self.take(rest >> 3)?;
        self.key.extend_from_slice(more);
        Ok(Some(rest & 7))
    }

    /// Reads a ref's value.
    fn record(&mut self, kind: u64, format: ObjectFormat) -> Result<Record, TableError> {
        // When it changed, in numbers of the table's.
        self.varint()?;
        let size = ObjectId::zero(format).as_bytes().len() as u64;
        Ok(match kind {
            0 => Record::Deleted,
            1 | 2 => {
                let id = ObjectId::from_bytes(self.take(size)?);
                let id = id.ok_or(TableError::Corrupted)?;
                if kind == 2 {
                    // What a tag leads to.
                    self.take(size)?;
                }
                Record::Is(Target::Id(id))
            }
            3 => {
                let size = self.varint()?;
                let name = String::from_utf8_lossy(self.take(size)?).into_owned();
                Record::Is(Target::Symbolic(name))
            }
            _ => return Err(TableError::Corrupted),
        })
    }

    /// Reads a number as packs write distances: seven bits in each byte, and one added for each
    /// byte that continues.
    fn varint(&mut self) -> Result<u64, TableError> {
        let mut value: u64 = 0;
        loop {
            let byte = self.take(1)?[0];
            if value >= 1 << 56 {
                return Err(TableError::Corrupted);
            }
            value = value << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            value += 1;
        }
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], TableError> {
        let count = usize::try_from(count).map_err(|_| TableError::Corrupted)?;
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or(TableError::Corrupted)?;
        self.bytes = rest;
        Ok(taken)
    }
}

/// A number of two or three bytes.
fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}
