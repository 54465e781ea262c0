//! Offline steps that the remote's state refused: each is kept under its own ref until someone
//! retries or drops it.

use std::rc::Rc;

use handoff_base::ObjectId;
use handoff_base::explained::{Explained, chain};
use handoff_base::ids::HandoffId;
use handoff_base::text::summary_line;
use handoff_git::{Commit, KeptCommit};
use handoff_model::{View, trailers};
use schemars::JsonSchema;
use serde::Serialize;

use super::divergence::Apart;
use super::rerun::{Origins, Rerun, begun};
use crate::error::{LedgerError, RerunError};
use crate::ledger::Ledger;
use crate::session::Session;

/// An offline step that was refused when it was repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rejected {
    /// The name under which it is kept.
    pub name: String,
    /// Its offline commit.
    pub commit: ObjectId,
    /// The id that its handoff had at that time; null for a protocol or a document.
    pub id: Option<HandoffId>,
    /// What it did, in one line.
    pub subject: String,
    /// Why it was refused.
    pub reason: String,
}

/// A refused step, its commit's message, and the contract that it sent.
pub type RejectedStep = (Rejected, String, Option<Rc<[u8]>>);

impl Rejected {
    fn of(name: &str, commit: &Commit, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            commit: commit.id,
            id: handoff(&commit.message),
            subject: commit.message.lines().next().unwrap_or_default().to_owned(),
            reason: reason.trim_end().to_owned(),
        }
    }
}

/// The handoff in a commit's message.
fn handoff(message: &str) -> Option<HandoffId> {
    let found = trailers(message);
    let (_, id) = found.iter().find(|(name, _)| *name == "Handoff-Id")?;
    id.parse().ok()
}

/// The name of a refused step's ref.
fn name_of(commit: &Commit) -> String {
    let name = handoff(&commit.message).map_or_else(|| "shared".to_owned(), |id| id.to_string());
    format!("{name}-{}", commit.id.short())
}

impl Ledger<'_> {
    /// The folder of refused steps' refs.
    fn rejected_folder(&self) -> String {
        format!("refs/handoff/rejected/{}/", self.branch())
    }

    pub(super) fn keep_rejected(
        &self,
        session: &Session,
        commit: &Commit,
        reason: &LedgerError,
    ) -> Result<Rejected, LedgerError> {
        let mut text = chain(reason);
        for finding in reason.explanation().findings {
            text += &format!("; {}", finding.message);
        }
        let name = name_of(commit);
        let reason = summary_line(&text);
        let refname = format!("{}{name}", self.rejected_folder());
        let message = format!("{reason}\n");
        let repository = self.repository();
        repository.keep(&refname, commit.id, &message, &session.committer())?;
        let own = self.memory().kept();
        for kept in repository.kept(&refname)? {
            if kept.commit == commit.id && !own.contains(&kept.at) {
                self.memory().keeps(kept.at)?;
            }
        }
        Ok(Rejected::of(&name, commit, &reason))
    }

    fn kept(&self) -> Result<Vec<(Rejected, KeptCommit)>, LedgerError> {
        let folder = self.rejected_folder();
        let mut found = Vec::new();
        let own = self.memory().kept();
        // A fetch of all refs also brings those of other clones.
        let all = self.repository().kept(&folder)?;
        for kept in all.into_iter().filter(|kept| own.contains(&kept.at)) {
            let commit = self.repository().commit(kept.commit)?;
            let name = kept.refname.strip_prefix(&folder).unwrap_or_default();
            let rejected = Rejected::of(name, &commit, &kept.message);
            found.push((commit.committer.at, rejected, kept));
        }
        // In the order of their time: a step comes after those it depends on.
        found.sort_by_key(|(at, ..)| *at);
        let found = found.into_iter();
        Ok(found.map(|(_, rejected, kept)| (rejected, kept)).collect())
    }

    fn kept_as(&self, name: &str) -> Result<(Rejected, KeptCommit), LedgerError> {
        let mut kept = self.kept()?.into_iter();
        let found = kept.find(|(rejected, _)| rejected.name == name);
        let name = name.to_owned();
        Ok(found.ok_or(RerunError::NoRejected(name))?)
    }

    /// The refused steps, oldest first.
    ///
    /// # Errors
    /// [`LedgerError`] if they can't be read.
    pub fn rejected(&self) -> Result<Vec<Rejected>, LedgerError> {
        Ok(self
            .kept()?
            .into_iter()
            .map(|(rejected, _)| rejected)
            .collect())
    }

    /// A refused step, its message, and the contract that it sent, if it sent one.
    ///
    /// # Errors
    /// [`LedgerError`] if none has that name, or it can't be read.
    pub fn rejected_step(&self, name: &str) -> Result<RejectedStep, LedgerError> {
        let (rejected, kept) = self.kept_as(name)?;
        let commit = self.repository().commit(kept.commit)?;
        let mut contract = None;
        if let (Some(id), true) = (&rejected.id, begun(&commit.message).is_some()) {
            let step = self.at(kept.commit)?;
            let folder = step.issue(id.issue())?;
            if let Some(record) = folder.record(id.number())? {
                contract = Some(folder.contract(&record)?);
            }
        }
        Ok((rejected, commit.message, contract))
    }

    /// Repeats a refused step, and removes it from the kept ones.
    ///
    /// # Errors
    /// [`LedgerError`], also if it is refused again; it stays in that case.
    pub fn retry_rejected(
        &mut self,
        session: &Session,
        name: &str,
    ) -> Result<Rejected, LedgerError> {
        let (rejected, kept) = self.kept_as(name)?;
        let commit = self.repository().commit(kept.commit)?;
        loop {
            let tip = self.existing()?;
            let apart = Apart::read(self, kept.commit, tip)?;
            if apart.published.contains_key(&kept.commit) {
                break;
            }
            let origins = self.known_again(&apart, tip)?;
            let mut rerun = Rerun::new(self.aside(tip), session, origins);
            rerun.step(&commit)?;
            let made = rerun.tip()?;
            if made == tip || self.put(session, tip, made)? {
                break;
            }
        }
        self.repository().let_go(&kept)?;
        Ok(rejected)
    }

    /// The new ids of handoffs that were begun offline. If the ledger already has the same
    /// contract, the handoff of that one.
    fn known_again(&self, apart: &Apart, tip: ObjectId) -> Result<Origins, LedgerError> {
        let mut origins = apart.origins();
        let now = self.at(tip)?;
        for commit in &apart.own {
            let Some(then) = begun(&commit.message) else {
                continue;
            };
            let folder = self.at(commit.id)?;
            let folder = folder.issue(then.issue())?;
            if let Some(record) = folder.record(then.number())?
                && !apart.published.contains_key(&commit.id)
            {
                let bytes = folder.contract(&record)?;
                let there = now.issue(then.issue())?.sent_before(&bytes)?;
                if let Some(number) = there.first() {
                    origins.put(then.clone(), HandoffId::new(then.issue().clone(), *number));
                }
            }
        }
        Ok(origins)
    }

    /// Drops a refused step.
    ///
    /// # Errors
    /// [`LedgerError`] if none has that name, or it can't be removed.
    pub fn drop_rejected(&self, name: &str) -> Result<Rejected, LedgerError> {
        let (rejected, kept) = self.kept_as(name)?;
        self.repository().let_go(&kept)?;
        Ok(rejected)
    }
}
