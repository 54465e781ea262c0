//! Which paths of a working tree can differ from the index at all.
//!
//! Most files are as the index has them, which their size, times and inode tell.
//! They are looked at with several threads, and libgit2, which compares contents
//! and knows what is ignored, is asked about the rest only.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::Path;
use std::{fs, io, thread};

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag};

use super::capture::RawPath;
use super::disk::{Written, on_disk};

/// How many paths libgit2 is asked about one by one; above that, about all.
const MOST: usize = 2_000;

/// The fewest paths that a thread is started for.
const PART: usize = 500;

/// The paths that may differ, files and folders that the index does not know
/// among them; none where too many do, or where they can't be told.
///
/// `entries` are those of stage 0 whose files are expected to be there, in the
/// order of their paths; `written` is when the index was, before it was read.
#[cfg(unix)]
pub(super) fn racy_files(
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

/// Where files can't be told apart so, all of them may differ.
#[cfg(not(unix))]
pub(super) fn racy_files(_: &Path, _: &[IndexEntry], _: Written) -> Option<Vec<RawPath>> {
    None
}

/// Every folder that has a file in it, or in a folder of it; the root is empty.
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
    // What is looked at by itself needs no second look.
    if marked || extended.intersects(special) {
        return true;
    }
    let found = on_disk(root, &entry.path).symlink_metadata();
    found.is_ok_and(|found| is_as_indexed(&found, entry, written))
}

/// Says whether a file is surely the one that the index describes. What was
/// written in the moment in which the index was may have changed since.
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

/// Finds in a folder what the index does not know.
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
        // What is missing or is no folder was found with its files.
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
            // A repository among files of this one: libgit2 decides.
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
