//! How every stored file is read and written.
//!
//! Each carries a version from the first day; reading an unknown one is an error
//! that says so.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version that every stored file carries.
pub const VERSION: u32 = 1;

/// A stored file that this program can't read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// It is not what it should be.
    #[error("it is not a valid record")]
    Form(#[source] serde_json::Error),
    /// It was written by a later program.
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
/// [`StoredError`] when it is malformed or of another version.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoredError> {
    serde_json::from_slice(bytes).map_err(|error| match serde_json::from_slice(bytes) {
        Ok(Versioned { version }) if version != VERSION => StoredError::Version(version),
        _ => StoredError::Form(error),
    })
}

/// Writes a stored file: indented, with a final line break, the same bytes for
/// the same value.
pub fn write<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .expect("stored types have string keys and no failing serializers");
    bytes.push(b'\n');
    bytes
}
