//! Where objects are in packs. Most are stored as what differs from a neighbour:
//! who reads many in the order of the pack finds each neighbour just unpacked.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::{fs, io};

use handoff_base::ObjectId;

use super::object_id::ToOid;
use super::repository::Repository;

/// What a pack's index begins with in its second version, the only one that git
/// has written since 2007.
const MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];

/// Where the ids begin: behind the number of objects by first byte.
const IDS: u64 = 8 + 256 * 4;

/// The bytes of an id, of a checksum and of an offset.
const ID: u64 = 20;
const CHECKSUM: u64 = 4;
const OFFSET: u64 = 4;

impl Repository {
    /// Sorts things by where their objects are stored: pack by pack, in the order of
    /// each; last what is in no pack of this repository, or in one whose index can't be
    /// read.
    pub fn in_storage_order<T>(&self, things: Vec<T>, id: impl Fn(&T) -> ObjectId) -> Vec<T> {
        /// Behind every pack.
        const NOWHERE: (usize, u32) = (usize::MAX, 0);
        let mut placed: Vec<_> = things.into_iter().map(|t| (NOWHERE, t)).collect();
        placed.sort_unstable_by_key(|(_, thing)| id(thing));
        let folder = self.common_dir().join("objects/pack");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let indices = entries.map(|entry| entry.path());
        let is_index = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "idx");
        for (number, path) in indices.filter(is_index).enumerate() {
            let ids = placed.iter().map(|(_, thing)| id(thing));
            // The order is a help: what can't be read has none.
            for (index, offset) in offsets(&path, ids).unwrap_or_default() {
                placed[index].0 = (number, offset);
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, thing)| thing).collect()
    }
}

/// Which of these ids, in rising order, a pack has, and at which offset each. Offsets
/// beyond two gigabytes are numbers that only keep their order.
fn offsets(path: &Path, ids: impl Iterator<Item = ObjectId>) -> io::Result<Vec<(usize, u32)>> {
    let mut index = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut start = [0; IDS as usize];
    index.read_exact(&mut start)?;
    if start[..8] != MAGIC {
        return Err(ErrorKind::InvalidData.into());
    }
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
    let count = number(&start[start.len() - 4..]);
    let mut found: Vec<(usize, u32)> = Vec::new();
    let mut wanted = ids.enumerate().peekable();
    let mut stored = [0; ID as usize];
    for position in 0..count {
        index.read_exact(&mut stored)?;
        while wanted
            .next_if(|(_, id)| id.oid().as_bytes() < &stored[..])
            .is_some()
        {}
        while let Some((at, _)) = wanted.next_if(|(_, id)| id.oid().as_bytes() == stored) {
            found.push((at, position));
        }
        if wanted.peek().is_none() {
            break;
        }
    }
    let begin = IDS + u64::from(count) * (ID + CHECKSUM);
    let mut here = index.seek(SeekFrom::Start(begin))?;
    let mut offset = [0; OFFSET as usize];
    for (_, position) in &mut found {
        let there = begin + u64::from(*position) * OFFSET;
        // Several things may have one object.
        let step = there.cast_signed() - here.cast_signed();
        index.seek_relative(step)?;
        index.read_exact(&mut offset)?;
        here = there + OFFSET;
        *position = number(&offset);
    }
    Ok(found)
}
