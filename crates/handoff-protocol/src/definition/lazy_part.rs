//! A lazily parsed part of a definition.

use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A part that is kept as text and parsed on first use. GitHub's rules take half as long to parse
/// as everything else, and most commands never need them.
#[derive(Clone, Debug)]
pub struct Later<T> {
    text: Box<RawValue>,
    read: OnceLock<T>,
}

impl<T: DeserializeOwned + Default> Later<T> {
    /// The parsed part. Text that fails to parse is read as empty; loading a protocol has refused
    /// it already.
    pub fn get(&self) -> &T {
        let read = || serde_json::from_str(self.text.get()).unwrap_or_default();
        self.read.get_or_init(read)
    }

    /// The part's stored text.
    pub(crate) fn text(&self) -> &str {
        self.text.get()
    }
}

impl<'de, T> Deserialize<'de> for Later<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self {
            text: Box::deserialize(deserializer)?,
            read: OnceLock::new(),
        })
    }
}
