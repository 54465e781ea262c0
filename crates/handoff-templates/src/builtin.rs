//! The built-in protocols, embedded from `templates/` and `schemas/`: links to the top-level
//! folders, which cargo follows when it packages the crate.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::{fs, io};

use handoff_base::ObjectId;
use handoff_base::text::without_mark;
use handoff_contract::{MAX_BYTES, Schema, SchemaError};
use handoff_model::Schemas;
use handoff_protocol::SIGNERS;
use include_dir::{Dir, include_dir};

pub(crate) static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// The schemas of each built-in protocol. The rest of `schemas/` describes the program's output,
/// and is not embedded.
static SCHEMAS: [Dir<'static>; 6] = [
    include_dir!("$CARGO_MANIFEST_DIR/schemas/issue-to-pr"),
    include_dir!("$CARGO_MANIFEST_DIR/schemas/orchestrator-specialist"),
    include_dir!("$CARGO_MANIFEST_DIR/schemas/task-breakdown"),
    include_dir!("$CARGO_MANIFEST_DIR/schemas/delegation"),
    include_dir!("$CARGO_MANIFEST_DIR/schemas/directive"),
    include_dir!("$CARGO_MANIFEST_DIR/schemas/review"),
];

/// The names of the built-in protocols, in the order of their schemas; the first is the default.
pub const BUILT_IN: [&str; 6] = [
    "issue-to-pr",
    "orchestrator-specialist",
    "task-breakdown",
    "delegation",
    "directive",
    "review",
];

/// The smallest built-in protocol.
pub const SMALL: &str = BUILT_IN[5];

/// A protocol's files by path: `protocol.json`, `schemas/…`, `templates/…`.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    files: Vec<(String, Vec<u8>)>,
}

/// The files of a built-in protocol.
pub fn built_in(name: &str) -> Option<Folder> {
    let schemas = &SCHEMAS[BUILT_IN.iter().position(|known| *known == name)?];
    let templates = TEMPLATES.get_dir(name)?;
    let mut files = Vec::new();
    for (dir, folder) in [(templates, "templates"), (schemas, "schemas")] {
        for file in dir.files() {
            let name = file.path().file_name()?.to_str()?;
            let path = match name {
                "protocol.json" => name.to_owned(),
                _ => format!("{folder}/{name}"),
            };
            files.push((path, file.contents().to_vec()));
        }
    }
    Some(Folder { files })
}

// The built-in files by blob id, sorted: `SHIPPED`.
include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The content of a blob, if it is a built-in protocol's file.
pub fn shipped(id: ObjectId) -> Option<&'static [u8]> {
    let found = SHIPPED.binary_search_by(|(known, _)| (*known).cmp(id.as_bytes()));
    let (_, path) = SHIPPED[found.ok()?];
    let (folder, path) = path.split_once('/')?;
    if folder == "templates" {
        return Some(TEMPLATES.get_file(path)?.contents());
    }
    let (protocol, name) = path.split_once('/')?;
    let schemas = &SCHEMAS[BUILT_IN.iter().position(|known| *known == protocol)?];
    Some(schemas.get_file(name)?.contents())
}

/// The maximum number of files in a protocol's folder.
const MAX_FILES: usize = 500;

impl Folder {
    /// A folder with these texts.
    pub(crate) fn of(files: Vec<(String, String)>) -> Self {
        let files = files.into_iter();
        let mut files: Vec<_> = files
            .map(|(path, text)| (path, text.into_bytes()))
            .collect();
        files.sort();
        Self { files }
    }

    /// Reads a folder: `protocol.json`, `allowed_signers` if there is one, and the files in
    /// `schemas` and `templates`.
    ///
    /// # Errors
    /// When a file can't be read, or there are too many or too large ones.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut files = vec![(
            "protocol.json".to_owned(),
            read(&path.join("protocol.json"))?,
        )];
        if path.join(SIGNERS).symlink_metadata().is_ok() {
            files.push((SIGNERS.to_owned(), read(&path.join(SIGNERS))?));
        }
        for folder in ["schemas", "templates"] {
            let entries = match fs::read_dir(path.join(folder)) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                let Some(name) = name.to_str().filter(|n| !n.starts_with('.')) else {
                    continue;
                };
                if files.len() >= MAX_FILES {
                    let text = format!("it has more than {MAX_FILES} files");
                    return Err(io::Error::other(text));
                }
                // A link could point out of the folder.
                if !entry.file_type()?.is_file() {
                    let text = format!("{folder}/{name} is not a plain file");
                    return Err(io::Error::other(text));
                }
                files.push((format!("{folder}/{name}"), read(&entry.path())?));
            }
        }
        files.sort();
        Ok(Self { files })
    }

    /// A file's bytes.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        let found = self.files.iter().find(|(p, _)| p == path);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// All files, with their paths.
    pub fn into_files(self) -> Vec<(String, Vec<u8>)> {
        self.files
    }
}

/// Reads a file up to the size limit of a contract.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let name = || {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", name()));
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(named)?;
    file.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(named)?;
    if bytes.len() > MAX_BYTES {
        let text = format!("{} has more than {MAX_BYTES} bytes", name());
        return Err(io::Error::other(text));
    }
    Ok(without_mark(&bytes).to_vec())
}

/// Why a contract type's schema can't be read from a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file is missing.
    #[error("{path} is missing")]
    Missing {
        /// The path.
        path: String,
    },
    /// The file is not JSON.
    #[error("{path} is not JSON")]
    Json {
        /// The path.
        path: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The file is not a schema.
    #[error("{path} is not a usable schema")]
    Schema {
        /// The path.
        path: String,
        /// The cause.
        source: Box<SchemaError>,
    },
}

/// A folder's schemas, compiled on demand.
pub struct FolderSchemas {
    folder: Folder,
    compiled: RefCell<HashMap<String, Rc<Schema>>>,
}

impl FolderSchemas {
    /// Uses the schemas of this folder.
    pub fn new(folder: Folder) -> Self {
        Self {
            folder,
            compiled: RefCell::default(),
        }
    }
}

impl Schemas for FolderSchemas {
    type Error = FolderError;

    fn file(&self, file: &str) -> Result<Rc<Schema>, FolderError> {
        let path = || file.to_owned();
        if let Some(schema) = self.compiled.borrow().get(file) {
            return Ok(Rc::clone(schema));
        }
        let bytes = self.folder.file(file);
        let bytes = bytes.ok_or_else(|| FolderError::Missing { path: path() })?;
        let value = serde_json::from_slice(bytes).map_err(|source| FolderError::Json {
            path: path(),
            source,
        })?;
        let schema = Schema::compile_trusted(&value).map_err(|source| FolderError::Schema {
            path: path(),
            source: Box::new(source),
        })?;
        let schema = Rc::new(schema);
        self.compiled
            .borrow_mut()
            .insert(file.to_owned(), Rc::clone(&schema));
        Ok(schema)
    }

    fn names(&self) -> Result<Vec<String>, FolderError> {
        let files = self.folder.files.iter();
        let names = files.filter_map(|(path, _)| path.strip_prefix("schemas/"));
        Ok(names.map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use handoff_base::ObjectFormat;
    use handoff_git::blob_id;

    use super::{BUILT_IN, SHIPPED, built_in, shipped};

    #[test]
    fn every_file_that_ships_is_found_by_its_id() {
        let mut found = Vec::new();
        for name in BUILT_IN {
            for (path, bytes) in built_in(name).unwrap().into_files() {
                for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
                    let id = blob_id(&bytes, format).unwrap();
                    assert_eq!(shipped(id), Some(&bytes[..]), "{name}: {path}");
                    found.push(id);
                }
            }
        }
        found.sort();
        found.dedup();
        assert_eq!(found.len(), SHIPPED.len());
        assert_eq!(
            shipped(blob_id(b"another", ObjectFormat::Sha1).unwrap()),
            None
        );
    }
}
