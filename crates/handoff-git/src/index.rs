//! The index: the files of the next commit and their tree, without reading the working tree.
//!
//! The file is parsed as it is stored. libgit2 builds an object for each entry and checks the
//! file's digest, which takes longer than everything else a hook does in a large repository.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use handoff_base::ObjectId;

use super::error::GitError;
use super::object_id::object_id;
use super::repository::Repository;
use super::tree::Tree;

/// A staged file or symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// Its path from the working tree's root; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Its blob.
    pub id: ObjectId,
}

/// Why the index can't be read.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file can't be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not an index.
    #[error("{} is not an index that git wrote", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The `git` command could not list it.
    #[error("git cannot list the index: {message}")]
    Git {
        /// Its message.
        message: String,
    },
    /// HEAD's tree can't be read.
    #[error("the commit that HEAD is at cannot be read")]
    Head(#[source] GitError),
    /// A pattern is invalid.
    #[error("{pattern} is not a pattern for paths")]
    Pattern {
        /// The pattern, escaped for display.
        pattern: String,
        /// The cause.
        source: glob::PatternError,
    },
    /// libgit2 rejects the patterns.
    #[error("{patterns} are not patterns for paths")]
    Patterns {
        /// The patterns, escaped for display.
        patterns: String,
        /// The cause.
        source: GitError,
    },
}

/// Patterns like git's pathspecs: `*` and `**` match any text, `?` one character, `[…]` a set. A
/// name alone matches everything below it, and a leading `!` excludes.
pub struct PathPatterns {
    spec: git2::Pathspec,
    /// The literal beginning of each pattern.
    beginnings: Vec<Vec<u8>>,
}

impl PathPatterns {
    /// Parses patterns.
    ///
    /// # Errors
    /// [`IndexError::Pattern`] for an invalid pattern: libgit2 would accept it and match nothing.
    pub fn new(patterns: &[String]) -> Result<Self, IndexError> {
        for pattern in patterns {
            glob::Pattern::new(&sets_of(pattern)).map_err(|source| IndexError::Pattern {
                pattern: format!("{pattern:?}"),
                source,
            })?;
        }
        let plain = |pattern: &String| {
            let end = pattern.find(['*', '?', '[', '\\']);
            pattern.as_bytes()[..end.unwrap_or(pattern.len())].to_vec()
        };
        // The first match decides.
        let (but, taking): (Vec<&String>, Vec<&String>) =
            patterns.iter().partition(|p| p.starts_with('!'));
        let spec = git2::Pathspec::new(but.iter().chain(&taking)).map_err(|error| {
            IndexError::Patterns {
                patterns: format!("{:?}", patterns.join(", ")),
                source: error.into(),
            }
        })?;
        Ok(Self {
            spec,
            beginnings: taking.into_iter().map(plain).collect(),
        })
    }

    /// Whether a path matches.
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.may_match(path.as_bytes())
            && self
                .spec
                .matches_path(Path::new(path), git2::PathspecFlags::DEFAULT)
    }

    /// Whether a path begins like a match: a cheap test that excludes most paths.
    fn may_match(&self, path: &[u8]) -> bool {
        self.beginnings.iter().any(|begin| path.starts_with(begin))
    }
}

/// A pattern for `glob`, which knows no escapes and takes `**` only for whole folders: it is used
/// only to check that sets are closed.
fn sets_of(pattern: &str) -> String {
    let mut kept = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '*' => {}
            other => kept.push(other),
        }
    }
    kept
}

struct IndexEntry<'a> {
    mode: u32,
    id: &'a [u8],
    /// Whether it has a conflict stage or is only intended to be added.
    left_out: bool,
    path: &'a [u8],
}

impl Repository {
    /// The staged files that differ from HEAD, match the patterns, and are accepted by `wanted`.
    /// `index` is the file that git names in place of the repository's own.
    ///
    /// # Errors
    /// [`IndexError`]; a missing index means that nothing is staged.
    pub fn newly_staged(
        &self,
        index: Option<&Path>,
        patterns: &PathPatterns,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<StagedFile>, IndexError> {
        let mut files = self.staged_files(index, patterns)?;
        files.retain(|file| wanted(&file.path));
        if files.is_empty() {
            return Ok(files);
        }
        let head = self.position().map_err(IndexError::Head)?.head;
        let Some((_, tree)) = head else {
            return Ok(files);
        };
        let tree = Tree::new(self, tree);
        // Each of HEAD's folders is read once.
        let mut folders: HashMap<String, HashMap<String, ObjectId>> = HashMap::new();
        let mut failed = None;
        files.retain(|file| {
            let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            if !folders.contains_key(folder) {
                let listed = tree.list(folder).unwrap_or_else(|error| {
                    failed.get_or_insert(error);
                    Vec::new()
                });
                let entries = listed.into_iter().map(|entry| (entry.name, entry.id));
                folders.insert(folder.to_owned(), entries.collect());
            }
            folders[folder].get(name) != Some(&file.id)
        });
        match failed {
            None => Ok(files),
            Some(error) => Err(IndexError::Head(error)),
        }
    }

    fn staged_files(
        &self,
        index: Option<&Path>,
        patterns: &PathPatterns,
    ) -> Result<Vec<StagedFile>, IndexError> {
        let path = index.map_or_else(|| self.path().join("index"), Path::to_owned);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(IndexError::Unreadable { path, source }),
        };
        let mut found = Vec::new();
        let mut last = Ok(());
        let whole = walk(&bytes, |entry| {
            if entry.left_out || !is_file(entry.mode) || !patterns.may_match(entry.path) {
                return;
            }
            let path = String::from_utf8_lossy(entry.path);
            if !patterns.matches(&path) {
                return;
            }
            match git2::Oid::from_bytes(entry.id) {
                Ok(id) => found.push(StagedFile {
                    path: path.into_owned(),
                    id: object_id(id),
                }),
                Err(error) => last = Err(error),
            }
        });
        match (whole, last) {
            (Some(true), Ok(())) => Ok(found),
            // Split and sparse indexes are left to git.
            (Some(false), Ok(())) => self.listed(index, patterns),
            _ => Err(IndexError::Malformed { path }),
        }
    }

    /// Asks the `git` command.
    fn listed(
        &self,
        index: Option<&Path>,
        patterns: &PathPatterns,
    ) -> Result<Vec<StagedFile>, IndexError> {
        let failed = |message: String| IndexError::Git { message };
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.path());
        command.args(["ls-files", "--full-name", "--stage", "-z"]);
        if let Some(root) = self.workdir() {
            command.current_dir(root);
        }
        if let Some(index) = index {
            command.env("GIT_INDEX_FILE", index);
        }
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(failed(message.trim().to_owned()));
        }
        let mut found = Vec::new();
        for line in output.stdout.split(|&b| b == 0).filter(|l| !l.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let parsed = line.split_once('\t').and_then(|(meta, path)| {
                let mut parts = meta.split(' ');
                let mode = u32::from_str_radix(parts.next()?, 8).ok()?;
                let id: ObjectId = parts.next()?.parse().ok()?;
                Some((mode, id, parts.next()? == "0", path))
            });
            let Some((mode, id, plain, path)) = parsed else {
                return Err(failed(format!("{line:?}")));
            };
            if plain && is_file(mode) && patterns.matches(path) {
                let path = path.to_owned();
                found.push(StagedFile { path, id });
            }
        }
        Ok(found)
    }

    /// The tree of the index. Its folders are kept in memory only, as is everything written after
    /// them.
    ///
    /// # Errors
    /// [`GitError`] when libgit2 does not support the index's format, or it has conflicts.
    pub fn tree_of_index(&self, index: Option<&Path>) -> Result<ObjectId, GitError> {
        self.keep_new_objects_in_memory()?;
        let mut index = match index {
            Some(path) => git2::Index::open(path)?,
            None => self.inner.index()?,
        };
        Ok(object_id(index.write_tree_to(&self.inner)?))
    }
}

/// Files and links, not submodules.
fn is_file(mode: u32) -> bool {
    [0o100_000, 0o120_000].contains(&(mode & 0o170_000))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// Calls `each` for the entries of an index file, see gitformat-index(5). Returns whether these are
/// all entries; `None` if the file is not an index.
fn walk(bytes: &[u8], mut each: impl FnMut(&IndexEntry<'_>)) -> Option<bool> {
    const HEADER: usize = 12;
    /// Times, ids and sizes from the working tree.
    const STAT: usize = 40;
    const MODE: usize = 24;
    const ID: usize = 20;
    const NAME_LENGTH: u16 = 0x0fff;
    const STAGE: u16 = 0x3000;
    const EXTENDED: u16 = 0x4000;
    const INTENDED: u16 = 0x2000;
    if !bytes.starts_with(b"DIRC") {
        return None;
    }
    let version = u32::from_be_bytes(number(bytes, 4)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = u32::from_be_bytes(number(bytes, 8)?);
    let mut at = HEADER;
    let mut path = Vec::new();
    for _ in 0..count {
        let start = at;
        let mode = u32::from_be_bytes(number(bytes, at + MODE)?);
        let id = bytes.get(at + STAT..at + STAT + ID)?;
        let flags = u16::from_be_bytes(number(bytes, at + STAT + ID)?);
        at += STAT + ID + 2;
        let mut left_out = flags & STAGE != 0;
        if flags & EXTENDED != 0 {
            left_out |= u16::from_be_bytes(number(bytes, at)?) & INTENDED != 0;
            at += 2;
        }
        if version == 4 {
            // How many bytes to drop from the previous path, in groups of seven bits.
            let mut byte = *bytes.get(at)?;
            at += 1;
            let mut gone = usize::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = *bytes.get(at)?;
                at += 1;
                gone = (gone.checked_add(1)?.checked_mul(128)?) | usize::from(byte & 0x7f);
            }
            path.truncate(path.len().checked_sub(gone)?);
            let length = bytes.get(at..)?.iter().position(|&b| b == 0)?;
            path.extend_from_slice(&bytes[at..at + length]);
            at += length + 1;
            each(&IndexEntry {
                mode,
                id,
                left_out,
                path: &path,
            });
        } else {
            let length = match usize::from(flags & NAME_LENGTH) {
                known if known < usize::from(NAME_LENGTH) => known,
                _ => bytes.get(at..)?.iter().position(|&b| b == 0)?,
            };
            each(&IndexEntry {
                mode,
                id,
                left_out,
                path: bytes.get(at..at + length)?,
            });
            // Padded with one to eight zeros.
            at = start + ((at + length - start) / 8 + 1) * 8;
        }
    }
    // Unknown extensions may be skipped, unless their name begins in lower case.
    let end = bytes.len().checked_sub(ID)?;
    let mut whole = true;
    while at < end {
        let name: [u8; 4] = number(bytes, at)?;
        let size = u32::from_be_bytes(number(bytes, at + 4)?);
        whole &= !name[0].is_ascii_lowercase();
        at = at
            .checked_add(8)?
            .checked_add(usize::try_from(size).ok()?)?;
    }
    (at == end).then_some(whole)
}
