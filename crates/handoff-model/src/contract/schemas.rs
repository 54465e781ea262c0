//! Access to a protocol's schemas.

use std::rc::Rc;

use handoff_contract::Schema;
use handoff_protocol::ContractType;

/// Finds the compiled schema of a contract type.
pub trait Schemas {
    /// The error of finding a schema.
    type Error;

    /// The compiled schema of this type.
    ///
    /// # Errors
    /// When the file is missing or is not a JSON Schema.
    fn schema(&self, kind: &ContractType) -> Result<Rc<Schema>, Self::Error> {
        self.file(&kind.schema)
    }

    /// The compiled schema in a file of the protocol's folder.
    ///
    /// # Errors
    /// When the file is missing or is not a JSON Schema.
    fn file(&self, path: &str) -> Result<Rc<Schema>, Self::Error>;

    /// The names that contracts can use for schemas: the files in `schemas`.
    fn names(&self) -> Result<Vec<String>, Self::Error>;
}
