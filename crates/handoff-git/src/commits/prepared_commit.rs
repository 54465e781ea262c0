//! Commits that are written unreachable first, and then published.

use git2::ObjectType;
use handoff_base::{Edit, ObjectId};

use super::{Person, commit_bytes};
use crate::error::{GitError, PublishError};
use crate::repository::Repository;
use crate::tree::{self, Mode, Shape};

impl Repository {
    /// Writes blobs, trees and a commit, without moving a ref.
    ///
    /// # Errors
    /// [`GitError`] when an object can't be read or written.
    pub fn prepare(&self, proposal: &Proposal<'_>) -> Result<Prepared<'_>, GitError> {
        let tree = self.write_proposed(proposal)?;
        let parent: Vec<ObjectId> = proposal.parent.iter().map(|(id, _)| *id).collect();
        let people = [proposal.author, proposal.committer];
        let text = commit_bytes(tree, &parent, people, None, proposal.message);
        let commit = self.write(ObjectType::Commit, text.as_bytes())?;
        Ok(self.prepared(proposal, commit))
    }

    /// Writes a commit's blobs and trees and returns its root tree, deduplicating equal blobs.
    pub(super) fn write_proposed(&self, proposal: &Proposal<'_>) -> Result<ObjectId, GitError> {
        let edits = proposal.edits;
        let mut written: Vec<(&[u8], ObjectId)> = Vec::with_capacity(edits.len());
        let mut entries = Vec::with_capacity(edits.len());
        for (path, edit) in edits {
            let entry = match edit {
                Edit::Gone => None,
                Edit::Folder(id) => {
                    // A missing tree would corrupt the branch.
                    self.object(*id, ObjectType::Tree)?;
                    Some((Mode::Folder, *id))
                }
                Edit::Bytes(bytes) => {
                    let known = written.iter().find(|(known, _)| known == bytes);
                    let id = match known {
                        Some(&(_, id)) => id,
                        None => {
                            let id = self.write(ObjectType::Blob, bytes)?;
                            written.push((bytes, id));
                            id
                        }
                    };
                    Some((Mode::Plain, id))
                }
            };
            entries.push((path.as_bytes(), entry));
        }
        let before = proposal.parent.map(|(_, tree)| tree);
        tree::edit(self, before, &mut entries, proposal.shape)
    }

    pub(crate) fn prepared(&self, proposal: &Proposal<'_>, commit: ObjectId) -> Prepared<'_> {
        Prepared {
            repository: self,
            refname: proposal.refname.to_owned(),
            expected: proposal.parent.map(|(commit, _)| commit),
            commit,
        }
    }
}

/// A commit to be written.
pub struct Proposal<'a> {
    /// The ref that will point to it.
    pub refname: &'a str,
    /// The ref's expected commit and its tree; `None` for a new ref.
    pub parent: Option<(ObjectId, ObjectId)>,
    /// The edits of the parent's tree.
    pub edits: &'a [(String, Edit)],
    /// Which of the tree's folders are divided.
    pub shape: Shape,
    /// Who wrote the change.
    pub author: &'a Person,
    /// Who makes the commit.
    pub committer: &'a Person,
    /// Its message.
    pub message: &'a str,
}

/// A written commit that no ref points to yet.
#[must_use = "a prepared commit is lost unless it is published"]
pub struct Prepared<'r> {
    repository: &'r Repository,
    refname: String,
    expected: Option<ObjectId>,
    commit: ObjectId,
}

impl Prepared<'_> {
    /// The commit that the ref must still be at.
    pub fn parent(&self) -> Option<ObjectId> {
        self.expected
    }

    /// The commit's id.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    /// Moves the ref to the commit, if it has not moved since the commit was prepared
    /// (compare-and-swap).
    ///
    /// # Errors
    /// [`PublishError`]; the ref is then unchanged by this call.
    pub fn publish(self, reflog: &str) -> Result<ObjectId, PublishError> {
        let Self {
            repository,
            refname,
            expected,
            commit,
        } = self;
        repository.move_ref(&refname, expected, commit, reflog)?;
        Ok(commit)
    }
}
