//! Moving refs by compare-and-swap, the ledger's own refs for kept commits, and how commits relate.

use git2::{ErrorCode, ObjectType};
use handoff_base::ObjectId;

use super::error::{GitError, PublishError};
use super::history::Person;
use super::object_id::{ToOid, object_id};
use super::repository::Repository;

/// A commit kept under a ref of its own, with a message.
pub struct Kept {
    /// The ref's name.
    pub refname: String,
    /// The commit.
    pub commit: ObjectId,
    /// Why it is kept.
    pub message: String,
}

impl Repository {
    /// Moves a ref from `expected` to another commit; `None` expects that the ref does not exist.
    ///
    /// # Errors
    /// [`PublishError`]; the ref is then unchanged by this call.
    pub fn move_ref(
        &self,
        refname: &str,
        expected: Option<ObjectId>,
        to: ObjectId,
        reflog: &str,
    ) -> Result<(), PublishError> {
        let before = expected.unwrap_or(ObjectId::zero(self.format())).oid();
        let moved = self
            .inner
            .reference_matching(refname, to.oid(), true, before, reflog);
        self.grown.note();
        moved.map_err(|error| match error.code() {
            ErrorCode::Modified | ErrorCode::NotFound | ErrorCode::Exists => PublishError::Moved,
            ErrorCode::Locked => {
                let lock = format!("{refname}.lock");
                PublishError::Locked(self.common_dir().join(lock))
            }
            _ => PublishError::Git(error.into()),
        })?;
        self.keep_fresh().map_err(|error| {
            // Nothing may lead to a commit with holes.
            let _ = self.move_back(refname, expected, to);
            PublishError::Git(error)
        })?;
        Ok(())
    }

    /// Moves a ref back to where it was before a move, if it is still where that left it.
    fn move_back(
        &self,
        refname: &str,
        before: Option<ObjectId>,
        now: ObjectId,
    ) -> Result<(), git2::Error> {
        let reflog = "handoff: its objects were removed";
        match before {
            Some(id) => {
                self.inner
                    .reference_matching(refname, id.oid(), true, now.oid(), reflog)?;
            }
            None => {
                let mut reference = self.inner.find_reference(refname)?;
                if reference.target() == Some(now.oid()) {
                    reference.delete()?;
                }
            }
        }
        Ok(())
    }

    /// The newest common ancestor of two commits.
    ///
    /// # Errors
    /// [`GitError`] when a commit between them can't be read.
    pub fn common_ancestor(
        &self,
        one: ObjectId,
        other: ObjectId,
    ) -> Result<Option<ObjectId>, GitError> {
        if self.is_shallow() {
            let (behind, _) = self.ancestors(other, |_| false)?;
            return Ok(self.ancestors(one, |id| behind.contains(&id))?.1);
        }
        match self.inner.merge_base(one.oid(), other.oid()) {
            Ok(id) => Ok(Some(object_id(id))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a commit is another one or among its ancestors.
    ///
    /// # Errors
    /// [`GitError`] when a commit between them can't be read.
    pub fn is_in_history(&self, commit: ObjectId, of: ObjectId) -> Result<bool, GitError> {
        if self.is_shallow() {
            return Ok(self.ancestors(of, |id| id == commit)?.1.is_some());
        }
        Ok(commit == of || self.inner.graph_descendant_of(of.oid(), commit.oid())?)
    }

    /// Keeps a commit under a new ref, with a message; an existing ref stays.
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
        for reference in self.inner.references_glob(&format!("{prefix}*"))? {
            let reference = reference?;
            let Some(target) = reference.target() else {
                continue;
            };
            let refname = String::from_utf8_lossy(reference.name_bytes()).into_owned();
            let tag = match self.inner.find_tag(target) {
                Ok(tag) => tag,
                // Not ours: a ref that points to a commit directly has no message.
                Err(error) if error.code() == ErrorCode::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let message = tag.message_bytes().unwrap_or_default();
            found.push(Kept {
                refname,
                commit: object_id(tag.target_id()),
                message: String::from_utf8_lossy(message).into_owned(),
            });
        }
        found.sort_by(|one, other| one.refname.cmp(&other.refname));
        Ok(found)
    }

    /// Deletes a kept commit's ref, if it has not moved.
    ///
    /// # Errors
    /// [`GitError`] when it moved or can't be removed.
    pub fn let_go(&self, kept: &Kept) -> Result<(), GitError> {
        let mut reference = self.inner.find_reference(&kept.refname)?;
        Ok(reference.delete()?)
    }
}
