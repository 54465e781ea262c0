//! The only place where objects are written.

use std::cell::Cell;
use std::rc::Rc;

use git2::{ErrorClass, ObjectType, Odb};
use handoff_base::ObjectId;

use super::error::GitError;
use super::object_id::object_id;

/// Whether objects were added to a repository since it was opened.
#[derive(Clone, Debug, Default)]
pub(super) struct Grown(Rc<Cell<bool>>);

impl Grown {
    pub(super) fn note(&self) {
        self.0.set(true);
    }

    pub(super) fn is_noted(&self) -> bool {
        self.0.get()
    }
}

/// The number of attempts to write.
const TIMES: u32 = 4;

/// Writes an object, with retries: git may remove a folder of loose objects that it emptied just
/// when a new one is put there.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(super) fn write(odb: &Odb<'_>, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId, GitError> {
    Ok(object_id(retried(|| odb.write(kind, bytes))?))
}

/// Retries a few times if the file system fails.
fn retried<T>(mut write: impl FnMut() -> Result<T, git2::Error>) -> Result<T, git2::Error> {
    let mut times = 1;
    loop {
        match write() {
            Err(error) if error.class() == ErrorClass::Os && times < TIMES => times += 1,
            written => return written,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use std::fs;

    use git2::{ErrorClass, ErrorCode, ObjectType};

    use super::{TIMES, retried};

    #[test]
    fn a_write_whose_folder_is_removed_meanwhile_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(dir.path()).unwrap();
        let odb = repository.odb().unwrap();
        let (objects, away) = (dir.path().join("objects"), dir.path().join("away"));
        let mut times = 0;
        let written = retried(|| {
            times += 1;
            match times {
                1 => fs::rename(&objects, &away).unwrap(),
                2 => fs::rename(&away, &objects).unwrap(),
                _ => {}
            }
            odb.write(ObjectType::Blob, b"kept")
        });
        assert_eq!(times, 2);
        assert_eq!(odb.read(written.unwrap()).unwrap().data(), b"kept");
    }

    #[test]
    fn what_fails_every_time_or_of_something_else_fails() {
        let mut times = 0;
        let mut fail = |class: ErrorClass| {
            times = 0;
            let failed = retried::<()>(|| {
                times += 1;
                Err(git2::Error::new(ErrorCode::GenericError, class, "no"))
            });
            assert!(failed.is_err());
            times
        };
        assert_eq!(fail(ErrorClass::Os), TIMES);
        assert_eq!(fail(ErrorClass::Odb), 1);
    }
}
