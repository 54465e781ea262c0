//! Reads and writes loose objects.
//!
//! libgit2 lists the pack folder before each object that it writes, and deflates the object. Even a
//! tiny file occupies a whole block, so an object that fits in one is stored uncompressed (a zlib
//! stream of one stored block); git deflates it when it packs.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io, process};

use git2::ObjectType;
use handoff_base::ObjectId;
use libdeflater::{DecompressionError, Decompressor};

use super::reader::is_id_of;
use super::{Check, MOST_BYTES, Object};
use crate::files::{invalid, read_at};

/// The size of a block on most file systems.
const BLOCK: usize = 4096;

/// The stored form of an object that fits in one block.
fn stored(kind: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    /// zlib's header for the lowest compression level, RFC 1950.
    const ZLIB: [u8; 2] = [0x78, 0x01];
    /// The header of a final, uncompressed deflate block, RFC 1951.
    const LAST_STORED: u8 = 1;
    /// The bytes that zlib adds around the object.
    const AROUND: usize = 11;
    let header = format!("{kind} {}\0", bytes.len());
    let length = header.len() + bytes.len();
    if length + AROUND > BLOCK {
        return None;
    }
    let length = u16::try_from(length).ok()?;
    let mut file = Vec::with_capacity(length as usize + AROUND);
    file.extend_from_slice(&ZLIB);
    file.push(LAST_STORED);
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&(!length).to_le_bytes());
    let start = file.len();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(bytes);
    let sum = adler32(&file[start..]);
    file.extend_from_slice(&sum.to_be_bytes());
    Some(file)
}

/// zlib's checksum (RFC 1950) of at most one block, for which the sums can't overflow.
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut sum, mut sums) = (1_u32, 0_u32);
    for &byte in bytes {
        sum += u32::from(byte);
        sums += sum;
    }
    ((sums % MODULUS) << 16) | (sum % MODULUS)
}

/// The maximum length of an object's type and size.
const MOST_OF_HEADER: usize = 32;

/// Reads a loose object.
///
/// # Errors
/// Any I/O error, `InvalidData` for an invalid file, and `FileTooLarge`.
pub(crate) fn read(path: &Path, inflater: &mut Decompressor) -> io::Result<Object> {
    read_up_to(MOST_BYTES, path, inflater)
}

/// Whether a loose object is damaged: it can't be inflated, or has another id.
///
/// # Errors
/// When it can't be read.
pub(crate) fn is_damaged(path: &Path, id: ObjectId) -> io::Result<bool> {
    is_bad(path, |object| !is_id_of(id, object, Check::Hash))
}

/// Whether a loose object is truncated: libgit2 would loop forever.
///
/// # Errors
/// When it can't be read.
pub(crate) fn is_cut_off(path: &Path) -> io::Result<bool> {
    is_bad(path, |_| false)
}

fn is_bad(path: &Path, is_other: impl FnOnce(&Object) -> bool) -> io::Result<bool> {
    /// Larger objects are left to git.
    const MOST: usize = 1 << 29;
    match read_up_to(MOST, path, &mut Decompressor::new()) {
        Ok(object) => Ok(is_other(&object)),
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(true),
        Err(error) if [ErrorKind::NotFound, ErrorKind::FileTooLarge].contains(&error.kind()) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn read_up_to(most: usize, path: &Path, inflater: &mut Decompressor) -> io::Result<Object> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > (most + MOST_OF_HEADER) as u64 {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut stored = vec![0; length as usize];
    read_at(&file, &mut stored, 0)?;
    let mut inflated = vec![0; stored.len().max(BLOCK / 2)];
    let size = loop {
        match inflater.zlib_decompress(&stored, &mut inflated) {
            Ok(size) => break size,
            Err(DecompressionError::InsufficientSpace) if inflated.len() <= most => {
                inflated.resize(4 * inflated.len(), 0);
            }
            Err(DecompressionError::InsufficientSpace) => {
                return Err(ErrorKind::FileTooLarge.into());
            }
            Err(_) => return Err(invalid()),
        }
    };
    parsed(&inflated[..size]).ok_or_else(invalid)
}

fn parsed(inflated: &[u8]) -> Option<Object> {
    let start = &inflated[..inflated.len().min(MOST_OF_HEADER)];
    let end = start.iter().position(|&byte| byte == 0)?;
    let (kind, size) = str::from_utf8(&start[..end]).ok()?.split_once(' ')?;
    let kind = match kind {
        "blob" => ObjectType::Blob,
        "tree" => ObjectType::Tree,
        "commit" => ObjectType::Commit,
        "tag" => ObjectType::Tag,
        _ => return None,
    };
    let bytes = &inflated[end + 1..];
    (size.parse() == Ok(bytes.len())).then(|| (kind, Rc::from(bytes)))
}

/// Writes a loose object atomically, replacing an existing file. Returns whether it did: larger
/// objects are left to libgit2.
///
/// # Errors
/// Any I/O error; then nothing was written.
pub(crate) fn write(path: &Path, kind: &str, bytes: &[u8]) -> io::Result<bool> {
    let Some(stored) = stored(kind, bytes) else {
        return Ok(false);
    };
    let folder = path.parent().unwrap_or(path);
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // git removes stale files with such names.
    let new = folder.join(format!("tmp_obj_{}_{count}", process::id()));
    let created = create(&new).or_else(|error| match error.kind() {
        ErrorKind::NotFound => {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            create(&new)
        }
        // Left by a killed process with the same id.
        ErrorKind::AlreadyExists => {
            fs::remove_file(&new)?;
            create(&new)
        }
        _ => Err(error),
    });
    let written = created?.write_all(&stored);
    let renamed = written.and_then(|()| fs::rename(&new, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&new);
    }
    renamed.map(|()| true)
}

/// Creates a file that becomes read-only for all, like git's objects.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o444);
    options.open(path)
}

/// The path of a loose object.
pub(crate) fn file_of(objects: &Path, id: ObjectId) -> PathBuf {
    let name = id.to_string();
    let (folder, file) = name.split_at(2);
    objects.join(folder).join(file)
}

/// Whether a file in a folder of loose objects is named like the rest of an object id.
pub(crate) fn is_object_name(name: &[u8]) -> bool {
    const REST: [usize; 2] = [38, 62];
    REST.contains(&name.len()) && name.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::process::Command;

    use git2::ObjectType;
    use libdeflater::Decompressor;

    use super::super::id::{ToOid, hash, object_id, of_each_format};
    use super::{BLOCK, file_of, read, write};

    #[test]
    fn git_and_libgit2_read_what_is_written_here() {
        for (format, dir, repository) in of_each_format() {
            for length in [0, 1, 40, 1000, BLOCK - 21, BLOCK - 20, BLOCK, 100_000] {
                let bytes: Vec<u8> = (0..length).map(|n| (n * n % 251) as u8).collect();
                let id = hash(ObjectType::Blob, &bytes, format).unwrap();
                let path = file_of(&dir.path().join("objects"), id);
                // The object's header, plus what zlib adds.
                let fits = 11 + format!("blob {length}\0").len() + length <= BLOCK;
                assert_eq!(write(&path, "blob", &bytes).unwrap(), fits, "{length}");
                assert_eq!(path.exists(), fits, "{length}");
                if fits {
                    assert_eq!(repository.find_blob(id.oid()).unwrap().content(), bytes);
                    let (kind, found) = read(&path, &mut Decompressor::new()).unwrap();
                    assert_eq!((kind, &*found), (ObjectType::Blob, &*bytes));
                }
            }
            let fsck = Command::new("git")
                .arg("--git-dir")
                .arg(dir.path())
                .args(["fsck", "--strict", "--no-dangling"])
                .output()
                .unwrap();
            assert!(fsck.status.success(), "{fsck:?}");
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "what libgit2 writes is read here"
    )]
    fn what_libgit2_writes_is_read_or_refused_whole() {
        let dir = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(dir.path()).unwrap();
        let mut inflater = Decompressor::new();
        for length in [0, 1, 1000, BLOCK, 500_000] {
            let bytes: Vec<u8> = (0..length).map(|n| (n * n % 251) as u8).collect();
            let id = repository.odb().unwrap().write(ObjectType::Blob, &bytes);
            let path = file_of(&dir.path().join("objects"), object_id(id.unwrap()));
            let (kind, found) = read(&path, &mut inflater).unwrap();
            assert_eq!((kind, &*found), (ObjectType::Blob, &*bytes));
            let whole = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
                fs::write(&path, &whole[..cut]).unwrap();
                read(&path, &mut inflater).unwrap_err();
            }
        }
        let path = dir.path().join("text");
        fs::write(&path, "blob 3\0abc").unwrap();
        read(&path, &mut inflater).unwrap_err();
        read(&dir.path().join("missing"), &mut inflater).unwrap_err();
        read(dir.path(), &mut inflater).unwrap_err();
    }

    #[test]
    fn a_file_that_is_there_is_replaced_and_nothing_is_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("aa").join("b".repeat(38));
        fs::create_dir(dir.path().join("aa")).unwrap();
        fs::write(&path, "").unwrap();
        assert!(write(&path, "blob", b"whole").unwrap());
        assert!(fs::metadata(&path).unwrap().len() > 5);
        assert!(fs::metadata(&path).unwrap().permissions().readonly());
        assert_eq!(fs::read_dir(dir.path().join("aa")).unwrap().count(), 1);
        // A folder can't be replaced by a file.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        write(&path, "blob", b"whole").unwrap_err();
        assert_eq!(fs::read_dir(dir.path().join("aa")).unwrap().count(), 1);
    }
}
