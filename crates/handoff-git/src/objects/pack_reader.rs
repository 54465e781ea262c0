//! Reads objects from packs of the usual form, in little memory.

use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use git2::ObjectType;
use handoff_base::{ObjectFormat, ObjectId};
use libdeflater::Decompressor;

use super::cache::Recent;
use super::pack_index::PackIndex;
use super::{MOST_BYTES, Object};
use crate::files::{invalid, read_at};

/// The maximum number of open packs; libgit2 reads the others.
const MOST_PACKS: usize = 64;

/// The maximum length of a delta chain: git's own limit.
const MOST_DELTAS: usize = 4095;

/// The byte budget for cached delta bases.
const BASES: usize = 8 << 20;

/// The size of a pack's header: magic, version and object count.
const HEADER: u64 = 12;

/// The maximum size of an entry's header: its type and size, and the offset or id of its base.
const MOST_OF_ENTRY: usize = 10 + ObjectFormat::Sha256.id_bytes();

struct Pack {
    index: PackIndex,
    file: File,
    /// The end of its objects.
    end: u64,
}

impl Pack {
    /// Opens the pack of an index, whose checksum must match.
    fn open(index: &Path, format: ObjectFormat) -> io::Result<Self> {
        let file = File::open(index.with_extension("pack"))?;
        let index = PackIndex::open(index, format)?;
        let end = file
            .metadata()?
            .len()
            .saturating_sub(format.id_bytes() as u64);
        let (mut header, mut checksum) = ([0; HEADER as usize], vec![0; format.id_bytes()]);
        read_at(&file, &mut header, 0)?;
        read_at(&file, &mut checksum, end)?;
        let [version, count] = [4, 8].map(|at| header[at..].first_chunk());
        let is_as_indexed = header.starts_with(b"PACK")
            && version == Some(&2_u32.to_be_bytes())
            && count == Some(&index.count().to_be_bytes())
            && checksum == index.pack;
        if is_as_indexed {
            Ok(Self { index, file, end })
        } else {
            Err(invalid())
        }
    }
}

/// An object's pack and offset.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pack: usize,
    offset: u64,
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        /// Multiplier that spreads nearby numbers (Fibonacci hashing).
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let both = self.offset ^ (self.pack as u64) << 48;
        state.write(&both.wrapping_mul(SPREAD).to_ne_bytes());
    }
}

/// The expected read pattern of a repository.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// A few objects.
    Few,
    /// A walk through history.
    Many,
}

/// Reads objects from a repository's packs.
pub(super) struct PackReader {
    /// The open packs, searched from the last to the first, without unreadable ones.
    packs: Vec<Pack>,
    /// The indices of packs not yet opened: the last is next.
    others: Vec<PathBuf>,
    /// The pack of the last object found.
    last: usize,
    windows: Windows,
    bases: Recent<Object, Place>,
    /// Buffers: the delta chain, the object under construction, and its base.
    deltas: Vec<(Place, Vec<u8>)>,
    made: Vec<u8>,
    between: Vec<u8>,
    reads: Reads,
    format: ObjectFormat,
}

impl PackReader {
    /// Finds the packs in a folder.
    pub(crate) fn new(folder: &Path, format: ObjectFormat, reads: Reads) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let indices = entries.filter(|entry| {
            Path::new(&entry.file_name())
                .extension()
                .is_some_and(|e| e == "idx")
        });
        let mut others: Vec<PathBuf> = indices.map(|entry| entry.path()).collect();
        if others.len() > 1 {
            others.sort_by_cached_key(|path| {
                let modified = path.metadata().and_then(|found| found.modified());
                (modified.unwrap_or(SystemTime::UNIX_EPOCH), path.clone())
            });
        }
        Self {
            packs: Vec::new(),
            others,
            last: 0,
            windows: Windows::new(reads),
            bases: Recent::new(BASES),
            deltas: Vec::new(),
            made: Vec::new(),
            between: Vec::new(),
            reads,
            format,
        }
    }

    /// Looks for an object in the pack of the last one.
    pub(super) fn find_near(&mut self, id: ObjectId) -> Option<Place> {
        // If the index is damaged, another pack may have the object.
        let found = self.packs.get_mut(self.last)?.index.find(id);
        let offset = found.ok()??;
        let pack = self.last;
        Some(Place { pack, offset })
    }

    /// Looks for an object in every pack.
    pub(crate) fn find(&mut self, id: ObjectId) -> Option<Place> {
        self.find_near(id).or_else(|| self.find_elsewhere(id))
    }

    /// Looks for an object in every pack but the last one's.
    fn find_elsewhere(&mut self, id: ObjectId) -> Option<Place> {
        let searched = (!self.packs.is_empty()).then_some(self.last);
        let mut pack = 0;
        loop {
            if pack == self.packs.len() {
                self.open_next()?;
            }
            if searched != Some(pack)
                && let Ok(Some(offset)) = self.packs[pack].index.find(id)
            {
                self.last = pack;
                return Some(Place { pack, offset });
            }
            pack += 1;
        }
    }

    fn open_next(&mut self) -> Option<()> {
        while self.packs.len() < MOST_PACKS {
            if let Ok(pack) = Pack::open(&self.others.pop()?, self.format) {
                self.packs.push(pack);
                return Some(());
            }
        }
        None
    }

    /// Inflates an object, after resolving its delta chain.
    pub(crate) fn unpack(
        &mut self,
        place: Place,
        inflater: &mut Decompressor,
    ) -> io::Result<Object> {
        let (mut next, mut deltas) = (place, 0);
        let object = loop {
            if let Some(known) = self.bases.get(next) {
                break known;
            }
            let pack = self.packs.get_mut(next.pack).ok_or_else(invalid)?;
            let stored = self.windows.read(pack, next, MOST_OF_ENTRY)?;
            let entry = Entry::read(stored, self.format)?;
            let offset = match entry.form {
                Form::Whole(kind) => {
                    let made = &mut self.made;
                    self.windows.inflate(inflater, pack, next, &entry, made)?;
                    let object = (kind, Rc::from(&**made));
                    self.keep(next, &object);
                    break object;
                }
                Form::DeltaToEarlier(distance) => next.offset.checked_sub(distance),
                Form::DeltaTo(id) => pack.index.find(id)?,
            };
            if deltas == MOST_DELTAS {
                return Err(invalid());
            }
            if deltas == self.deltas.len() {
                self.deltas.push((next, Vec::new()));
            }
            let (made, delta) = &mut self.deltas[deltas];
            *made = next;
            self.windows.inflate(inflater, pack, next, &entry, delta)?;
            deltas += 1;
            let offset = offset.ok_or_else(invalid)?;
            next = Place { offset, ..next };
        };
        let (kind, mut bytes) = object;
        let mut is_between = false;
        for at in (0..deltas).rev() {
            let (place, delta) = &self.deltas[at];
            let base = if is_between { &*self.between } else { &*bytes };
            apply(base, delta, &mut self.made)?;
            // Intermediate objects are cached only for a walk.
            is_between = at > 0 && self.reads == Reads::Few;
            if is_between {
                std::mem::swap(&mut self.made, &mut self.between);
            } else {
                bytes = Rc::from(&*self.made);
                let place = *place;
                self.keep(place, &(kind, Rc::clone(&bytes)));
            }
        }
        Ok((kind, bytes))
    }

    fn keep(&mut self, place: Place, object: &Object) {
        let (kind, bytes) = object;
        self.bases
            .put(place, (*kind, Rc::clone(bytes)), bytes.len());
    }
}

/// The encoding of an object.
enum Form {
    /// Undeltified.
    Whole(ObjectType),
    /// A delta to the object that begins this many bytes before it.
    DeltaToEarlier(u64),
    /// A delta to the object with this id.
    DeltaTo(ObjectId),
}

/// An entry's header.
struct Entry {
    form: Form,
    /// The size of the inflated data: an object or a delta.
    size: usize,
    /// The header's own size.
    length: usize,
}

impl Entry {
    fn read(stored: &[u8], format: ObjectFormat) -> io::Result<Self> {
        let mut rest = stored;
        let first = byte(&mut rest)?;
        let more = if first & 0x80 == 0 {
            0
        } else {
            number(&mut rest)?
        };
        let size = usize::from(first & 0x0f)
            | usize::try_from(more)
                .ok()
                .and_then(|n| n.checked_mul(16))
                .ok_or_else(invalid)?;
        let form = match first >> 4 & 7 {
            1 => Form::Whole(ObjectType::Commit),
            2 => Form::Whole(ObjectType::Tree),
            3 => Form::Whole(ObjectType::Blob),
            6 => {
                // Each further byte starts where the shorter encodings end.
                let mut digit = byte(&mut rest)?;
                let mut distance = u64::from(digit & 0x7f);
                while digit & 0x80 != 0 {
                    digit = byte(&mut rest)?;
                    distance = ((distance + 1) << 7) | u64::from(digit & 0x7f);
                    if distance >> 48 != 0 {
                        return Err(invalid());
                    }
                }
                Form::DeltaToEarlier(distance)
            }
            7 => {
                let (id, after) = rest
                    .split_at_checked(format.id_bytes())
                    .ok_or_else(invalid)?;
                rest = after;
                Form::DeltaTo(ObjectId::from_bytes(id).ok_or_else(invalid)?)
            }
            _ => return Err(invalid()),
        };
        if size > MOST_BYTES {
            return Err(invalid());
        }
        let length = stored.len() - rest.len();
        Ok(Self { form, size, length })
    }
}

fn byte(rest: &mut &[u8]) -> io::Result<u8> {
    let (first, others) = rest.split_first().ok_or_else(invalid)?;
    *rest = others;
    Ok(*first)
}

/// A varint: seven bits per byte, the lowest first.
fn number(rest: &mut &[u8]) -> io::Result<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let digit = byte(rest)?;
        value |= u64::from(digit & 0x7f) << shift;
        shift += 7;
        if digit & 0x80 == 0 {
            return Ok(value);
        }
        if shift > 35 {
            return Err(invalid());
        }
    }
}

/// An upper bound on the deflated size of this many bytes: slightly more, since zlib stores
/// incompressible data.
fn most_deflated(size: usize) -> usize {
    size + (size >> 10) + 64
}

/// Inflates to exactly this many bytes, or fails.
fn inflate(
    inflater: &mut Decompressor,
    stored: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    out.resize(size, 0);
    match inflater.zlib_decompress(stored, out) {
        Ok(made) if made == size => Ok(()),
        _ => Err(invalid()),
    }
}

/// Applies a delta to its base: both sizes, then copies from the base and inserted bytes.
fn apply(base: &[u8], delta: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut rest = delta;
    let sizes = (number(&mut rest)?, number(&mut rest)?);
    if sizes.0 != base.len() as u64 || sizes.1 > MOST_BYTES as u64 {
        return Err(invalid());
    }
    let size = sizes.1 as usize;
    out.clear();
    out.reserve(size);
    while let Some((&code, others)) = rest.split_first() {
        rest = others;
        let piece = if code & 0x80 != 0 {
            let mut field = |bits: std::ops::Range<u32>| -> io::Result<usize> {
                let mut value = 0;
                for (place, bit) in bits.enumerate() {
                    if code >> bit & 1 != 0 {
                        value |= usize::from(byte(&mut rest)?) << (8 * place);
                    }
                }
                Ok(value)
            };
            let (from, length) = (field(0..4)?, field(4..7)?);
            let length = if length == 0 { 0x10000 } else { length };
            base.get(from..from + length)
        } else {
            let (new, others) = rest.split_at_checked(code.into()).ok_or_else(invalid)?;
            rest = others;
            (code != 0).then_some(new)
        };
        out.extend_from_slice(piece.ok_or_else(invalid)?);
        if out.len() > size {
            return Err(invalid());
        }
    }
    if out.len() == size {
        Ok(())
    } else {
        Err(invalid())
    }
}

/// A cache of recently read parts of packs.
struct Windows {
    /// The size of a window.
    size: usize,
    /// Windows start at multiples of this.
    step: u64,
    /// The maximum number of windows.
    most: usize,
    /// The most recently used comes first.
    open: Vec<Window>,
    /// A buffer for data larger than a window.
    large: Vec<u8>,
}

struct Window {
    place: Place,
    bytes: Vec<u8>,
}

impl Windows {
    fn new(reads: Reads) -> Self {
        // Half of a window precedes the position: deltas refer backwards.
        let (size, step, most) = match reads {
            Reads::Few => (4 * 1024, 2 * 1024, 8),
            Reads::Many => (16 * 1024, 8 * 1024, 32),
        };
        let (open, large) = (Vec::new(), Vec::new());
        Self {
            size,
            step,
            most,
            open,
            large,
        }
    }

    fn inflate(
        &mut self,
        inflater: &mut Decompressor,
        pack: &Pack,
        place: Place,
        entry: &Entry,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        // The data nearly always fits in the window where it begins.
        let stored = self.read(pack, place, MOST_OF_ENTRY)?;
        let stored = stored.get(entry.length..).ok_or_else(invalid)?;
        if stored.len() >= entry.size / 2 && inflate(inflater, stored, entry.size, out).is_ok() {
            return Ok(());
        }
        let most = entry.length + most_deflated(entry.size);
        let stored = self.read(pack, place, most)?;
        let stored = stored.get(entry.length..).ok_or_else(invalid)?;
        inflate(inflater, stored, entry.size, out)
    }

    /// At least this many bytes from a place, or all up to the end of the pack.
    fn read(&mut self, pack: &Pack, place: Place, least: usize) -> io::Result<&[u8]> {
        let left = pack.end.checked_sub(place.offset).ok_or_else(invalid)?;
        let least = usize::try_from(left).map_or(least, |left| least.min(left));
        let within = |window: &Window| {
            let at = place.offset.checked_sub(window.place.offset)?;
            let at = usize::try_from(at).ok()?;
            let is_in = window.place.pack == place.pack && at + least <= window.bytes.len();
            is_in.then_some(at)
        };
        let known = self.open.iter().enumerate();
        let mut known = known.filter_map(|(number, window)| Some((number, within(window)?)));
        if let Some((number, at)) = known.next() {
            self.open[..=number].rotate_right(1);
            return Ok(&self.open[0].bytes[at..]);
        }
        if least > self.size / 2 {
            self.large.resize(least, 0);
            read_at(&pack.file, &mut self.large, place.offset)?;
            return Ok(&self.large);
        }
        let offset = place.offset - place.offset % self.step;
        let size = usize::try_from(pack.end - offset).map_or(self.size, |left| left.min(self.size));
        let oldest = (self.open.len() == self.most).then(|| self.open.pop());
        let mut bytes = oldest.flatten().map_or(Vec::new(), |window| window.bytes);
        bytes.resize(size, 0);
        read_at(&pack.file, &mut bytes, offset)?;
        self.open.insert(
            0,
            Window {
                place: Place { offset, ..place },
                bytes,
            },
        );
        Ok(&self.open[0].bytes[(place.offset - offset) as usize..])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use std::path::PathBuf;

    use git2::Oid;

    use super::super::id::{object_id, of_each_format};
    use super::super::reader::{Check, ObjectReader};
    use super::*;

    /// A repository with similar texts, and their pack.
    struct Fixture {
        format: ObjectFormat,
        repository: git2::Repository,
        ids: Vec<Oid>,
        folder: tempfile::TempDir,
    }

    impl Fixture {
        fn of_each_format() -> [Self; 2] {
            of_each_format()
                .map(|(format, folder, repository)| Self::new(format, folder, repository))
        }

        fn new(
            format: ObjectFormat,
            folder: tempfile::TempDir,
            repository: git2::Repository,
        ) -> Self {
            let odb = repository.odb().unwrap();
            let mut ids = Vec::new();
            for number in 0..120 {
                let lines = (0..40).map(|line| format!("line {} of a text\n", line + number % 7));
                let text: String = lines.chain([format!("the end of {number}\n")]).collect();
                ids.push(odb.write(ObjectType::Blob, text.as_bytes()).unwrap());
            }
            let mut tree = repository.treebuilder(None).unwrap();
            for (number, id) in ids.iter().enumerate() {
                tree.insert(number.to_string(), *id, 0o100_644).unwrap();
            }
            ids.push(tree.write().unwrap());
            drop(tree);
            drop(odb);
            Self {
                format,
                repository,
                ids,
                folder,
            }
        }

        fn packs(&self) -> PathBuf {
            self.folder.path().join("packed/pack")
        }

        /// The pack's file with this extension, after packing.
        fn pack(&self, ending: &str) -> PathBuf {
            let mut pack = self.repository.packbuilder().unwrap();
            for id in &self.ids {
                pack.insert_object(*id, None).unwrap();
            }
            fs::create_dir_all(self.packs()).unwrap();
            pack.write(&self.packs(), 0).unwrap();
            let files = fs::read_dir(self.packs()).unwrap();
            let mut files = files.map(|file| file.unwrap().path());
            files
                .find(|p| p.extension().is_some_and(|e| e == ending))
                .unwrap()
        }

        /// A reader of packs only, without the loose objects.
        fn reader(&self, reads: Reads) -> ObjectReader {
            ObjectReader::new(&self.folder.path().join("packed"), self.format, reads)
        }

        /// The number of objects read here; libgit2 reads the others.
        fn read(&self, check: Check) -> usize {
            let read = [Reads::Few, Reads::Many].map(|reads| self.read_with(reads, check));
            assert_eq!(read[0], read[1]);
            read[0]
        }

        fn read_with(&self, reads: Reads, check: Check) -> usize {
            let odb = self.repository.odb().unwrap();
            let mut reader = self.reader(reads);
            let read = self.ids.iter().filter(|id| {
                let Some((kind, bytes)) = reader.read(object_id(**id), check) else {
                    return false;
                };
                // The loose objects stay intact, whatever happens to the pack.
                let object = odb.read(**id).unwrap();
                assert_eq!((kind, &*bytes), (object.kind(), object.data()));
                true
            });
            read.count()
        }
    }

    #[test]
    fn objects_and_deltas_are_read_as_libgit2_reads_them() {
        for fixture in Fixture::of_each_format() {
            assert_eq!(fixture.read(Check::Hash), 0);
            let pack = fixture.pack("pack");
            let bytes = fs::read(pack).unwrap();
            assert!(bytes.len() < 20_000, "nothing is a delta: {}", bytes.len());
            assert_eq!(fixture.read(Check::Hash), fixture.ids.len());
            assert_eq!(fixture.read(Check::AndCollisions), fixture.ids.len());
            let mut reader = fixture.reader(Reads::Few);
            for length in [20, 32] {
                let missing = ObjectId::from_bytes(&vec![7; length]).unwrap();
                assert!(reader.read(missing, Check::Hash).is_none());
            }
        }
    }

    /// A damaged pack or index never yields wrong data: reads are right, or left to libgit2.
    #[test]
    fn nothing_wrong_is_read_from_what_is_damaged() {
        let [sha1, _] = Fixture::of_each_format();
        let [_, sha256] = Fixture::of_each_format();
        for (ending, fixture) in [("pack", sha1), ("idx", sha256)] {
            let path = fixture.pack(ending);
            let whole = fs::read(&path).unwrap();
            let mut left = 0;
            for at in (0..whole.len()).step_by(97) {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << (at % 8);
                fs::remove_file(&path).unwrap();
                fs::write(&path, &damaged).unwrap();
                left += fixture.ids.len() - fixture.read(Check::Hash);
            }
            assert!(left > 0, "{ending}");
            fs::remove_file(&path).unwrap();
            fs::write(&path, &whole[..whole.len() / 2]).unwrap();
            assert_eq!(fixture.read(Check::Hash), 0, "{ending}");
        }
    }

    #[test]
    fn a_delta_that_does_not_fit_is_refused() {
        let base = b"0123456789";
        let made = |delta: &[u8]| {
            let mut out = Vec::new();
            apply(base, delta, &mut out).ok().map(|()| out)
        };
        assert_eq!(made(b"\x0a\x05\x91\x02\x03\x02xy").unwrap(), b"234xy");
        for bad in [
            &b""[..],
            b"\x0a",
            b"\x09\x05\x91\x02\x03\x02xy",
            b"\x0a\x06\x91\x02\x03\x02xy",
            b"\x0a\x04\x91\x02\x03\x02xy",
            b"\x0a\x05\x91\x09\x03\x02xy",
            b"\x0a\x05\x91\x02\x03\x03xy",
            b"\x0a\x05\x00\x91\x02\x03\x02xy",
            b"\x0a\x05\x91\x02\x03\x02xy\x91",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x05",
        ] {
            assert_eq!(made(bad), None, "{bad:?}");
        }
    }
}
