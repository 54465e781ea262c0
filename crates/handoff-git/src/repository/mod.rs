//! An open repository: configuration, objects and refs. Ref storage is behind [`RefStore`],
//! implemented in `refs` and chosen in `open`.

mod boundary;
mod git_command;
mod missing_part;
mod objects;
mod ref_store;

pub(crate) use ref_store::{RefStore, RefUpdate, Target};

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::path::{Component, Path};
use std::rc::Rc;

use git2::{ErrorClass, ErrorCode, ObjectType};
use handoff_base::{ObjectFormat, ObjectId};

use self::boundary::Boundary;
use self::objects::PAUSES;
use crate::error::GitError;
use crate::files::SharedModes;
use crate::objects::{
    Bulk, Check, Fresh, Grown, Object, ObjectReader, Reads, Recent, ToOid, file_of, hash,
    is_cut_off, object_format,
};

/// A Git repository: bare, linked or with a working tree.
pub struct Repository {
    pub(super) inner: git2::Repository,
    pub(super) refs: Box<dyn RefStore>,
    /// The setting under which git syncs refs, if it is not the user's own.
    pub(super) durable_refs: Option<String>,
    format: ObjectFormat,
    /// Read on first use.
    config: RefCell<Option<git2::Config>>,
    /// A cache of objects that are likely to be read again.
    pub(super) recent: Option<RefCell<Recent<Object>>>,
    /// Reads objects; opened on first use.
    reader: OnceCell<RefCell<ObjectReader>>,
    /// The expected read pattern, and the strictest check that is made of what is read.
    pub(super) reads: Reads,
    pub(super) checks: Check,
    /// Whether objects were written or fetched.
    pub(super) grown: Grown,
    /// Objects written since a ref moved.
    pub(super) fresh: RefCell<Fresh>,
    /// Objects that are kept in memory until they are packed.
    pub(super) bulk: RefCell<Option<Bulk>>,
    /// The remaining number of pauses to wait for missing objects.
    pub(super) pauses: Cell<u32>,
    /// The shallow boundary, as last read.
    pub(super) boundary: Boundary,
    /// Whether small objects are written here as files, without libgit2.
    pub(super) writes_files: bool,
    /// Looks up the content of objects that ship with the program.
    pub(super) shipped: fn(ObjectId) -> Option<&'static [u8]>,
}

/// The byte budget of the object cache in history walks.
const RECENT: usize = 8 << 20;

/// The maximum size of a cached object: records and issue files are smaller.
const RECENT_BYTES: usize = 16 * 1024;

/// Whether a path is relative and has no `..`.
fn is_below(path: &str) -> bool {
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(plain)
}

impl Repository {
    /// Wraps libgit2's repository with this ref store, set up for a few reads.
    pub(super) fn new(refs: Box<dyn RefStore>, inner: git2::Repository) -> Self {
        Self {
            refs,
            durable_refs: None,
            format: object_format(&inner),
            inner,
            config: RefCell::default(),
            recent: Some(RefCell::new(Recent::new(RECENT))),
            reader: OnceCell::new(),
            reads: Reads::Few,
            checks: Check::Hash,
            grown: Grown::default(),
            fresh: RefCell::default(),
            bulk: RefCell::default(),
            pauses: Cell::new(PAUSES),
            boundary: Boundary::default(),
            writes_files: false,
            shipped: |_| None,
        }
    }

    /// Serves blobs that ship with the program from memory, by their ids, instead of reading them.
    #[must_use]
    pub fn shipping(self, shipped: fn(ObjectId) -> Option<&'static [u8]>) -> Self {
        Self { shipped, ..self }
    }

    /// The content of a blob, if it ships with the program.
    pub fn shipped(&self, id: ObjectId) -> Option<&'static [u8]> {
        (self.shipped)(id)
    }

    /// The object format.
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    /// The id of an object with these bytes, in this repository's format.
    pub(super) fn hash(&self, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId, GitError> {
        hash(kind, bytes, self.format)
    }

    /// The path of the git directory.
    pub fn path(&self) -> &Path {
        self.inner.path()
    }

    /// The common directory of all worktrees.
    pub fn common_dir(&self) -> &Path {
        self.inner.commondir()
    }

    /// From now on, keeps written objects in memory only, to be discarded (a dry run).
    ///
    /// # Errors
    /// [`GitError`] when the object database can't be opened.
    pub fn keep_new_objects_in_memory(&self) -> Result<(), GitError> {
        // Above loose objects and packs, so that it is searched first.
        const FIRST: i32 = 1000;
        self.inner.odb()?.add_new_mempack_backend(FIRST)?;
        self.fresh.replace(Fresh::in_memory());
        Ok(())
    }

    /// Whether the repository has an object.
    pub fn has(&self, id: ObjectId) -> bool {
        // libgit2 loads a pack's whole index to answer: half a gigabyte in a large ledger.
        self.collected(id).is_some()
            || self.is_packed(id)
            || self.inner.odb().is_ok_and(|odb| odb.exists(id.oid()))
    }

    /// Whether a path from the working tree's root exists, or leads out of the tree.
    pub fn leads_somewhere(&self, path: &str) -> bool {
        !is_below(path)
            || self
                .workdir()
                .is_some_and(|root| root.join(path).symlink_metadata().is_ok())
    }

    /// Opens a file of the working tree by its path from the root; `None` if it is missing or
    /// outside the tree.
    pub fn open_file(&self, path: &str) -> Option<File> {
        if !is_below(path) {
            return None;
        }
        let root = self.workdir()?.canonicalize().ok()?;
        let path = root.join(path).canonicalize().ok()?;
        let inside = path.strip_prefix(&root).ok()?;
        // Git's own files are excluded.
        let kept = self.common_dir().canonicalize().ok();
        let own = inside.components().any(|part| part.as_os_str() == ".git")
            || kept.is_some_and(|kept| kept.starts_with(&root) && path.starts_with(kept));
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        if own || !is_file {
            return None;
        }
        File::open(path).ok()
    }

    /// A file's path from the working tree's root, with `/` as the separator; `None` if it is
    /// outside the tree.
    pub fn path_within(&self, file: &Path) -> Option<String> {
        let root = self.workdir()?.canonicalize().ok()?;
        let folder = match file.parent()? {
            empty if empty == Path::new("") => Path::new("."),
            folder => folder,
        };
        // A link in the tree keeps its own name.
        let path = folder.canonicalize().ok()?.join(file.file_name()?);
        let parts = path.strip_prefix(&root).ok()?.components();
        let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
        parts.map(|parts| parts.join("/"))
    }

    /// The working tree's root; `None` for a bare repository.
    pub fn workdir(&self) -> Option<&Path> {
        self.inner.workdir()
    }

    /// A value in the configuration.
    pub fn config(&self, key: &str) -> Option<String> {
        self.configuration(|config| config.get_string(key).ok())
            .ok()?
    }

    /// The names of the remotes.
    pub fn remotes(&self) -> Vec<String> {
        let names = self.inner.remotes();
        let names = names.iter().flat_map(|names| names.iter());
        names.flatten().flatten().map(str::to_owned).collect()
    }

    /// Queries the configuration, which is cached.
    pub(super) fn configuration<T>(
        &self,
        query: impl FnOnce(&git2::Config) -> T,
    ) -> Result<T, GitError> {
        let mut config = self.config.borrow_mut();
        let config = match &mut *config {
            Some(config) => config,
            none => none.insert(self.inner.config()?.snapshot()?),
        };
        Ok(query(config))
    }

    /// Reads a boolean from the user's or the repository's configuration, if it is set.
    ///
    /// # Errors
    /// [`GitError`] if it is not a boolean, or cannot be read.
    pub fn config_bool(&self, key: &str) -> Result<Option<bool>, GitError> {
        match self.configuration(|config| config.get_bool(key))? {
            Ok(said) => Ok(Some(said)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// All values of a key.
    ///
    /// # Errors
    /// [`GitError`] when the configuration can't be read.
    pub fn config_all(&self, key: &str) -> Result<Vec<String>, GitError> {
        let config = self.inner.config()?;
        let mut values = Vec::new();
        match config.multivar(key, None) {
            // A key without a value has nothing to read.
            Ok(entries) => entries.for_each(|entry| {
                let value = entry.has_value().then(|| entry.value_bytes());
                values.push(String::from_utf8_lossy(value.unwrap_or_default()).into_owned());
            })?,
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Ok(values)
    }

    /// Sets a value in the repository's own configuration.
    ///
    /// # Errors
    /// [`GitError`] when the file can't be written.
    pub fn set_config(&self, key: &str, value: &str) -> Result<(), GitError> {
        self.config.take();
        let _modes = SharedModes::begin();
        let mut config = git2::Config::open(&self.common_dir().join("config"))?;
        Ok(config.set_str(key, value)?)
    }

    /// A blob's bytes.
    ///
    /// # Errors
    /// [`GitError`] when the object is missing, damaged, or not a blob.
    pub fn blob(&self, id: ObjectId) -> Result<Rc<[u8]>, GitError> {
        self.checked(id, ObjectType::Blob, Check::AndCollisions)
    }

    /// The content of a blob that is compared with what a step writes.
    ///
    /// # Errors
    /// [`GitError`] when the object is missing, damaged, or not a blob.
    pub fn derived_blob(&self, id: ObjectId) -> Result<Rc<[u8]>, GitError> {
        self.checked(id, ObjectType::Blob, Check::Hash)
    }

    /// The size of an object in bytes, without its content.
    ///
    /// # Errors
    /// [`GitError`] when it can't be read.
    pub fn size(&self, id: ObjectId) -> Result<usize, GitError> {
        Ok(self.inner.odb()?.read_header(id.oid())?.0)
    }

    /// Verifies that an object is a readable tree, without following its entries.
    ///
    /// # Errors
    /// [`GitError`] when the object is missing, damaged, or not a tree.
    pub fn ensure_tree(&self, id: ObjectId) -> Result<(), GitError> {
        self.checked(id, ObjectType::Tree, Check::AndCollisions)?;
        Ok(())
    }

    /// The bytes of a commit or tree, which the audit compares with what a step writes.
    pub(super) fn object(&self, id: ObjectId, kind: ObjectType) -> Result<Rc<[u8]>, GitError> {
        self.checked(id, kind, Check::Hash)
    }

    fn checked(&self, id: ObjectId, kind: ObjectType, check: Check) -> Result<Rc<[u8]>, GitError> {
        let recent = self.recent.as_ref();
        let known = recent.and_then(|recent| recent.borrow_mut().get(id));
        let known = known.or_else(|| self.collected(id));
        let (found, bytes) = match known {
            Some(known) => known,
            None => {
                let read = self.reader().borrow_mut().read(id, check.min(self.checks));
                let (found, bytes) = match read {
                    Some(object) => object,
                    None => self.read(id)?,
                };
                // A walk reads each commit only once, so commits are not cached.
                if let Some(recent) = recent
                    && found != ObjectType::Commit
                    && bytes.len() <= RECENT_BYTES
                {
                    let known = (found, Rc::clone(&bytes));
                    recent.borrow_mut().put(id, known, bytes.len());
                }
                (found, bytes)
            }
        };
        if found != kind {
            let text = format!("object {id} is a {found}, not a {kind}");
            return Err(git2::Error::new(ErrorCode::Invalid, ErrorClass::Object, text).into());
        }
        Ok(bytes)
    }

    fn reader(&self) -> &RefCell<ObjectReader> {
        self.reader.get_or_init(|| {
            let objects = self.common_dir().join("objects");
            RefCell::new(ObjectReader::new(&objects, self.format, self.reads))
        })
    }

    /// Whether an object is in a pack that existed at the first read.
    pub(super) fn is_packed(&self, id: ObjectId) -> bool {
        self.reader().borrow_mut().is_packed(id)
    }

    /// Reads an object through libgit2, which would loop forever on a truncated file.
    fn read(&self, id: ObjectId) -> Result<Object, GitError> {
        let odb = self.inner.odb()?;
        self.ensure_not_cut_off(id)?;
        let object = self.patiently(|| odb.read(id.oid()));
        let object = object.map_err(|error| self.without(error))?;
        Ok((object.kind(), object.data().into()))
    }

    /// Refuses a truncated loose object, on which libgit2 would loop forever.
    pub(crate) fn ensure_not_cut_off(&self, id: ObjectId) -> Result<(), GitError> {
        if is_cut_off(&file_of(&self.common_dir().join("objects"), id)).unwrap_or(false) {
            let text = format!("the file of object {id} is damaged");
            return Err(git2::Error::new(ErrorCode::Invalid, ErrorClass::Odb, text).into());
        }
        Ok(())
    }
}
