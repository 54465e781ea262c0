//! What commands answer.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::view::Look;

/// The answer of a command: the one value from which its JSON document and its text are made.
///
/// The doc comments of its fields are what docs/json.md says about them.
pub trait Answer: Serialize + JsonSchema {
    /// The answer for people.
    fn text(&self, look: &Look) -> String;
}

/// Writes pairs as the members of an object, in their order.
pub fn as_object<K: Serialize, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}
