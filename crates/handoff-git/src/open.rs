//! Opens repositories: discovery as by git, and settings for the expected reads.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use git2::{ErrorClass, ErrorCode};
use handoff_base::ObjectFormat;

use crate::configuration::{is_for_git_only, read_by_git};
use crate::error::{GitError, OpenError};
use crate::files::{refs_too, share, waits_for_disk};
use crate::objects::{Check, Reads, git2_format};
use crate::process::{Pins, pin};
use crate::program::{Program, ProgramError};
use crate::refs;
use crate::repository::Repository;

/// Settings in the environment that affect how the repository is opened.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// `GIT_DIR` is set, so that there is no discovery.
    pub name_repository: bool,
    /// The root of the working tree (`GIT_WORK_TREE`), if it names one.
    pub work_tree: Option<PathBuf>,
    /// `GIT_OBJECT_DIRECTORY` is set.
    pub name_objects: bool,
    /// `GIT_CONFIG_COUNT` or `git -c` adds settings, or a variable disables a configuration file.
    pub change_settings: bool,
    /// What a worker pinned for its commands.
    pub pinned: Option<Pins>,
}

static IS_NAMED: AtomicBool = AtomicBool::new(false);
static WORK_TREE: OnceLock<PathBuf> = OnceLock::new();
static HAS_OBJECTS_ELSEWHERE: AtomicBool = AtomicBool::new(false);
static CHANGES_SETTINGS: AtomicBool = AtomicBool::new(false);

/// Sets libgit2's global options and records the environment. Call it once, before anything else.
pub fn tune(surroundings: Surroundings) {
    IS_NAMED.store(surroundings.name_repository, Ordering::Relaxed);
    if let Some(work_tree) = surroundings.work_tree {
        let _ = WORK_TREE.set(work_tree);
    }
    HAS_OBJECTS_ELSEWHERE.store(surroundings.name_objects, Ordering::Relaxed);
    if let Some(pins) = surroundings.pinned {
        pin(pins);
    }
    CHANGES_SETTINGS.store(surroundings.change_settings, Ordering::Relaxed);
    // Every object that a commit names was just written or read: checking them again would take a
    // third of a write.
    git2::opts::strict_object_creation(false);
}

/// How many bytes of a pack are mapped per window, and of all packs in total, in history walks.
const WINDOW: usize = 1 << 20;
const WINDOWS: usize = 32 << 20;

/// Refuses a bare repository found by discovery if git would (`safe.bareRepository`): it may come
/// from a clone, with a configuration that runs programs. Only git knows which of its settings
/// apply.
fn ensure_may_be_bare(path: &Path) -> Result<(), OpenError> {
    if IS_NAMED.load(Ordering::Relaxed) || !is_found_from_within(path) {
        return Ok(());
    }
    match Program::here().git_dir() {
        Err(ProgramError::Failed { message }) if message.contains("safe.bareRepository") => {
            Err(OpenError::Bare(path.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Whether the current folder is inside a bare repository's git directory. Git directories of
/// working trees are always allowed.
fn is_found_from_within(path: &Path) -> bool {
    let (Ok(here), Ok(path)) = (Path::new(".").canonicalize(), path.canonicalize()) else {
        return false;
    };
    let parts: Vec<_> = path.components().map(Component::as_os_str).collect();
    let is_own = |pair: &[&std::ffi::OsStr]| {
        pair[0] == ".git" && (pair[1] == "worktrees" || pair[1] == "modules")
    };
    here.starts_with(&path) && !path.ends_with(".git") && !parts.windows(2).any(is_own)
}

/// Explains an unsupported repository format, where libgit2 only names the setting.
fn unsupported(text: String) -> String {
    if text.contains("compatobjectformat") {
        return "extensions.compatObjectFormat is not supported: it is experimental in git"
            .to_owned();
    }
    text
}

/// Opens the repository of the current folder as git would, even with extensions that libgit2 does
/// not know, with all settings, and another user's if git trusts it.
fn open_from_env() -> Result<git2::Repository, git2::Error> {
    libgit2_options::allow_extensions();
    let opened = match git2::Repository::open_from_env() {
        Err(error) if error.code() == ErrorCode::Owner && Program::here().git_dir().is_ok() => {
            libgit2_options::trust_owners();
            git2::Repository::open_from_env()?
        }
        opened => opened?,
    };
    let reads_all = |files| !is_for_git_only(&files);
    if CHANGES_SETTINGS.load(Ordering::Relaxed) || !opened.config().is_ok_and(reads_all) {
        opened.set_config(&read_by_git()?)?;
    }
    // In git, a namespace (`GIT_NAMESPACE`) only affects fetches and pushes.
    opened.remove_namespace()?;
    // libgit2 would look for the work tree in a linked worktree's git directory, and resolve
    // relative paths there.
    if let Some(work_tree) = WORK_TREE.get() {
        opened.set_workdir(work_tree, false)?;
    }
    Ok(opened)
}

impl Repository {
    /// Opens the repository of the current folder as git does, with `GIT_DIR`, discovery, ceilings
    /// and the user's configuration.
    ///
    /// # Errors
    /// [`OpenError`], by what the user can do about it.
    pub fn open_here() -> Result<Self, OpenError> {
        let inner = open_from_env().map_err(|error| {
            let text = error.message().to_owned();
            match error.code() {
                ErrorCode::NotFound if error.class() == ErrorClass::Repository => {
                    OpenError::NotFound
                }
                ErrorCode::Owner => OpenError::Owner(error.into()),
                _ if ["extension", "object format", "repository version"]
                    .iter()
                    .any(|what| text.contains(what)) =>
                {
                    OpenError::Unsupported(unsupported(text))
                }
                _ => OpenError::Git(error.into()),
            }
        })?;
        ensure_may_be_bare(inner.path())?;
        let mut opened =
            Self::of(inner).map_err(|error| OpenError::Unsupported(error.to_string()))?;
        let waits = waits_for_disk(|key| opened.config(key));
        let durable_refs = refs_too(|key| opened.config(key));
        if waits {
            libgit2_options::sync_files();
        }
        if let Some(value) = opened.config("core.sharedRepository") {
            share(&value);
        }
        // If files must be synced to disk, libgit2 writes them.
        let is_plain = opened.config("core.fsyncObjectFiles").is_none();
        let has_own_objects = !HAS_OBJECTS_ELSEWHERE.load(Ordering::Relaxed);
        opened.writes_files = !waits && is_plain && has_own_objects;
        opened.durable_refs = durable_refs;
        Ok(opened)
    }

    /// A second handle to the same repository.
    ///
    /// # Errors
    /// [`GitError`] when it can't be opened any more.
    pub fn reopened(&self) -> Result<Self, GitError> {
        Ok(Self::of(open_from_env()?)?.shipping(self.shipped))
    }

    /// Creates a bare repository of this format in an empty folder, for temporary work.
    ///
    /// # Errors
    /// [`GitError`] when it can't be written.
    pub fn create_scratch(folder: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).no_reinit(true).external_template(false);
        options.object_format(git2_format(format));
        let mut created = Self::of(git2::Repository::init_opts(folder, &options)?)?;
        created.writes_files = true;
        Ok(created)
    }

    pub(super) fn of(inner: git2::Repository) -> Result<Self, GitError> {
        Ok(Self::new(refs::store(&inner)?, inner))
    }

    /// Maps packs in small windows instead of whole. Call it before opening a repository that will
    /// be read almost entirely.
    pub fn map_little() {
        libgit2_options::bound_pack_windows(WINDOW, WINDOWS);
    }

    /// A second handle to the current folder's repository for a thread that walks history. It
    /// caches objects, because each step reads what the one before wrote. Discovery is repeated, so
    /// that a push's quarantined objects are visible.
    ///
    /// # Errors
    /// [`GitError`] when it can't be opened again.
    pub fn open_for_history() -> Result<Self, GitError> {
        Self::open_to_read_much(Check::AndCollisions)
    }

    fn open_to_read_much(checks: Check) -> Result<Self, GitError> {
        // libgit2's own cache would take a quarter of a gigabyte.
        git2::opts::enable_caching(false);
        Self::map_little();
        let mut opened = Self::of(open_from_env()?)?;
        opened.reads = Reads::Many;
        opened.checks = checks;
        Ok(opened)
    }

    /// A second handle for a thread that only displays what it reads. From now on, this process
    /// does not verify object ids, which takes a third of the time and is the audit's job.
    /// Checksums still detect damage.
    ///
    /// # Errors
    /// [`GitError`] when it can't be opened again.
    pub fn open_for_report() -> Result<Self, GitError> {
        git2::opts::strict_hash_verification(false);
        Self::open_to_read_much(Check::Nothing)
    }

    /// Like [`Self::open_for_report`], but uncached, for a thread that reads many objects once.
    ///
    /// # Errors
    /// [`GitError`] when it can't be opened again.
    pub fn open_for_survey() -> Result<Self, GitError> {
        let mut opened = Self::open_for_report()?;
        opened.recent = None;
        Ok(opened)
    }
}
