//! Reads and writes stored files.
//!
//! Every stored file has a version; reading an unknown version is an error.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version that every stored file carries.
pub const VERSION: u32 = 4;

/// A stored file that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// It is malformed.
    #[error("it is not a valid record")]
    Form(#[source] serde_json::Error),
    /// It was written by another version of the program.
    #[error("it has version {version}, and this program reads {VERSION}")]
    Version {
        /// The version that it states.
        version: u32,
    },
}

/// A stored file.
pub trait Stored: DeserializeOwned {
    /// The version that it states.
    fn version(&self) -> u32;
}

/// Makes types with a member `version` stored files.
macro_rules! stored {
    ($($kind:ty),+) => {$(
        impl crate::record::Stored for $kind {
            fn version(&self) -> u32 {
                self.version
            }
        }
    )+};
}
pub(super) use stored;

/// The part of a file that is read to find its version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads a stored file.
///
/// # Errors
/// [`StoredError`] if it is malformed or has another version.
pub fn read<T: Stored>(bytes: &[u8]) -> Result<T, StoredError> {
    let known = |version| match version {
        VERSION => Ok(()),
        version => Err(StoredError::Version { version }),
    };
    // Validating the UTF-8 of all bytes at once is faster than of each string.
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str::<T>(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    match parsed {
        Ok(file) => known(file.version()).map(|()| file),
        Err(error) => {
            if let Ok(Versioned { version }) = serde_json::from_slice(bytes) {
                known(version)?;
            }
            Err(StoredError::Form(error))
        }
    }
}

/// Writes a stored file in canonical form: indented, with a final line break.
pub fn write<T: Serialize>(value: &T) -> Vec<u8> {
    /// The usual length of a file.
    const LENGTH: usize = 2048;
    let mut bytes = Vec::with_capacity(LENGTH);
    serde_json::to_writer_pretty(&mut bytes, value)
        .expect("stored types have string keys and no failing serializers");
    bytes.push(b'\n');
    bytes
}
