//! Reading and writing stored files.
//!
//! Every stored file has a version; reading an unknown version is an error.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version that every stored file carries.
pub const VERSION: u32 = 1;

/// A stored file that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// It is malformed.
    #[error("it is not a valid record")]
    Form(#[source] serde_json::Error),
    /// It was written by a newer version of the program.
    #[error("it has version {0}, and this program reads {VERSION}")]
    Version(u32),
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads a stored file.
///
/// # Errors
/// [`StoredError`] if it is malformed or has another version.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoredError> {
    serde_json::from_slice(bytes).map_err(|error| match serde_json::from_slice(bytes) {
        Ok(Versioned { version }) if version != VERSION => StoredError::Version(version),
        _ => StoredError::Form(error),
    })
}

/// Writes a stored file: indented, with a final line break, always the same bytes for the same
/// value.
pub fn write<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .expect("stored types have string keys and no failing serializers");
    bytes.push(b'\n');
    bytes
}
