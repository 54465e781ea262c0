//! Files that a command writes where it is told to: whole, or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::Failure;
use super::exit;

/// Replaces a file: who reads it meanwhile finds the old or the new one. It keeps
/// its permissions; what is no file, such as a pipe, is written to.
///
/// # Errors
/// A [`Failure`] when it can't be written; then the old one stays.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    written(path, bytes).map_err(|error| {
        let text = format!("cannot write {}: {error}", path.display());
        Failure::new(exit::ENVIRONMENT, "output", text)
            .hint("see that its folder is there, and that this user may write to it")
    })
}

fn written(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one, and leads to the new file.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return File::options().write(true).open(&path)?.write_all(bytes);
    }
    let new = beside(&path)?;
    let done = File::create_new(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        if let Some(old) = old {
            file.set_permissions(old.permissions())?;
        }
        fs::rename(&new, &path)
    });
    if done.is_err() {
        // Where it can't be removed, a small file is left over.
        let _ = fs::remove_file(&new);
    }
    done
}

/// A name in the same folder that nobody looks for: hidden, and with an ending of
/// its own.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name();
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.new", std::process::id()));
    Ok(path.with_file_name(hidden))
}
