//! Reads objects of the usual forms.
//!
//! libgit2 reads an object at twice the cost of `git fsck`: it creates an inflater per object,
//! hashes with collision detection, and maps whole packs and indices, which costs a short process
//! more than the objects do. This reader gives up on anything unusual (a missing object, an unknown
//! form, damage, a wrong id). libgit2 then reads the object and reports the error.

use std::path::{Path, PathBuf};

use handoff_base::{ObjectFormat, ObjectId};
use libdeflater::Decompressor;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::Object;
use super::id::hash;
use super::loose::{self, file_of};
use super::pack_reader::{PackReader, Reads};

/// How an object is verified against its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// Not at all.
    Nothing,
    /// By its hash alone. That suffices for display, since git checked for collisions on arrival,
    /// and for data compared byte for byte with what a step writes, which leaves no room for one.
    Hash,
    /// With collision detection, as in libgit2: the bytes were chosen by others.
    AndCollisions,
}

pub(crate) struct ObjectReader {
    objects: PathBuf,
    packs: PackReader,
    was_loose: bool,
    inflater: Decompressor,
}

impl ObjectReader {
    pub(crate) fn new(objects: &Path, format: ObjectFormat, reads: Reads) -> Self {
        Self {
            objects: objects.to_owned(),
            packs: PackReader::new(&objects.join("pack"), format, reads),
            was_loose: false,
            inflater: Decompressor::new(),
        }
    }

    /// Reads an object; `None` if libgit2 must read it.
    pub(crate) fn read(&mut self, id: ObjectId, check: Check) -> Option<Object> {
        // The next object is likely where the last one was.
        let near = (!self.was_loose).then(|| self.packs.find_near(id));
        let object = match near.flatten() {
            Some(place) => self.packs.unpack(place, &mut self.inflater).ok()?,
            None => self.loose(id).or_else(|| self.packed(id))?,
        };
        is_id_of(id, &object, check).then_some(object)
    }

    fn loose(&mut self, id: ObjectId) -> Option<Object> {
        let file = file_of(&self.objects, id);
        let object = loose::read(&file, &mut self.inflater).ok()?;
        self.was_loose = true;
        Some(object)
    }

    fn packed(&mut self, id: ObjectId) -> Option<Object> {
        let place = self.packs.find(id)?;
        self.was_loose = false;
        self.packs.unpack(place, &mut self.inflater).ok()
    }

    /// Whether an object is in a pack that is readable here.
    pub(crate) fn is_packed(&mut self, id: ObjectId) -> bool {
        self.packs.find(id).is_some()
    }
}

/// Whether an object matches its id, as far as it is verified.
pub(super) fn is_id_of(id: ObjectId, (kind, bytes): &Object, check: Check) -> bool {
    let header = || format!("{} {}\0", kind.str(), bytes.len());
    match (check, id.format()) {
        (Check::Nothing, _) => true,
        (Check::Hash, ObjectFormat::Sha1) => {
            let found = Sha1::new().chain_update(header()).chain_update(bytes);
            found.finalize().as_slice() == id.as_bytes()
        }
        // No SHA-256 collisions are known.
        (Check::Hash | Check::AndCollisions, ObjectFormat::Sha256) => {
            let found = Sha256::new().chain_update(header()).chain_update(bytes);
            found.finalize().as_slice() == id.as_bytes()
        }
        (Check::AndCollisions, ObjectFormat::Sha1) => {
            hash(*kind, bytes, id.format()).is_ok_and(|found| found == id)
        }
    }
}
