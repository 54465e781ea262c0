//! Reads foreign folders safely: never opens a device, never follows a link out of the folder, and
//! never reads more than the maximum size of a contract.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use handoff::base::finding::FindingCode;
use handoff::base::text::{natural_order, quoted, without_mark};
use handoff::contract::MAX_BYTES;

use super::fault::Fault;
use super::{ExchangeError, unreadable};

/// The maximum length of a log's line, in bytes.
const LINE: u64 = 4 << 20;

/// The maximum nesting of folders.
const DEPTH: usize = 32;

/// A folder to import from.
pub(super) struct Folder {
    root: PathBuf,
    /// The files that were opened or refused.
    read: RefCell<BTreeSet<String>>,
}

pub(super) struct TextLine {
    /// Its number, from 1.
    pub(super) number: usize,
    /// Its text without the line end; `None` if it is too long or not UTF-8.
    pub(super) text: Option<String>,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, ExchangeError> {
        let root = path.canonicalize().map_err(unreadable(path))?;
        Ok(Self {
            root,
            read: RefCell::default(),
        })
    }

    /// The full path of a file or folder.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    pub(super) fn has_folder(&self, inside: &str) -> bool {
        let kind = fs::symlink_metadata(self.path(inside));
        kind.is_ok_and(|found| found.is_dir())
    }

    /// Whether anything of this name exists.
    pub(super) fn has(&self, inside: &str) -> bool {
        fs::symlink_metadata(self.path(inside)).is_ok()
    }

    /// The files that were not read so far, except hidden ones.
    ///
    /// # Errors
    /// [`ExchangeError::Unreadable`] if a folder can't be read.
    pub(super) fn left_out(&self) -> Result<Vec<String>, ExchangeError> {
        let mut files = self.list("", &[""])?;
        files.retain(|file| !self.read.borrow().contains(file));
        Ok(files)
    }

    fn file(&self, inside: &str) -> Result<File, Fault> {
        self.read.borrow_mut().insert(inside.to_owned());
        let refused = |text: &str| {
            let text = format!("{} {text}", quoted(inside));
            Fault::unreadable(FindingCode::ImportFile, text)
        };
        let parts = Path::new(inside).components();
        if inside.is_empty() || !{ parts }.all(|part| matches!(part, Component::Normal(_))) {
            return Err(refused("is not a path inside the folder"));
        }
        let failed = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => refused("is not there"),
            _ => refused(&format!("cannot be read: {error}")),
        };
        // The resolved path counts: a folder in it may be a link as well.
        let path = self.path(inside).canonicalize().map_err(|e| failed(&e))?;
        if !path.starts_with(&self.root) {
            return Err(refused("is a link that leads out of the folder"));
        }
        // Opening a pipe would block.
        if !path.metadata().map_err(|e| failed(&e))?.is_file() {
            return Err(refused("is not a file"));
        }
        File::open(path).map_err(|e| failed(&e))
    }

    /// A file's bytes, up to one more than the limit.
    pub(super) fn read_up_to(&self, inside: &str, cap: u64) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let read = self.file(inside)?.take(cap + 1).read_to_end(&mut bytes);
        read.map_err(|error| {
            let text = format!("{} cannot be read: {error}", quoted(inside));
            Fault::unreadable(FindingCode::ImportFile, text)
        })?;
        Ok(bytes)
    }

    /// A contract's bytes, up to one more than the maximum size.
    pub(super) fn contract(&self, inside: &str) -> Result<Vec<u8>, Fault> {
        self.read_up_to(inside, MAX_BYTES as u64)
    }

    /// The lines of a file, without the empty ones.
    pub(super) fn lines(
        &self,
        inside: &str,
    ) -> Result<impl Iterator<Item = Result<TextLine, ExchangeError>> + use<>, Fault> {
        let mut reader = BufReader::new(self.file(inside)?);
        let path = self.path(inside);
        let mut number = 0;
        Ok(std::iter::from_fn(move || {
            loop {
                let mut bytes = Vec::new();
                number += 1;
                let read = (&mut reader).take(LINE).read_until(b'\n', &mut bytes);
                match read {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) => return Some(Err(unreadable(&path)(error))),
                }
                let complete = bytes.ends_with(b"\n") || (bytes.len() as u64) < LINE;
                if !complete && let Err(error) = reader.skip_until(b'\n') {
                    return Some(Err(unreadable(&path)(error)));
                }
                let line = match number {
                    1 => without_mark(&bytes),
                    _ => &bytes,
                };
                let text = str::from_utf8(line).ok().filter(|_| complete);
                if text.is_some_and(|text| text.trim().is_empty()) {
                    continue;
                }
                let text = text.map(str::to_owned);
                return Some(Ok(TextLine { number, text }));
            }
        }))
    }

    /// Every file below a folder with one of these extensions, ordered by path with numbers by
    /// value. Skips hidden files and does not follow links to folders.
    ///
    /// # Errors
    /// [`ExchangeError::Unreadable`] if a folder can't be read.
    pub(super) fn list(&self, below: &str, ends: &[&str]) -> Result<Vec<String>, ExchangeError> {
        let mut found = Vec::new();
        self.collect(below, ends, 0, &mut found)?;
        found.sort_by(|one, other| natural_order(one, other));
        Ok(found)
    }

    fn collect(
        &self,
        below: &str,
        ends: &[&str],
        depth: usize,
        found: &mut Vec<String>,
    ) -> Result<(), ExchangeError> {
        let path = self.path(below);
        for entry in fs::read_dir(&path).map_err(unreadable(&path))? {
            let entry = entry.map_err(unreadable(&path))?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let inside = match below {
                "" => name.to_owned(),
                _ => format!("{below}/{name}"),
            };
            let kind = entry.file_type().map_err(unreadable(&entry.path()))?;
            if kind.is_dir() {
                if depth < DEPTH {
                    self.collect(&inside, ends, depth + 1, found)?;
                }
            } else if ends.iter().any(|end| name.ends_with(end))
                && !(kind.is_symlink() && entry.path().is_dir())
            {
                found.push(inside);
            }
        }
        Ok(())
    }
}

/// Opens the source of an import: a folder, or a file and the folder it is in.
///
/// # Errors
/// [`ExchangeError`] if it does not exist or is a device.
pub(super) fn open(path: &Path) -> Result<(Folder, Option<String>), ExchangeError> {
    let found = fs::metadata(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ExchangeError::Missing {
            path: path.to_owned(),
        },
        _ => unreadable(path)(source),
    })?;
    if found.is_dir() {
        return Ok((Folder::open(path)?, None));
    }
    let path = path.canonicalize().map_err(unreadable(path))?;
    let name = path.file_name().and_then(|name| name.to_str());
    match (path.parent(), name) {
        (Some(parent), Some(name)) if found.is_file() => {
            Ok((Folder::open(parent)?, Some(name.to_owned())))
        }
        _ => Err(ExchangeError::Special { path }),
    }
}
