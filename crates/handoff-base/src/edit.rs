//! What a step changes.

use crate::ObjectId;

/// What becomes of one path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A regular file has these bytes.
    Bytes(Vec<u8>),
    /// The folder is this tree, which the repository has.
    Folder(ObjectId),
    /// Nothing is there any more.
    Gone,
}
