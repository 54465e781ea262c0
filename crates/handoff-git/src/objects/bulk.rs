//! Writes the objects of many commits as one pack: until then they are kept in memory, so that an
//! import does not create a hundred thousand loose files.

use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn};

use git2::{ErrorClass, ErrorCode, ObjectType};
use handoff_base::{ObjectFormat, ObjectId};

use super::Object;
use super::cache::ById;
use super::id::hash;
use super::pack_writer::PackWriter;
use crate::error::GitError;
use crate::process::{self, git_alone};

/// New objects that are not in the repository yet.
pub(crate) struct Bulk {
    format: ObjectFormat,
    objects: ById<Object>,
    bytes: usize,
    packing: Packing,
}

/// A background thread that packs the objects.
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
    pub(crate) fn new(format: ObjectFormat) -> Self {
        Self {
            format,
            objects: ById::default(),
            bytes: 0,
            packing: Packing::start(format),
        }
    }

    pub(crate) fn get(&self, id: ObjectId) -> Option<Object> {
        self.objects.get(&id).cloned()
    }

    pub(crate) fn add(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId, GitError> {
        let id = hash(kind, bytes, self.format)?;
        if let Entry::Vacant(vacant) = self.objects.entry(id) {
            vacant.insert((kind, bytes.into()));
            self.bytes += bytes.len();
            // If the thread has ended, finishing the pack reports why.
            let _ = self.packing.objects.send((kind, bytes.into()));
        }
        Ok(id)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes the objects as a pack, which git verifies, and returns them.
    ///
    /// # Errors
    /// [`GitError`] when the pack can't be written.
    pub(crate) fn write_pack(self, common_dir: &Path) -> Result<ById<Object>, GitError> {
        drop(self.packing.objects);
        if self.objects.is_empty() {
            return Ok(self.objects);
        }
        let pack = self.packing.pack.join();
        let pack = pack.unwrap_or_else(|_| Err(io::Error::other("a thread has ended")));
        let pack = pack.map_err(|error| failed(&error.to_string()))?;
        let mut command = git_alone(common_dir, None);
        command.args(["index-pack", "--stdin"]);
        let ended = process::run_until(None, command, Some(pack));
        let ended = ended.map_err(|error| failed(&error.to_string()))?;
        if !ended.status.success() {
            return Err(failed(&format!("git says: {}", ended.complaint())));
        }
        Ok(self.objects)
    }
}

fn failed(why: &str) -> GitError {
    let text = format!("a pack cannot be written: {why}");
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Indexer, text).into()
}
