//! Synchronizes this clone and the remote.

use std::time::{Duration, Instant};

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::{Depth, PublishError};
use handoff_model::{beyond_cost, trailers};
use schemars::JsonSchema;
use serde::Serialize;

use super::divergence::Apart;
use super::rejected_step::Rejected;
use super::rerun::{Renamed, Rerun};
use crate::error::{DamageError, LedgerError, UpstreamError, WriteError};
use crate::ledger::Ledger;
use crate::origin_code::CodePush;
use crate::session::Session;
use crate::tally::Work;
use crate::upstream::{Landing, Reach, Upstream};
use crate::verify::{Audit, AuditScope};

/// The result of a synchronization.
#[derive(Debug, Default)]
pub struct Synced {
    /// How many commits were fetched.
    pub brought: usize,
    /// How many commits were pushed.
    pub pushed: usize,
    /// How many of those were repeated on the remote's state.
    pub rerun: usize,
    /// The handoffs whose id has changed.
    pub renamed: Vec<Renamed>,
    /// The steps that the remote's state refused. They are kept.
    pub rejected: Vec<Rejected>,
    /// The code that was pushed before its steps, or could not be.
    pub code: Vec<CodePush>,
}

/// How this clone's ledger compares with its remote's, as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RemoteDistance {
    /// The remote.
    #[serde(skip)]
    pub remote: String,
    /// How many commits are here and not there.
    #[serde(skip)]
    pub unpublished: usize,
    /// Whether the remote was ever reached.
    pub seen: bool,
    /// How many commits are there, and were fetched, and are not on the branch here.
    pub behind: usize,
}

impl Ledger<'_> {
    /// How this ledger compares with its remote's, as last seen, if it has a remote.
    ///
    /// # Errors
    /// [`LedgerError`] if a ref or a commit can't be read.
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

    /// How many steps of an issue are in this history and not on the remote, as last seen.
    ///
    /// # Errors
    /// [`LedgerError`] if a commit can't be read.
    pub fn unpublished_steps(&self, tip: ObjectId, key: &IssueKey) -> Result<usize, LedgerError> {
        let there = self.upstream().map(Upstream::known).transpose()?.flatten();
        match there.filter(|there| *there != tip) {
            Some(there) => self.steps_beside(tip, Some(there), key),
            None => Ok(0),
        }
    }

    /// How many steps of an issue are in this history and not in the one `there`.
    pub(crate) fn steps_beside(
        &self,
        tip: ObjectId,
        there: Option<ObjectId>,
        key: &IssueKey,
    ) -> Result<usize, LedgerError> {
        let common = match there {
            Some(there) => self.repository().common_ancestor(tip, there)?,
            None => None,
        };
        let mut count = 0;
        for id in self.repository().first_parents(tip) {
            let id = id?;
            if Some(id) == common {
                break;
            }
            let message = self.repository().commit(id)?.message;
            let is_its = |(name, value): &(&str, &str)| *name == "Issue" && *value == key.as_str();
            count += usize::from(trailers(&message).iter().any(is_its));
        }
        Ok(count)
    }

    /// Synchronizes this clone and the remote, if the remote is reachable. Does nothing without a
    /// remote, offline, or if it was contacted already.
    ///
    /// # Errors
    /// [`LedgerError`]; steps that were recorded here stay.
    pub fn catch_up(&mut self, session: &Session) -> Result<Synced, LedgerError> {
        if !self.is_shared() {
            return Ok(Synced::default());
        }
        self.with_upstream(|ledger, upstream| ledger.catch_up_with(session, upstream))
    }

    fn catch_up_with(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
    ) -> Result<Synced, LedgerError> {
        if session.offline {
            upstream.reach = Reach::Offline;
        }
        if upstream.is_settled() {
            return Ok(Synced::default());
        }
        self.guard(session)?;
        upstream.begin(session);
        if upstream.was_seen_since(session, upstream.known()?) {
            upstream.reach = Reach::Reached;
        } else {
            session.tally.begin(Work::Fetching, None);
            upstream.look(session, Depth::Missing)?;
            if !upstream.is_reached() {
                return Ok(Synced::default());
            }
        }
        self.reconcile(session, upstream)
    }

    /// Synchronizes this clone and the remote. With `set_aside`, offline steps that a hook of the
    /// remote refuses are kept like those that the ledger refuses.
    ///
    /// # Errors
    /// [`LedgerError`], also if there is no remote or it is unreachable.
    pub fn sync(&mut self, session: &Session, set_aside: bool) -> Result<Synced, LedgerError> {
        self.with_upstream(|ledger, upstream| {
            upstream.set_aside = set_aside;
            let synced = ledger.catch_up_with(session, upstream)?;
            upstream.end();
            upstream.ensure_reached()?;
            Ok(synced)
        })
    }

    /// Pushes what was recorded only here since the ledger was opened, if the remote is reachable.
    ///
    /// # Errors
    /// [`LedgerError`]; what was recorded here stays.
    pub fn publish_recorded(&mut self, session: &Session) -> Result<Synced, LedgerError> {
        if !self.is_shared() {
            return Ok(Synced::default());
        }
        self.with_upstream(|ledger, upstream| {
            let mut synced = Synced::default();
            if upstream.is_reached() {
                upstream.begin(session);
                synced = ledger.reconcile(session, upstream)?;
            }
            upstream.settle(ledger.tip_id()?)?;
            Ok(synced)
        })
    }

    /// Fetches the remote's ledger and pushes nothing. Returns the number of new commits.
    ///
    /// # Errors
    /// [`LedgerError`], also if there is no remote or it is unreachable.
    pub fn fetch(&mut self, session: &Session, depth: Depth) -> Result<usize, LedgerError> {
        self.with_upstream(|ledger, upstream| {
            ledger.guard(session)?;
            upstream.brings_all = depth == Depth::All;
            upstream.begin(session);
            let known = upstream.known()?;
            let there = if depth == Depth::Missing && upstream.was_seen_since(session, known) {
                known
            } else {
                session.tally.begin(Work::Fetching, None);
                upstream.look(session, depth)?
            };
            upstream.ensure_reached()?;
            let Some(there) = there else {
                return Ok(0);
            };
            upstream.fill(there)?;
            let brought = ledger.fast_forward(session, there)?;
            upstream.end();
            Ok(brought)
        })
    }

    /// Fast-forwards this clone's branch if it is behind the remote's. Returns the number of new
    /// commits.
    pub(super) fn fast_forward(
        &self,
        session: &Session,
        there: ObjectId,
    ) -> Result<usize, LedgerError> {
        let here = self.tip_id()?;
        let leads_on = match here {
            None => true,
            Some(here) => self.repository().is_in_history(here, there)?,
        };
        let mut synced = Synced::default();
        if leads_on {
            self.ensure_affordable(here, there)?;
            self.advance(session, here, there, &mut synced)?;
        }
        Ok(synced.brought)
    }

    /// Synchronizes this clone's branch and the remote's, after looking at the remote.
    pub(super) fn reconcile(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
    ) -> Result<Synced, LedgerError> {
        let mut synced = Synced::default();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let there = upstream.known()?;
            let here = self.tip_id()?;
            if let Some(there) = there.filter(|there| here != Some(*there)) {
                self.ensure_affordable(here, there)?;
            }
            let common = match (here, there) {
                (None, None) => return Ok(synced),
                (here, there) if here == there => return Ok(synced),
                (Some(here), Some(there)) => {
                    let common = self.repository().common_ancestor(here, there)?;
                    Some(common.ok_or_else(|| UpstreamError::Unrelated {
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

    /// Pushes the steps that only this clone has; returns whether to continue. If this clone is
    /// `ahead` of the remote, the commits are pushed unchanged, unless plain git added one that is
    /// not a legal step; otherwise they are repeated.
    fn send_own(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
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
            self.make_again(session, upstream, together, synced)
        };
        match sent {
            Err(error) if upstream.sets_aside(&error) => {
                let singly = Together {
                    singly: true,
                    ..together
                };
                self.make_again(session, upstream, singly, synced)
            }
            other => other,
        }
    }

    /// Pushes this clone's commits unchanged, after the remote's branch if it exists; returns
    /// whether to continue.
    fn send_as_is(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        (here, there): (ObjectId, Option<ObjectId>),
        attempts: u32,
        synced: &mut Synced,
    ) -> Result<bool, LedgerError> {
        let new = self.count(here, there)?;
        session.tally.begin(Work::Sending, Some(new));
        self.push_code_of(session, (here, there), &mut synced.code)?;
        let landing = upstream.push(session, here)?;
        if matches!(landing, Landing::There) {
            synced.pushed += new;
        }
        self.after_push(session, upstream, landing, attempts)
    }

    /// Whether the commits since `there` are legal steps.
    fn is_legal(
        &self,
        session: &Session,
        here: ObjectId,
        there: ObjectId,
    ) -> Result<bool, LedgerError> {
        let since = AuditScope {
            since: Some(there),
            tally: Some(&session.tally),
            ..AuditScope::whole(session.now())
        };
        Ok(Audit::run(self.repository(), here, since, 1)?.is_clean())
    }

    /// Repeats the steps that only this clone has on the remote's state, and pushes them; returns
    /// whether to continue.
    fn make_again(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
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
        let mut rerun = Rerun::new(self.aside(there), session, apart.origins()).keeping_times();
        let mut refused = Vec::new();
        session
            .tally
            .begin(Work::MakingAgain, Some(apart.own.len()));
        for commit in &apart.own {
            session.tally.add(1);
            if apart.published.contains_key(&commit.id) {
                continue;
            }
            let before = rerun.tip()?;
            if let Some(reason) = rerun.take(commit)? {
                refused.push((commit, reason));
                continue;
            }
            let made = rerun.tip()?;
            if !singly || made == before {
                continue;
            }
            self.push_code_of(session, (made, Some(there)), &mut synced.code)?;
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
        let (tip, renamed) = (rerun.tip()?, rerun.renamed());
        let made = self.count(tip, Some(there))?;
        // Time spent without the remote does not count.
        upstream.attempts.deadline += start.elapsed();
        if tip != there && !singly {
            session.tally.begin(Work::Sending, Some(made));
            self.push_code_of(session, (tip, Some(there)), &mut synced.code)?;
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
        // Whoever is killed after the branch moved has seen where it is.
        self.memory().about_to_move(here, tip);
        let moved = self.move_branch(session, Some(here), tip, "handoff: sync");
        self.memory().saw(if moved.is_ok() { tip } else { here });
        match moved {
            Ok(()) => {}
            Err(PublishError::Moved) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        synced.brought += apart.theirs;
        synced.pushed += made;
        synced.rerun += made;
        synced.renamed.extend(renamed);
        Ok(false)
    }

    /// Publishes commits on top of this clone's tip, on the remote if it is reachable and then
    /// here. Returns `false` if they must be repeated.
    pub(super) fn put(
        &mut self,
        session: &Session,
        here: ObjectId,
        tip: ObjectId,
    ) -> Result<bool, LedgerError> {
        let is_reached = self.upstream().is_some_and(Upstream::is_reached);
        if is_reached {
            let is_there = self.with_upstream(|ledger, upstream| {
                let landing = upstream.push(session, tip)?;
                if matches!(landing, Landing::There)
                    || !ledger.after_push(session, upstream, landing, 1)?
                {
                    return Ok(true);
                }
                ledger.reconcile(session, upstream).map(|_| false)
            })?;
            if !is_there {
                return Ok(false);
            }
        }
        match self.move_branch(session, Some(here), tip, "handoff: retry") {
            Ok(()) => self.memory().moved(Some(here), tip),
            Err(PublishError::Moved) => {
                // Another process here recorded a step offline.
                if is_reached {
                    self.with_upstream(|ledger, upstream| ledger.reconcile(session, upstream))?;
                }
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.settle(None)?;
        Ok(true)
    }

    /// After a push: looks at the remote again if that may help; returns whether to continue.
    fn after_push(
        &self,
        session: &Session,
        upstream: &mut Upstream<'_>,
        landing: Landing,
        attempts: u32,
    ) -> Result<bool, LedgerError> {
        match landing {
            Landing::There => return Ok(true),
            Landing::Behind if upstream.left() == Duration::ZERO => {
                return Err(WriteError::Contended(attempts).into());
            }
            Landing::Behind | Landing::Doubtful => {}
        }
        upstream.pause(session);
        if upstream.is_reached() {
            upstream.look(session, Depth::Missing)?;
        }
        Ok(upstream.is_reached())
    }

    /// Fast-forwards this clone's branch to the remote's; returns whether to try again.
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
            // A branch of that name need not be a ledger.
            self.at(there)?;
        }
        let new = self.count(there, here)?;
        match self.move_branch(session, here, there, "handoff: fetch") {
            Ok(()) => {
                self.notice_strays(session.now());
                self.memory().moved(here, there);
                if here.is_none() {
                    self.audit_first(new, session.now());
                }
                synced.brought += new;
                Ok(false)
            }
            Err(PublishError::Moved) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses the remote's ledger if a protocol that is new to this clone exceeds the size limits,
    /// since every command would read it.
    fn ensure_affordable(
        &self,
        here: Option<ObjectId>,
        there: ObjectId,
    ) -> Result<(), LedgerError> {
        let here = here.map(|here| self.at(here)).transpose()?;
        // A reader of the broken part reports it.
        let Ok(there) = self.at(there) else {
            return Ok(());
        };
        for name in there.protocols()? {
            let known = match &here {
                Some(here) => here.rules_id(&name)?,
                None => None,
            };
            if known.is_some() && there.rules_id(&name)? == known {
                continue;
            }
            let files = there.rules(&name).and_then(|rules| rules.files());
            if let Some(finding) = files.ok().and_then(|files| beyond_cost(&files)) {
                let findings = vec![finding];
                return Err(DamageError::Protocol { name, findings }.into());
            }
        }
        Ok(())
    }

    /// How many commits lead from one commit to another.
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

/// Two histories to synchronize.
#[derive(Clone, Copy)]
struct Together {
    /// This clone's branch.
    here: ObjectId,
    /// The remote's branch.
    there: ObjectId,
    /// The number of attempts.
    attempts: u32,
    /// Whether to push each step alone, to find those that a hook refuses.
    singly: bool,
}
