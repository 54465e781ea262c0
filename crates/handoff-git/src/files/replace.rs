//! Replaces files of a git directory, with the modes of `core.sharedRepository`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

use super::SharedModes;

/// Creates a temporary file beside this one, to replace it; removed on drop if it does not. Creates
/// the folder if needed.
///
/// # Errors
/// Any I/O error.
pub fn new_beside(path: &Path) -> io::Result<NamedTempFile> {
    let _modes = SharedModes::begin();
    let folder = path.parent().unwrap_or(path);
    let make = || Builder::new().make_in(folder, |new| File::create_new(new));
    make().or_else(|_| {
        fs::create_dir_all(folder)?;
        make()
    })
}

/// Replaces a file atomically: readers see the old or the new file, never a mix.
///
/// # Errors
/// Any I/O error; then the old file stays.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = new_beside(path)?;
    new.write_all(bytes)?;
    new.persist(path)?;
    Ok(())
}
