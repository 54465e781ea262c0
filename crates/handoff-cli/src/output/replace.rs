//! Writes files atomically.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

use handoff::git::{git_directory_of, led_to};

use crate::failure::{ErrorCode, Failure};

/// Whether a path stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Replaces a file with the output of `write`: readers see the old or the new file, never a mix.
/// Permissions are kept; anything but a regular file, such as a pipe, is written in place.
///
/// # Errors
/// A [`Failure`] if it can't be written, or that of `write`; the old file then stays.
pub fn replace_with<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error: io::Error| failed(path, &error);
    ensure_no_git_directory(path)?;
    // A link stays, and points to the new content.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        let file = File::options().write(true).open(&target).map_err(failed)?;
        let mut out = BufWriter::new(file);
        let written = write(&mut out)?;
        out.flush().map_err(failed)?;
        return Ok(written);
    }
    let new = beside(&target).map_err(failed)?;
    let file = File::create_new(&new).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let done = write(&mut out).and_then(|written| {
        out.flush().map_err(failed)?;
        if let Some(old) = old {
            let kept = out.get_ref().set_permissions(old.permissions());
            kept.map_err(failed)?;
        }
        fs::rename(&new, &target).map_err(failed)?;
        Ok(written)
    });
    if done.is_err() {
        // At worst, a temporary file is left over.
        let _ = fs::remove_file(&new);
    }
    done
}

/// Replaces a file with these bytes, as [`replace_with`] does.
///
/// # Errors
/// A [`Failure`] if it can't be written; the old file then stays.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace_with(path, |out| {
        out.write_all(bytes).map_err(|error| failed(path, &error))
    })
}

/// Refuses a path that leads through a link into a git directory: the link's author could otherwise
/// plant a configuration or hook. Naming the git directory itself is the user's choice.
///
/// # Errors
/// A [`Failure`] of the environment.
pub fn ensure_no_git_directory(path: &Path) -> Result<(), Failure> {
    let named = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (led, nowhere) = (led_to(&named), Path::new(""));
    let Some(folder) = git_directory_of(&led, nowhere) else {
        return Ok(());
    };
    let own = git_directory_of(&named, nowhere).and_then(|own| own.canonicalize().ok());
    if own.as_deref() == Some(folder) {
        return Ok(());
    }
    let text = format!(
        "{} is a link, or lies beneath one, that leads into the git directory {}",
        path.display(),
        folder.display()
    );
    Err(Failure::new(ErrorCode::Output, text)
        .hint("nothing was written; remove the link, or name another file"))
}

/// The failure of a file that can't be written.
pub fn failed(path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot write {}: {error}", path.display());
    Failure::new(ErrorCode::Output, text)
        .hint("see that its folder is there, and that this user may write to it")
}

/// A path for a temporary file in the same folder: hidden, with a distinctive suffix.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name();
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.new", std::process::id()));
    Ok(path.with_file_name(hidden))
}
