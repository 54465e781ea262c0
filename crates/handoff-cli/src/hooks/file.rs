//! Reads and atomically writes hook files.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use handoff::git::{SharedModes, read_regular};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another process modified it meanwhile.
    #[error("{} was changed by someone else meanwhile", .0.display())]
    Changed(PathBuf),
    /// The system refused.
    #[error("{} cannot be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The kind of file at a path.
pub enum Found {
    /// Nothing is there.
    Nothing,
    /// A link, with its target.
    Link(PathBuf),
    /// Neither a file nor a link.
    Other,
    /// A file, with its bytes.
    File(Vec<u8>, Metadata),
}

/// Examines a path without following a link.
///
/// # Errors
/// The system's, except that nothing is there.
pub fn read_path(path: &Path) -> io::Result<Found> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Found::Nothing);
        }
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        return Ok(Found::Link(fs::read_link(path)?));
    }
    if !metadata.is_file() {
        return Ok(Found::Other);
    }
    Ok(Found::File(read_regular(path)?, metadata))
}

/// Replaces a file atomically. A new file is executable, within the umask; an existing one keeps
/// its mode and owner.
pub(super) fn replace(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
) -> Result<(), WriteError> {
    let _modes = SharedModes::begin();
    replace_as(path, before, after, 0o777)
}

/// Replaces a file, or makes one with this mode, within the umask; `None` removes it.
///
/// # Errors
/// [`WriteError`]; the file is then as it was.
pub fn replace_as(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    mode: u32,
) -> Result<(), WriteError> {
    let failed = |source| WriteError::Io {
        path: path.to_owned(),
        source,
    };
    let changed = || WriteError::Changed(path.to_owned());
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.join(format!(".{name}.git-handoff-{}", std::process::id()));
    let guard = Leftover(&new);
    if let Some(bytes) = after {
        let mut file = create(&new, mode).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        if before.is_some() {
            let metadata = path.metadata().map_err(failed)?;
            same_owner_and_mode(&file, &metadata).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
    }
    // As late as possible, so that others' writes are not lost.
    let now = match read_path(path).map_err(failed)? {
        Found::Nothing => None,
        Found::File(bytes, _) => Some(bytes),
        Found::Link(_) | Found::Other => return Err(changed()),
    };
    if now.as_deref() != before {
        return Err(changed());
    }
    match after {
        Some(_) => fs::rename(&new, path),
        None => fs::remove_file(path),
    }
    .map_err(failed)?;
    drop(guard);
    Ok(())
}

/// Removes a temporary file on drop, if it still exists.
struct Leftover<'a>(&'a Path);

impl Drop for Leftover<'_> {
    fn drop(&mut self) {
        // At worst, a file stays that git ignores.
        let _ = fs::remove_file(self.0);
    }
}

#[cfg(unix)]
fn create(path: &Path, mode: u32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

#[cfg(not(unix))]
fn create(path: &Path, _: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
fn same_owner_and_mode(file: &File, wanted: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (wanted.uid(), wanted.gid()) {
        fchown(file, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    file.set_permissions(wanted.permissions())
}

#[cfg(not(unix))]
fn same_owner_and_mode(file: &File, wanted: &Metadata) -> io::Result<()> {
    file.set_permissions(wanted.permissions())
}

/// Whether git would run a file as a hook.
#[cfg(unix)]
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
pub(super) fn is_executable(_: &Metadata) -> bool {
    true
}

/// Whether a folder's file system is mounted with `noexec`.
#[cfg(unix)]
pub(super) fn runs_nothing(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|path| path.exists());
    existing.is_some_and(|path| {
        let found = rustix::fs::statvfs(path);
        found.is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC))
    })
}

#[cfg(not(unix))]
pub(super) fn runs_nothing(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::{WriteError, replace};
    use std::fs;

    #[test]
    fn what_someone_else_wrote_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let path = folder.path().join("pre-commit");
        let read = || fs::read(&path).ok();
        assert!(replace(&path, None, Some(b"one")).is_ok());
        for before in [None, Some(&b"other"[..])] {
            for after in [None, Some(&b"two"[..])] {
                let error = replace(&path, before, after).err();
                assert!(matches!(error, Some(WriteError::Changed(_))), "{error:?}");
                assert_eq!(read().as_deref(), Some(&b"one"[..]));
            }
        }
        assert!(replace(&path, Some(b"one"), None).is_ok());
        assert_eq!(read(), None);
        assert_eq!(folder.path().read_dir().map(Iterator::count).ok(), Some(0));
    }
}
