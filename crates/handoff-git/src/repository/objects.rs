//! Writes objects, and reads those that may be missing temporarily. Nothing else writes objects.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use git2::{ErrorClass, ErrorCode, ObjectType};
use handoff_base::ObjectId;

use super::Repository;
use crate::error::GitError;
use crate::files::{Queue, SharedModes, remove_if_empty};
use crate::objects::{Bulk, ToOid, Written, file_of, git2_format, object_id, write_file};

/// The maximum number of write attempts.
const TIMES: u32 = 4;

/// The pause before a missing object is read again; below, the maximum number of pauses.
const PAUSE: Duration = Duration::from_millis(5);
pub(crate) const PAUSES: u32 = 200;

impl Repository {
    /// Writes an object, with retries: git may remove an emptied folder of loose objects while a
    /// new one is written there.
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    pub(crate) fn write(&self, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId, GitError> {
        if let Some(bulk) = &mut *self.bulk.borrow_mut() {
            return bulk.add(kind, bytes);
        }
        let _modes = SharedModes::begin();
        if self.writes_files && !self.fresh.borrow().in_memory {
            let id = self.hash(kind, bytes)?;
            let path = file_of(&self.common_dir().join("objects"), id);
            // An existing file may have been emptied by a power cut.
            let is_packed = self.is_packed(id) && !path.exists();
            // If writing fails here, libgit2 fails too, and says why.
            if is_packed || written(|| write_file(&path, kind.str(), bytes)) {
                self.fresh.borrow_mut().note(id, kind, bytes);
                return Ok(id);
            }
        }
        let odb = self.inner.odb()?;
        let mut id = object_id(retried(|| odb.write(kind, bytes))?);
        // libgit2 takes any existing file for the object, even an emptied one. If it can't be
        // removed, the object stays unreadable, which is reported.
        let file = file_of(&self.common_dir().join("objects"), id);
        if remove_if_empty(&file).unwrap_or(false) {
            id = object_id(retried(|| odb.write(kind, bytes))?);
        }
        self.fresh.borrow_mut().note(id, kind, bytes);
        Ok(id)
    }

    /// From now on, buffers written objects in memory, where this handle also finds them, until
    /// [`Self::write_pack`]. No ref may move to one of them before.
    pub fn collect_new_objects(&self) {
        self.bulk.replace(Some(Bulk::new(self.format())));
    }

    /// A buffered object.
    pub(crate) fn collected(&self, id: ObjectId) -> Option<(ObjectType, Rc<[u8]>)> {
        self.bulk.borrow().as_ref()?.get(id)
    }

    /// The size of the buffered objects, in bytes.
    pub fn collected_bytes(&self) -> usize {
        self.bulk.borrow().as_ref().map_or(0, Bulk::bytes)
    }

    /// Writes the buffered objects as a pack, which git verifies, and ends buffering. Does nothing
    /// if none are buffered.
    ///
    /// # Errors
    /// [`GitError`] when the pack can't be written; the objects are then lost.
    pub fn write_pack(&self) -> Result<(), GitError> {
        if let Some(bulk) = self.bulk.take() {
            let written = bulk.write_pack(self.common_dir())?;
            let mut fresh = self.fresh.borrow_mut();
            for (id, (kind, bytes)) in written {
                fresh.note(id, kind, &bytes);
            }
        }
        Ok(())
    }

    /// Makes the objects behind a ref that just moved survive a concurrent `git gc`.
    ///
    /// `git gc --prune=now` removes what was unreachable when it looked. A collection that began
    /// before the ref moved and has ended shows in missing files. A running one (git holds
    /// `gc.pid`) may still remove loose files, but no pack newer than its start; one that begins
    /// now sees the ref. So a pack written after the ref moved is safe.
    ///
    /// # Errors
    /// [`GitError`] when they can't be rewritten.
    pub fn keep_fresh(&self) -> Result<(), GitError> {
        let fresh = self.fresh.borrow_mut().take();
        if self.are_lost(&fresh)? || (self.is_collected() && !fresh.is_empty()) {
            self.pack(&fresh)?;
        }
        Ok(())
    }

    /// Rewrites objects that a `git gc` removed before a ref reached them: git neither moves nor
    /// pushes a ref to missing objects. Returns whether any was missing.
    ///
    /// # Errors
    /// [`GitError`] when they can't be rewritten.
    pub fn put_back_lost(&self) -> Result<bool, GitError> {
        let fresh = &self.fresh.borrow().objects;
        let are_lost = self.are_lost(fresh)?;
        if are_lost {
            self.pack(fresh)?;
        }
        Ok(are_lost)
    }

    /// Whether any of these objects is missing.
    fn are_lost(&self, fresh: &[Written]) -> Result<bool, GitError> {
        let objects = self.common_dir().join("objects");
        let has_file = |written: &Written| file_of(&objects, written.id).exists();
        if fresh.iter().all(has_file) {
            return Ok(false);
        }
        // Packs are searched with a fresh handle: the repository's own may have cached removed
        // files.
        let found = git2::Odb::new_ext(git2_format(self.format()))?;
        found.add_disk_alternate(&objects.to_string_lossy())?;
        Ok(!fresh.iter().all(|written| found.exists(written.id.oid())))
    }

    fn is_collected(&self) -> bool {
        self.collection().exists()
    }

    /// The lock file of a garbage collection.
    pub(crate) fn collection(&self) -> PathBuf {
        self.common_dir().join("gc.pid")
    }

    /// Whether objects may be missing temporarily: a garbage collection runs, or the publisher of a
    /// step has not checked its objects yet.
    fn is_unsettled(&self) -> bool {
        let note = self.common_dir().join("handoff").join(Queue::WRITERS);
        self.is_collected() || note.metadata().is_ok_and(|note| note.len() > 0)
    }

    /// Retries reading a missing object while a `git gc` runs: the writer that published it is
    /// about to pack it.
    pub(crate) fn patiently<T>(
        &self,
        read: impl Fn() -> Result<T, git2::Error>,
    ) -> Result<T, git2::Error> {
        // In history walks, libgit2 has no code for this.
        let is_missing = |error: &git2::Error| {
            error.code() == ErrorCode::NotFound || error.class() == ErrorClass::Odb
        };
        loop {
            match read() {
                Err(error) if is_missing(&error) && self.is_unsettled() => {
                    let pauses = self.pauses.get();
                    if pauses == 0 {
                        return Err(error);
                    }
                    self.pauses.set(pauses - 1);
                    thread::sleep(PAUSE);
                }
                Err(error) if is_missing(&error) => return read(),
                done => return done,
            }
        }
    }

    /// Writes objects as a pack from memory: their loose files may be removed meanwhile.
    #[expect(clippy::disallowed_methods, reason = "nothing is written one by one")]
    fn pack(&self, objects: &[Written]) -> Result<(), GitError> {
        /// Read-only for all, like git's own.
        const MODE: u32 = 0o444;
        let _modes = SharedModes::begin();
        let memory = git2::Odb::new_ext(git2_format(self.format()))?;
        memory.add_new_mempack_backend(1)?;
        for Written { id, kind, bytes } in objects {
            match bytes {
                Some(bytes) => memory.write(*kind, bytes)?,
                None => memory.write(*kind, self.inner.odb()?.read(id.oid())?.data())?,
            };
        }
        let memory = git2::Repository::from_odb(memory)?;
        let mut pack = memory.packbuilder()?;
        for written in objects {
            pack.insert_object(written.id.oid(), None)?;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = format!("handoff-{}-{count}", std::process::id());
        let objects = self.common_dir().join("objects");
        let folder = objects.join(&own);
        let made =
            fs::create_dir_all(&folder).map_err(|error| GitError::unwritable(&folder, &error));
        let written = made.and_then(|()| Ok(pack.write(&folder, MODE)?));
        let moved = written.and_then(|()| {
            let to = objects.join("pack");
            let moved = self.move_pack(&folder, &to, &own);
            moved.map_err(|error| GitError::unwritable(&to, &error))
        });
        let _ = fs::remove_dir_all(folder);
        moved
    }

    /// Moves a pack into place under a unique name: named by content, it could replace an earlier
    /// pack of the same objects that a `git gc` is about to remove.
    fn move_pack(&self, from: &Path, to: &Path, own: &str) -> io::Result<()> {
        let names = fs::read_dir(from)?.map(|entry| Ok(entry?.path()));
        let names = names.collect::<io::Result<Vec<PathBuf>>>()?;
        // git needs the pack once it sees the index, so the index is last.
        for ending in ["pack", "idx"] {
            let file = names
                .iter()
                .find(|path| path.extension().is_some_and(|e| e == ending));
            let file = file.ok_or(io::ErrorKind::NotFound)?;
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let name = self.hash(ObjectType::Blob, format!("{stem} {own}").as_bytes());
            let name = name.map_err(io::Error::other)?;
            fs::rename(file, to.join(format!("pack-{name}.{ending}")))?;
        }
        // Not every system can open a folder.
        let _ = fs::File::open(to).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Retries a few times if the file system fails.
fn retried<T>(mut write: impl FnMut() -> Result<T, git2::Error>) -> Result<T, git2::Error> {
    let mut times = 1;
    loop {
        match write() {
            Err(error) if error.class() == ErrorClass::Os && times < TIMES => times += 1,
            written => return written,
        }
    }
}

/// Whether a file was written, tried a few times.
fn written(mut write: impl FnMut() -> io::Result<bool>) -> bool {
    (0..TIMES).find_map(|_| write().ok()).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use std::fs;

    use git2::{ErrorClass, ErrorCode, ObjectType};

    use super::{TIMES, retried};

    #[test]
    fn a_write_whose_folder_is_removed_meanwhile_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(dir.path()).unwrap();
        let odb = repository.odb().unwrap();
        let (objects, away) = (dir.path().join("objects"), dir.path().join("away"));
        let mut times = 0;
        let written = retried(|| {
            times += 1;
            match times {
                1 => fs::rename(&objects, &away).unwrap(),
                2 => fs::rename(&away, &objects).unwrap(),
                _ => {}
            }
            odb.write(ObjectType::Blob, b"kept")
        });
        assert_eq!(times, 2);
        assert_eq!(odb.read(written.unwrap()).unwrap().data(), b"kept");
    }

    #[test]
    fn what_fails_every_time_or_of_something_else_fails() {
        let mut times = 0;
        let mut fail = |class: ErrorClass| {
            times = 0;
            let failed = retried::<()>(|| {
                times += 1;
                Err(git2::Error::new(ErrorCode::GenericError, class, "no"))
            });
            assert!(failed.is_err());
            times
        };
        assert_eq!(fail(ErrorClass::Os), TIMES);
        assert_eq!(fail(ErrorClass::Odb), 1);
    }
}
