//! The built-in protocols, embedded from `templates/` and `schemas/`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use include_dir::{Dir, include_dir};

use crate::contract::{Schema, SchemaError};
use crate::ledger::Schemas;
use crate::protocol::ContractType;

static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");
static SCHEMAS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/schemas");

/// The built-in protocols' names; the first is the default.
pub const BUILT_IN: [&str; 1] = ["issue-to-pr"];

/// A protocol's files by path in its folder: `protocol.json`, `schemas/…`,
/// `templates/…`.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    files: Vec<(String, Vec<u8>)>,
}

/// The files of a built-in protocol.
pub fn built_in(name: &str) -> Option<Folder> {
    let templates = TEMPLATES
        .get_dir(name)
        .filter(|_| BUILT_IN.contains(&name))?;
    let mut files = Vec::new();
    for (dir, folder) in [
        (Some(templates), "templates"),
        (SCHEMAS.get_dir(name), "schemas"),
    ] {
        for file in dir.into_iter().flat_map(Dir::files) {
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

impl Folder {
    /// One file's bytes.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        let found = self.files.iter().find(|(p, _)| p == path);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// All files.
    pub fn into_files(self) -> Vec<(String, Vec<u8>)> {
        self.files
    }
}

/// Why a contract type's schema can't be had from a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file is not there.
    #[error("{path} is missing")]
    Missing {
        /// The file.
        path: String,
    },
    /// The file is not JSON.
    #[error("{path} is not JSON")]
    Json {
        /// The file.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The file is not a schema.
    #[error("{path} is not a usable schema")]
    Schema {
        /// The file.
        path: String,
        /// Why.
        source: Box<SchemaError>,
    },
}

/// Compiles a folder's schemas as they are needed.
pub struct FolderSchemas {
    folder: Folder,
    compiled: RefCell<HashMap<String, Rc<Schema>>>,
}

impl FolderSchemas {
    /// Reads schemas from this folder.
    pub fn new(folder: Folder) -> Self {
        Self {
            folder,
            compiled: RefCell::default(),
        }
    }
}

impl Schemas for FolderSchemas {
    type Error = FolderError;

    fn schema(&self, kind: &ContractType) -> Result<Rc<Schema>, FolderError> {
        let path = || kind.schema.clone();
        if let Some(schema) = self.compiled.borrow().get(&kind.schema) {
            return Ok(Rc::clone(schema));
        }
        let bytes = self.folder.file(&kind.schema);
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
            .insert(kind.schema.clone(), Rc::clone(&schema));
        Ok(schema)
    }
}
