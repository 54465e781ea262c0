//! Files that a power cut emptied.

use std::io::Read;
use std::path::Path;
use std::{fs, io};

/// Removes a file without contents: it is empty, or the file system filled it with zeros, with
/// which neither an object nor a ref begins.
pub(crate) fn remove_if_empty(path: &Path) -> io::Result<bool> {
    let mut first = [0];
    let is_empty = match fs::File::open(path) {
        Ok(mut file) => file.metadata()?.is_file() && (file.read(&mut first)? == 0 || first == [0]),
        // Where refs are in tables, what would be a folder of refs is a file.
        Err(error) if is_absent(&error) => false,
        Err(error) => return Err(error),
    };
    if is_empty {
        fs::remove_file(path)?;
    }
    Ok(is_empty)
}

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    [NotFound, NotADirectory].contains(&error.kind())
}
