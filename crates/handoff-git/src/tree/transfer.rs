//! Copies whole trees between repositories, object by object.

use std::collections::HashSet;

use git2::ObjectType;
use handoff_base::ObjectId;

use super::entry::{MOST_ENTRIES, Mode, ensure_few, entries_of};
use crate::error::GitError;
use crate::repository::Repository;

impl Repository {
    /// The objects that a tree references, and whether each is a folder. Submodules are left out.
    pub(crate) fn named_by(&self, tree: ObjectId) -> Result<Vec<(ObjectId, bool)>, GitError> {
        const GITLINK: u32 = 0o160_000;
        let entries = entries_of(self, tree)?.into_iter();
        let own = entries.filter(|entry| entry.mode != GITLINK);
        let folder = |mode: u32| mode == Mode::Folder.number();
        Ok(own.map(|entry| (entry.id, folder(entry.mode))).collect())
    }

    /// The objects of a tree that this repository lacks, as far as it can tell: the content of a
    /// missing folder is unknown.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read, or the tree has more than [`MOST_ENTRIES`].
    pub fn missing_below(&self, tree: ObjectId) -> Result<Vec<ObjectId>, GitError> {
        self.missing(tree, |_| true)
    }

    /// The folders of a tree that this repository lacks, as far as it can tell.
    ///
    /// # Errors
    /// As [`Self::missing_below`].
    pub fn missing_folders_below(&self, tree: ObjectId) -> Result<Vec<ObjectId>, GitError> {
        self.missing(tree, |is_folder| is_folder)
    }

    fn missing(
        &self,
        tree: ObjectId,
        counts: impl Fn(bool) -> bool,
    ) -> Result<Vec<ObjectId>, GitError> {
        if !self.has(tree) {
            return Ok(vec![tree]);
        }
        // Only a partial clone has folders whose content is missing.
        if !self.is_partial() {
            return Ok(Vec::new());
        }
        let (mut missing, mut folders, mut met) = (Vec::new(), vec![tree], 0);
        while let Some(folder) = folders.pop() {
            for (id, is_folder) in self.named_by(folder)? {
                met += 1;
                ensure_few(met, MOST_ENTRIES)?;
                if counts(is_folder) && !self.has(id) {
                    missing.push(id);
                } else if is_folder {
                    folders.push(id);
                }
            }
        }
        Ok(missing)
    }

    /// Passes every object of a tree that is not in `known` to `each`, the tree itself first, and
    /// adds it to `known`.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read, and any error of `each`.
    pub fn take_out<E: From<GitError>>(
        &self,
        tree: ObjectId,
        known: &mut HashSet<ObjectId>,
        mut each: impl FnMut(ObjectId, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut wanted = vec![(tree, true)];
        while let Some((id, folder)) = wanted.pop() {
            if !known.insert(id) {
                continue;
            }
            let kind = kind_of(folder);
            each(id, &self.object(id, kind)?)?;
            if folder {
                wanted.extend(self.named_by(id)?);
            }
        }
        Ok(())
    }

    /// Writes every missing object of a tree, with the bytes from `read`. Returns the first object
    /// whose bytes do not match its id.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be written, and any error of `read`.
    pub fn take_in<E: From<GitError>>(
        &self,
        tree: ObjectId,
        mut read: impl FnMut(ObjectId) -> Result<Vec<u8>, E>,
    ) -> Result<Result<(), ObjectId>, E> {
        let mut known = HashSet::new();
        let mut wanted = vec![(tree, true)];
        while let Some((id, folder)) = wanted.pop() {
            if !known.insert(id) {
                continue;
            }
            let kind = kind_of(folder);
            if !self.has(id) {
                let bytes = read(id)?;
                if self.hash(kind, &bytes)? != id {
                    return Ok(Err(id));
                }
                self.write(kind, &bytes)?;
            }
            if folder {
                wanted.extend(self.named_by(id)?);
            }
        }
        Ok(Ok(()))
    }
}

fn kind_of(folder: bool) -> ObjectType {
    if folder {
        ObjectType::Tree
    } else {
        ObjectType::Blob
    }
}
