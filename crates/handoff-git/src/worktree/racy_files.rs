//! Which paths of a working tree can differ from the index.
//!
//! Most files are unchanged by their size, times and inode, which several threads check. Only the
//! rest is left to libgit2, which compares contents and knows what is ignored.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::Path;
use std::{fs, io, thread};

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag};

use super::capture::RawPath;
use super::disk::{Written, on_disk};

/// The most paths that libgit2 is given one by one; above that, it compares all.
const MOST: usize = 2_000;

/// The fewest paths per thread.
const PART: usize = 500;

/// The paths that may differ, including untracked files and folders; `None` if there are too many
/// or it is unknown.
///
/// `entries` are those of stage 0 whose files are expected, sorted by path; `written` is when the
/// index was modified, before it was read.
#[cfg(unix)]
pub(crate) fn racy_files(
    root: &Path,
    entries: &[IndexEntry],
    written: Written,
) -> Option<Vec<RawPath>> {
    if !entries.is_sorted_by(|a, b| a.path < b.path) {
        return None;
    }
    let folders = folders(entries);
    let known: HashSet<&[u8]> = folders.iter().copied().collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let parts = threads.clamp(1, entries.len() / PART + 1);
    let found: Option<Vec<Vec<RawPath>>> = thread::scope(|scope| {
        let files = entries.chunks(entries.len().div_ceil(parts).max(1));
        let files = files.map(|part| {
            scope.spawn(move || {
                let changed = part.iter().filter(|e| !is_unchanged(root, e, written));
                Some(changed.map(|entry| entry.path.clone()).collect())
            })
        });
        let known = &known;
        let listed = folders.chunks(folders.len().div_ceil(parts).max(1));
        let listed = listed.map(|part| {
            scope.spawn(move || {
                let mut found = Vec::new();
                for folder in part {
                    list(root, folder, entries, known, &mut found).ok()?;
                }
                Some(found)
            })
        });
        let workers: Vec<_> = files.chain(listed).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("looking at files does not panic"))
            .collect()
    });
    let found: Vec<RawPath> = found?.into_iter().flatten().collect();
    (found.len() <= MOST).then_some(found)
}

/// On other systems, any file may differ.
#[cfg(not(unix))]
pub(crate) fn racy_files(_: &Path, _: &[IndexEntry], _: Written) -> Option<Vec<RawPath>> {
    None
}

/// Every folder that contains a file, directly or not; the root is empty.
fn folders(entries: &[IndexEntry]) -> Vec<&[u8]> {
    let mut folders: Vec<&[u8]> = vec![b""];
    let mut last: &[u8] = b"";
    for entry in entries {
        let end = entry.path.iter().rposition(|&b| b == b'/');
        let folder = &entry.path[..end.unwrap_or(0)];
        if folder != last {
            let ends = folder.iter().enumerate().filter(|(_, b)| **b == b'/');
            folders.extend(ends.map(|(end, _)| &folder[..end]));
            folders.push(folder);
            last = folder;
        }
    }
    folders.sort_unstable();
    folders.dedup();
    folders
}

#[cfg(unix)]
fn is_unchanged(root: &Path, entry: &IndexEntry, written: Written) -> bool {
    let special = IndexEntryExtendedFlag::INTENT_TO_ADD | IndexEntryExtendedFlag::SKIP_WORKTREE;
    let extended = IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended);
    let marked = IndexEntryFlag::from_bits_truncate(entry.flags).contains(IndexEntryFlag::VALID);
    // Handled separately.
    if marked || extended.intersects(special) {
        return true;
    }
    let found = on_disk(root, &entry.path).symlink_metadata();
    found.is_ok_and(|found| is_as_indexed(&found, entry, written))
}

/// Whether a file is certainly the one in the index. A file modified at the same moment as the
/// index may have changed since.
#[cfg(unix)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index holds the lower 32 bits"
)]
fn is_as_indexed(found: &Metadata, entry: &IndexEntry, written: Written) -> bool {
    use std::os::unix::fs::MetadataExt;
    let executable = found.mode() & 0o100 != 0;
    let mode = match () {
        () if found.is_symlink() => 0o120_000,
        () if found.is_file() && executable => 0o100_755,
        () if found.is_file() => 0o100_644,
        () => return false,
    };
    let same = |seconds: i64, part: i64, known: git2::IndexTime| {
        (seconds as u32, part as u32) == (known.seconds() as u32, known.nanoseconds())
    };
    mode == entry.mode
        && found.len() as u32 == entry.file_size
        && found.ino() as u32 == entry.ino
        && same(found.mtime(), found.mtime_nsec(), entry.mtime)
        && same(found.ctime(), found.ctime_nsec(), entry.ctime)
        && (found.mtime(), found.mtime_nsec() as u32) < written
}

/// Finds what the index does not have in a folder.
#[cfg(unix)]
fn list(
    root: &Path,
    folder: &[u8],
    entries: &[IndexEntry],
    known: &HashSet<&[u8]>,
    found: &mut Vec<RawPath>,
) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let listed = match fs::read_dir(on_disk(root, folder)) {
        Ok(listed) => listed,
        // Its files were already found missing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in listed {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_bytes();
        if name == b".git" {
            if folder.is_empty() {
                continue;
            }
            // A nested repository: libgit2 decides.
            return Err(io::ErrorKind::Unsupported.into());
        }
        let path = match folder {
            b"" => name.to_vec(),
            _ => [folder, b"/", name].concat(),
        };
        let is_file = entries
            .binary_search_by(|e| e.path.as_slice().cmp(&path))
            .is_ok();
        let is_folder = known.contains(path.as_slice()) && entry.file_type()?.is_dir();
        if !is_file && !is_folder {
            found.push(path);
        }
    }
    Ok(())
}
