//! Conversion between our object ids and libgit2's.

use git2::{ErrorClass, ErrorCode, ObjectType, Oid};
use handoff_base::{NoObjectId, ObjectId};

use super::error::GitError;

pub(super) trait ToOid {
    /// libgit2's form of this id.
    fn oid(self) -> Oid;
}

impl ToOid for ObjectId {
    fn oid(self) -> Oid {
        Oid::from_bytes(self.as_bytes()).expect("both have as many bytes")
    }
}

/// Our form of libgit2's id.
pub(super) fn object_id(oid: Oid) -> ObjectId {
    let bytes = oid.as_bytes().try_into();
    ObjectId::from_bytes(bytes.expect("both have as many bytes"))
}

impl From<NoObjectId> for GitError {
    /// A stored id that is invalid means damage.
    fn from(error: NoObjectId) -> Self {
        git2::Error::new(ErrorCode::Invalid, ErrorClass::Object, error.to_string()).into()
    }
}

/// The id of a blob with these bytes.
///
/// # Errors
/// [`GitError`] when libgit2 cannot hash, which only takes memory.
pub fn blob_id(bytes: &[u8]) -> Result<ObjectId, GitError> {
    Ok(object_id(Oid::hash_object(ObjectType::Blob, bytes)?))
}
