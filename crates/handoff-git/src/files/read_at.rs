//! Reads of a file at a position, without moving the position of others.

use std::fs::File;
use std::io::{self, ErrorKind};

/// The error for bytes that are not as they should be.
pub(crate) fn invalid() -> io::Error {
    ErrorKind::InvalidData.into()
}

/// Fills a buffer from this position on.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, position)
}

/// Fills a buffer from this position on.
#[cfg(not(unix))]
pub(crate) fn read_at(mut file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(position))?;
    file.read_exact(buffer)
}
