//! The kind of step that a commit is, by the paths that it changes.

use handoff_base::ObjectId;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_git::{Change, GitError, Repository};
use handoff_model::Scar;

use super::archive_step::{ArchiveStep, archive_step_of, step_changes};
use super::quarantine::scar_of;
use super::recorded_step::{Shared, issues_of, shared_of};

/// What a commit after the first one does, if it is a step.
#[doc(hidden)]
pub enum StepKind {
    /// It quarantines a commit.
    Quarantine(Scar),
    /// It removes these issues from the tip.
    Archive(Vec<IssueKey>),
    /// It restores this issue.
    Unarchive(IssueKey),
    /// It is a step of this issue.
    Issue(IssueKey),
    /// It puts this protocol in force.
    Protocol(String),
    /// It sets a document of this protocol.
    Document(String, AgentName),
    /// It pauses or resumes, or makes a protocol the default one.
    Manifest,
    /// No step changes these paths.
    Other,
}

impl StepKind {
    /// The kind of step between the trees of a commit's parent and its own, and what it changes.
    ///
    /// # Errors
    /// [`GitError`] if the trees can't be compared.
    pub fn of(
        repository: &Repository,
        (old, new): (ObjectId, ObjectId),
    ) -> Result<(Self, Vec<Change>), GitError> {
        let changes = step_changes(repository, old, new)?;
        let kind = if let Some(scar) = scar_of(repository, (old, new), &changes) {
            Self::Quarantine(scar)
        } else {
            match archive_step_of(&changes) {
                Some(ArchiveStep::Archive(keys)) => Self::Archive(keys),
                Some(ArchiveStep::Unarchive(key)) => Self::Unarchive(key),
                Some(ArchiveStep::Other) => Self::Other,
                None => Self::by_parts(&changes),
            }
        };
        Ok((kind, changes))
    }

    fn by_parts(changes: &[Change]) -> Self {
        let mut touched = issues_of(changes).into_iter();
        match (touched.next(), touched.next(), shared_of(changes)) {
            (Some(key), None, _) => Self::Issue(key),
            (None, None, Some(Shared::Protocol(name))) => Self::Protocol(name),
            (None, None, Some(Shared::Document(protocol, name))) => Self::Document(protocol, name),
            (None, None, Some(Shared::Manifest)) => Self::Manifest,
            _ => Self::Other,
        }
    }
}
