//! Edits of a tree's paths.

use crate::ObjectId;

/// The edit of one path in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Write a regular file with these bytes.
    Bytes(Vec<u8>),
    /// Put an existing tree object at the path.
    Folder(ObjectId),
    /// Remove the path, with everything below it if it is a folder.
    Gone,
}
