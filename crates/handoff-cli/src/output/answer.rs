//! Answers of commands.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::view::Look;

/// The answer of a command: the source of both its JSON document and its text. docs/json.md is
/// generated from the doc comments of the fields.
pub trait Answer: Serialize + JsonSchema {
    /// The answer for people.
    fn text(&self, look: &Look) -> String;
}

/// Serializes pairs as members of an object, in order.
pub fn as_object<K: Serialize, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}
