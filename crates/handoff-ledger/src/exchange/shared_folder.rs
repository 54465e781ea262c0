//! A folder that other programs write to as well: what is in it is known by an index, which is kept
//! beside the repository's other files. A file that is not as the index says is somebody else's, and is
//! neither replaced nor removed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use handoff_base::digest;
use serde::{Deserialize, Serialize};

use super::layouts::{HANDOFFS, STATES};
use super::{ExchangeError, folders, unreadable, unwritable};

/// The end of the hidden name of a file that is being replaced, or removed.
const ASIDE: &str = ".git-handoff";

/// The folder of indexes, in the one that all worktrees share.
const INDEXES: &str = "handoff/folders";

/// A file that this program wrote, or took in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) sha256: String,
    /// The part of the ledger that it shows; `None` forces a rewrite.
    pub(super) shows: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Index {
    files: BTreeMap<String, Known>,
    /// What is being written: said before it is done, so that a killed program knows its own files.
    #[serde(default)]
    planned: BTreeMap<String, Known>,
}

/// The index of a folder.
pub(super) struct SharedFolder {
    root: PathBuf,
    place: PathBuf,
    index: Index,
}

/// What became of a file that was to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Written,
    /// It was as it should be.
    Same,
    /// There is a file of somebody else's.
    Foreign,
}

impl SharedFolder {
    /// Opens a folder that exists, with what this repository knows of it.
    pub(super) fn open(root: &Path, common_dir: &Path) -> Result<Self, ExchangeError> {
        let root = root.canonicalize().map_err(unreadable(root))?;
        let name = digest(root.as_os_str().as_encoded_bytes());
        let place = common_dir.join(INDEXES).join(format!("{name}.json"));
        let index = match fs::read(&place) {
            // An index that can't be read knows nothing: no file is replaced then.
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Index::default(),
            Err(error) => return Err(unreadable(&place)(error)),
        };
        let mut own = Self { root, place, index };
        own.resume()?;
        Ok(own)
    }

    /// Ends what a killed program began.
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

    /// Whether a file has these bytes since this program wrote them, or took them in.
    pub(super) fn knows(&self, inside: &str, bytes: &[u8]) -> bool {
        self.is_known(inside, &digest(bytes))
    }

    fn is_known(&self, inside: &str, sha256: &str) -> bool {
        let is = |known: &Known| known.sha256 == sha256;
        self.index.files.get(inside).is_some_and(is)
            || self.index.planned.get(inside).is_some_and(is)
    }

    /// What a file is known for.
    pub(super) fn known(&self, inside: &str) -> Option<&Known> {
        self.index.files.get(inside)
    }

    /// Notes that the ledger has what a file says.
    pub(super) fn took(&mut self, inside: &str, bytes: &[u8], shows: Option<String>) {
        let sha256 = digest(bytes);
        let known = Known { sha256, shows };
        self.index.files.insert(inside.to_owned(), known);
    }

    /// Whether there is anything of this name.
    pub(super) fn has(&self, inside: &str) -> bool {
        fs::symlink_metadata(self.root.join(inside)).is_ok()
    }

    /// Whether there is a file that is not as it is known.
    pub(super) fn is_foreign(&self, inside: &str) -> Result<bool, ExchangeError> {
        if !self.has(inside) {
            return Ok(false);
        }
        let found = self.digest(inside)?;
        Ok(found.is_none_or(|sha256| !self.is_known(inside, &sha256)))
    }

    /// The digest of a file; `None` if it is not there or not a file.
    fn digest(&self, inside: &str) -> Result<Option<String>, ExchangeError> {
        digest_of(&self.root.join(inside))
    }

    /// Whether a file has these bytes.
    pub(super) fn is(&self, inside: &str, bytes: &[u8]) -> Result<bool, ExchangeError> {
        Ok(self
            .digest(inside)?
            .is_some_and(|sha256| sha256 == digest(bytes)))
    }

    /// Whether a file was known before it went.
    pub(super) fn knew(&self, inside: &str) -> bool {
        self.index.files.contains_key(inside)
    }

    /// The folder that the folders of states are in.
    pub(super) fn top(&self) -> &'static str {
        let is_folder = |path: &str| {
            let found = fs::symlink_metadata(self.root.join(path));
            found.is_ok_and(|found| found.is_dir())
        };
        let holds = |top: &&str| {
            STATES
                .iter()
                .any(|state| is_folder(&folders::inside(top, state)))
        };
        [HANDOFFS, ""].into_iter().find(holds).unwrap_or(HANDOFFS)
    }

    /// Creates a folder, which may stay empty.
    pub(super) fn create(&self, inside: &str) -> Result<(), ExchangeError> {
        let path = self.root.join(inside);
        fs::create_dir_all(&path).map_err(unwritable(&path))?;
        // A link would lead elsewhere.
        let mut folder = self.root.clone();
        for part in Path::new(inside).components() {
            folder.push(part);
            if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
                return Err(ExchangeError::Foreign { path: folder });
            }
        }
        Ok(())
    }

    /// Moves a file of this program to its name, and takes account of it.
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

    /// Says what will be written, before any of it is.
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

    /// Writes a planned file, unless there is one of somebody else's. Readers see the old or the new
    /// one, never a part.
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
            // A concurrent program may have put its own file there.
            None => fs::hard_link(&new, &path).and_then(|()| fs::remove_file(&new)),
        });
        match written {
            Ok(()) => {}
            Err(error) => {
                // If it can't be removed, a hidden file is left over.
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

    /// Writes a new file where the file system has no hard links.
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

    /// Takes a file away that is as it is known; false if it is not, or another program took it
    /// first.
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

    /// Removes a file that was taken aside. If it was changed at the last moment, it goes back.
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
