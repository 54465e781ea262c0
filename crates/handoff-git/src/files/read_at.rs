//! Positioned reads that leave the file's cursor alone.

use std::fs::File;
use std::io::{self, ErrorKind};

pub(crate) fn invalid() -> io::Error {
    ErrorKind::InvalidData.into()
}

/// Fills a buffer from this offset.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, position)
}

/// Fills a buffer from this offset.
#[cfg(not(unix))]
pub(crate) fn read_at(mut file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(position))?;
    file.read_exact(buffer)
}
