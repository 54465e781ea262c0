//! Conversion between our object ids and libgit2's.

use git2::{ErrorClass, ErrorCode, ObjectType, Oid};
use handoff_base::{NoObjectId, ObjectFormat, ObjectId};

use crate::error::GitError;

pub(crate) trait ToOid {
    fn oid(self) -> Oid;
}

impl ToOid for ObjectId {
    fn oid(self) -> Oid {
        Oid::from_bytes(self.as_bytes()).expect("both have the same formats")
    }
}

pub(crate) fn object_id(oid: Oid) -> ObjectId {
    ObjectId::from_bytes(oid.as_bytes()).expect("both have the same formats")
}

impl From<NoObjectId> for GitError {
    /// An invalid stored id means damage.
    fn from(error: NoObjectId) -> Self {
        git2::Error::new(ErrorCode::Invalid, ErrorClass::Object, error.to_string()).into()
    }
}

pub(crate) fn git2_format(format: ObjectFormat) -> git2::ObjectFormat {
    match format {
        ObjectFormat::Sha1 => git2::ObjectFormat::Sha1,
        ObjectFormat::Sha256 => git2::ObjectFormat::Sha256,
    }
}

pub(crate) fn object_format(inner: &git2::Repository) -> ObjectFormat {
    match inner.object_format() {
        git2::ObjectFormat::Sha1 => ObjectFormat::Sha1,
        git2::ObjectFormat::Sha256 => ObjectFormat::Sha256,
    }
}

/// The id of an object with these bytes.
///
/// # Errors
/// [`GitError`] when libgit2 cannot hash, which only needs memory.
pub(crate) fn hash(
    kind: ObjectType,
    bytes: &[u8],
    format: ObjectFormat,
) -> Result<ObjectId, GitError> {
    let oid = Oid::hash_object_ext(kind, bytes, git2_format(format))?;
    Ok(object_id(oid))
}

/// The id of a blob with these bytes.
///
/// # Errors
/// [`GitError`] when libgit2 cannot hash, which only needs memory.
pub fn blob_id(bytes: &[u8], format: ObjectFormat) -> Result<ObjectId, GitError> {
    hash(ObjectType::Blob, bytes, format)
}

/// A new bare repository of each format, for tests.
#[cfg(test)]
pub(super) fn of_each_format() -> [(ObjectFormat, tempfile::TempDir, git2::Repository); 2] {
    #![allow(clippy::unwrap_used)]
    [ObjectFormat::Sha1, ObjectFormat::Sha256].map(|format| {
        let folder = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).object_format(git2_format(format));
        let repository = git2::Repository::init_opts(folder.path(), &options).unwrap();
        (format, folder, repository)
    })
}
