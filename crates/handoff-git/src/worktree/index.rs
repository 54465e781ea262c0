//! The index: the files of the next commit and their tree, without reading the working tree.
//!
//! The file is parsed as it is stored. libgit2 builds an object for each entry and checks the
//! file's digest, which takes longer than everything else a hook does in a large repository.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use handoff_base::{ObjectFormat, ObjectId};

use super::disk::{Written, written};
use crate::error::GitError;
use crate::objects::{ToOid, git2_format, object_id};
use crate::process::git_alone;
use crate::repository::Repository;
use crate::tree::{EntryKind, Tree};

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
    taken: Option<git2::Pathspec>,
    excluded: Option<git2::Pathspec>,
}

/// What patterns say about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// One of them matches.
    Taken,
    /// One that begins with `!` matches, whatever the others say.
    Excluded,
    /// None matches.
    Neither,
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
        let spec = |patterns: &[&str]| match patterns {
            // No patterns at all would match everything.
            [] => Ok(None),
            some => git2::Pathspec::new(some.iter()).map(Some),
        };
        let excluded: Vec<&str> = patterns
            .iter()
            .filter_map(|p| p.strip_prefix('!'))
            .collect();
        let taken = patterns.iter().filter(|p| !p.starts_with('!'));
        let taken: Vec<&str> = taken.map(String::as_str).collect();
        let invalid = |error: git2::Error| IndexError::Patterns {
            patterns: format!("{:?}", patterns.join(", ")),
            source: error.into(),
        };
        Ok(Self {
            taken: spec(&taken).map_err(invalid)?,
            excluded: spec(&excluded).map_err(invalid)?,
        })
    }

    /// What the patterns say about a path.
    pub fn matched(&self, path: &str) -> PathMatch {
        let flags = git2::PathspecFlags::DEFAULT;
        let has = |spec: &Option<git2::Pathspec>| {
            let spec = spec.as_ref();
            spec.is_some_and(|spec| spec.matches_path(Path::new(path), flags))
        };
        match (has(&self.excluded), has(&self.taken)) {
            (true, _) => PathMatch::Excluded,
            (false, true) => PathMatch::Taken,
            (false, false) => PathMatch::Neither,
        }
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

/// What is in an index file.
struct Index<'a> {
    /// The paths and ids of the files that are wanted.
    files: Vec<(Cow<'a, [u8]>, &'a [u8])>,
    /// Whether no extension changes what the entries mean.
    is_known: bool,
    /// The trees that git has worked out, as they are stored.
    trees: &'a [u8],
}

impl Repository {
    /// The staged files that differ from HEAD and whose paths are wanted. `index` is the file that
    /// git names in place of the repository's own.
    ///
    /// # Errors
    /// [`IndexError`]; a missing index means that nothing is staged.
    pub fn newly_staged(
        &self,
        index: Option<&Path>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<StagedFile>, IndexError> {
        let path = index.map_or_else(|| self.path().join("index"), Path::to_owned);
        let tree = self.head_tree();
        let format = self.format();
        let passed = passed_over(&path, format, &wanted);
        let bytes;
        let read = match &passed {
            Some(passed) => passed.index(format),
            None => {
                bytes = match std::fs::read(&path) {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        return Ok(Vec::new());
                    }
                    Err(source) => return Err(IndexError::Unreadable { path, source }),
                };
                let malformed = || IndexError::Malformed { path: path.clone() };
                read(&bytes, format, &wanted).ok_or_else(malformed)?
            }
        };
        let tree = tree.map_err(IndexError::Head)?;
        // `git commit` works the trees out before it runs a hook.
        if tree.is_some() && cached_trees(read.trees, format).next().map(|(_, id)| id) == Some(tree)
        {
            return Ok(Vec::new());
        }
        let staged = cached_trees(read.trees, format);
        let mut head = HeadFiles {
            repository: self,
            tree,
            staged: staged.filter_map(|(path, id)| Some((path, id?))).collect(),
            folders: HashMap::new(),
        };
        if read.is_known {
            let others = head.others(read.files.into_iter());
            return others.map_err(IndexError::Head);
        }
        // Split and sparse indexes are left to git.
        let listed = self.listed(index, wanted)?;
        let listed = listed.iter().map(|file| {
            let path = Cow::Borrowed(file.path.as_bytes());
            (path, file.id.as_bytes())
        });
        head.others(listed).map_err(IndexError::Head)
    }

    /// HEAD's tree; `None` before the first commit.
    fn head_tree(&self) -> Result<Option<ObjectId>, GitError> {
        let head = self.resolve("HEAD")?;
        let tree = |head: ObjectId| Ok(object_id(self.inner.find_commit(head.oid())?.tree_id()));
        head.map(tree).transpose()
    }

    /// Asks the `git` command for every staged file that is wanted.
    fn listed(
        &self,
        index: Option<&Path>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<StagedFile>, IndexError> {
        let failed = |message: String| IndexError::Git { message };
        let mut command = git_alone(self.path(), self.workdir());
        command.args(["ls-files", "--full-name", "--stage", "-z"]);
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
            if plain && is_file(mode) && wanted(path.as_bytes()) {
                let path = path.to_owned();
                found.push(StagedFile { path, id });
            }
        }
        Ok(found)
    }

    /// A copy of the index without what libgit2 does not read, and when the index was written.
    ///
    /// # Errors
    /// When it can't be copied, or git can't read it.
    pub(super) fn plain_index(&self) -> io::Result<(git2::Index, Written)> {
        let own = self.path().join("index");
        let written = written(&own);
        let folder = self.common_dir().join("handoff");
        fs::create_dir_all(&folder)?;
        let copy = folder.join(format!("index-{}", std::process::id()));
        fs::copy(&own, &copy)?;
        let mut command = git_alone(self.path(), None);
        for setting in ["index.sparse", "core.splitIndex"] {
            command.args(["-c", &format!("{setting}=false")]);
        }
        command.args(["update-index", "--force-write-index"]);
        command
            .env("GIT_INDEX_FILE", &copy)
            .current_dir(self.path());
        let ran = command.output();
        let opened = git2::Index::open_ext(&copy, git2_format(self.format()));
        let read = opened.and_then(|mut index| index.read(true).map(|()| index));
        fs::remove_file(&copy)?;
        match (ran?.status.success(), read) {
            (true, Ok(index)) => Ok((index, written)),
            (_, read) => Err(io::Error::other(read.err().unwrap_or_else(|| {
                git2::Error::from_str("git cannot write the index anew")
            }))),
        }
    }

    /// The tree of the index. Its folders are kept in memory only, as is everything written after
    /// them.
    ///
    /// # Errors
    /// [`GitError`] when libgit2 does not support the index's format, or it has conflicts.
    pub fn tree_of_index(&self, index: Option<&Path>) -> Result<ObjectId, GitError> {
        self.keep_new_objects_in_memory()?;
        let mut index = match index {
            Some(path) => git2::Index::open_ext(path, git2_format(self.format()))?,
            None => self.inner.index()?,
        };
        Ok(object_id(index.write_tree_to(&self.inner)?))
    }
}

/// A folder's entries by name.
type Entries = HashMap<String, (EntryKind, ObjectId)>;

/// HEAD's files. Only those of its folders are read that the index has otherwise.
struct HeadFiles<'r> {
    repository: &'r Repository,
    /// HEAD's tree; none before the first commit.
    tree: Option<ObjectId>,
    /// The index's trees, by path.
    staged: HashMap<String, ObjectId>,
    /// The folders that were asked for; `None` if the index has the same.
    folders: HashMap<String, Option<Entries>>,
}

impl HeadFiles<'_> {
    /// The files that HEAD does not have like this. Files of one folder follow each other.
    fn others<'a>(
        &mut self,
        files: impl Iterator<Item = (Cow<'a, [u8]>, &'a [u8])>,
    ) -> Result<Vec<StagedFile>, GitError> {
        let mut others = Vec::new();
        // The last folder of which the index has the same as HEAD.
        let mut same: Option<Vec<u8>> = None;
        for (path, id) in files {
            let end = memchr::memrchr(b'/', &path);
            let folder = &path[..end.unwrap_or(0)];
            if same.as_deref() == Some(folder) {
                continue;
            }
            let file = staged(&path, id)?;
            let name = &file.path[end.map_or(0, |end| end + 1)..];
            match self.folder(&file.path[..end.unwrap_or(0)])? {
                None => same = Some(folder.to_vec()),
                Some(entries) if entries.get(name).is_some_and(|(_, id)| *id == file.id) => {}
                Some(_) => others.push(file),
            }
        }
        Ok(others)
    }

    /// A folder's entries in HEAD, or `None` if the index has the same.
    fn folder(&mut self, path: &str) -> Result<Option<&Entries>, GitError> {
        if !self.folders.contains_key(path) {
            let entries = self.read(path)?;
            self.folders.insert(path.to_owned(), entries);
        }
        Ok(self.folders.get(path).and_then(Option::as_ref))
    }

    fn read(&mut self, path: &str) -> Result<Option<Entries>, GitError> {
        let id = if path.is_empty() {
            self.tree
        } else {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let Some(entries) = self.folder(parent)? else {
                return Ok(None);
            };
            let found = entries
                .get(name)
                .filter(|(kind, _)| *kind == EntryKind::Tree);
            found.map(|(_, id)| *id)
        };
        let Some(id) = id else {
            return Ok(Some(Entries::new()));
        };
        if self.staged.get(path) == Some(&id) {
            return Ok(None);
        }
        let entries = Tree::new(self.repository, id).list("")?.into_iter();
        Ok(Some(
            entries
                .map(|entry| (entry.name, (entry.kind, entry.id)))
                .collect(),
        ))
    }
}

/// Files and links, not submodules.
fn is_file(mode: u32) -> bool {
    [0o100_000, 0o120_000].contains(&(mode & 0o170_000))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// The staged files of an index file, without those that HEAD has too left out: `Some(None)` if its
/// extensions are left to git, `None` if it is not an index. For tests.
#[doc(hidden)]
pub fn index_files(bytes: &[u8], format: ObjectFormat) -> Option<Option<Vec<StagedFile>>> {
    let read = read(bytes, format, |_| true)?;
    cached_trees(read.trees, format).for_each(drop);
    let files = read.files.iter().map(|(path, id)| staged(path, id));
    let files = files.collect::<Result<_, _>>().ok()?;
    Some(read.is_known.then_some(files))
}

fn staged(path: &[u8], id: &[u8]) -> Result<StagedFile, GitError> {
    let path = String::from_utf8_lossy(path).into_owned();
    let id = object_id(git2::Oid::from_bytes(id)?);
    Ok(StagedFile { path, id })
}

/// The trees in the form that git stores in an index, parents first, with their paths; git knows
/// only the ids of those in which nothing was staged since. Ends where the form is broken.
fn cached_trees(
    mut bytes: &[u8],
    format: ObjectFormat,
) -> impl Iterator<Item = (String, Option<ObjectId>)> {
    /// The bytes up to one of this kind, which is skipped.
    fn until<'a>(bytes: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
        let at = bytes.iter().position(|&b| b == end)?;
        let found = &bytes[..at];
        *bytes = &bytes[at + 1..];
        Some(found)
    }
    fn parsed<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
    // The folders around the next one: the length of each path, and how many are left in it.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut path = String::new();
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        is_over = true;
        let name = until(&mut bytes, 0)?;
        let count: i64 = parsed(until(&mut bytes, b' ')?)?;
        let folders: usize = parsed(until(&mut bytes, b'\n')?)?;
        let id = if count >= 0 {
            let (id, rest) = bytes.split_at_checked(format.id_bytes())?;
            bytes = rest;
            Some(ObjectId::from_bytes(id)?)
        } else {
            None
        };
        if let Some((length, left)) = open.last_mut() {
            path.truncate(*length);
            *left -= 1;
            if !path.is_empty() {
                path.push('/');
            }
            path += &String::from_utf8_lossy(name);
        }
        open.push((path.len(), folders));
        while open.last().is_some_and(|(_, left)| *left == 0) {
            open.pop();
        }
        is_over = open.is_empty();
        Some((path.clone(), id))
    })
}

/// A file that is read in passing, a part at a time.
struct Window {
    file: File,
    bytes: Vec<u8>,
    at: usize,
}

impl Window {
    /// How much is read at once: more would not fit into a processor's cache.
    const PART: usize = 64 << 10;

    /// The next bytes; `None` at the end of the file.
    fn peek(&mut self, count: usize) -> Option<&[u8]> {
        if self.bytes.len() - self.at < count {
            self.bytes.drain(..self.at);
            self.at = 0;
            let most = Self::PART.max(count) - self.bytes.len();
            let mut part = (&mut self.file).take(u64::try_from(most).ok()?);
            part.read_to_end(&mut self.bytes).ok()?;
        }
        self.bytes.get(self.at..self.at + count)
    }
}

/// What is kept of an index file that was read in passing.
struct Passed {
    /// The paths and ids of the files that are wanted, one after the other, with the paths' lengths.
    files: Vec<u8>,
    lengths: Vec<usize>,
    is_known: bool,
    trees: Vec<u8>,
}

impl Passed {
    fn index(&self, format: ObjectFormat) -> Index<'_> {
        let mut rest = &self.files[..];
        let files = self.lengths.iter().filter_map(|length| {
            let (path, after) = rest.split_at_checked(*length)?;
            let (id, after) = after.split_at_checked(format.id_bytes())?;
            rest = after;
            Some((Cow::Borrowed(path), id))
        });
        Index {
            files: files.collect(),
            is_known: self.is_known,
            trees: &self.trees,
        }
    }
}

/// Reads an index file as [`read`] does, without keeping what is not wanted. `None` if it can't be
/// read, has names without lengths (version 4) or very long ones, or is not an index.
fn passed_over(
    path: &Path,
    format: ObjectFormat,
    wanted: impl Fn(&[u8]) -> bool,
) -> Option<Passed> {
    let id = format.id_bytes();
    let fixed = fixed(format);
    let file = File::open(path).ok()?;
    let end = file.metadata().ok()?.len().checked_sub(id as u64)?;
    let mut window = Window {
        file,
        bytes: Vec::with_capacity(Window::PART),
        at: 0,
    };
    let header = window.peek(HEADER)?;
    if !header.starts_with(b"DIRC\0\0\0\x02") && !header.starts_with(b"DIRC\0\0\0\x03") {
        return None;
    }
    let count = u32::from_be_bytes(number(header, 8)?);
    window.at += HEADER;
    let mut place = HEADER as u64;
    let mut passed = Passed {
        files: Vec::new(),
        lengths: Vec::new(),
        is_known: true,
        trees: Vec::new(),
    };
    for _ in 0..count {
        let flags = u16::from_be_bytes(number(window.peek(fixed)?, STAT + id)?);
        let length = usize::from(flags & NAME_LENGTH);
        let start = if flags & EXTENDED == 0 {
            fixed
        } else {
            fixed + 2
        };
        let size = padded(start + length);
        let entry = window.peek(size)?;
        let name = &entry[start..start + length];
        // Other readers go by the length that is stored.
        if flags & NAME_LENGTH == NAME_LENGTH || memchr::memchr(0, &entry[start..]) != Some(length)
        {
            return None;
        }
        let is_intended =
            flags & EXTENDED != 0 && u16::from_be_bytes(number(entry, fixed)?) & INTENDED != 0;
        let mode = u32::from_be_bytes(number(entry, MODE)?);
        if flags & STAGE == 0 && !is_intended && is_file(mode) && wanted(name) {
            passed.files.extend_from_slice(name);
            passed.files.extend_from_slice(&entry[STAT..STAT + id]);
            passed.lengths.push(length);
        }
        window.at += size;
        place += size as u64;
    }
    while place < end {
        let extension = window.peek(8)?;
        let size = usize::try_from(u32::from_be_bytes(number(extension, 4)?)).ok()?;
        passed.is_known &= !extension[0].is_ascii_lowercase();
        let is_trees = extension.starts_with(b"TREE");
        place += 8 + size as u64;
        if place > end {
            return None;
        }
        window.at += 8;
        let content = window.peek(size)?;
        if is_trees {
            passed.trees = content.to_vec();
        }
        window.at += size;
    }
    (place == end).then_some(passed)
}

/// What an index begins with.
const HEADER: usize = 12;
/// An entry's times and sizes from the working tree, before its id.
const STAT: usize = 40;
const MODE: usize = 24;
const NAME_LENGTH: u16 = 0x0fff;
const STAGE: u16 = 0x3000;
const EXTENDED: u16 = 0x4000;
const INTENDED: u16 = 0x2000;

/// The size of an entry up to its name, or to its second flags.
fn fixed(format: ObjectFormat) -> usize {
    STAT + format.id_bytes() + 2
}

/// The size of an entry that is padded with one to eight zeros.
fn padded(size: usize) -> usize {
    (size / 8 + 1) * 8
}

/// Reads an index file, see gitformat-index(5); `None` if it is not one. Entries that have a conflict
/// stage or are only intended to be added are left out.
fn read(bytes: &[u8], format: ObjectFormat, wanted: impl Fn(&[u8]) -> bool) -> Option<Index<'_>> {
    let id_bytes = format.id_bytes();
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
    let mut files = Vec::new();
    for _ in 0..count {
        let start = at;
        let mode = u32::from_be_bytes(number(bytes, at + MODE)?);
        let id = bytes.get(at + STAT..at + STAT + id_bytes)?;
        let flags = u16::from_be_bytes(number(bytes, at + STAT + id_bytes)?);
        at += fixed(format);
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
            let length = memchr::memchr(0, bytes.get(at..)?)?;
            path.extend_from_slice(&bytes[at..at + length]);
            at += length + 1;
            // Other readers go by the length that is stored.
            if path.len().min(usize::from(NAME_LENGTH)) != usize::from(flags & NAME_LENGTH) {
                return None;
            }
            if !left_out && is_file(mode) && wanted(&path) {
                files.push((Cow::Owned(path.clone()), id));
            }
        } else {
            let length = memchr::memchr(0, bytes.get(at..)?)?;
            // Other readers go by the length that is stored.
            if length.min(usize::from(NAME_LENGTH)) != usize::from(flags & NAME_LENGTH) {
                return None;
            }
            let path = bytes.get(at..at + length)?;
            if !left_out && is_file(mode) && wanted(path) {
                files.push((Cow::Borrowed(path), id));
            }
            at = start + padded(at + length - start);
        }
    }
    // Unknown extensions may be skipped, unless their name begins in lower case.
    let end = bytes.len().checked_sub(id_bytes)?;
    let (mut is_known, mut trees) = (true, &[][..]);
    while at < end {
        let name: [u8; 4] = number(bytes, at)?;
        let size = u32::from_be_bytes(number(bytes, at + 4)?);
        let start = at.checked_add(8)?;
        at = start.checked_add(usize::try_from(size).ok()?)?;
        is_known &= !name[0].is_ascii_lowercase();
        if name == *b"TREE" {
            trees = bytes.get(start..at)?;
        }
    }
    (at == end).then_some(Index {
        files,
        is_known,
        trees,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use handoff_base::ObjectFormat;

    use super::index_files;

    /// An index of one file, whose length of name is stored as this.
    fn index(version: u8, format: ObjectFormat, length: u8) -> Vec<u8> {
        let mut bytes = [&b"DIRC\0\0\0"[..], &[version], b"\0\0\0\x01"].concat();
        bytes.extend([0; 24]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(vec![7; format.id_bytes()]);
        bytes.extend([0, length]);
        if version == 4 {
            bytes.push(0);
        }
        bytes.extend(b"a/name\0");
        while version < 4 && (bytes.len() - 12) % 8 > 0 {
            bytes.push(0);
        }
        bytes.extend(vec![0; format.id_bytes()]);
        bytes
    }

    #[test]
    fn a_name_is_as_long_as_its_entry_says() {
        for (version, format) in [
            (2, ObjectFormat::Sha1),
            (3, ObjectFormat::Sha1),
            (4, ObjectFormat::Sha1),
            (2, ObjectFormat::Sha256),
            (4, ObjectFormat::Sha256),
        ] {
            let read = |length| index_files(&index(version, format, length), format);
            let found = read(6).flatten().unwrap();
            assert_eq!(found[0].path, "a/name", "version {version}");
            for length in [0, 1, 5, 7, 8, 255] {
                assert_eq!(read(length), None, "version {version}, {length}");
            }
        }
    }
}
