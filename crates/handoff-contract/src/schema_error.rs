//! Why a schema is refused.

use super::cost::MAX_SCHEMA;
use super::shape::ShapeError;

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is not a valid JSON Schema 2020-12, or refers outside itself.
    #[error("the schema is not valid at `{path}`: {message}")]
    Invalid {
        /// JSON Pointer into the schema.
        path: String,
        /// What is wrong, without the schema's content.
        message: String,
    },
    /// It has a pattern that may take more than linear time.
    #[error(
        "the pattern at `{path}` has look-around or back-references, or is too large: write it without, so that it takes time in proportion to the text"
    )]
    Pattern {
        /// JSON Pointer into the schema.
        path: String,
    },
    /// It is not an object.
    #[error("a schema is a JSON object")]
    NotAnObject,
    /// Checking any value against it can take too long.
    #[error(
        "the schema applies more than {MAX_SCHEMA} schemas to one value, or nests too deeply: let fewer definitions refer to each other"
    )]
    TooLarge,
    /// A reference can't be resolved.
    #[error("the schema cannot be followed")]
    Shape(#[from] ShapeError),
}
