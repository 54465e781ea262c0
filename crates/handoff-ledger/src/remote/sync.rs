//! Bringing this clone and the remote together.

use std::time::{Duration, Instant};

use handoff_base::ObjectId;
use handoff_git::{Depth, PublishError};
use serde::Serialize;

use super::apart::Apart;
use super::publish::Landing;
use super::rejected::Rejected;
use super::rerun::{Renamed, Rerun};
use super::{Reach, Upstream};
use crate::error::LedgerError;
use crate::session::Session;
use crate::tally::Work;
use crate::verify::{Audit, AuditScope};
use crate::write::Ledger;

/// What bringing both sides together came to.
#[derive(Debug, Default)]
pub struct Synced {
    /// How many commits the remote had that were not here.
    pub brought: usize,
    /// How many commits went there.
    pub pushed: usize,
    /// How many of those were made again on the remote's state.
    pub rerun: usize,
    /// The handoffs that have another id now.
    pub renamed: Vec<Renamed>,
    /// The steps that the remote's state refused, and that are kept.
    pub rejected: Vec<Rejected>,
}

/// How this clone's ledger lies to its remote's, as it was seen last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteDistance {
    /// The remote.
    pub remote: String,
    /// How many commits are here and not there.
    pub unpublished: usize,
    /// How many are there, and were fetched, and are not on the branch here.
    pub behind: usize,
    /// Whether the remote was ever reached.
    pub seen: bool,
}

impl Ledger<'_> {
    /// How this ledger lies to its remote's, as it was seen last; none where it has
    /// no remote.
    ///
    /// # Errors
    /// [`LedgerError`] when a ref or a commit can't be read.
    pub fn beside_remote(&self) -> Result<Option<RemoteDistance>, LedgerError> {
        let Some(upstream) = self.upstream() else {
            return Ok(None);
        };
        let (here, there) = (self.tip_id()?, upstream.known()?);
        let (unpublished, behind) = match (here, there) {
            (Some(here), Some(there)) if here == there => (0, 0),
            (Some(here), Some(there)) => self.repository().ahead_and_behind(here, there)?,
            (Some(here), None) => (self.count(here, None)?, 0),
            (None, _) => (0, 0),
        };
        Ok(Some(RemoteDistance {
            remote: upstream.name.clone(),
            unpublished,
            behind,
            seen: there.is_some(),
        }))
    }

    /// Brings this clone and the remote together, as far as the remote can be
    /// reached; nothing is done where there is none, or where it is not to be
    /// asked.
    ///
    /// # Errors
    /// [`LedgerError`]; steps that were recorded here stay.
    pub fn catch_up(&self, session: &Session) -> Result<Synced, LedgerError> {
        let Some(upstream) = self.upstream() else {
            return Ok(Synced::default());
        };
        if session.offline {
            *upstream.reach.borrow_mut() = Reach::Offline;
        }
        if upstream.is_settled() {
            return Ok(Synced::default());
        }
        self.guard(session)?;
        upstream.begin(session);
        if upstream.was_seen_since(session, upstream.known()?) {
            *upstream.reach.borrow_mut() = Reach::Reached;
            return self.reconcile(session, upstream);
        }
        self.bring(session, upstream)
    }

    /// The same, where it is what is asked for. Where steps are `set_aside`, those that a
    /// hook of the remote refuses are kept like those that the ledger refuses.
    ///
    /// # Errors
    /// [`LedgerError`], also where there is no remote, or where it can't be reached.
    pub fn sync(&self, session: &Session, set_aside: bool) -> Result<Synced, LedgerError> {
        let upstream = self.upstream().ok_or(LedgerError::NoRemote)?;
        upstream.set_aside.set(set_aside);
        let synced = self.catch_up(session)?;
        upstream.end();
        self.reached(upstream)?;
        Ok(synced)
    }

    /// Sends what was recorded here alone since the ledger was opened, as far as the
    /// remote can be reached.
    ///
    /// # Errors
    /// [`LedgerError`]; what was recorded here stays.
    pub fn publish_recorded(&self, session: &Session) -> Result<Synced, LedgerError> {
        let Some(upstream) = self.upstream() else {
            return Ok(Synced::default());
        };
        let mut synced = Synced::default();
        if upstream.is_reached() {
            upstream.begin(session);
            synced = self.reconcile(session, upstream)?;
        }
        upstream.settle(self.tip_id()?)?;
        Ok(synced)
    }

    /// Brings the remote's ledger here and sends nothing; says how many commits
    /// came.
    ///
    /// # Errors
    /// [`LedgerError`], also where there is no remote, or where it can't be reached.
    pub fn fetch(&self, session: &Session, depth: Depth) -> Result<usize, LedgerError> {
        let upstream = self.upstream().ok_or(LedgerError::NoRemote)?;
        self.guard(session)?;
        upstream.begin(session);
        let known = upstream.known()?;
        let there = if depth == Depth::Missing && upstream.was_seen_since(session, known) {
            known
        } else {
            session.tally.begin(Work::Fetching, None);
            upstream.look(session, depth)?
        };
        self.reached(upstream)?;
        let mut synced = Synced::default();
        let Some(there) = there else {
            return Ok(0);
        };
        upstream.fill(there)?;
        let here = self.tip_id()?;
        let leads_on = match here {
            None => true,
            Some(here) => self.repository().is_in_history(here, there)?,
        };
        if leads_on {
            self.advance(session, here, there, &mut synced)?;
        }
        upstream.end();
        Ok(synced.brought)
    }

    /// Fails where the remote was not reached.
    pub(crate) fn reached(&self, upstream: &Upstream<'_>) -> Result<(), LedgerError> {
        let Reach::Unreachable(trouble) = &*upstream.reach.borrow() else {
            return Ok(());
        };
        Err(LedgerError::Unreachable {
            remote: upstream.name.clone(),
            trouble: trouble.clone(),
        })
    }

    /// Looks at the remote, and brings both sides together.
    pub(super) fn bring(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
    ) -> Result<Synced, LedgerError> {
        session.tally.begin(Work::Fetching, None);
        upstream.look(session, Depth::Missing)?;
        if upstream.is_reached() {
            self.reconcile(session, upstream)
        } else {
            Ok(Synced::default())
        }
    }

    /// Brings this clone's branch and the remote's together, which was looked at.
    pub(super) fn reconcile(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
    ) -> Result<Synced, LedgerError> {
        let mut synced = Synced::default();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let there = upstream.known()?;
            let here = self.tip_id()?;
            let common = match (here, there) {
                (None, None) => return Ok(synced),
                (here, there) if here == there => return Ok(synced),
                (Some(here), Some(there)) => {
                    let common = self.repository().common_ancestor(here, there)?;
                    Some(common.ok_or_else(|| LedgerError::Unrelated {
                        remote: upstream.name.clone(),
                        branch: self.branch().to_owned(),
                    })?)
                }
                _ => None,
            };
            let moved = match (here, there) {
                (here, Some(there)) if here == common => {
                    self.advance(session, here, there, &mut synced)?
                }
                (Some(here), None) => {
                    self.send_as_is(session, upstream, (here, None), attempts, &mut synced)?
                }
                (Some(here), Some(there)) => {
                    let together = Together {
                        here,
                        there,
                        attempts,
                        singly: false,
                    };
                    let ahead = Some(there) == common;
                    self.send_own(session, upstream, together, ahead, &mut synced)?
                }
                (None, _) => true,
            };
            if !moved {
                return Ok(synced);
            }
        }
    }

    /// Sends the steps that only this clone has; says whether there may be more to do. They
    /// are the very commits where this clone is `ahead` of the remote, and made again where
    /// it is not; what plain git put among them is judged like everything that is made again.
    fn send_own(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
        together: Together,
        ahead: bool,
        synced: &mut Synced,
    ) -> Result<bool, LedgerError> {
        let Together {
            here,
            there,
            attempts,
            ..
        } = together;
        let sent = if ahead && self.is_legal(session, here, there)? {
            self.send_as_is(session, upstream, (here, Some(there)), attempts, synced)
        } else {
            self.go_on(session, upstream, together, synced)
        };
        match sent {
            Err(error) if upstream.sets_aside(&error) => {
                let singly = Together {
                    singly: true,
                    ..together
                };
                self.go_on(session, upstream, singly, synced)
            }
            other => other,
        }
    }

    /// Sends the commits that lead to one from where the remote's branch is, if it is
    /// anywhere; says whether there may be more to do.
    fn send_as_is(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
        (here, there): (ObjectId, Option<ObjectId>),
        attempts: u32,
        synced: &mut Synced,
    ) -> Result<bool, LedgerError> {
        let new = self.count(here, there)?;
        session.tally.begin(Work::Sending, Some(new));
        let landing = upstream.push(session, here)?;
        if matches!(landing, Landing::There) {
            synced.pushed += new;
        }
        self.after_push(session, upstream, landing, attempts)
    }

    /// Says whether what leads from one commit to another are legal steps.
    fn is_legal(
        &self,
        session: &Session,
        here: ObjectId,
        there: ObjectId,
    ) -> Result<bool, LedgerError> {
        let since = AuditScope {
            issue: None,
            since: Some(there),
            tally: Some(&session.tally),
        };
        Ok(Audit::run(self.repository(), here, since, 1)?.is_clean())
    }

    /// Makes the steps that only this clone has again on the remote's state, and
    /// sends them; says whether there may be more to do.
    fn go_on(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
        together: Together,
        synced: &mut Synced,
    ) -> Result<bool, LedgerError> {
        let Together {
            here,
            there,
            attempts,
            singly,
        } = together;
        let start = Instant::now();
        let apart = Apart::read(self, here, there)?;
        let aside = self.aside(there);
        let mut rerun = Rerun::new(&aside, session, apart.origins()).keeping_times();
        let mut refused = Vec::new();
        session
            .tally
            .begin(Work::MakingAgain, Some(apart.own.len()));
        for commit in &apart.own {
            session.tally.add(1);
            if apart.published.contains_key(&commit.id) {
                continue;
            }
            let before = aside.existing()?;
            if let Some(reason) = rerun.take(commit)? {
                refused.push((commit, reason));
                continue;
            }
            let made = aside.existing()?;
            if !singly || made == before {
                continue;
            }
            match upstream.push(session, made) {
                Ok(Landing::There) => {}
                Ok(landing) => return self.after_push(session, upstream, landing, attempts),
                Err(error) if error.is_of_a_hook() => {
                    rerun.take_back(commit, before);
                    refused.push((commit, error));
                }
                Err(error) => return Err(error),
            }
        }
        let (tip, renamed) = (aside.existing()?, rerun.renamed());
        let made = self.count(tip, Some(there))?;
        upstream.prolong(start.elapsed());
        if tip != there && !singly {
            session.tally.begin(Work::Sending, Some(made));
            let landing = upstream.push(session, tip)?;
            if !matches!(landing, Landing::There) {
                return self.after_push(session, upstream, landing, attempts);
            }
        }
        for (commit, reason) in refused {
            synced
                .rejected
                .push(self.keep_rejected(session, commit, &reason)?);
        }
        match self.move_branch(session, Some(here), tip, "handoff: sync") {
            Ok(()) => {}
            Err(PublishError::Moved) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        self.memory().saw(tip);
        synced.brought += apart.theirs;
        synced.pushed += made;
        synced.rerun += made;
        synced.renamed.extend(renamed);
        Ok(false)
    }

    /// Puts commits that lead on from this clone's branch on the remote, as far as it
    /// can be reached, and here; says whether they are there now, or have to be made
    /// again.
    pub(super) fn put(
        &self,
        session: &Session,
        here: ObjectId,
        tip: ObjectId,
    ) -> Result<bool, LedgerError> {
        let upstream = self.upstream().filter(|there| there.is_reached());
        if let Some(upstream) = upstream {
            let landing = upstream.push(session, tip)?;
            if !matches!(landing, Landing::There)
                && self.after_push(session, upstream, landing, 1)?
            {
                self.reconcile(session, upstream)?;
                return Ok(false);
            }
        }
        match self.move_branch(session, Some(here), tip, "handoff: retry") {
            Ok(()) => self.memory().wrote(Some(here), tip),
            Err(PublishError::Moved) => {
                // Someone here recorded a step offline meanwhile.
                if let Some(upstream) = upstream {
                    self.reconcile(session, upstream)?;
                }
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.settle(None)?;
        Ok(true)
    }

    /// After a push: looks at the remote again where that may help; says whether it does.
    fn after_push(
        &self,
        session: &Session,
        upstream: &Upstream<'_>,
        landing: Landing,
        attempts: u32,
    ) -> Result<bool, LedgerError> {
        match landing {
            Landing::There => return Ok(true),
            Landing::Behind if upstream.left() == Duration::ZERO => {
                return Err(LedgerError::Contended { attempts });
            }
            Landing::Behind | Landing::Doubtful => {}
        }
        upstream.pause(session);
        if upstream.is_reached() {
            upstream.look(session, Depth::Missing)?;
        }
        Ok(upstream.is_reached())
    }

    /// Moves this clone's branch on to the remote's.
    fn advance(
        &self,
        session: &Session,
        here: Option<ObjectId>,
        there: ObjectId,
        synced: &mut Synced,
    ) -> Result<bool, LedgerError> {
        if here == Some(there) {
            return Ok(false);
        }
        if here.is_none() {
            // Not everything of that name is a ledger.
            self.at(there)?;
        }
        let new = self.count(there, here)?;
        match self.move_branch(session, here, there, "handoff: fetch") {
            Ok(()) => {
                self.memory().wrote(here, there);
                synced.brought += new;
                Ok(false)
            }
            Err(PublishError::Moved) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// How many commits lead from one to another.
    fn count(&self, tip: ObjectId, from: Option<ObjectId>) -> Result<usize, LedgerError> {
        let mut count = 0;
        for id in self.repository().first_parents(tip) {
            if Some(id?) == from {
                break;
            }
            count += 1;
        }
        Ok(count)
    }
}

/// Two lines of steps that are to become one.
#[derive(Clone, Copy)]
struct Together {
    /// Where this clone's branch is.
    here: ObjectId,
    /// Where the remote's is.
    there: ObjectId,
    /// How often it was tried.
    attempts: u32,
    /// Whether each step is sent by itself, to learn which of them a hook refuses.
    singly: bool,
}
