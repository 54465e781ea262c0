//! The index: the files and the tree of the next commit, without reading the working tree.

use std::path::Path;
use std::{fs, io};

use git2::ObjectType;
use handoff_base::ObjectId;

use crate::error::GitError;
use crate::files::SharedModes;
use crate::objects::{git2_format, object_id};
use crate::process::git_alone;
use crate::repository::Repository;

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
    /// The `git` command could not compare it with HEAD.
    #[error("git cannot list what is staged: {message}")]
    Git {
        /// Its message.
        message: String,
    },
    /// HEAD can't be read.
    #[error("HEAD cannot be read")]
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
/// plain name matches everything below it, and a leading `!` excludes.
pub struct PathPatterns {
    taken: Option<git2::Pathspec>,
    excluded: Option<git2::Pathspec>,
}

/// The result of matching a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// One of them matches.
    Taken,
    /// A pattern with a leading `!` matches; it takes precedence.
    Excluded,
    /// None matches.
    Neither,
}

impl PathPatterns {
    /// Parses patterns.
    ///
    /// # Errors
    /// [`IndexError::Pattern`] for an invalid pattern, which libgit2 would accept without matching
    /// anything.
    pub fn new(patterns: &[String]) -> Result<Self, IndexError> {
        for pattern in patterns {
            glob::Pattern::new(&sets_of(pattern)).map_err(|source| IndexError::Pattern {
                pattern: format!("{pattern:?}"),
                source,
            })?;
        }
        let spec = |patterns: &[&str]| match patterns {
            // Without patterns, libgit2 would match everything.
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

    /// Matches a path.
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

/// A pattern for `glob`, used only to check that sets are closed: it has no escapes, and `**`
/// matches only whole folders.
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

impl Repository {
    /// The staged files and links that differ from HEAD and whose paths match. `index` replaces the
    /// repository's own index file.
    ///
    /// # Errors
    /// [`IndexError`]; a missing index means that nothing is staged.
    pub fn newly_staged(
        &self,
        index: Option<&Path>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<StagedFile>, IndexError> {
        let failed = |message: String| IndexError::Git { message };
        let head = self.resolve("HEAD").map_err(IndexError::Head)?;
        // Before the first commit, compare with the empty tree.
        let head = head.map_or_else(|| self.hash(ObjectType::Tree, b""), Ok);
        let head = head.map_err(IndexError::Head)?.to_string();
        let mut command = git_alone(self.path(), self.workdir());
        command.args(["diff-index", "--cached", "--raw", "-z", "--no-renames"]);
        command.args(["--diff-filter=AMT", "--ita-invisible-in-index", &head]);
        if let Some(index) = index {
            command.env("GIT_INDEX_FILE", index);
        }
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(failed(message.trim().to_owned()));
        }
        let mut parts = output.stdout.split(|&b| b == 0);
        let mut found = Vec::new();
        while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
            let facts = String::from_utf8_lossy(facts);
            let [_, mode, before, id, _] = facts.split(' ').collect::<Vec<_>>()[..] else {
                return Err(failed(facts.into_owned()));
            };
            let id_of = |id: &str| id.parse::<ObjectId>().map_err(|e| failed(e.to_string()));
            if is_file(mode) && before != id && wanted(path) {
                let path = String::from_utf8_lossy(path).into_owned();
                found.push(StagedFile {
                    path,
                    id: id_of(id)?,
                });
            }
        }
        Ok(found)
    }

    /// A copy of the index without extensions that libgit2 does not support.
    ///
    /// # Errors
    /// When it can't be copied, or git can't read it.
    pub(super) fn plain_index(&self) -> io::Result<git2::Index> {
        let own = self.path().join("index");
        let folder = self.common_dir().join("handoff");
        {
            let _modes = SharedModes::begin();
            fs::create_dir_all(&folder)?;
        }
        let copy = folder.join(format!("index-{}", std::process::id()));
        let written = own.metadata()?.modified()?;
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
        // libgit2 compares file times with the index's: the copy keeps the original's.
        let file = fs::File::options().write(true).open(&copy);
        let dated = file.and_then(|copy| copy.set_modified(written));
        let opened = git2::Index::open_ext(&copy, git2_format(self.format()));
        let read = opened.and_then(|mut index| index.read(true).map(|()| index));
        fs::remove_file(&copy)?;
        dated?;
        match (ran?.status.success(), read) {
            (true, Ok(index)) => Ok(index),
            (_, read) => Err(io::Error::other(read.err().unwrap_or_else(|| {
                git2::Error::from_str("git cannot write the index anew")
            }))),
        }
    }

    /// The index as a tree. Folders and everything written later are kept in memory only.
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

/// Whether this is the mode of a file or link, not of a submodule.
fn is_file(mode: &str) -> bool {
    ["100", "120"].iter().any(|kind| mode.starts_with(kind))
}
