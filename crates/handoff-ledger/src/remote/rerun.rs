//! A step that was made offline, made again on another state.

use std::collections::{HashMap, HashSet};

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{ObjectId, to_second};
use handoff_contract::Input;
use handoff_git::{Commit, Repository, Tree};
use handoff_model::{Update, View, layout, trailers};
use handoff_protocol::Event;
use serde::Serialize;

use crate::contract_match::Offer;
use crate::error::LedgerError;
use crate::failure::kept_for;
use crate::protocol_store::PutMode;
use crate::recorded_step::{
    KnownRules, RecordedRequest, RecordedStep, Shared, States, issues_of, shared_of,
};
use crate::sending::{Gathered, Origin};
use crate::session::{Session, SetTime};
use crate::snapshot::{IssueFolder, Rules};
use crate::write::Ledger;

/// A handoff that has another id since its steps were brought together with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Renamed {
    /// The id that it had offline.
    pub was: HandoffId,
    /// Its id.
    pub is: HandoffId,
}

/// What became of the handoffs that were begun offline.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// Those that were taken, by the id they had then.
    taken: HashMap<HandoffId, HandoffId>,
    /// Those that were not, or not yet.
    left: HashSet<HandoffId>,
    /// Those whose claim was refused, by the id they had then: what its holder did is
    /// not to be done on somebody else's claim.
    lost: HashSet<HandoffId>,
}

impl Origins {
    /// Learns from what a commit said then, and what it says now.
    pub(super) fn taken(&mut self, then: &str, now: &str) {
        if let (Some(then), Some(now)) = (begun(then), begun(now)) {
            self.put(then, now);
        }
    }

    /// Notes the id that a handoff has now.
    pub(super) fn put(&mut self, then: HandoffId, now: HandoffId) {
        self.left.remove(&then);
        self.taken.insert(then, now);
    }

    /// Learns from what a commit says that was not taken.
    pub(super) fn left(&mut self, then: &str) {
        self.left.extend(begun(then));
    }

    /// Learns from what a commit says that was refused.
    fn refused(&mut self, then: &str) {
        if let Some(begun) = begun(then) {
            self.taken.remove(&begun);
        }
        self.left(then);
        self.lost.extend(claimed(then));
    }

    /// Refuses what the holder of a handoff did under a claim that was refused.
    fn ensure_lease_held(&self, then: &HandoffId) -> Result<(), LedgerError> {
        if self.lost.contains(then) {
            Err(LedgerError::NotTaken { id: then.clone() })
        } else {
            Ok(())
        }
    }

    /// The id that a handoff has now.
    fn now(&self, then: HandoffId) -> Result<HandoffId, LedgerError> {
        if let Some(now) = self.taken.get(&then) {
            return Ok(now.clone());
        }
        if self.left.contains(&then) {
            Err(LedgerError::NotTaken { id: then })
        } else {
            Ok(then)
        }
    }

    /// The ids that are others now.
    fn renamed(&self) -> Vec<Renamed> {
        let changed = self.taken.iter().filter(|(was, is)| was != is);
        let mut changed: Vec<Renamed> = changed
            .map(|(was, is)| Renamed {
                was: was.clone(),
                is: is.clone(),
            })
            .collect();
        changed.sort_by(|one, other| one.was.cmp(&other.was));
        changed
    }
}

/// The handoff that a commit began, as its message tells.
pub(super) fn begun(message: &str) -> Option<HandoffId> {
    changed(message, |change| change.starts_with("none.."))
}

/// The handoff that a commit claimed, as its message tells.
fn claimed(message: &str) -> Option<HandoffId> {
    changed(message, |change| change.ends_with("..in_progress"))
}

/// The first handoff that a commit changed in such a way.
fn changed(message: &str, how: impl Fn(&str) -> bool) -> Option<HandoffId> {
    let found = trailers(message).into_iter();
    let mut changes = found.filter(|(name, _)| *name == "Transition");
    changes.find_map(|(_, text)| {
        let (id, change) = text.split_once(' ')?;
        how(change).then(|| id.parse().ok())?
    })
}

/// Makes steps again, one after the other, on the ledger as it is now.
pub(super) struct Rerun<'a, 'r> {
    ledger: &'a Ledger<'r>,
    repository: &'r Repository,
    session: Session,
    /// Set where steps keep the times at which they were made.
    time: Option<SetTime>,
    rules: KnownRules<'r>,
    origins: Origins,
}

impl<'a, 'r> Rerun<'a, 'r> {
    /// Begins on a ledger, as of now.
    pub(super) fn new(ledger: &'a Ledger<'r>, session: &Session, origins: Origins) -> Self {
        Self {
            ledger,
            repository: ledger.repository(),
            session: session.clone(),
            time: None,
            rules: KnownRules::default(),
            origins,
        }
    }

    /// Lets the steps keep their times, as far as no other step of their issues is
    /// later.
    pub(super) fn keeping_times(mut self) -> Self {
        let (session, time) = self.session.timed();
        self.session = session;
        self.time = Some(time);
        self
    }

    /// The handoffs that have another id now.
    pub(super) fn renamed(&self) -> Vec<Renamed> {
        self.origins.renamed()
    }

    /// Makes a step again; says why, where the ledger refuses it.
    ///
    /// # Errors
    /// [`LedgerError`] when something can't be read or written.
    pub(super) fn take(&mut self, commit: &Commit) -> Result<Option<LedgerError>, LedgerError> {
        let before = self.ledger.existing()?;
        match self.step(commit) {
            Ok(()) => Ok(None),
            Err(error) if error.is_unreadable() || matches!(error, LedgerError::Signing(_)) => {
                Err(error)
            }
            Err(error) => {
                self.take_back(commit, before);
                Ok(Some(error))
            }
        }
    }

    /// Takes a step back that was refused; `before` is where the ledger was then.
    pub(super) fn take_back(&mut self, commit: &Commit, before: ObjectId) {
        self.ledger.take_back_to(before);
        self.origins.refused(&commit.message);
    }

    /// Makes a step again.
    ///
    /// # Errors
    /// [`LedgerError`], also where the ledger refuses it.
    pub(super) fn step(&mut self, commit: &Commit) -> Result<(), LedgerError> {
        self.ledger.set_origin(Some(commit.id));
        let made = self.made(commit);
        self.ledger.set_origin(None);
        made
    }

    fn made(&mut self, commit: &Commit) -> Result<(), LedgerError> {
        let parent = commit.parents.first().copied();
        let old = match parent {
            Some(parent) => self.repository.commit(parent)?.tree,
            None => return Err(no_step(commit)),
        };
        let (old, new) = (
            Tree::new(self.repository, old),
            Tree::new(self.repository, commit.tree),
        );
        let changes = new.changes_since(Some(old.id()), layout::is_failure_folder)?;
        let touched: Vec<IssueKey> = issues_of(&changes).into_iter().collect();
        match (&touched[..], shared_of(&changes)) {
            ([key], _) => {
                let before = IssueFolder::open(self.repository, old, key)?;
                let after = IssueFolder::open(self.repository, new, key)?;
                let (was, is) = (before.issue()?, after.issue()?);
                let is = is.ok_or_else(|| no_step(commit))?;
                let protocol = &was.as_ref().unwrap_or(&is).protocol;
                let rules = self.rules.read(self.repository, old, protocol.as_str())?;
                let states = States {
                    was: was.as_ref(),
                    is: &is,
                    before: &before,
                    after: &after,
                };
                let recorded = states.recorded_step(&rules, &changes)?;
                let recorded = recorded.map_err(|findings| LedgerError::Contract { findings })?;
                self.set_time(commit, key)?;
                self.of_issue(key, recorded)
            }
            ([], Some(Shared::Protocol(name))) => {
                let files = Rules::read(self.repository, new, &name)?.files()?;
                let change = match self.ledger.tip()?.rules_id(&name)? {
                    Some(_) => PutMode::Update,
                    None => PutMode::Add,
                };
                self.own_time(commit);
                self.ledger
                    .put_protocol(&self.session, &files, change)
                    .map(drop)
            }
            ([], Some(Shared::Document(protocol, name))) => {
                let path = layout::document(&protocol, &name);
                let bytes = new.file(&path)?.ok_or(LedgerError::Missing { path })?;
                let parsed = (commit.author.name.parse(), protocol.parse());
                let (Ok(agent), Ok(protocol)) = parsed else {
                    return Err(no_step(commit));
                };
                self.own_time(commit);
                self.ledger
                    .put_document(&self.session, &agent, &protocol, &name, &bytes)
                    .map(drop)
            }
            _ => Err(no_step(commit)),
        }
    }

    /// Lets the next step have its own time.
    fn own_time(&self, commit: &Commit) {
        if let Some(time) = &self.time {
            time.set(Some(commit.author.at));
        }
    }

    /// Lets the next step have its own time, or that of the last one of its issue
    /// where that is later: no time runs backwards in an issue.
    fn set_time(&self, commit: &Commit, key: &IssueKey) -> Result<(), LedgerError> {
        self.own_time(commit);
        if let Some(time) = &self.time
            && let Some(issue) = self.ledger.tip()?.issue(key)?.issue()?
            && issue.updated_at > to_second(commit.author.at)
        {
            let zone = *commit.author.at.offset();
            time.set(Some(issue.updated_at.with_timezone(&zone)));
        }
        Ok(())
    }

    fn of_issue(&mut self, key: &IssueKey, recorded: RecordedStep) -> Result<(), LedgerError> {
        let (ledger, agent) = (self.ledger, &recorded.actor);
        // The trace is that in which it was made first, not that of whoever syncs.
        let session = &self
            .session
            .instead_of(recorded.traceparent, recorded.delivery);
        match recorded.request {
            RecordedRequest::Sent(contract, record) => {
                let answers = record.answers.clone().map(|id| self.origins.now(id));
                let answers = answers.transpose()?;
                let offer = Offer {
                    input: &Input::read(&contract.bytes),
                    agent: Some(agent),
                    issue: Some(key),
                    protocol: Some(&contract.protocol),
                    answers: answers.map(|id| id.number()),
                    token: None,
                    allow: &contract.allowed_secrets,
                    reports: None,
                };
                let known = Gathered {
                    code: record.code.clone(),
                    artifacts: record.artifacts.clone(),
                    evidence: record.evidence.clone(),
                    allowed_secrets: contract.allowed_secrets.clone(),
                };
                if let Some(follows) = &record.follows {
                    self.origins.ensure_lease_held(follows)?;
                }
                let was = record.follows.clone().map(|id| self.origins.now(id));
                let was = was.transpose()?;
                let done = ledger.send_with(session, &offer, Origin::Export(&known))?;
                let is = &done.receipt.record;
                if is.follows != was && !done.receipt.repeated {
                    let told = |id: &Option<HandoffId>| match id {
                        Some(id) => id.to_string(),
                        None => "nothing".to_owned(),
                    };
                    return Err(LedgerError::OtherHandoff {
                        was: told(&was),
                        now: told(&is.follows),
                    });
                }
                self.origins.put(record.id, is.id.clone());
                Ok(())
            }
            RecordedRequest::Update(update) => self.update(session, agent, key, update),
        }
    }

    /// Makes an update again, about the handoffs as they are numbered now.
    fn update(
        &mut self,
        session: &Session,
        agent: &AgentName,
        key: &IssueKey,
        mut update: Update,
    ) -> Result<(), LedgerError> {
        let ledger = self.ledger;
        let then = update.handoff().map(|n| HandoffId::new(key.clone(), n));
        let now = then.clone().map(|id| self.origins.now(id)).transpose()?;
        if let Some(now) = &now {
            update = update.renumbered(now.number());
        }
        let event = update.event();
        if let (Some(Event::Expire), Some(id)) = (event, &now) {
            return ledger.record_expiry(session, id).map(drop);
        }
        if let (Some(event), Some(then)) = (event, &then)
            && event.is_holders()
        {
            self.origins.ensure_lease_held(then)?;
        }
        if let (Update::Change { arguments, .. }, Some(id)) = (&mut update, &now) {
            arguments.allow.clone_from(&arguments.allowed_secrets);
            if let Some(context) = &arguments.context
                && let Some(record) = ledger.tip()?.issue(key)?.record(id.number())?
            {
                let kept = kept_for(self.repository, context, id, record.attempt)?;
                arguments.context = Some(kept);
            }
        }
        ledger.update(session, agent, key, &update)?;
        if let (Some(Event::Claim), Some(then)) = (event, &then) {
            self.origins.lost.remove(then);
        }
        Ok(())
    }
}

/// The failure for a commit that is not a ledger step, and so cannot be made again.
fn no_step(commit: &Commit) -> LedgerError {
    LedgerError::NoStep { commit: commit.id }
}
