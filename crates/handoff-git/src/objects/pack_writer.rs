//! Builds a pack in memory, object by object, for `git index-pack` to verify and store.
//!
//! libgit2 packs what refs reach, or spends longer on finding deltas than the steps take. Here an
//! object is a delta to the newest one with the same prefix, if they differ in one range of bytes:
//! that is how a ledger's trees and records change.

use std::collections::HashMap;
use std::io;

use git2::ObjectType;
use handoff_base::ObjectFormat;
use libdeflater::{CompressionLvl, Compressor};
use sha1::{Digest, Sha1};
use sha2::Sha256;

/// The maximum length of a delta chain: git's default (`pack.depth`).
const MAX_DEPTH: usize = 50;

/// The length of the prefix that tells objects of different paths apart: the start of a record, or
/// of a tree's first entry.
const START: usize = 80;

/// The type of an entry that is a delta by offset.
const OFFSET_DELTA: u8 = 6;

/// An object's type and prefix, by which its predecessor is found.
type Start = (u8, Box<[u8]>);

struct Packed {
    offset: usize,
    bytes: Box<[u8]>,
    depth: usize,
}

pub(super) struct PackWriter {
    format: ObjectFormat,
    entries: Vec<u8>,
    objects: Vec<Packed>,
    newest: HashMap<Start, usize>,
    /// Reused for all objects: creating one costs more than deflating.
    compressor: Compressor,
}

impl PackWriter {
    pub(crate) fn new(format: ObjectFormat) -> Self {
        Self {
            format,
            entries: Vec::new(),
            objects: Vec::new(),
            newest: HashMap::new(),
            compressor: Compressor::new(CompressionLvl::fastest()),
        }
    }

    /// Adds an object, which must not be in the pack yet.
    pub(crate) fn add(&mut self, kind: ObjectType, bytes: Box<[u8]>) -> io::Result<()> {
        let kind = match kind {
            ObjectType::Commit => 1,
            ObjectType::Tree => 2,
            _ => 3,
        };
        let offset = HEADER + self.entries.len();
        let starts = starts(kind, &bytes, self.format);
        let base = starts.iter().find_map(|start| self.newest.get(start));
        let base = base.map(|at| &self.objects[*at]);
        let base = base.filter(|base| base.depth < MAX_DEPTH);
        let delta = base.and_then(|base| {
            let delta = delta(&base.bytes, &bytes)?;
            Some((base.offset, base.depth + 1, delta))
        });
        let depth = match delta {
            Some((base, depth, delta)) => {
                begin(&mut self.entries, OFFSET_DELTA, delta.len());
                push_distance(&mut self.entries, offset - base);
                self.deflate(&delta)?;
                depth
            }
            None => {
                begin(&mut self.entries, kind, bytes.len());
                self.deflate(&bytes)?;
                0
            }
        };
        for start in starts {
            self.newest.insert(start, self.objects.len());
        }
        self.objects.push(Packed {
            offset,
            bytes,
            depth,
        });
        Ok(())
    }

    fn deflate(&mut self, bytes: &[u8]) -> io::Result<()> {
        let start = self.entries.len();
        let most = self.compressor.zlib_compress_bound(bytes.len());
        self.entries.resize(start + most, 0);
        let deflated = self
            .compressor
            .zlib_compress(bytes, &mut self.entries[start..]);
        self.entries
            .truncate(start + deflated.map_err(io::Error::other)?);
        Ok(())
    }

    /// The finished pack, with header and checksum.
    pub(crate) fn finish(self) -> Vec<u8> {
        const VERSION: u32 = 2;
        let count = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        let mut pack = Vec::with_capacity(HEADER + self.entries.len() + self.format.id_bytes());
        pack.extend_from_slice(b"PACK");
        pack.extend_from_slice(&VERSION.to_be_bytes());
        pack.extend_from_slice(&count.to_be_bytes());
        pack.extend_from_slice(&self.entries);
        let checksum = match self.format {
            ObjectFormat::Sha1 => Sha1::digest(&pack).to_vec(),
            ObjectFormat::Sha256 => Sha256::digest(&pack).to_vec(),
        };
        pack.extend_from_slice(&checksum);
        pack
    }
}

/// The size of a pack's header.
const HEADER: usize = 12;

/// The prefixes under which an object's predecessor is looked up, the likeliest first. A tree's
/// prefix is its first entry: with the object id, to tell apart folders with the same file names,
/// and without it, because that entry may be what changed.
fn starts(kind: u8, bytes: &[u8], format: ObjectFormat) -> Vec<Start> {
    const COMMIT: u8 = 1;
    const TREE: u8 = 2;
    let start = |length: usize| (kind, Box::from(&bytes[..length.min(bytes.len())]));
    match kind {
        COMMIT => Vec::new(),
        TREE => {
            let name = bytes.iter().position(|b| *b == 0).unwrap_or(START);
            vec![start(name + 1 + format.id_bytes()), start(name)]
        }
        _ => vec![start(START)],
    }
}

/// Writes an entry's type and size.
fn begin(out: &mut Vec<u8>, kind: u8, size: usize) {
    let mut byte = kind << 4 | (size & 0x0f) as u8;
    let mut rest = size >> 4;
    while rest > 0 {
        out.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.push(byte);
}

/// Writes the distance back to a delta's base. Each further byte counts one more than its bits, so
/// that encodings are unique.
fn push_distance(out: &mut Vec<u8>, distance: usize) {
    let mut bytes = vec![(distance & 0x7f) as u8];
    let mut rest = distance >> 7;
    while rest > 0 {
        rest -= 1;
        bytes.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.extend(bytes.iter().rev());
}

/// The delta between two objects that differ in one range of bytes; `None` if it exceeds half of
/// the object.
fn delta(base: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    const INSERTED: usize = 127;
    let shorter = base.len().min(bytes.len());
    let same = |(a, b): &(&u8, &u8)| a == b;
    let before = base.iter().zip(bytes).take_while(same).count();
    let ends = base.iter().rev().zip(bytes.iter().rev());
    let after = ends.take(shorter - before).take_while(same).count();
    let between = &bytes[before..bytes.len() - after];
    if between.len() * 2 > bytes.len() {
        return None;
    }
    let mut out = Vec::with_capacity(between.len() + 32);
    for mut size in [base.len(), bytes.len()] {
        while size >= 0x80 {
            out.push(0x80 | (size & 0x7f) as u8);
            size >>= 7;
        }
        out.push(size as u8);
    }
    push_copy(&mut out, 0, before);
    for part in between.chunks(INSERTED) {
        out.push(part.len() as u8);
        out.extend_from_slice(part);
    }
    push_copy(&mut out, base.len() - after, after);
    Some(out)
}

/// Writes a copy instruction. Of offset and length, only the non-zero bytes are stored.
fn push_copy(out: &mut Vec<u8>, mut offset: usize, mut length: usize) {
    const LONGEST: usize = 0xff_ffff;
    while length > 0 {
        let copied = length.min(LONGEST);
        let at = out.len();
        out.push(0x80);
        let stored = [(offset, 0..4), (copied, 4..7)];
        for (number, bits) in stored {
            for (place, bit) in bits.enumerate() {
                let byte = (number >> (8 * place)) as u8;
                if byte != 0 {
                    out[at] |= 1 << bit;
                    out.push(byte);
                }
            }
        }
        offset += copied;
        length -= copied;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use git2::ObjectType;

    use super::super::id::{ToOid, hash, of_each_format};
    use super::PackWriter;

    /// Packs objects, has libgit2 store the pack, and reads them back.
    fn there_and_back(objects: &[(ObjectType, Vec<u8>)]) {
        for (format, _folder, repository) in of_each_format() {
            let mut writer = PackWriter::new(format);
            for (kind, bytes) in objects {
                writer.add(*kind, bytes.as_slice().into()).unwrap();
            }
            let odb = repository.odb().unwrap();
            let mut stored = odb.packwriter().unwrap();
            std::io::Write::write_all(&mut stored, &writer.finish()).unwrap();
            stored.commit().unwrap();
            for (kind, bytes) in objects {
                let id = hash(*kind, bytes, format).unwrap();
                let read = odb.read(id.oid()).unwrap();
                assert_eq!((read.kind(), read.data()), (*kind, bytes.as_slice()));
            }
        }
    }

    /// A record of this length, whose bytes from `at` on are `what`.
    fn record(length: usize, at: usize, what: &[u8]) -> (ObjectType, Vec<u8>) {
        let mut bytes: Vec<u8> = (0..length).map(|n| (n * 7 % 251) as u8).collect();
        bytes[at..at + what.len()].copy_from_slice(what);
        (ObjectType::Blob, bytes)
    }

    #[test]
    fn objects_that_differ_in_one_stretch_come_back() {
        // Longer than an insertion, and than each encoding of copy lengths and offsets; the last,
        // than one copy.
        for length in [100, 127, 128, 2_000, 70_000] {
            let objects = [
                record(length, 90, b"a"),
                record(length, 90, b"bc"),
                record(length, length - 1, b"d"),
                record(length / 2 + 60, length / 2, b"efg"),
                record(length, length - 5, &[1; 5]),
                (ObjectType::Blob, Vec::new()),
            ];
            let mut distinct = Vec::new();
            for object in objects {
                if !distinct.contains(&object) {
                    distinct.push(object);
                }
            }
            there_and_back(&distinct);
        }
        let long = |what: &[u8]| record(0x101_0000, 0x101_0000 - 2, what);
        there_and_back(&[long(b"a"), long(b"b")]);
    }

    #[test]
    fn a_long_row_of_changes_comes_back() {
        let change = |n: usize| {
            let number = format!("{n:05}");
            record(3_000, 100 + n * 13 % 2_800, number.as_bytes())
        };
        there_and_back(&(0..500).map(change).collect::<Vec<_>>());
        // Longer than each encoding of a distance.
        let far = (0..40).map(|n| record(300_000, 81, format!("{n:05}").as_bytes()));
        there_and_back(&far.collect::<Vec<_>>());
    }
}
