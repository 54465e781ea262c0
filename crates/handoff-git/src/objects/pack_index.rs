//! Searches a pack's index in its file, without loading it.

use std::fs::File;
use std::io;
use std::path::Path;

use handoff_base::{ObjectFormat, ObjectId};

use crate::files::{invalid, read_at};

/// The magic number of index version 2, the only one that git has written since 2007.
const MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];

/// The number of buckets, by an id's first byte (the fan-out table).
const GROUPS: usize = 256;

/// The offset of the ids, after the fan-out table.
const IDS: u64 = 8 + GROUPS as u64 * 4;

/// The size of a CRC; below, of an offset and of a large offset.
const CHECKSUM: u64 = 4;
const OFFSET: u64 = 4;
const LARGE_OFFSET: u64 = 8;

/// Marks an index into the table of large offsets.
const IS_LARGE: u32 = 1 << 31;

pub(super) struct PackIndex {
    file: File,
    /// The fan-out table: how many ids precede each bucket, and their total.
    groups: [u32; GROUPS + 1],
    /// The object format, which determines the size of ids and checksums.
    format: ObjectFormat,
    /// The pack's checksum.
    pub(crate) pack: Vec<u8>,
    /// A buffer for the ids that were read last.
    read: Vec<u8>,
}

impl PackIndex {
    pub(crate) fn open(path: &Path, format: ObjectFormat) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut start = [0; IDS as usize];
        read_at(&file, &mut start, 0)?;
        if start[..8] != MAGIC {
            return Err(invalid());
        }
        let mut groups = [0; GROUPS + 1];
        let (ends, _) = start[8..].as_chunks::<4>();
        for (group, end) in ends.iter().enumerate() {
            groups[group + 1] = u32::from_be_bytes(*end);
        }
        let count = u64::from(groups[GROUPS]);
        let length = file.metadata()?.len();
        let id = format.id_bytes() as u64;
        let least = IDS + count * (id + CHECKSUM + OFFSET) + 2 * id;
        if !groups.is_sorted() || length < least {
            return Err(invalid());
        }
        let mut pack = vec![0; format.id_bytes()];
        read_at(&file, &mut pack, length - 2 * id)?;
        Ok(Self {
            file,
            groups,
            format,
            pack,
            read: Vec::new(),
        })
    }

    pub(crate) fn count(&self) -> u32 {
        self.groups[GROUPS]
    }

    /// The offset of an object in the pack, if it is there.
    pub(crate) fn find(&mut self, id: ObjectId) -> io::Result<Option<u64>> {
        match self.position(id)? {
            Some(position) => self.offset(position).map(Some),
            None => Ok(None),
        }
    }

    /// The position of an id. Ids are uniformly distributed, so interpolation finds it with nearly
    /// always one read.
    fn position(&mut self, id: ObjectId) -> io::Result<Option<u32>> {
        let wanted = id.as_bytes();
        let length = self.format.id_bytes();
        if wanted.len() != length {
            return Ok(None);
        }
        let group = usize::from(wanted[0]);
        let (mut low, mut high) = (self.groups[group], self.groups[group + 1]);
        let share = u32::from_be_bytes([wanted[1], wanted[2], wanted[3], wanted[4]]);
        let spread = (high - low).isqrt() + 8;
        let mut reach = spread;
        let before = (u64::from(high - low) * u64::from(share)) >> 32;
        let mut near = low + before as u32;
        while low < high {
            let from = near.saturating_sub(reach).max(low);
            let to = near.saturating_add(reach).min(high);
            let ids = self.ids(from, to)?;
            if *wanted < ids[..length] {
                (high, near) = (from, from);
            } else if *wanted > ids[ids.len() - length..] {
                (low, near) = (to, to);
            } else {
                return Ok(found_in(ids, wanted).map(|at| from + at as u32));
            }
            reach = reach.saturating_mul(4);
        }
        Ok(None)
    }

    /// The ids of a range of positions: at least one.
    fn ids(&mut self, from: u32, to: u32) -> io::Result<&[u8]> {
        let length = self.format.id_bytes();
        self.read.resize((to - from) as usize * length, 0);
        let at = IDS + u64::from(from) * length as u64;
        read_at(&self.file, &mut self.read, at)?;
        Ok(&self.read)
    }

    fn offset(&self, position: u32) -> io::Result<u64> {
        let id = self.format.id_bytes() as u64;
        let offsets = IDS + u64::from(self.count()) * (id + CHECKSUM);
        let mut small = [0; OFFSET as usize];
        read_at(
            &self.file,
            &mut small,
            offsets + u64::from(position) * OFFSET,
        )?;
        let small = u32::from_be_bytes(small);
        if small & IS_LARGE == 0 {
            return Ok(small.into());
        }
        let large_offsets = offsets + u64::from(self.count()) * OFFSET;
        let at = large_offsets + u64::from(small ^ IS_LARGE) * LARGE_OFFSET;
        let mut large = [0; LARGE_OFFSET as usize];
        read_at(&self.file, &mut large, at)?;
        Ok(u64::from_be_bytes(large))
    }
}

/// The index of an id in a sorted run of ids.
fn found_in(ids: &[u8], wanted: &[u8]) -> Option<usize> {
    fn among<const LENGTH: usize>(ids: &[u8], wanted: &[u8]) -> Option<usize> {
        let ids = ids.as_chunks::<LENGTH>().0;
        ids.binary_search_by(|id| id[..].cmp(wanted)).ok()
    }
    const SHA1: usize = ObjectFormat::Sha1.id_bytes();
    const SHA256: usize = ObjectFormat::Sha256.id_bytes();
    match wanted.len() {
        SHA1 => among::<SHA1>(ids, wanted),
        _ => among::<SHA256>(ids, wanted),
    }
}
