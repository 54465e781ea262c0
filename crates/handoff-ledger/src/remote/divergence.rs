//! The steps that only this clone has, and those that only its remote has.

use std::collections::{HashMap, HashSet};

use handoff_base::ObjectId;
use handoff_git::Commit;
use handoff_model::trailers;

use super::rerun::Origins;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::origin::SYNCED_FROM;

/// Two histories since they diverged.
pub(super) struct Apart {
    /// The commits that only this clone has, oldest first.
    pub(super) own: Vec<Commit>,
    /// The repetitions of `own` commits that the remote has, by the local commit.
    pub(super) published: HashMap<ObjectId, Commit>,
    /// How many commits only the remote has.
    pub(super) theirs: usize,
}

impl Apart {
    /// Compares this clone's history up to `here` with the remote's up to `there`.
    pub(super) fn read(
        ledger: &Ledger<'_>,
        here: ObjectId,
        there: ObjectId,
    ) -> Result<Self, LedgerError> {
        let repository = ledger.repository();
        let common = repository.common_ancestor(here, there)?;
        let line = |tip: ObjectId| -> Result<Vec<Commit>, LedgerError> {
            let mut commits = Vec::new();
            for id in repository.first_parents(tip) {
                let id = id?;
                if Some(id) == common {
                    break;
                }
                commits.push(repository.commit(id)?);
            }
            commits.reverse();
            Ok(commits)
        };
        let (own, theirs) = (line(here)?, line(there)?);
        let known: HashSet<ObjectId> = own.iter().map(|commit| commit.id).collect();
        let count = theirs.len();
        let published = theirs.into_iter().filter_map(|commit| {
            let of = synced_from(&commit.message)?;
            known.contains(&of).then_some((of, commit))
        });
        Ok(Self {
            published: published.collect(),
            own,
            theirs: count,
        })
    }

    /// The new ids of handoffs that this clone began, as far as they are known.
    pub(super) fn origins(&self) -> Origins {
        let mut origins = Origins::default();
        for commit in &self.own {
            match self.published.get(&commit.id) {
                Some(now) => origins.taken(&commit.message, &now.message),
                None => origins.left(&commit.message),
            }
        }
        origins
    }
}

/// The offline commit that a step replaced, by its message.
fn synced_from(message: &str) -> Option<ObjectId> {
    let found = trailers(message);
    let (_, id) = found.iter().rev().find(|(name, _)| *name == SYNCED_FROM)?;
    id.parse().ok()
}
