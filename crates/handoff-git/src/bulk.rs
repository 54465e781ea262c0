//! Writing the objects of many commits at once: they are kept in memory until there is a pack of
//! them, so that an import leaves no hundred thousand loose files.

use std::collections::hash_map::Entry;
use std::io;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn};

use git2::{ErrorClass, ErrorCode, ObjectType};
use handoff_base::{ObjectFormat, ObjectId};

use super::error::GitError;
use super::object_cache::ById;
use super::object_id::hash;
use super::pack_writer::PackWriter;
use super::process::{self, Patience, ProcessError};
use super::repository::Repository;
use super::spawn::git_alone;

/// The objects that are not in the repository yet.
pub(super) struct Bulk {
    format: ObjectFormat,
    objects: ById<(ObjectType, Rc<[u8]>)>,
    bytes: usize,
    packing: Packing,
}

/// Packs the objects meanwhile.
struct Packing {
    objects: Sender<(ObjectType, Box<[u8]>)>,
    pack: JoinHandle<io::Result<Vec<u8>>>,
}

impl Packing {
    fn start(format: ObjectFormat) -> Self {
        let (objects, received) = channel();
        let pack = spawn(move || {
            let mut writer = PackWriter::new(format);
            for (kind, bytes) in received {
                writer.add(kind, bytes)?;
            }
            Ok(writer.finish())
        });
        Self { objects, pack }
    }
}

impl Bulk {
    fn new(format: ObjectFormat) -> Self {
        Self {
            format,
            objects: ById::default(),
            bytes: 0,
            packing: Packing::start(format),
        }
    }

    pub(super) fn get(&self, id: ObjectId) -> Option<(ObjectType, Rc<[u8]>)> {
        self.objects.get(&id).cloned()
    }

    pub(super) fn add(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId, GitError> {
        let id = hash(kind, bytes, self.format)?;
        if let Entry::Vacant(vacant) = self.objects.entry(id) {
            vacant.insert((kind, bytes.into()));
            self.bytes += bytes.len();
            // If the thread has ended, the pack tells why.
            let _ = self.packing.objects.send((kind, bytes.into()));
        }
        Ok(id)
    }
}

impl Repository {
    /// From now on, keeps the objects that this handle writes in memory, where it also finds them,
    /// until [`Self::write_pack`]. No ref may move to one of them before.
    pub fn collect_new_objects(&self) {
        self.bulk.replace(Some(Bulk::new(self.format())));
    }

    /// An object that is kept in memory.
    pub(super) fn collected(&self, id: ObjectId) -> Option<(ObjectType, Rc<[u8]>)> {
        self.bulk.borrow().as_ref()?.get(id)
    }

    /// How many bytes of objects are kept in memory.
    pub fn collected_bytes(&self) -> usize {
        self.bulk.borrow().as_ref().map_or(0, |bulk| bulk.bytes)
    }

    /// Writes the objects that are kept in memory into a pack, which git checks. Objects that are
    /// written later are written at once again. Without any in memory, does nothing.
    ///
    /// # Errors
    /// [`GitError`] when the pack can't be written; the objects are then lost.
    pub fn write_pack(&self) -> Result<(), GitError> {
        let Some(Bulk {
            objects, packing, ..
        }) = self.bulk.take()
        else {
            return Ok(());
        };
        drop(packing.objects);
        if objects.is_empty() {
            return Ok(());
        }
        let pack = packing.pack.join();
        let pack = pack.unwrap_or_else(|_| Err(io::Error::other("a thread has ended")));
        let pack = pack.map_err(|error| failed(&error.to_string()))?;
        let mut command = git_alone(self.common_dir(), None);
        command.args(["index-pack", "--stdin"]);
        let patience = Patience {
            deadline: None,
            interrupted: &AtomicBool::new(false),
        };
        let ended = process::run(command, Some(pack), &patience).map_err(|error| match error {
            ProcessError::NoStart(error) => failed(&format!("git cannot be started: {error}")),
            ProcessError::TimedOut | ProcessError::Interrupted => failed("it took too long"),
        })?;
        if !ended.status.success() {
            return Err(failed(&format!("git says: {}", ended.complaint())));
        }
        let mut fresh = self.fresh.borrow_mut();
        for (id, (kind, bytes)) in objects {
            fresh.note(id, kind, &bytes);
        }
        Ok(())
    }
}

fn failed(why: &str) -> GitError {
    let text = format!("a pack cannot be written: {why}");
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Indexer, text).into()
}
