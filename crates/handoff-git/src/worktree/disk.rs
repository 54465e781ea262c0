//! Reads files of a working tree without following links.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::capture::{CaptureError, RawPath};
use crate::tree::Mode;

/// A path for display; bytes that are not UTF-8 are replaced.
pub(crate) fn shown(path: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(path))
}

#[cfg(unix)]
pub(super) fn on_disk(root: &Path, path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    root.join(std::ffi::OsStr::from_bytes(path))
}

#[cfg(not(unix))]
pub(super) fn on_disk(root: &Path, path: &[u8]) -> PathBuf {
    root.join(String::from_utf8_lossy(path).as_ref())
}

/// A path's bytes in git's form.
#[cfg(unix)]
pub(super) fn path_bytes(path: PathBuf) -> Vec<u8> {
    use std::os::unix::ffi::OsStringExt;
    path.into_os_string().into_vec()
}

#[cfg(not(unix))]
pub(super) fn path_bytes(path: PathBuf) -> Vec<u8> {
    path.to_string_lossy().replace('\\', "/").into_bytes()
}

/// Identifies a version of a file.
#[cfg(unix)]
fn stamp(found: &Metadata) -> impl PartialEq {
    use std::os::unix::fs::MetadataExt;
    let changed = (
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    );
    (found.dev(), found.ino(), found.mode(), found.len(), changed)
}

#[cfg(not(unix))]
fn stamp(found: &Metadata) -> impl PartialEq {
    (found.len(), found.modified().ok())
}

#[cfg(unix)]
fn is_executable(found: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
}

/// The metadata at a path of a working tree, without following links.
pub(super) fn metadata_at(root: &Path, path: &[u8]) -> io::Result<Option<Metadata>> {
    let absent = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        match on_disk(root, &path[..at]).symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Ok(None),
            Err(error) if absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    match on_disk(root, path).symlink_metadata() {
        Ok(found) if found.is_dir() => Ok(None),
        Ok(found) => Ok(Some(found)),
        Err(error) if absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) struct Found {
    pub(crate) path: RawPath,
    /// Its metadata when it was found.
    pub(crate) metadata: Metadata,
}

impl Found {
    /// Reads the file, and fails if it changed since it was found.
    pub(crate) fn read(&self, root: &Path) -> Result<(Mode, Vec<u8>), CaptureError> {
        let changing = || CaptureError::Changing {
            shown: shown(&self.path),
        };
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => changing(),
            _ => CaptureError::Unreadable {
                shown: shown(&self.path),
                source,
            },
        };
        let path = on_disk(root, &self.path);
        if self.metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => changing(),
                _ => failed(error),
            })?;
            return Ok((Mode::Link, path_bytes(target)));
        }
        let mut file = File::open(&path).map_err(failed)?;
        let is_same = |file: &File| -> Result<bool, CaptureError> {
            let now = file.metadata().map_err(failed)?;
            Ok(stamp(&now) == stamp(&self.metadata))
        };
        if !is_same(&file)? {
            return Err(changing());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.metadata.len()).unwrap_or(0));
        // One byte more, to detect that it grew.
        let mut limited = (&mut file).take(self.metadata.len() + 1);
        limited.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 != self.metadata.len() || !is_same(&file)? {
            return Err(changing());
        }
        let executable = is_executable(&self.metadata);
        let mode = if executable {
            Mode::Executable
        } else {
            Mode::Plain
        };
        Ok((mode, bytes))
    }
}

/// The metadata at a path, which must be a file, link or folder.
pub(crate) fn find(root: &Path, path: &[u8]) -> Result<Option<Metadata>, CaptureError> {
    let found = metadata_at(root, path).map_err(|source| CaptureError::Unreadable {
        shown: shown(path),
        source,
    })?;
    match found {
        Some(found) if !found.is_file() && !found.is_symlink() => {
            Err(CaptureError::Special { shown: shown(path) })
        }
        found => Ok(found),
    }
}
