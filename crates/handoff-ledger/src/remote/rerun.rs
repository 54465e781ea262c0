//! Repeats an offline step on another state.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, FixedOffset};

use handoff_base::ObjectId;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_contract::Input;
use handoff_git::{Commit, Repository, Tree};
use handoff_model::layout::DEFINITION;
use handoff_model::{
    Assignment, Request, Update, View, archived_before, layout, only_setting_changed, trailers,
};
use handoff_protocol::Event;
use schemars::JsonSchema;
use serde::Serialize;

use crate::authority::WEAKER;
use crate::default_protocol::new_default;
use crate::error::{ContractError, LedgerError, RerunError, WriteError};
use crate::failure::kept_for;
use crate::halt::HaltChange;
use crate::ledger::Ledger;
use crate::protocol_store::{Consent, PutMode};
use crate::quarantine::Quarantine;
use crate::recorded_step::{RecordedStep, StepReader};
use crate::sending::Gathered;
use crate::session::{Session, SetTime, agent_of};
use crate::snapshot::{Rules, Snapshot};
use crate::step_kind::StepKind;

/// A handoff whose id changed when its steps were repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Renamed {
    /// The id that it had offline.
    pub was: HandoffId,
    /// Its id.
    pub is: HandoffId,
}

/// The new ids of handoffs that were begun offline.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// The ids of the published ones, by their offline id.
    taken: HashMap<HandoffId, HandoffId>,
    /// Those that are not published, or not yet.
    left: HashSet<HandoffId>,
    /// Those whose claim was refused, by their offline id: their worker's later steps must not
    /// count under another claim.
    lost: HashSet<HandoffId>,
}

impl Origins {
    /// Learns an id from a commit's offline and new message.
    pub(super) fn taken(&mut self, then: &str, now: &str) {
        if let (Some(then), Some(now)) = (begun(then), begun(now)) {
            self.put(then, now);
        }
    }

    /// Records a handoff's new id.
    pub(super) fn put(&mut self, then: HandoffId, now: HandoffId) {
        self.left.remove(&then);
        self.taken.insert(then, now);
    }

    /// Records the handoff of a commit that was not published.
    pub(super) fn left(&mut self, then: &str) {
        self.left.extend(begun(then));
    }

    /// Records the handoff of a commit that was refused.
    fn refused(&mut self, then: &str) {
        if let Some(begun) = begun(then) {
            self.taken.remove(&begun);
        }
        self.left(then);
        self.lost.extend(claimed(then));
    }

    /// Refuses a step under a refused claim.
    fn ensure_lease_held(&self, then: &HandoffId) -> Result<(), LedgerError> {
        if self.lost.contains(then) {
            Err(RerunError::NotTaken(then.clone()).into())
        } else {
            Ok(())
        }
    }

    /// A handoff's new id.
    fn now(&self, then: HandoffId) -> Result<HandoffId, LedgerError> {
        if let Some(now) = self.taken.get(&then) {
            return Ok(now.clone());
        }
        if self.left.contains(&then) {
            Err(RerunError::NotTaken(then).into())
        } else {
            Ok(then)
        }
    }

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

/// The handoff that a commit began, by its message.
pub(super) fn begun(message: &str) -> Option<HandoffId> {
    changed(message, |change| change.starts_with("none.."))
}

/// The handoff that a commit claimed, by its message.
fn claimed(message: &str) -> Option<HandoffId> {
    changed(message, |change| change.ends_with("..in_progress"))
}

/// The first handoff with such a transition in a commit's message.
fn changed(message: &str, how: impl Fn(&str) -> bool) -> Option<HandoffId> {
    let found = trailers(message).into_iter();
    let mut changes = found.filter(|(name, _)| *name == "Transition");
    changes.find_map(|(_, text)| {
        let (id, change) = text.split_once(' ')?;
        how(change).then(|| id.parse().ok())?
    })
}

/// Repeats steps one after the other, on a ledger whose branch does not move.
pub(super) struct Rerun<'r> {
    ledger: Ledger<'r>,
    repository: &'r Repository,
    session: Session,
    /// Set if steps keep their times.
    time: Option<SetTime>,
    reader: StepReader<'r>,
    origins: Origins,
}

impl<'r> Rerun<'r> {
    /// Begins on a ledger from [`Ledger::aside`].
    pub(super) fn new(ledger: Ledger<'r>, session: &Session, origins: Origins) -> Self {
        Self {
            repository: ledger.repository(),
            reader: StepReader::new(ledger.repository()),
            ledger,
            session: session.clone(),
            time: None,
            origins,
        }
    }

    /// Lets the steps keep their times, unless their issue has a later step.
    pub(super) fn keeping_times(mut self) -> Self {
        let (session, time) = self.session.timed();
        self.session = session;
        self.time = Some(time);
        self
    }

    /// The last repeated step, or the ledger's commit.
    pub(super) fn tip(&self) -> Result<ObjectId, LedgerError> {
        self.ledger.existing()
    }

    pub(super) fn renamed(&self) -> Vec<Renamed> {
        self.origins.renamed()
    }

    /// Repeats a step; returns the reason if the ledger refuses it.
    pub(super) fn take(&mut self, commit: &Commit) -> Result<Option<LedgerError>, LedgerError> {
        let before = self.tip()?;
        match self.step(commit) {
            Ok(()) => Ok(None),
            Err(error)
                if error.is_unreadable()
                    || matches!(error, LedgerError::Write(WriteError::Signing(_))) =>
            {
                Err(error)
            }
            Err(error) => {
                self.take_back(commit, before);
                Ok(Some(error))
            }
        }
    }

    /// Discards a refused step; `before` is the ledger's commit before it.
    pub(super) fn take_back(&mut self, commit: &Commit, before: ObjectId) {
        self.ledger.set_chain_tip(before);
        self.origins.refused(&commit.message);
    }

    /// Repeats a step.
    ///
    /// # Errors
    /// [`LedgerError`], also if the ledger refuses it.
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
        let trees = (old.id(), new.id());
        match StepKind::of(self.repository, trees)?.0 {
            StepKind::Quarantine(scar) => {
                self.own_time(commit);
                let request = Quarantine {
                    by: scar.by,
                    reason: scar.reason,
                    commit: scar.commit,
                    with_later: true,
                };
                self.ledger.quarantine(&self.session, &request).map(drop)
            }
            // The same issues, except those that changed meanwhile.
            StepKind::Archive(keys) => {
                self.own_time(commit);
                let before = archived_before(&commit.message).ok_or_else(|| no_step(commit))?;
                let done = self.ledger.archive_together(&self.session, &keys, before);
                done.map(drop)
            }
            // Unless that was done.
            StepKind::Unarchive(key) => {
                self.own_time(commit);
                self.ledger.unarchive(&self.session, &key)
            }
            StepKind::Issue(key) => {
                let states = self.reader.states(&key, old, new)?;
                let states = states.ok_or_else(|| no_step(commit))?;
                let recorded = states.recorded_step(&commit.message)?;
                let recorded = recorded.map_err(ContractError::Invalid)?;
                let at = recorded.step.at.with_timezone(commit.author.at.offset());
                self.set_time(at, &key)?;
                self.of_issue(commit, &key, recorded)
            }
            StepKind::Protocol(name) => self.of_protocol(commit, (old, new), &name),
            StepKind::Document(protocol, name) => {
                let path = layout::document(&protocol, &name);
                let bytes = new.file(&path)?.ok_or(LedgerError::missing(path))?;
                let parsed = (commit.author.name.parse(), protocol.parse());
                let (Ok(agent), Ok(protocol)) = parsed else {
                    return Err(no_step(commit));
                };
                self.own_time(commit);
                self.ledger
                    .put_document(&self.session, &agent, &protocol, &name, &bytes)
                    .map(drop)
            }
            StepKind::Manifest => {
                let [before, after] =
                    [old, new].map(|tree| Snapshot::in_tree(self.repository, tree.id()));
                let (before, after) = (before?, after?);
                if let Some(name) = new_default(before.manifest(), after.manifest()) {
                    self.own_time(commit);
                    self.session.agent = agent_of(&commit.author);
                    let is_weaker = is_weaker(&commit.message);
                    let done = self
                        .ledger
                        .use_protocol(&self.session, name.as_str(), is_weaker);
                    return done.map(drop);
                }
                let change = HaltChange::between(before.manifest(), after.manifest());
                let change = change.ok_or_else(|| no_step(commit))?;
                self.own_time(commit);
                self.ledger.halt(&self.session, &change).map(drop)
            }
            StepKind::Other => Err(no_step(commit)),
        }
    }

    /// Repeats a setting, or puts the same version in force with the settings made since.
    fn of_protocol(
        &mut self,
        commit: &Commit,
        (old, new): (Tree<'r>, Tree<'r>),
        name: &str,
    ) -> Result<(), LedgerError> {
        self.own_time(commit);
        self.session.agent = agent_of(&commit.author);
        let is_weaker = is_weaker(&commit.message);
        let path = layout::protocol_file(name, DEFINITION);
        let [before, after] = [old.file(&path)?, new.file(&path)?];
        let set = before.zip(after).and_then(|(before, after)| {
            let [before, after] = [std::str::from_utf8(&before), std::str::from_utf8(&after)];
            let (key, value) = only_setting_changed(before.ok()?, after.ok()?)?;
            Assignment::new(&key, &value).ok()
        });
        if let Some(set) = set {
            let done = self
                .ledger
                .set_in_protocol(&self.session, name, &set, is_weaker);
            return done.map(drop);
        }
        let files = Rules::read(self.repository, new, name)?.files()?;
        let known = self.ledger.tip()?.rules_id(name)?;
        let change = known.map_or(PutMode::Add, |_| PutMode::Update);
        let consent = Consent {
            weaker: is_weaker,
            past_limits: true,
        };
        self.ledger
            .put_protocol(&self.session, &files, change, consent)
            .map(drop)
    }

    /// Sets the next step's time to this commit's.
    fn own_time(&self, commit: &Commit) {
        if let Some(time) = &self.time {
            time.set(Some(commit.author.at));
        }
    }

    /// Sets the next step's time to that of a recorded one, or of its issue's last step if that is
    /// later: time never decreases within an issue.
    fn set_time(&self, at: DateTime<FixedOffset>, key: &IssueKey) -> Result<(), LedgerError> {
        let Some(time) = &self.time else {
            return Ok(());
        };
        let issue = self.ledger.tip()?.issue(key)?.issue()?;
        let last = issue.map(|issue| issue.updated_at.with_timezone(at.offset()));
        time.set(Some(last.map_or(at, |last| last.max(at))));
        Ok(())
    }

    fn of_issue(
        &mut self,
        commit: &Commit,
        key: &IssueKey,
        recorded: RecordedStep,
    ) -> Result<(), LedgerError> {
        let RecordedStep { mut step, sent, .. } = recorded;
        // The step keeps its original worker and trace.
        let session = &self.session.instead_of(&step);
        match (&mut step.request, sent) {
            (Request::Send(options), Some((contract, record))) => {
                let now = |number: Option<u32>| {
                    let then = number.map(|number| HandoffId::new(key.clone(), number));
                    let now = then.map(|then| self.origins.now(then)).transpose()?;
                    Ok::<_, LedgerError>(now.map(|id| id.number()))
                };
                options.answers = now(options.answers)?;
                options.replaces = now(options.replaces)?;
                // Tokens may differ here.
                options.token = None;
                if let Some(follows) = &record.follows {
                    self.origins.ensure_lease_held(follows)?;
                }
                let then = record.follows.as_ref().or(record.answers.as_ref());
                let was = then.cloned().map(|id| self.origins.now(id)).transpose()?;
                let sent = (&Input::read(&contract.bytes), &contract.protocol);
                let gathered = Gathered::of(&record);
                let done = self.ledger.resend(session, key, &step, sent, &gathered)?;
                let is = &done.receipt.record;
                let now = is.follows.as_ref().or(is.answers.as_ref());
                if now != was.as_ref() && !done.receipt.repeated {
                    let shown = |id: Option<&HandoffId>| match id {
                        Some(id) => id.to_string(),
                        None => "nothing".to_owned(),
                    };
                    return Err(RerunError::OtherHandoff {
                        was: shown(was.as_ref()),
                        now: shown(now),
                    }
                    .into());
                }
                self.origins.put(record.id.clone(), is.id.clone());
                Ok(())
            }
            (Request::Update(update), _) => {
                let update = update.clone();
                self.update(session, &step.by, key, update)
            }
            (Request::Send(_), None) => Err(no_step(commit)),
        }
    }

    /// Repeats an update, with the handoff's new number.
    fn update(
        &mut self,
        session: &Session,
        agent: &AgentName,
        key: &IssueKey,
        mut update: Update,
    ) -> Result<(), LedgerError> {
        let then = update.handoff().map(|n| HandoffId::new(key.clone(), n));
        let now = then.clone().map(|id| self.origins.now(id)).transpose()?;
        if let Some(now) = &now {
            update = update.renumbered(now.number());
        }
        let event = update.event();
        if let (Some(Event::Expire), Some(id)) = (event, &now) {
            return self.ledger.record_expiry(session, id).map(drop);
        }
        if let (Some(event), Some(then)) = (event, &then)
            && event.is_holders()
        {
            self.origins.ensure_lease_held(then)?;
        }
        if let (
            Update::Change {
                event, arguments, ..
            },
            Some(id),
        ) = (&mut update, &now)
        {
            arguments.allow.clone_from(&arguments.allowed_secrets);
            // Tokens may differ here.
            arguments.token = None;
            if let Some(context) = &arguments.context
                && let Some(record) = self.ledger.tip()?.issue(key)?.record(id.number())?
            {
                let kept = kept_for(self.repository, context, &record, *event)?;
                arguments.context = Some(kept);
            }
        }
        self.ledger.update(session, agent, key, &update)?;
        if let (Some(true), Some(then)) = (event.map(Event::is_claim), &then) {
            self.origins.lost.remove(then);
        }
        Ok(())
    }
}

/// The failure for a commit that is not a ledger step, and cannot be repeated.
fn no_step(commit: &Commit) -> LedgerError {
    RerunError::NoStep(commit.id).into()
}

/// Whether a recorded change of protocols says that it checks less.
fn is_weaker(message: &str) -> bool {
    trailers(message).iter().any(|(name, _)| *name == WEAKER)
}
