//! The one door through which objects are written, and the note that some were.

use std::cell::Cell;
use std::rc::Rc;

use git2::{ErrorClass, ObjectType, Odb};
use handoff_base::ObjectId;

use super::error::GitError;
use super::object_id::object_id;

/// Whether objects came into a repository since it was opened.
#[derive(Clone, Debug, Default)]
pub(super) struct Grown(Rc<Cell<bool>>);

impl Grown {
    /// Notes that some did.
    pub(super) fn note(&self) {
        self.0.set(true);
    }

    /// Says whether that was noted.
    pub(super) fn is_noted(&self) -> bool {
        self.0.get()
    }
}

/// Writes an object, and once more where that fails: git removes a folder of loose
/// objects that it emptied, if need be in the moment in which one is put there.
///
/// # Errors
/// [`GitError`] when the object can't be written.
pub(super) fn write(odb: &Odb<'_>, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId, GitError> {
    const TIMES: u32 = 4;
    let mut times = 1;
    loop {
        match odb.write(kind, bytes) {
            Err(error) if error.class() == ErrorClass::Os && times < TIMES => times += 1,
            written => return Ok(object_id(written?)),
        }
    }
}
