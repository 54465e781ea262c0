//! A folder that other programs write to as well. An index, which is stored beside the repository's
//! other files, has the digests of this program's files. Any other file, or a changed one, belongs
//! to somebody else and is neither replaced nor removed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use handoff::base::digest;
use serde::{Deserialize, Serialize};

use super::places::{HANDOFFS, STATES, inside};
use super::{ExchangeError, unreadable, unwritable};

/// The suffix of the hidden name of a file that is being replaced or removed.
const ASIDE: &str = ".git-handoff";

/// The folder of indexes, inside the git directory that all worktrees share.
const INDEXES: &str = "handoff/folders";

/// A file that this program wrote or imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) sha256: String,
    /// The state of the ledger that it shows; `None` forces a rewrite.
    pub(super) shows: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Index {
    files: BTreeMap<String, Known>,
    /// The files being written, stored beforehand so that they are recognized after a crash.
    #[serde(default)]
    planned: BTreeMap<String, Known>,
}

/// The index of a folder.
pub(super) struct SharedFolder {
    root: PathBuf,
    place: PathBuf,
    index: Index,
}

/// The result of writing a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Written,
    /// It was current.
    Same,
    /// There is another program's file.
    Foreign,
}

impl SharedFolder {
    /// Opens an existing folder with this repository's index of it.
    pub(super) fn open(root: &Path, common_dir: &Path) -> Result<Self, ExchangeError> {
        let root = root.canonicalize().map_err(unreadable(root))?;
        let name = digest(root.as_os_str().as_encoded_bytes());
        let place = common_dir.join(INDEXES).join(format!("{name}.json"));
        let index = match fs::read(&place) {
            // Without a readable index, no file is replaced.
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Index::default(),
            Err(error) => return Err(unreadable(&place)(error)),
        };
        let mut own = Self { root, place, index };
        own.resume()?;
        Ok(own)
    }

    /// Completes writes that were interrupted by a crash.
    fn resume(&mut self) -> Result<(), ExchangeError> {
        for (path, known) in std::mem::take(&mut self.index.planned) {
            if self.digest(&path)?.as_ref() == Some(&known.sha256) {
                self.index.files.insert(path, known);
            }
        }
        let paths: Vec<String> = self.index.files.keys().cloned().collect();
        for path in paths {
            let aside = self.aside(&path);
            if fs::symlink_metadata(&aside).is_ok() {
                self.settle(&path, &aside)?;
            }
        }
        Ok(())
    }

    /// Whether this program wrote or imported a file with these bytes.
    pub(super) fn knows(&self, inside: &str, bytes: &[u8]) -> bool {
        self.is_known(inside, &digest(bytes))
    }

    fn is_known(&self, inside: &str, sha256: &str) -> bool {
        let is = |known: &Known| known.sha256 == sha256;
        self.index.files.get(inside).is_some_and(is)
            || self.index.planned.get(inside).is_some_and(is)
    }

    /// The index entry of a file.
    pub(super) fn known(&self, inside: &str) -> Option<&Known> {
        self.index.files.get(inside)
    }

    /// Records that the ledger has a file's content.
    pub(super) fn took(&mut self, inside: &str, bytes: &[u8], shows: Option<String>) {
        let sha256 = digest(bytes);
        let known = Known { sha256, shows };
        self.index.files.insert(inside.to_owned(), known);
    }

    /// Whether a file or folder of this name exists.
    pub(super) fn has(&self, inside: &str) -> bool {
        fs::symlink_metadata(self.root.join(inside)).is_ok()
    }

    /// Whether there is a file that differs from the index.
    pub(super) fn is_foreign(&self, inside: &str) -> Result<bool, ExchangeError> {
        if !self.has(inside) {
            return Ok(false);
        }
        let found = self.digest(inside)?;
        Ok(found.is_none_or(|sha256| !self.is_known(inside, &sha256)))
    }

    /// The digest of a file; `None` if it does not exist or is not a regular file.
    fn digest(&self, inside: &str) -> Result<Option<String>, ExchangeError> {
        digest_of(&self.root.join(inside))
    }

    /// Whether a file has these bytes.
    pub(super) fn is(&self, inside: &str, bytes: &[u8]) -> Result<bool, ExchangeError> {
        Ok(self
            .digest(inside)?
            .is_some_and(|sha256| sha256 == digest(bytes)))
    }

    /// Whether the index lists a file, even if it is gone.
    pub(super) fn knew(&self, inside: &str) -> bool {
        self.index.files.contains_key(inside)
    }

    /// The parent of the folders of states.
    pub(super) fn top(&self) -> &'static str {
        let is_folder = |path: &str| {
            let found = fs::symlink_metadata(self.root.join(path));
            found.is_ok_and(|found| found.is_dir())
        };
        let holds = |top: &&str| STATES.iter().any(|state| is_folder(&inside(top, state)));
        [HANDOFFS, ""].into_iter().find(holds).unwrap_or(HANDOFFS)
    }

    /// Creates a folder, which may stay empty.
    pub(super) fn create(&self, inside: &str) -> Result<(), ExchangeError> {
        let path = self.root.join(inside);
        fs::create_dir_all(&path).map_err(unwritable(&path))?;
        // A symbolic link would lead elsewhere.
        let mut folder = self.root.clone();
        for part in Path::new(inside).components() {
            folder.push(part);
            if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
                return Err(ExchangeError::Foreign { path: folder });
            }
        }
        Ok(())
    }

    /// Moves a file of this program to its name, and updates the index.
    pub(super) fn replace(&mut self, from: &Path, inside: &str) -> Result<(), ExchangeError> {
        let path = self.root.join(inside);
        if let Some(sha256) = digest_of(from)? {
            let known = Known {
                sha256,
                shows: None,
            };
            self.index.planned.insert(inside.to_owned(), known);
        }
        self.save()?;
        fs::rename(from, &path).map_err(unwritable(&path))?;
        self.settled(inside);
        self.save()
    }

    /// Stores in the index what will be written.
    pub(super) fn plan<'a>(
        &mut self,
        files: impl Iterator<Item = (&'a str, &'a [u8], Option<String>)>,
    ) -> Result<(), ExchangeError> {
        self.index.planned = files
            .map(|(path, bytes, shows)| {
                let sha256 = digest(bytes);
                (path.to_owned(), Known { sha256, shows })
            })
            .collect();
        self.save()
    }

    /// Writes a planned file, unless another program's is there. Readers see the old or the new
    /// file, never a part.
    pub(super) fn put(&mut self, inside: &str, bytes: &[u8]) -> Result<Put, ExchangeError> {
        let path = self.root.join(inside);
        let sha256 = digest(bytes);
        let old = self.digest(inside)?;
        if old.as_ref() == Some(&sha256) {
            self.settled(inside);
            return Ok(Put::Same);
        }
        if self.is_foreign(inside)? {
            return Ok(Put::Foreign);
        }
        self.create(inside.rsplit_once('/').map_or("", |(folder, _)| folder))?;
        let new = beside(&path, ".new");
        let failed = unwritable(&path);
        let written = fs::write(&new, bytes).and_then(|()| match old {
            Some(_) => fs::rename(&new, &path),
            // Another program may have created the file meanwhile.
            None => fs::hard_link(&new, &path).and_then(|()| fs::remove_file(&new)),
        });
        match written {
            Ok(()) => {}
            Err(error) => {
                // If it can't be removed, a hidden file remains.
                let _ = fs::remove_file(&new);
                if error.kind() == io::ErrorKind::AlreadyExists {
                    return Ok(Put::Foreign);
                }
                if old.is_some() || !self.put_directly(&path, bytes)? {
                    return Err(failed(error));
                }
            }
        }
        self.settled(inside);
        Ok(Put::Written)
    }

    /// Writes a new file on a file system without hard links.
    fn put_directly(&self, path: &Path, bytes: &[u8]) -> Result<bool, ExchangeError> {
        match File::create_new(path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(unwritable(path))?;
                Ok(true)
            }
            Err(_) => Ok(false),
        }
    }

    fn settled(&mut self, inside: &str) {
        if let Some(known) = self.index.planned.remove(inside) {
            self.index.files.insert(inside.to_owned(), known);
        }
    }

    /// Removes a file that matches the index; false if it differs, or another program removed it.
    pub(super) fn remove(&mut self, inside: &str) -> Result<bool, ExchangeError> {
        if self.is_foreign(inside)? {
            return Ok(false);
        }
        let (path, aside) = (self.root.join(inside), self.aside(inside));
        match fs::rename(&path, &aside) {
            Ok(()) => self.settle(inside, &aside),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unwritable(&path)(error)),
        }
    }

    /// Removes a file that was renamed to be removed; restores it if it was changed meanwhile.
    fn settle(&mut self, inside: &str, aside: &Path) -> Result<bool, ExchangeError> {
        let path = self.root.join(inside);
        let found = digest_of(aside)?;
        if found.is_some_and(|sha256| self.is_known(inside, &sha256)) {
            fs::remove_file(aside).map_err(unwritable(aside))?;
            if !self.has(inside) {
                self.index.files.remove(inside);
            }
            return Ok(true);
        }
        if !self.has(inside) {
            fs::rename(aside, &path).map_err(unwritable(&path))?;
        }
        Ok(false)
    }

    fn aside(&self, inside: &str) -> PathBuf {
        beside(&self.root.join(inside), ASIDE)
    }

    /// Writes the index, without the files that are gone.
    pub(super) fn save(&mut self) -> Result<(), ExchangeError> {
        let root = &self.root;
        self.index
            .files
            .retain(|path, _| fs::symlink_metadata(root.join(path)).is_ok());
        let place = &self.place;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(unwritable(parent))?;
        }
        let bytes = serde_json::to_vec(&self.index).expect("stored types have string keys");
        let new = beside(place, ".new");
        fs::write(&new, bytes)
            .and_then(|()| fs::rename(&new, place))
            .map_err(unwritable(place))
    }
}

/// A hidden name in the same folder.
fn beside(path: &Path, end: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{end}"))
}

fn digest_of(path: &Path) -> Result<Option<String>, ExchangeError> {
    // Opening a pipe would block.
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    match fs::read(path) {
        Ok(bytes) => Ok(Some(digest(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path)(error)),
    }
}
