//! Restores captured work: commits from their bytes, a new worktree, its files and its index.
//! Nothing is overwritten.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;
use std::{fs, io};

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, IndexTime, ObjectType, Oid};
use handoff_base::ObjectId;

use super::capture::RawPath;
use super::disk::{metadata_at, on_disk, path_bytes};
use super::{Hidden, KeptFile, Unfinished};
use crate::commits::{Person, commit_bytes};
use crate::error::{GitError, PublishError};
use crate::files::{Obstacle, SharedModes, is_inside};
use crate::objects::ToOid;
use crate::process::git_alone;
use crate::repository::Repository;
use crate::repository::Target;
use crate::tree::{self, Mode, Shape};

/// Why work can't be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// `git` could not be started.
    #[error("git cannot be run")]
    NoGit(#[source] io::Error),
    /// git did not check out the files.
    #[error("git did not check out the worktree: {0}")]
    Worktree(String),
    /// A path leads out of the folder, or into `.git`.
    #[error("the path {0:?} leads out of the folder, or through a link")]
    Outside(String),
    /// A file can't be written.
    #[error("{shown:?} cannot be written")]
    File {
        /// Its path, for display.
        shown: String,
        /// The cause.
        source: io::Error,
    },
    /// libgit2 failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl RestoreError {
    /// The system's obstacle to writing a file, if that was the reason.
    pub fn obstacle(&self) -> Option<Obstacle> {
        match self {
            Self::NoGit(source) | Self::File { source, .. } => Obstacle::of(source),
            Self::Worktree(said) => Obstacle::in_words(said),
            Self::Git(error) => error.obstacle(),
            Self::Outside(_) => None,
        }
    }
}

impl From<git2::Error> for RestoreError {
    fn from(error: git2::Error) -> Self {
        Self::Git(error.into())
    }
}

impl Repository {
    /// Writes a blob.
    ///
    /// # Errors
    /// [`GitError`] when it can't be written.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<ObjectId, GitError> {
        self.write(ObjectType::Blob, bytes)
    }

    /// Writes a tree with entries set in and removed from another one.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read or written.
    pub fn write_tree(
        &self,
        base: Option<ObjectId>,
        entries: &[(RawPath, Option<(Mode, ObjectId)>)],
    ) -> Result<ObjectId, GitError> {
        let placed = entries.iter().map(|(path, entry)| (&path[..], *entry));
        let mut placed: Vec<tree::Placed<'_>> = placed.collect();
        tree::edit(self, base, &mut placed, Shape::undivided(|_| false))
    }

    /// A commit's stored bytes.
    ///
    /// # Errors
    /// [`GitError`] when it can't be read.
    pub fn raw_commit(&self, id: ObjectId) -> Result<Rc<[u8]>, GitError> {
        self.object(id, ObjectType::Commit)
    }

    /// Writes a commit from its bytes. Returns false if they do not match the id, or the tree or a
    /// parent is missing.
    ///
    /// # Errors
    /// [`GitError`] when it can't be written.
    pub fn write_raw_commit(&self, id: ObjectId, raw: &[u8]) -> Result<bool, GitError> {
        if self.hash(ObjectType::Commit, raw)? != id {
            return Ok(false);
        }
        let header = String::from_utf8_lossy(raw).into_owned();
        let header = header.split("\n\n").next().unwrap_or_default().to_owned();
        let mut named = header
            .lines()
            .filter_map(|line| line.strip_prefix("tree ").or(line.strip_prefix("parent ")));
        if !named.all(|id| id.parse().is_ok_and(|id| self.has(id))) {
            return Ok(false);
        }
        self.write(ObjectType::Commit, raw)?;
        Ok(true)
    }

    /// Writes a commit.
    ///
    /// # Errors
    /// [`GitError`] when it can't be written.
    pub fn write_commit(
        &self,
        tree: ObjectId,
        parent: Option<ObjectId>,
        author: &Person,
        committer: &Person,
        message: &str,
    ) -> Result<ObjectId, GitError> {
        let text = commit_bytes(tree, parent.as_slice(), [author, committer], None, message);
        self.write(ObjectType::Commit, text.as_bytes())
    }

    /// Creates a branch.
    ///
    /// # Errors
    /// [`PublishError`] when it exists or can't be written.
    pub fn start_branch(
        &self,
        name: &str,
        commit: ObjectId,
        reflog: &str,
    ) -> Result<(), PublishError> {
        self.move_ref(&format!("refs/heads/{name}"), None, commit, reflog)
    }

    /// Whether it has linked worktrees.
    pub fn has_linked_worktrees(&self) -> bool {
        let linked = fs::read_dir(self.common_dir().join("worktrees"));
        linked.is_ok_and(|mut linked| linked.next().is_some())
    }

    /// The command that sets a value of the configuration for this working tree alone.
    pub fn setting_command(&self, setting: &str) -> String {
        if !self.has_linked_worktrees() {
            return format!("git config {setting}");
        }
        let is_on = self.config("extensions.worktreeConfig");
        let first = if is_on.is_some_and(|is_on| is_on != "false") {
            ""
        } else {
            "git config extensions.worktreeConfig true && "
        };
        format!("{first}git config --worktree {setting}")
    }

    /// Whether git has a worktree registered at this path, even if its folder is gone.
    pub fn knows_worktree(&self, dir: &Path) -> bool {
        let Ok(dir) = real(dir) else {
            return false;
        };
        let link = path_bytes(dir.join(".git"));
        let known = fs::read_dir(self.common_dir().join("worktrees"));
        known
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| fs::read(entry.path().join("gitdir")).ok())
            .any(|found| found.trim_ascii_end() == link)
    }

    /// Creates a linked worktree at a commit, detached or on a branch that was just created. No
    /// hook runs, and all files are checked out. It is locked until it is
    /// [finished](NewWorktree::finish).
    ///
    /// # Errors
    /// [`RestoreError`]; whatever was created before stays.
    pub fn add_worktree(
        &self,
        dir: &Path,
        commit: ObjectId,
        branch: Option<&str>,
    ) -> Result<NewWorktree, RestoreError> {
        let head = match branch {
            Some(branch) => Target::Symbolic(format!("refs/heads/{branch}")),
            None => Target::Id(commit),
        };
        let made = self.register_worktree(dir, &head)?;
        // From within the worktree, git would resolve a relative path differently.
        let real_dir = real(dir).map_err(|source| RestoreError::File {
            shown: dir.display().to_string(),
            source,
        })?;
        let mut command = git_alone(&made.git_dir, Some(&real_dir));
        for name in ["GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
            command.env_remove(name);
        }
        self.without_own_filters(&mut command)
            .map_err(|error| RestoreError::Worktree(error.to_string()))?;
        command.args(["-c", "core.sparseCheckout=false"]);
        // Plumbing: unlike `reset`, it locks no shared ref.
        command.args(["read-tree", "--reset", "-u", "HEAD"]);
        let ran = command.stdin(Stdio::null()).output();
        let ran = ran.map_err(RestoreError::NoGit)?;
        if ran.status.success() {
            return Ok(made);
        }
        let message = String::from_utf8_lossy(&ran.stderr);
        let message = message.trim().trim_start_matches("fatal: ").to_owned();
        Err(RestoreError::Worktree(message))
    }

    /// Creates a worktree's folder and administrative files like `git worktree add`, but in a
    /// crash-safe order: git sees a worktree once `gitdir` exists, and `git fsck` fails on one
    /// without `HEAD`.
    fn register_worktree(&self, dir: &Path, head: &Target) -> Result<NewWorktree, RestoreError> {
        let fail = |path: &Path| {
            let shown = path.display().to_string();
            move |source| RestoreError::File { shown, source }
        };
        let _modes = SharedModes::begin();
        fs::create_dir_all(dir).map_err(fail(dir))?;
        let link = real(dir).map_err(fail(dir))?.join(".git");
        let all = self.common_dir().join("worktrees");
        fs::create_dir_all(&all).map_err(fail(&all))?;
        let all = real(&all).map_err(fail(&all))?;
        let own = new_folder(&all, dir).map_err(fail(&all))?;
        let line = |path: &Path| [&path_bytes(path.to_owned())[..], b"\n"].concat();
        let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).map_err(fail(path));
        let lock = own.join("locked");
        write(&lock, b"a restore that has not finished\n")?;
        write(&own.join("commondir"), b"../..\n")?;
        self.refs.start_head(self, &own, head)?;
        write(&link, &[b"gitdir: ", &line(&own)[..]].concat())?;
        // Atomically, so that git never reads a partial file.
        let gitdir = own.join("gitdir");
        let new = own.join("gitdir.new");
        write(&new, &line(&link))?;
        fs::rename(&new, &gitdir).map_err(fail(&gitdir))?;
        Ok(NewWorktree { lock, git_dir: own })
    }

    /// Restores files into a new worktree, and then its index.
    ///
    /// # Errors
    /// [`RestoreError`]; the worktree then stays incomplete.
    pub fn put_back(&self, dir: &Path, state: &Unfinished) -> Result<(), RestoreError> {
        for path in &state.deleted {
            remove(dir, path)?;
        }
        for file in &state.files {
            put_file(dir, &file.path, file.mode, &self.blob(file.id)?)?;
        }
        put_index(dir, state)
    }

    /// Restores a merge in progress. Returns false if the merged commits are missing.
    ///
    /// # Errors
    /// [`RestoreError`] when its state can't be written.
    pub fn continue_merge(
        &self,
        dir: &Path,
        heads: &[ObjectId],
        message: &[u8],
    ) -> Result<bool, RestoreError> {
        if heads.is_empty() || !heads.iter().all(|head| self.has(*head)) {
            return Ok(false);
        }
        let own = git2::Repository::open(dir)?.path().to_owned();
        let lines: String = heads.iter().map(|head| format!("{head}\n")).collect();
        let files = [
            ("MERGE_MSG", message),
            ("MERGE_MODE", b"" as &[u8]),
            ("MERGE_HEAD", lines.as_bytes()),
        ];
        for (name, bytes) in files {
            fs::write(own.join(name), bytes).map_err(|source| failed(name.as_bytes(), source))?;
        }
        Ok(true)
    }
}

/// A new worktree whose files are not all restored yet.
#[must_use = "git takes it for locked until it is finished"]
pub struct NewWorktree {
    lock: PathBuf,
    git_dir: PathBuf,
}

impl NewWorktree {
    /// Writes a file into its git directory.
    ///
    /// # Errors
    /// [`RestoreError`] when it can't be written.
    pub fn note(&self, name: &str, text: &str) -> Result<(), RestoreError> {
        let file = self.git_dir.join(name);
        fs::write(&file, text).map_err(|source| RestoreError::File {
            shown: file.display().to_string(),
            source,
        })
    }

    /// Unlocks the worktree, which is now complete.
    ///
    /// # Errors
    /// [`RestoreError`] when its lock can't be removed.
    pub fn finish(self) -> Result<(), RestoreError> {
        fs::remove_file(&self.lock).map_err(|source| RestoreError::File {
            shown: self.lock.display().to_string(),
            source,
        })
    }
}

/// The canonical path of a folder that may not exist yet.
fn real(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let found = path.ancestors().filter(|_| cfg!(unix)).find_map(|above| {
        let below = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(below))
    });
    // Joining an empty path leaves a trailing slash.
    Ok(found.map_or(path, |found| found.components().collect()))
}

/// Creates a folder named after a worktree, with a number if the name is taken.
fn new_folder(all: &Path, dir: &Path) -> io::Result<PathBuf> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    let mut name: String = name.chars().filter(plain).take(64).collect();
    if name.is_empty() {
        name = "restored".to_owned();
    }
    let numbers = std::iter::once(String::new()).chain((1_u32..).map(|n| n.to_string()));
    for number in numbers {
        let folder = all.join(format!("{name}{number}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn failed(path: &[u8], source: io::Error) -> RestoreError {
    RestoreError::File {
        shown: shown(path),
        source,
    }
}

/// Removes a file, and parent folders that become empty.
fn remove(dir: &Path, path: &[u8]) -> Result<(), RestoreError> {
    if !is_inside(path) {
        return Err(RestoreError::Outside(shown(path)));
    }
    let found = metadata_at(dir, path).map_err(|source| failed(path, source))?;
    if found.is_some() {
        fs::remove_file(on_disk(dir, path)).map_err(|source| failed(path, source))?;
        let mut above = path;
        while let Some(end) = above.iter().rposition(|&b| b == b'/') {
            above = &above[..end];
            // A folder that is not empty stays.
            if fs::remove_dir(on_disk(dir, above)).is_err() {
                break;
            }
        }
    }
    Ok(())
}

/// Writes a file into a folder without following links.
///
/// # Errors
/// [`RestoreError`] when the path leads out of the folder, or the file can't be written.
pub fn put_file(dir: &Path, path: &[u8], mode: Mode, bytes: &[u8]) -> Result<(), RestoreError> {
    if !is_inside(path) {
        return Err(RestoreError::Outside(shown(path)));
    }
    let fail = |source| failed(path, source);
    for (end, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        let above = on_disk(dir, &path[..end]);
        match above.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(RestoreError::Outside(shown(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&above).map_err(fail)?;
            }
            Err(error) => return Err(fail(error)),
        }
    }
    let full = on_disk(dir, path);
    match full.symlink_metadata() {
        // Only an empty folder can be removed.
        Ok(found) if found.is_dir() => fs::remove_dir(&full).map_err(fail)?,
        Ok(_) => fs::remove_file(&full).map_err(fail)?,
        Err(_) => {}
    }
    if mode == Mode::Link && make_link(&full, bytes).map_err(fail)? {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if mode == Mode::Executable {
            0o777
        } else {
            0o666
        });
    }
    let mut file = options.open(&full).map_err(fail)?;
    file.write_all(bytes).map_err(fail)
}

/// Creates a symbolic link; returns whether the system supports them.
#[cfg(unix)]
fn make_link(path: &Path, target: &[u8]) -> io::Result<bool> {
    use std::os::unix::ffi::OsStrExt;
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), path).map(|()| true)
}

#[cfg(not(unix))]
fn make_link(_: &Path, _: &[u8]) -> io::Result<bool> {
    Ok(false)
}

fn put_index(dir: &Path, state: &Unfinished) -> Result<(), RestoreError> {
    let repository = git2::Repository::open(dir)?;
    let mut index = repository.index()?;
    let name = |path: &[u8]| on_disk(Path::new(""), path);
    let unmerged = state.staged.iter().filter(|file| file.stage > 0);
    for path in state.removed.iter().chain(unmerged.map(|file| &file.path)) {
        if index.get_path(&name(path), 0).is_some() {
            index.remove(&name(path), 0)?;
        }
    }
    for file in &state.staged {
        index.add(&entry_of(file))?;
    }
    for path in &state.intended {
        let empty = Oid::hash_object_ext(ObjectType::Blob, b"", repository.object_format())?;
        let mut entry = plain_entry(path, 0o100_644, empty);
        if state
            .files
            .iter()
            .any(|f| f.path == *path && f.mode == Mode::Executable)
        {
            entry.mode = 0o100_755;
        }
        entry.flags_extended = IndexEntryExtendedFlag::INTENT_TO_ADD.bits();
        index.add(&entry)?;
    }
    // The file times cached by the checkout are stale.
    for path in state.files.iter().map(|file| &file.path) {
        if let Some(known) = index.get_path(&name(path), 0) {
            let mut entry = plain_entry(path, known.mode, known.id);
            (entry.flags, entry.flags_extended) = (known.flags, known.flags_extended);
            index.add(&entry)?;
        }
    }
    for (path, mark) in &state.hidden {
        if let Some(mut entry) = index.get_path(&name(path), 0) {
            match mark {
                Hidden::AssumeUnchanged => entry.flags |= IndexEntryFlag::VALID.bits(),
                Hidden::SkipWorktree => {
                    entry.flags_extended |= IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
                }
            }
            index.add(&entry)?;
        }
    }
    Ok(index.write()?)
}

fn plain_entry(path: &[u8], mode: u32, id: Oid) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.to_owned(),
    }
}

fn entry_of(file: &KeptFile) -> IndexEntry {
    let mut entry = plain_entry(&file.path, file.mode.number(), file.id.oid());
    entry.flags = file.stage << 12;
    entry
}
