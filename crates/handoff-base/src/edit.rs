//! The changes of a step.

use crate::ObjectId;

/// The change of one path in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Write a regular file with these bytes.
    Bytes(Vec<u8>),
    /// Put this tree, which the repository has, at the path.
    Folder(ObjectId),
    /// Remove the path, which may be a whole folder.
    Gone,
}
