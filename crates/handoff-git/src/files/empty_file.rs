//! Files truncated to nothing by a power cut.

use std::io::Read;
use std::path::Path;
use std::{fs, io};

/// Removes a file without content: empty, or filled with zeros by the file system. No object or ref
/// starts with a zero byte.
pub(crate) fn remove_if_empty(path: &Path) -> io::Result<bool> {
    let mut first = [0];
    let is_empty = match fs::File::open(path) {
        Ok(mut file) => file.metadata()?.is_file() && (file.read(&mut first)? == 0 || first == [0]),
        // With reftables, the path of a folder of refs is a file.
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
