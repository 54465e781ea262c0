//! The ledger's own refs, which keep otherwise unreachable commits.

use git2::{ErrorCode, ObjectType};
use handoff_base::ObjectId;

use crate::commits::Person;
use crate::error::{GitError, PublishError};
use crate::objects::{ToOid, object_id};
use crate::repository::Repository;
use crate::repository::Target;

/// A commit kept under its own ref, with a message.
pub struct Kept {
    /// The ref's name.
    pub refname: String,
    /// The commit.
    pub commit: ObjectId,
    /// Why it is kept.
    pub message: String,
    /// The tag object that the ref points to.
    pub at: ObjectId,
}

impl Repository {
    /// Keeps a commit under a new ref, with a message; an existing ref is left alone.
    ///
    /// # Errors
    /// [`PublishError`] when it can't be kept.
    pub fn keep(
        &self,
        refname: &str,
        commit: ObjectId,
        message: &str,
        by: &Person,
    ) -> Result<(), PublishError> {
        if self.resolve(refname)?.is_some() {
            return Ok(());
        }
        let name = refname.rsplit('/').next().unwrap_or_default();
        let text = format!("object {commit}\ntype commit\ntag {name}\ntagger {by}\n\n{message}");
        let tag = self.write(ObjectType::Tag, text.as_bytes())?;
        match self.move_ref(refname, None, tag, "") {
            Err(PublishError::Moved) => Ok(()),
            other => other,
        }
    }

    /// The commits kept under refs with this prefix, sorted by name.
    ///
    /// # Errors
    /// [`GitError`] when the refs can't be listed or one of them can't be read.
    pub fn kept(&self, prefix: &str) -> Result<Vec<Kept>, GitError> {
        let mut found = Vec::new();
        for (refname, target) in self.list_refs(prefix)? {
            let Target::Id(at) = target else {
                continue;
            };
            let tag = match self.inner.find_tag(at.oid()) {
                Ok(tag) => tag,
                // Not ours: a ref directly to a commit has no message.
                Err(error) if error.code() == ErrorCode::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let message = tag.message_bytes().unwrap_or_default();
            found.push(Kept {
                refname,
                at,
                commit: object_id(tag.target_id()),
                message: String::from_utf8_lossy(message).into_owned(),
            });
        }
        Ok(found)
    }

    /// Deletes a kept commit's ref, if it has not moved.
    ///
    /// # Errors
    /// [`PublishError`] when it moved or can't be removed.
    pub fn let_go(&self, kept: &Kept) -> Result<(), PublishError> {
        self.delete_ref(&kept.refname, kept.at)
    }
}
