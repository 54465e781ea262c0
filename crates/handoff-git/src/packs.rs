//! The order of objects in packs. Most are stored as a delta to a neighbour, so reading them in
//! pack order finds each neighbour just unpacked.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::{fs, io};

use handoff_base::{ObjectFormat, ObjectId};

use super::pack_index::{CHECKSUM, IDS, MAGIC, OFFSET};
use super::repository::Repository;

impl Repository {
    /// Sorts items by where their objects are stored: pack by pack, in each pack's order. Objects
    /// without a readable pack come last.
    pub fn in_storage_order<T>(&self, things: Vec<T>, id: impl Fn(&T) -> ObjectId) -> Vec<T> {
        /// After every pack.
        const NOWHERE: (usize, u32) = (usize::MAX, 0);
        let mut placed: Vec<_> = things.into_iter().map(|t| (NOWHERE, t)).collect();
        placed.sort_unstable_by_key(|(_, thing)| id(thing));
        let folder = self.common_dir().join("objects/pack");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let indices = entries.map(|entry| entry.path());
        let is_index = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "idx");
        for (number, path) in indices.filter(is_index).enumerate() {
            let ids = placed.iter().map(|(_, thing)| id(thing));
            // Sorting is an optimisation: an unreadable index is skipped.
            for (index, offset) in offsets(&path, self.format(), ids).unwrap_or_default() {
                placed[index].0 = (number, offset);
            }
        }
        placed.sort_by_key(|(position, _)| *position);
        placed.into_iter().map(|(_, thing)| thing).collect()
    }
}

/// Which of these ascending ids a pack has, and at which offsets. Offsets beyond two gigabytes are
/// indexes into another table, in the same order.
fn offsets(
    path: &Path,
    format: ObjectFormat,
    ids: impl Iterator<Item = ObjectId>,
) -> io::Result<Vec<(usize, u32)>> {
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
    let mut stored = vec![0; format.id_bytes()];
    for position in 0..count {
        index.read_exact(&mut stored)?;
        while wanted
            .next_if(|(_, id)| id.as_bytes() < &stored[..])
            .is_some()
        {}
        while let Some((at, _)) = wanted.next_if(|(_, id)| id.as_bytes() == stored) {
            found.push((at, position));
        }
        if wanted.peek().is_none() {
            break;
        }
    }
    let begin = IDS + u64::from(count) * (format.id_bytes() as u64 + CHECKSUM);
    let mut here = index.seek(SeekFrom::Start(begin))?;
    let mut offset = [0; OFFSET as usize];
    for (_, position) in &mut found {
        let there = begin + u64::from(*position) * OFFSET;
        // Several items may name the same object.
        let step = there.cast_signed() - here.cast_signed();
        index.seek_relative(step)?;
        index.read_exact(&mut offset)?;
        here = there + OFFSET;
        *position = number(&offset);
    }
    Ok(found)
}
