//! Detects from commits' content how a branch was merged into its base.

use std::rc::Rc;

use git2::{MergeFileInput, Oid};
use handoff_base::ObjectId;

use super::evidence::{Added, Differences, FactError, MOST_COMMITS, Unknown};
use crate::objects::{ToOid, blob_id, object_id};
use crate::repository::Repository;
use crate::tree::{EntryKind, Tree};

/// Why a root commit merged nothing.
const FIRST: &str = "it is the first commit of all";

struct Brief {
    parents: Vec<Oid>,
    message: Vec<u8>,
}

/// How a change on the base branch compares to the branch's own change.
enum Change {
    /// The same.
    Same,
    /// The same, except for conflicting lines, which somebody merged by hand.
    ByHand,
    /// Different; the text says how.
    Other(String),
}

/// What conflicting lines say of a commit on the base branch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// It may be the branch's work, with the conflict solved by hand.
    MayBeSolved,
    /// It is another change: nobody says that it is the branch's work.
    TellsApart,
}

impl Repository {
    /// Why a commit is not a two-parent merge of a branch; `None` if it is.
    ///
    /// # Errors
    /// [`FactError`] when history is missing or can't be read.
    pub fn not_a_merge(
        &self,
        merge: ObjectId,
        tip: Option<ObjectId>,
    ) -> Result<Option<String>, FactError> {
        let parents = self.known(self.brief(merge.oid()))?.parents;
        let Some((first, others)) = parents.split_first().filter(|(_, o)| !o.is_empty()) else {
            return Ok(Some(match parents[..] {
                [] => FIRST.to_owned(),
                _ => "it has one parent, and a merge has two".to_owned(),
            }));
        };
        let Some(tip) = tip else { return Ok(None) };
        if self.has_commit(object_id(*first), tip)? {
            return Ok(Some("the base branch had the work already".to_owned()));
        }
        for other in others {
            if self.has_commit(object_id(*other), tip)? {
                return Ok(None);
            }
        }
        Ok(Some(
            "what it merged does not hold the branch's commits".to_owned(),
        ))
    }

    /// Whether a commit has the work of a branch: its commits, or what a squash or a rebase of them
    /// gives.
    ///
    /// # Errors
    /// [`FactError`] when history is missing or can't be read.
    pub fn has_work(&self, merge: ObjectId, tip: ObjectId) -> Result<bool, FactError> {
        Ok(self.has_commit(merge, tip)?
            || self.not_a_squash(merge, Some(tip))?.is_none()
            || self.not_a_rebase(merge, Some(tip))?.is_none())
    }

    /// Why a commit is not the squash of a branch; `None` if it is, or may be one after a conflict.
    ///
    /// # Errors
    /// [`FactError`] when history is missing or can't be read.
    pub fn not_a_squash(
        &self,
        merge: ObjectId,
        tip: Option<ObjectId>,
    ) -> Result<Option<String>, FactError> {
        self.other_than_squash(merge, tip, Conflict::MayBeSolved)
    }

    pub(super) fn other_than_squash(
        &self,
        merge: ObjectId,
        tip: Option<ObjectId>,
        conflict: Conflict,
    ) -> Result<Option<String>, FactError> {
        let parents = self.known(self.brief(merge.oid()))?.parents;
        let [parent] = parents[..] else {
            return Ok(Some(match parents[..] {
                [] => FIRST.to_owned(),
                _ => "it has several parents, and a squashed commit has one".to_owned(),
            }));
        };
        let Some(tip) = tip else { return Ok(None) };
        let before = object_id(parent);
        if self.known(self.descends(tip, merge))? || tip == merge {
            let text = "it is one of the branch's own commits, so that nothing was squashed";
            return Ok(Some(text.to_owned()));
        }
        let added = self.added(before, tip)?;
        if added.commits.is_empty() {
            let text = "the branch has no commits of its own that the base branch had not";
            return Ok(Some(text.to_owned()));
        }
        let change = (before, merge);
        if let Some(why) = self.other_change(change, added.fork, tip, conflict)? {
            return Ok(Some(why));
        }
        // If the branch's earlier commits precede it, the branch was rebased, not squashed.
        let messages = self.messages(&added)?;
        let above = self.known(self.brief(parent))?;
        if messages.len() > 1 && parent != added.fork.oid() && messages.contains(&above.message) {
            let text = "the commit before it is one of the branch's, written again";
            return Ok(Some(text.to_owned()));
        }
        Ok(None)
    }

    /// Why a merge does not bring exactly a branch's change by other commits, as after a rebase;
    /// `None` if it does.
    pub(super) fn other_than_merged_again(
        &self,
        merge: ObjectId,
        tip: ObjectId,
    ) -> Result<Option<String>, FactError> {
        let [before, _, ..] = self.known(self.brief(merge.oid()))?.parents[..] else {
            return Ok(Some("it has one parent, and a merge has two".to_owned()));
        };
        let before = object_id(before);
        let added = self.added(before, tip)?;
        if added.commits.is_empty() {
            return Ok(Some("the base branch had the work already".to_owned()));
        }
        self.other_change((before, merge), added.fork, tip, Conflict::TellsApart)
    }

    /// Why a commit is not the tip of a rebased branch; `None` if it is, or may be one after a
    /// conflict.
    ///
    /// # Errors
    /// [`FactError`] when history is missing or can't be read.
    pub fn not_a_rebase(
        &self,
        merge: ObjectId,
        tip: Option<ObjectId>,
    ) -> Result<Option<String>, FactError> {
        self.other_than_rebase(merge, tip, Conflict::MayBeSolved)
    }

    pub(super) fn other_than_rebase(
        &self,
        merge: ObjectId,
        tip: Option<ObjectId>,
        conflict: Conflict,
    ) -> Result<Option<String>, FactError> {
        let last = self.known(self.brief(merge.oid()))?;
        if last.parents.len() > 1 {
            let text = "it has several parents, and a commit that was rebased has one";
            return Ok(Some(text.to_owned()));
        }
        let Some(tip) = tip else { return Ok(None) };
        if tip == merge {
            return Ok(None);
        }
        let Some(&parent) = last.parents.first() else {
            return Ok(Some(FIRST.to_owned()));
        };
        // A rebase drops commits that the base already contains.
        let added = self.added(object_id(parent), tip)?;
        let messages = self.messages(&added)?;
        let mut left = messages.iter();
        let (mut before, mut here) = (merge.oid(), last);
        while let ([parent], true) = (&here.parents[..], left.any(|m| *m == here.message)) {
            before = *parent;
            if before == added.fork.oid() {
                break;
            }
            here = self.known(self.brief(before))?;
        }
        if before == merge.oid() {
            let text = "its message is not one of the branch's commits, as it is when they are written again";
            return Ok(Some(text.to_owned()));
        }
        let before = object_id(before);
        let added = self.added(before, tip)?;
        self.other_change((before, merge), added.fork, tip, conflict)
    }

    /// The messages of a branch's commits, newest first, without merges.
    fn messages(&self, added: &Added) -> Result<Vec<Vec<u8>>, FactError> {
        let plain = added.commits.iter().filter(|(_, parents)| *parents < 2);
        let messages = plain.map(|(id, _)| Ok(self.brief(id.oid())?.message));
        self.known(messages.collect())
    }

    fn brief(&self, id: Oid) -> Result<Brief, FactError> {
        let commit = self.inner.find_commit(id)?;
        if commit.parent_count() == 0 && self.is_shallow() {
            return Err(Unknown::Shallow.into());
        }
        Ok(Brief {
            parents: commit.parent_ids().collect(),
            message: commit.message_bytes().trim_ascii().to_vec(),
        })
    }

    /// How the change on the base branch differs from the branch's own; `None` if they are equal.
    fn other_change(
        &self,
        (before, merge): (ObjectId, ObjectId),
        fork: ObjectId,
        tip: ObjectId,
        conflict: Conflict,
    ) -> Result<Option<String>, FactError> {
        let branch = self.differences(fork, tip)?;
        match self.change(before, merge, &branch, fork, tip)? {
            Change::Same => return Ok(None),
            Change::Other(why) => return Ok(Some(why)),
            Change::ByHand if conflict == Conflict::TellsApart => {
                let text = "the base branch changed the same lines";
                return Ok(Some(text.to_owned()));
            }
            Change::ByHand => {}
        }
        // Conflicting lines may also have been edited after the merge.
        for id in self.first_parents(before).take(MOST_COMMITS) {
            let id = self.known(id.map_err(FactError::from))?;
            if id == fork {
                break;
            }
            let [parent] = self.known(self.brief(id.oid()))?.parents[..] else {
                continue;
            };
            let change = self.change(object_id(parent), id, &branch, fork, tip)?;
            if matches!(change, Change::Same) {
                let text = format!("the work came with commit {} already", id.short());
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Compares a change on the base branch with the result of merging the branch there. `branch`
    /// is the branch's change since `fork`.
    fn change(
        &self,
        before: ObjectId,
        merge: ObjectId,
        branch: &Differences,
        fork: ObjectId,
        tip: ObjectId,
    ) -> Result<Change, FactError> {
        let merged = self.differences(before, merge)?;
        if let Some(path) = merged.keys().find(|path| !branch.contains_key(*path)) {
            let text = format!("it changes {path}, which the branch does not");
            return Ok(Change::Other(text));
        }
        let base = self.differences(fork, before)?;
        let (mut new, mut by_hand) = (false, false);
        for (path, held) in branch {
            let wanted = match base.get(path) {
                Some(known) if known != held => {
                    match self.known(self.merged_file(path, fork, before, tip))? {
                        Some(both) => Some(both),
                        None => {
                            by_hand = true;
                            continue;
                        }
                    }
                }
                _ => *held,
            };
            let had = base.get(path) == Some(&wanted);
            match merged.get(path) {
                Some(found) if *found != wanted => {
                    let text = format!("{path} is not as it is on the branch");
                    return Ok(Change::Other(text));
                }
                None if !had => {
                    let text = format!("it does not change {path}, as the branch does");
                    return Ok(Change::Other(text));
                }
                _ => new |= !had,
            }
        }
        Ok(match (new || branch.is_empty(), by_hand) {
            (true, _) => Change::Same,
            (false, true) => Change::ByHand,
            (false, false) => Change::Other("the base branch had the work already".to_owned()),
        })
    }

    /// A file that both sides changed, merged as git merges it; `None` on a conflict.
    fn merged_file(
        &self,
        path: &str,
        fork: ObjectId,
        before: ObjectId,
        tip: ObjectId,
    ) -> Result<Option<ObjectId>, FactError> {
        let read = |commit| -> Result<Option<Rc<[u8]>>, FactError> {
            Ok(match Tree::new(self, self.tree_of(commit)?).entry(path)? {
                Some((EntryKind::File, id)) => Some(self.blob(id)?),
                // A submodule's commit is usually not an object of this repository.
                Some((EntryKind::Other, id)) if self.has(id) => Some(self.blob(id)?),
                _ => None,
            })
        };
        let (Some(old), Some(ours), Some(theirs)) = (read(fork)?, read(before)?, read(tip)?) else {
            return Ok(None);
        };
        // Binary files can't be merged line by line.
        if [&old, &ours, &theirs]
            .iter()
            .any(|bytes| bytes.contains(&0))
        {
            return Ok(None);
        }
        let merged = git2::merge_file(
            MergeFileInput::new().content(&old),
            MergeFileInput::new().content(&ours),
            MergeFileInput::new().content(&theirs),
            None,
        )?;
        if merged.is_automergeable() {
            Ok(Some(blob_id(merged.content(), self.format())?))
        } else {
            Ok(None)
        }
    }
}
