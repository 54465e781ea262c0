//! A part of a definition that few commands need.

use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A part of a definition that is kept as text and read when it is needed: the rules about GitHub
/// take as long to read as half of the rest, and most commands never look at them.
#[derive(Clone, Debug)]
pub struct Later<T> {
    text: Box<RawValue>,
    read: OnceLock<T>,
}

impl<T: DeserializeOwned + Default> Later<T> {
    /// The part. Loading a protocol refuses text that does not have its form; such a text is read as
    /// an empty part.
    pub fn get(&self) -> &T {
        let read = || serde_json::from_str(self.text.get()).unwrap_or_default();
        self.read.get_or_init(read)
    }

    /// The part as it is stored.
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
